//! The trait of a causal language model with a cache, and its rows of logits.
//!
//! Invariant: the length of the cache *is* the position; there is no second count beside it. This file
//! knows no tensor type and no model.

use std::{num::NonZeroUsize, ops::Range, sync::Arc};

use super::batch::BatchModel;
use crate::{ids::TokenId, vocab::TokenSet};

/// Rows of logits that a forward pass returns, and the tokens whose logits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rows<'a> {
    /// The row of the last token.
    Last,
    /// A row for every token given.
    All,
    /// Rows of the last tokens, one for each of the sets (at most as many as there are tokens). Of each row
    /// the logits of its set's tokens count; the others are unspecified, but below plus infinity. A model
    /// need not compute them: where few tokens may follow, that saves most of the output product, which in
    /// small models is most of the pass.
    Among(&'a [TokenSet]),
}

impl<'a> Rows<'a> {
    /// Number of rows for a pass over `tokens` tokens.
    #[must_use]
    pub fn count(self, tokens: usize) -> usize {
        match self {
            Rows::Last => tokens.min(1),
            Rows::All => tokens,
            Rows::Among(sets) => sets.len().min(tokens),
        }
    }

    /// The sets of [`Among`](Self::Among); `None` if all of each row counts.
    #[must_use]
    pub fn sets(self) -> Option<&'a [TokenSet]> {
        match self {
            Rows::Last | Rows::All => None,
            Rows::Among(sets) => Some(sets),
        }
    }
}

/// Rows of logits (natural-log odds, one `f32` per token id), each as long as the model's vocabulary.
#[derive(Debug, Clone)]
pub struct Logits {
    values: Arc<Vec<f32>>,
    /// The rows that these are of, where several share the numbers.
    range: Range<usize>,
    width: usize,
}

impl Logits {
    /// Wraps rows of `width` values each, one after the other. An incomplete last row is out of reach.
    #[must_use]
    pub fn new(values: Vec<f32>, width: usize) -> Self {
        debug_assert!(width > 0 && values.len().is_multiple_of(width), "rows are whole");
        Self { range: 0..values.len(), values: Arc::new(values), width }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.range.len() / self.width.max(1)
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
        self.values()?.get(start..start.checked_add(self.width)?)
    }

    /// The last row: what follows the last token given.
    #[must_use]
    pub fn last(&self) -> Option<&[f32]> {
        self.row(self.rows().checked_sub(1)?)
    }

    /// Returns `count` rows from `first` on, fewer if there are no more. Copies nothing.
    #[must_use]
    pub fn part(&self, first: usize, count: usize) -> Self {
        let place = |row: usize| self.range.start.saturating_add(row.saturating_mul(self.width));
        let start = place(first).min(self.range.end);
        let end = place(first.saturating_add(count)).min(self.range.end);
        Self { values: Arc::clone(&self.values), range: start..end, width: self.width }
    }

    /// The numbers, for reuse of their memory; `None` if other rows share them.
    #[must_use]
    pub fn into_values(self) -> Option<Vec<f32>> {
        Arc::into_inner(self.values)
    }

    /// All rows, one after the other.
    fn values(&self) -> Option<&[f32]> {
        self.values.get(self.range.clone())
    }
}

impl PartialEq for Logits {
    fn eq(&self, other: &Self) -> bool {
        self.width == other.width && self.values() == other.values()
    }
}

/// Rows that a model has left on the device that computed them.
pub type Kept<E> = Box<dyn KeptRows<Error = E>>;

/// A borrowed batch model: the caches of several sequences.
pub type Batch<'a, E> = &'a mut dyn BatchModel<Error = E>;

/// Counts of passes on a device, by how they were queued.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct GraphCounts {
    /// Passes that replayed the captured graph.
    pub replayed: u64,
    /// Passes that were launched kernel by kernel.
    pub eager: u64,
    /// The reason why no graph could be captured.
    pub capture_error: Option<String>,
}

/// A causal language model with a cache of the tokens it has seen.
pub trait Model: Send {
    /// Errors of passes and truncations.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Tokens held in the cache; the next token given is at this position.
    fn position(&self) -> usize;

    /// Most tokens the cache can hold.
    fn context(&self) -> usize;

    /// Length of a row of logits. May be more than the tokenizer has tokens (padding).
    fn vocabulary_size(&self) -> usize;

