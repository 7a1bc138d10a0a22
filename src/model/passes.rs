//! Measures the cost of a pass over n new tokens relative to a pass over one: t(n)/t(1), which bounds what a
//! draft can gain.
//!
//! Invariant: passes of all lengths start from the same context. Callers interleave the lengths, so that all
//! see the same load of the machine.

use std::{collections::BTreeMap, time::Duration};

use super::{Model, RowChoice, Rows};
use crate::{clock::Instant, ids::TokenId, vocab::TokenSet};

/// Times of passes, by their number of new tokens.
#[derive(Debug, Clone, Default)]
pub struct PassTimes {
    all: BTreeMap<usize, Vec<Duration>>,
}

impl PassTimes {
    /// Times a pass over `new` tokens with these rows of logits. The model holds the same tokens afterwards.
    /// Rows that a model leaves on its device stay there, as in a decoder: what is waited for are the
    /// likeliest tokens, or the rows where these cannot choose.
    ///
    /// # Errors
    /// If the pass fails.
    pub fn pass<M: Model>(&mut self, model: &mut M, new: &[TokenId], rows: Rows<'_>) -> Result<(), M::Error> {
        let position = model.position();
        let mut allowed = TokenSet::empty(model.vocabulary_size());
        (0..model.vocabulary_size()).filter_map(TokenId::from_index).for_each(|token| allowed.insert(token));
        let likeliest = RowChoice { allowed: &allowed, draw: None, near: None };
        let choices = vec![likeliest; rows.count(new.len())];
        let begun = Instant::now();
        match model.begin(new, rows)? {
            None => drop(model.forward(new, rows)?),
            Some(kept) => {
                if kept.choose(0, &choices)?.is_none() {
                    kept.wait()?;
                }
            }
        }
        let took = begun.elapsed();
        model.truncate(position)?;
        self.all.entry(new.len()).or_default().push(took);
        Ok(())
    }

    /// The median time in seconds of passes over `n` new tokens; NaN if there was none.
    #[must_use]
    pub fn median(&self, n: usize) -> f64 {
        let mut all = self.of(n).to_vec();
        all.sort_unstable();
        all.get(all.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
    }

    /// The least time in seconds of passes over `n` new tokens; NaN if there was none.
    #[must_use]
    pub fn least(&self, n: usize) -> f64 {
        self.of(n).iter().min().map_or(f64::NAN, Duration::as_secs_f64)
    }

    fn of(&self, n: usize) -> &[Duration] {
        self.all.get(&n).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Tokens for measuring passes: any will do, but the first ids are often special.
#[must_use]
pub fn any_tokens(count: usize, vocabulary_size: usize) -> Vec<TokenId> {
    let token = |index: usize| TokenId::from_index(index.wrapping_mul(7919) % vocabulary_size.max(1));
    (0..count).filter_map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pass_times_have_a_median_and_a_minimum() {
        let seconds = |all: [u64; 3]| all.map(Duration::from_secs).to_vec();
        let times = PassTimes { all: BTreeMap::from([(1, seconds([3, 1, 2]))]) };
        assert_eq!((times.median(1), times.least(1)), (2.0, 1.0));
        assert!(times.median(2).is_nan() && times.least(3).is_nan() && times.median(0).is_nan());
    }
}
