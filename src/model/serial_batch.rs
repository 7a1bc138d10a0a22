//! One model with one cache, as a batch: its sequences take turns in the cache.
//!
//! Invariant: the logits of a sequence are those of a model of its own, since rows do not depend on how
//! tokens are split into passes.

use std::num::NonZeroUsize;

use super::{
    batch::{BatchInput, BatchModel, OneByOneError, named_twice},
    model::{Logits, Model},
};
use crate::ids::TokenId;

/// A [`BatchModel`] of any [`Model`], for models that have no batches of their own. A turn feeds again what
/// the cache lost to another sequence, so passes are as long as texts.
#[derive(Debug)]
pub struct InTurns<'a, M> {
    model: &'a mut M,
    /// Tokens of each sequence.
    sequences: Vec<Vec<TokenId>>,
    /// Tokens that the cache holds.
    held: Vec<TokenId>,
}

impl<'a, M: Model> InTurns<'a, M> {
    /// Makes a batch of `sequences` empty sequences. What the model's cache held before is lost.
    pub fn new(model: &'a mut M, sequences: NonZeroUsize) -> Self {
        Self { model, sequences: vec![Vec::new(); sequences.get()], held: Vec::new() }
    }

    /// Runs one input, after feeding what the cache lacks of its sequence.
    fn run(&mut self, input: &BatchInput<'_>) -> Result<Logits, OneByOneError<M::Error>> {
        let Some(before) = self.sequences.get(input.sequence) else {
            return Err(OneByOneError::NoSuchSequence(input.sequence));
        };
        let whole = [before, input.tokens].concat();
        let common = self.held.iter().zip(before).take_while(|(one, other)| one == other).count();
        self.held.truncate(common);
        self.model.truncate(common).map_err(OneByOneError::Model)?;
        if common < before.len() {
            // The old tokens are a pass of their own, since rows are wanted of the new ones alone.
            self.model.forward(&before[common..], super::Rows::Last).map_err(OneByOneError::Model)?;
            self.held.clone_from(before);
        }
        let rows = self.model.forward(input.tokens, input.rows).map_err(OneByOneError::Model)?;
        self.held = whole;
        Ok(rows)
    }
}

impl<M: Model> BatchModel for InTurns<'_, M> {
    type Error = OneByOneError<M::Error>;

    fn sequences(&self) -> usize {
        self.sequences.len()
    }

    fn position(&self, sequence: usize) -> usize {
        self.sequences.get(sequence).map_or(0, Vec::len)
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, Self::Error> {
        if let Some(sequence) = named_twice(inputs) {
            return Err(OneByOneError::Twice(sequence));
        }
        let rows: Vec<Logits> = inputs.iter().map(|input| self.run(input)).collect::<Result<_, _>>()?;
        for input in inputs {
            if let Some(sequence) = self.sequences.get_mut(input.sequence) {
                sequence.extend_from_slice(input.tokens);
            }
        }
        Ok(rows)
    }

    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), Self::Error> {
        let tokens = self.sequences.get_mut(sequence).ok_or(OneByOneError::NoSuchSequence(sequence))?;
        if position > tokens.len() {
            return Err(OneByOneError::PastEnd { sequence, position });
        }
        tokens.truncate(position);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{OneByOne, Rows, ScriptedModel},
        *,
    };

    fn tokens(ids: &[u32]) -> Vec<TokenId> {
        ids.iter().copied().map(TokenId::new).collect()
    }

    /// Random calls give the same rows and errors as a model for each sequence.
    #[test]
    fn sequences_that_share_one_model_are_independent() {
        let model = ScriptedModel::new(30, 6, 7);
        let mut apart = OneByOne::new(vec![model.clone(); 3]);
        let mut one = model.clone();
        one.forward(&tokens(&[9, 9]), Rows::Last).unwrap();
        let mut turns = InTurns::new(&mut one, NonZeroUsize::new(3).unwrap());
        one_by_one(&mut turns, &mut apart);
    }

    fn one_by_one(turns: &mut InTurns<'_, ScriptedModel>, apart: &mut OneByOne<ScriptedModel>) {
        let (a, b, c) = (tokens(&[1, 2, 3]), tokens(&[1, 2]), tokens(&[99]));
        let input = |sequence, tokens, rows| BatchInput { sequence, tokens, rows };
        let calls = [
            vec![input(0, &a, Rows::All), input(2, &b, Rows::Last)],
            vec![input(2, &a, Rows::All), input(1, &b, Rows::All)],
            vec![input(1, &a, Rows::Last), input(0, &c, Rows::Last)],
            vec![input(1, &a, Rows::Last), input(1, &b, Rows::Last)],
            vec![input(2, &a, Rows::Last)],
            vec![input(5, &a, Rows::Last)],
            vec![input(0, &b, Rows::All), input(1, &a, Rows::All)],
        ];
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(turns.forward(&call), apart.forward(&call), "{number}");
            for sequence in 0..4 {
                assert_eq!(turns.position(sequence), apart.position(sequence), "{number}");
            }
            if number == 4 {
                assert_eq!((turns.truncate(0, 1), turns.truncate(9, 0)), (Ok(()), apart.truncate(9, 0)));
                apart.truncate(0, 1).unwrap();
                assert!(turns.truncate(0, 2).is_err());
            }
        }
        assert_eq!((turns.sequences(), turns.context(), turns.vocabulary_size()), (3, 6, 30));
    }
}
