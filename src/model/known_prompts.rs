//! A model that does not read again what its cache still holds.
//!
//! Experiments run each prompt once for every method, and once more to measure each text. Prompts with
//! examples are a thousand tokens long, and reading them is most of the time then. Invariant: rows are those
//! of the model itself, since they do not depend on how tokens are split into passes.

use std::num::NonZeroUsize;

use super::model::{Batch, Kept, Logits, Model, Rows};
use crate::ids::TokenId;

/// A model whose [`truncate`](Model::truncate) forgets nothing yet: tokens that are given again, but for
/// those whose rows are wanted, are skipped. A pass over a known prompt takes no time, so the time of prompts
/// is not to be measured with it.
#[derive(Debug)]
pub(crate) struct KnownPrompts<M> {
    model: M,
    /// Is it switched on? Otherwise all calls are the model's own.
    on: bool,
    /// The tokens in the model's cache, if they are known: a batch writes to it too.
    held: Option<Vec<TokenId>>,
    /// The number of tokens that count; those of `held` behind it were forgotten by the caller.
    position: usize,
}

impl<M: Model> KnownPrompts<M> {
    pub(crate) fn new(model: M, on: bool) -> Self {
        let position = model.position();
        Self { held: (on && position == 0).then(Vec::new), model, on, position }
    }

    /// Skips the first of `tokens` that the cache holds, and makes the model forget what is behind them.
    /// Returns how many were skipped.
    fn skip(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<usize, M::Error> {
        let Some(held) = &mut self.held else { return Ok(0) };
        // The model is to see what it must compute rows of, and whatever it refuses.
        let most = tokens.len() - rows.count(tokens.len()).max(1).min(tokens.len());
        let known = held[self.position..].iter().zip(&tokens[..most]);
        let skipped = known.take_while(|(one, other)| one == other).count();
        self.model.truncate(self.position + skipped)?;
        held.truncate(self.position + skipped);
        Ok(skipped)
    }

    /// Notes a pass over `tokens`, of which the first were skipped.
    fn passed(&mut self, tokens: &[TokenId]) {
        if let Some(held) = &mut self.held {
            held.truncate(self.position);
            held.extend_from_slice(tokens);
            self.position = held.len();
        }
    }
}

impl<M: Model> Model for KnownPrompts<M> {
    type Error = M::Error;

    fn position(&self) -> usize {
        if self.held.is_some() { self.position } else { self.model.position() }
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, M::Error> {
        let skipped = self.skip(tokens, rows)?;
        let logits = self.model.forward(&tokens[skipped..], rows)?;
        self.passed(tokens);
        Ok(logits)
    }

    fn begin(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Option<Kept<M::Error>>, M::Error> {
        let skipped = self.skip(tokens, rows)?;
        let kept = self.model.begin(&tokens[skipped..], rows)?;
        if kept.is_some() {
            self.passed(tokens);
        }
        Ok(kept)
    }

    fn truncate(&mut self, position: usize) -> Result<(), M::Error> {
        match &self.held {
            Some(_) if position <= self.position => self.position = position,
            // Past the end: the model has the error.
            Some(held) => self.model.truncate(held.len().saturating_add(position))?,
            None => {
                self.model.truncate(position)?;
                if self.on && position == 0 {
                    (self.held, self.position) = (Some(Vec::new()), 0);
                }
            }
        }
        Ok(())
    }

    fn as_batch(&mut self, sequences: NonZeroUsize) -> Result<Option<Batch<'_, M::Error>>, M::Error> {
        if self.held.take().is_some() {
            self.model.truncate(self.position)?;
        }
        self.model.as_batch(sequences)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::ScriptedModel;

    /// Calls of a model: tokens to append, rows wanted, or a part to forget.
    #[derive(Debug, Clone)]
    enum Call {
        Forward(Vec<u8>, usize),
        Truncate(u8),
        Batch,
    }

    fn call() -> impl Strategy<Value = Call> {
        let tokens = prop::collection::vec(0_u8..3, 0..12);
        prop_oneof![
            4 => (tokens, 0_usize..3).prop_map(|(tokens, rows)| Call::Forward(tokens, rows)),
            3 => (0_u8..20).prop_map(Call::Truncate),
            1 => Just(Call::Truncate(0)),
            1 => Just(Call::Batch),
        ]
    }

    proptest! {
        /// Every call has the result that the model itself gives, errors included.
        #[test]
        fn results_with_known_prompts_are_the_models(calls in prop::collection::vec(call(), 0..40)) {
            let scripted = || ScriptedModel::new(3, 24, 7);
            let (mut plain, mut known) = (scripted(), KnownPrompts::new(scripted(), true));
            for call in calls {
                match call {
                    Call::Forward(tokens, rows) => {
                        let tokens = tokens.iter().map(|&id| TokenId::new(u32::from(id)));
                        let tokens: Vec<TokenId> = tokens.collect();
                        let sets = vec![crate::vocab::TokenSet::empty(3); 2];
                        let rows = [Rows::Last, Rows::All, Rows::Among(&sets)][rows];
                        let (one, other) = (plain.forward(&tokens, rows), known.forward(&tokens, rows));
                        prop_assert_eq!(one.ok(), other.ok());
                    }
                    Call::Truncate(to) => {
                        let (one, other) = (plain.truncate(usize::from(to)), known.truncate(usize::from(to)));
                        prop_assert_eq!(one.is_ok(), other.is_ok());
                    }
                    Call::Batch => prop_assert!(known.as_batch(NonZeroUsize::MIN).is_ok()),
                }
                prop_assert_eq!(plain.position(), known.position());
            }
        }
    }

    #[test]
    fn known_prompt_is_not_read_again() {
        let tokens = [0, 1, 2, 1].map(TokenId::new);
        let mut known = KnownPrompts::new(ScriptedModel::new(3, 24, 7), true);
        let first = known.forward(&tokens, Rows::Last).unwrap();
        known.truncate(0).unwrap();
        assert_eq!(known.skip(&tokens, Rows::Last).unwrap(), 3);
        assert_eq!(known.forward(&tokens, Rows::Last).unwrap(), first);
        // Switched off it forgets at once.
        let mut off = KnownPrompts::new(ScriptedModel::new(3, 24, 7), false);
        off.forward(&tokens, Rows::Last).unwrap();
        off.truncate(0).unwrap();
        assert_eq!(off.skip(&tokens, Rows::Last).unwrap(), 0);
    }
}
