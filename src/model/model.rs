//! The trait of a causal language model with a cache, and its rows of logits.
//!
//! Invariant: the length of the cache *is* the position; there is no second count beside it. This file
//! knows no tensor type and no model.

use crate::ids::TokenId;

/// Which rows of logits a forward pass returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows {
    /// That of the last token only.
    Last,
    /// One for every token given.
    All,
}

/// Rows of logits (natural-log odds, one `f32` per token id), each as long as the model's vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    width: usize,
}

impl Logits {
    /// Rows of `width` values each, one after the other. A last row that is not whole cannot be reached.
    #[must_use]
    pub fn new(values: Vec<f32>, width: usize) -> Self {
        debug_assert!(width > 0 && values.len().is_multiple_of(width), "rows are whole");
        Self { values, width }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// Length of a row: ids `0..width`.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `index`, counted from the first row returned.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        let start = index.checked_mul(self.width)?;
        self.values.get(start..start.checked_add(self.width)?)
    }

    /// The row that says what follows the last token given.
    #[must_use]
    pub fn last(&self) -> Option<&[f32]> {
        self.row(self.rows().checked_sub(1)?)
    }
}

/// A causal language model with a cache of the tokens it has seen.
pub trait Model: Send {
    /// What can go wrong.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Tokens held in the cache; the next token given is at this position.
    fn position(&self) -> usize;

    /// Most tokens the cache can hold.
    fn context(&self) -> usize;

    /// Length of a row of logits. May be more than the tokenizer has tokens (padding).
    fn vocabulary_size(&self) -> usize;

    /// Appends `tokens` (at least one) to the cache and returns rows of logits: row `i` is about the token
    /// that follows `tokens[i]` (for [`Rows::Last`]: the only row, about what follows the last one).
    ///
    /// One pass over n tokens and n passes over one give the same rows up to rounding.
    ///
    /// # Errors
    /// If there are no tokens, one is not in the model's vocabulary, they do not fit in the context, or the
    /// pass fails; the cache is then as before.
    fn forward(&mut self, tokens: &[TokenId], rows: Rows) -> Result<Logits, Self::Error>;

    /// Forgets all tokens from `position` on, in constant time: what comes next is as if they had never
    /// been given.
    ///
    /// # Errors
    /// If `position` is past the end of the cache.
    fn truncate(&mut self, position: usize) -> Result<(), Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_index() {
        let logits = Logits::new(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3);
        assert_eq!(logits.rows(), 2);
        assert_eq!(logits.row(1), Some(&[3.0, 4.0, 5.0][..]));
        assert_eq!(logits.last(), logits.row(1));
        assert_eq!(logits.row(2), None);
        assert_eq!(Logits::new(Vec::new(), 3).last(), None);
    }
}