    /// Tokens that a pass takes at the cost of one, whichever rows are wanted: passes over more cost as many
    /// times as much as they need such steps. It decides how long drafts are, and never what is drawn. 1, the
    /// default, says nothing: what passes cost is measured then.
    fn tokens_at_once(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    /// Appends `tokens` (at least one) to the cache and returns rows of logits: row `i` is about the token
    /// that follows `tokens[i]`. [`Rows::Last`] gives one row, about what follows the last token, and
    /// [`Rows::Among`] the last rows.
    ///
    /// One pass over n tokens and n passes over one give the same rows up to rounding.
    ///
    /// # Errors
    /// If there are no tokens, one is not in the model's vocabulary, they do not fit in the context, or the
    /// pass fails; the cache is then as before.
    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, Self::Error>;

    /// Begins the pass that [`forward`](Self::forward) would make, and leaves its rows where they are
    /// computed, perhaps before they are done. Work until the rows are asked about overlaps with the device.
    /// `None`, the default, if the model cannot: no pass is made then.
    ///
    /// # Errors
    /// Those of [`forward`](Self::forward). Later failures are errors of the rows; the cache holds the tokens
    /// then.
    fn begin(
        &mut self,
        tokens: &[TokenId],
        rows: Rows<'_>,
    ) -> Result<Option<Kept<Self::Error>>, Self::Error> {
        let _ = (tokens, rows);
        Ok(None)
    }

    /// Counts passes on a device by how they were queued. `None`, the default, where nothing is counted.
    fn graphs(&self) -> Option<GraphCounts> {
        None
    }

    /// Forgets all tokens from `position` on, in constant time, as if they had never been given.
    ///
    /// # Errors
    /// If `position` is past the end of the cache.
    fn truncate(&mut self, position: usize) -> Result<(), Self::Error>;

    /// Makes a batch of `sequences` of the same model, each with a cache of its own; they share passes. The
    /// first sequence has the cache of the model itself. `None`, the default, if the model can have only one
    /// cache; [`InTurns`](super::InTurns) then makes a batch of it.
    ///
    /// # Errors
    /// If the caches cannot be made.
    fn as_batch(&mut self, sequences: NonZeroUsize) -> Result<Option<Batch<'_, Self::Error>>, Self::Error> {
        let _ = sequences;
        Ok(None)
    }
}

/// A draw by Gumbel-max: of the tokens the one with the largest logit over the temperature plus noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GumbelDraw {
    /// The key of the noise, which is a function of seed and position. The noise of a token is Gumbel's
    /// distribution at 64 bits of SplitMix64, `mix(key + (token + 1) * GOLDEN)`: whoever computes it must
    /// arrive at the bits of `decode::Sampler::noise`.
    pub key: u64,
    /// The temperature, above zero.
    pub temperature: f64,
}

/// A token to be chosen from a row.
#[derive(Debug, Clone, Copy)]
pub struct RowChoice<'a> {
    /// The tokens that may be chosen. Entries of the row past the set's size (padding) do not count.
    pub allowed: &'a TokenSet,
    /// The draw; `None` for the largest logit.
    pub draw: Option<GumbelDraw>,
    /// The distance below the largest allowed logit, above zero, within which allowed tokens are listed too;
    /// `None` if no list is wanted.
    pub near: Option<f32>,
}

/// The answer of a row to a [`RowChoice`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowAnswer {
    /// The token. `None` if none can be chosen: no token is allowed, all allowed ones are at minus infinity,
    /// or any logit is NaN or plus infinity.
    pub token: Option<TokenId>,
    /// The allowed tokens whose logits are less than the distance below the largest one, ascending, with
    /// their logits. `None` if no list was wanted, there is no token, or there are too many for the device.
    pub near: Option<Vec<(TokenId, f32)>>,
}

/// Rows of logits on a device, perhaps still being computed. Each question waits for them.
pub trait KeptRows: Send {
    /// Errors of the device.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Number of rows.
    fn rows(&self) -> usize;

    /// Chooses a token from each row from `first` on, as many as there are choices, with one wait for all. Of
    /// equals the lowest id is chosen. Default: `None`, as these rows cannot do it; nothing was waited for.
    ///
    /// # Errors
    /// If there are fewer rows than choices ask for, or the device fails.
    fn choose(&self, first: usize, choices: &[RowChoice<'_>]) -> Result<Option<Vec<RowAnswer>>, Self::Error> {
        let _ = (first, choices);
        Ok(None)
    }

    /// A copy of row `index`.
    ///
    /// # Errors
    /// If there is no such row, or the device fails.
    fn row(&self, index: usize) -> Result<Vec<f32>, Self::Error>;

    /// Waits until the rows are computed. Default: they already are.
    ///
    /// # Errors
    /// If the device fails.
    fn wait(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_asked_for_are_counted() {
        let sets = [TokenSet::empty(3), TokenSet::empty(3)];
        let count = |rows: Rows<'_>| [0, 1, 5].map(|tokens| rows.count(tokens));
        assert_eq!(count(Rows::Last), [0, 1, 1]);
        assert_eq!(count(Rows::All), [0, 1, 5]);
        assert_eq!(count(Rows::Among(&sets)), [0, 1, 2]);
        assert_eq!(Rows::Among(&sets).sets().map(<[TokenSet]>::len), Some(2));
        assert_eq!(Rows::All.sets(), None);
    }

    #[test]
    fn rows_of_logits_are_found_by_index() {
        let logits = Logits::new(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3);
        assert_eq!(logits.rows(), 2);
        assert_eq!(logits.row(1), Some(&[3.0, 4.0, 5.0][..]));
        assert_eq!(logits.last(), logits.row(1));
        assert_eq!(logits.row(2), None);
        let part = logits.part(1, 5);
        assert_eq!((part.rows(), part.row(0), part.row(1)), (1, logits.last(), None));
        assert_eq!(part.part(0, 1), part);
        assert_eq!(logits.part(2, 1).rows() + logits.part(usize::MAX, usize::MAX).rows(), 0);
        assert_eq!(logits.part(0, 1).into_values(), None);
        drop(part);
        assert_eq!(logits.clone(), logits);
        assert_eq!(logits.into_values().map(|values| values.len()), Some(6));
        assert_eq!(Logits::new(Vec::new(), 3).last(), None);
    }
}
