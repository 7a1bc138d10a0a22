//! A deterministic fake model, so that every test of the decode loop runs without weights.
//!
//! Invariant: a row of logits is a pure function of (seed, tokens so far): two models with the same seed
//! and history agree bit for bit, however the history was given or truncated.

use std::collections::BTreeMap;

use super::model::{Logits, Model, Rows};
use crate::{
    ids::TokenId,
    split_mix::{SplitMix64, finalise, mixed},
};

/// A fault that a test asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// One logit of the row is not a number.
    NotANumber,
    /// The whole row is minus infinity.
    Impossible,
    /// The pass fails.
    Pass,
}

/// A pass or a truncation that a [`ScriptedModel`] refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptedError {
    /// The pass is over no tokens.
    #[error("no tokens were given")]
    NoTokens,
    /// The tokens do not fit.
    #[error("{tokens} tokens at position {position} do not fit in a context of {context} tokens")]
    TooLong {
        /// Tokens in the cache.
        position: usize,
        /// Tokens given.
        tokens: usize,
        /// Tokens that fit.
        context: usize,
    },
    /// An id is past the end of the vocabulary.
    #[error("token {0} is not in the vocabulary")]
    UnknownToken(TokenId),
    /// A truncation goes past the end of the cache.
    #[error("cannot truncate to position {0}, past the end")]
    PastEnd(usize),
    /// The script asked for [`Fault::Pass`].
    #[error("this pass fails by script")]
    Scripted,
}

/// A fake model: pseudo-random logits, and by script a favoured token or a fault at given positions.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    vocabulary_size: usize,
    context: usize,
    /// `states[n]` is a hash of the seed and the first `n` tokens.
    states: Vec<u64>,
    favoured: BTreeMap<usize, TokenId>,
    faults: BTreeMap<usize, Fault>,
    passes: u64,
}

impl ScriptedModel {
    /// A model of ids `0..vocabulary_size` and at most `context` tokens, whose logits are pseudo-random
    /// in about -4..4.
    #[must_use]
    pub fn new(vocabulary_size: usize, context: usize, seed: u64) -> Self {
        Self {
            vocabulary_size: vocabulary_size.max(1),
            context,
            states: vec![finalise(seed)],
            favoured: BTreeMap::new(),
            faults: BTreeMap::new(),
            passes: 0,
        }
    }

    /// Makes `token` by far the likeliest at `position` of the whole sequence.
    #[must_use]
    pub fn favour(mut self, position: usize, token: TokenId) -> Self {
        self.favoured.insert(position, token);
        self
    }

    /// Favours a run of tokens, from `position` on; see [`favour`](Self::favour).
    #[must_use]
    pub fn script(self, position: usize, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        tokens.into_iter().zip(position..).fold(self, |model, (token, at)| model.favour(at, token))
    }

    /// Puts `fault` into the row about `position` of the whole sequence.
    #[must_use]
    pub fn fault(mut self, position: usize, fault: Fault) -> Self {
        self.faults.insert(position, fault);
        self
    }

    /// Number of forward passes so far.
    #[must_use]
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The row about `position`, given the hash of all tokens before it.
    fn row(&self, position: usize, state: u64, row: &mut Vec<f32>) {
        let start = row.len();
        let mut random = SplitMix64::new(state);
        row.extend((0..self.vocabulary_size).map(|_| small_float(random.bits())));
        let favoured = self.favoured.get(&position).map(|token| start + token.index());
        if let Some(logit) = favoured.and_then(|index| row.get_mut(index)) {
            *logit = 12.0;
        }
        match self.faults.get(&position) {
            Some(Fault::NotANumber) => row[start + self.vocabulary_size / 2] = f32::NAN,
            Some(Fault::Impossible) => row[start..].fill(f32::NEG_INFINITY),
            Some(Fault::Pass) | None => {}
        }
    }

    /// Hashes of the histories that end with each of `tokens`.
    fn states_after(&self, tokens: &[TokenId]) -> Result<Vec<u64>, ScriptedError> {
        let mut state = self.states.last().copied().unwrap_or_default();
        tokens
            .iter()
            .map(|&token| {
                if token.index() >= self.vocabulary_size {
                    return Err(ScriptedError::UnknownToken(token));
                }
                state = finalise(state ^ mixed(0, u64::from(token.raw())));
                Ok(state)
            })
            .collect()
    }
}

