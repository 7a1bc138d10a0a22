//! Models behind one trait; logits are plain `f32`.

#[cfg(feature = "candle")]
pub mod candle;

use crate::ids::TokenId;

/// Which rows of logits a forward pass returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// That of the last token only.
    Last,
    /// One for every token given.
    All,
}

/// Rows of logits, each as long as the model's vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    width: usize,
}

impl Logits {
    /// Rows of `width` values each, one after the other.
    #[must_use]
    pub fn new(values: Vec<f32>, width: usize) -> Self {
        debug_assert!(width > 0 && values.len().is_multiple_of(width));
        Self { values, width }
    }
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len() / self.width.max(1)
    }
    /// Row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.width.max(1)).nth(index)
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
    /// Length of a row of logits.
    fn vocabulary_size(&self) -> usize;
    /// Appends `tokens` (at least one) to the cache and returns rows of logits.
    /// # Errors
    /// If the tokens do not fit or the pass fails; the cache is then as before.
    fn forward(&mut self, tokens: &[TokenId], rows: Rows) -> Result<Logits, Self::Error>;
    /// Forgets all tokens from `position` on, in constant time.
    /// # Errors
    /// If `position` is past the end of the cache.
    fn truncate(&mut self, position: usize) -> Result<(), Self::Error>;
}