/// 16 bits of `hash` as a number in -4..4.
fn small_float(hash: u64) -> f32 {
    let [low, high, ..] = hash.to_le_bytes();
    f32::from(u16::from_le_bytes([low, high])) / 8192.0 - 4.0
}

impl Model for ScriptedModel {
    type Error = ScriptedError;

    fn position(&self) -> usize {
        self.states.len() - 1
    }

    fn context(&self) -> usize {
        self.context
    }

    fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ScriptedError> {
        let position = self.position();
        if tokens.is_empty() {
            return Err(ScriptedError::NoTokens);
        }
        if tokens.len() > self.context.saturating_sub(position) {
            return Err(ScriptedError::TooLong { position, tokens: tokens.len(), context: self.context });
        }
        let states = self.states_after(tokens)?;
        let first = states.len() - rows.count(states.len());
        let mut values = Vec::with_capacity((states.len() - first) * self.vocabulary_size);
        for (index, &state) in states.iter().enumerate().skip(first) {
            let about = position + index + 1;
            if self.faults.get(&about) == Some(&Fault::Pass) {
                return Err(ScriptedError::Scripted);
            }
            self.row(about, state, &mut values);
            if let Some(set) = rows.sets().and_then(|sets| sets.get(index - first)) {
                let start = values.len() - self.vocabulary_size;
                for (token, value) in (0..).zip(&mut values[start..]) {
                    // Large logits of tokens that do not count expose callers that look at them. Faults stay.
                    if !set.contains(TokenId::new(token)) && value.is_finite() {
                        *value = 1e30;
                    }
                }
            }
        }
        self.states.extend(states);
        self.passes += 1;
        Ok(Logits::new(values, self.vocabulary_size))
    }

    fn truncate(&mut self, position: usize) -> Result<(), ScriptedError> {
        if position > self.position() {
            return Err(ScriptedError::PastEnd(position));
        }
        self.states.truncate(position + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(raw: &[u32]) -> Vec<TokenId> {
        raw.iter().copied().map(TokenId::new).collect()
    }

    #[test]
    fn rows_do_not_depend_on_splits_or_truncation() {
        let tokens = ids(&[3, 1, 4, 1, 5, 9, 2, 6]);
        let mut whole = ScriptedModel::new(11, 64, 7).favour(3, TokenId::new(2));
        let expected = whole.forward(&tokens, Rows::All).unwrap();
        assert_eq!(expected.rows(), tokens.len());
        let mut parts = ScriptedModel::new(11, 64, 7).favour(3, TokenId::new(2));
        for (index, &token) in tokens.iter().enumerate() {
            parts.forward(&ids(&[10, 10]), Rows::Last).unwrap();
            parts.truncate(index).unwrap();
            let row = parts.forward(&[token], Rows::Last).unwrap();
            assert_eq!(row.row(0), expected.row(index));
        }
        assert_eq!(parts.position(), tokens.len());
        let favoured = expected.row(2).unwrap();
        assert!(favoured.iter().enumerate().all(|(id, &logit)| id == 2 || logit < favoured[2]));
    }

    #[test]
    fn refusals_leave_the_cache_alone() {
        let mut model = ScriptedModel::new(11, 4, 0).fault(2, Fault::Pass);
        assert_eq!(model.forward(&[], Rows::Last), Err(ScriptedError::NoTokens));
        assert!(matches!(model.forward(&ids(&[0; 5]), Rows::Last), Err(ScriptedError::TooLong { .. })));
        assert_eq!(
            model.forward(&ids(&[0, 11]), Rows::Last),
            Err(ScriptedError::UnknownToken(TokenId::new(11)))
        );
        assert_eq!(model.forward(&ids(&[0, 1]), Rows::Last), Err(ScriptedError::Scripted));
        assert_eq!(model.truncate(1), Err(ScriptedError::PastEnd(1)));
        assert_eq!((model.position(), model.passes()), (0, 0));
    }
}
