//! Many sequences in one pass, each with a cache of its own; or one model with one cache, whose sequences
//! take turns in it.
//!
//! Invariant: the logits of a sequence do not depend on the others that share its passes, as rows do not
//! depend on how tokens are split into passes.

use std::{num::NonZeroUsize, ops::Range};

use super::model::{Logits, Model, Rows};
use crate::ids::TokenId;

/// The tokens of one sequence in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchInput<'a> {
    /// Number of the sequence, below [`BatchModel::sequences`].
    pub sequence: usize,
    /// New tokens of the sequence, at least one.
    pub tokens: &'a [TokenId],
    /// Rows of logits that are wanted.
    pub rows: Rows<'a>,
}

/// A causal language model with caches of several sequences, each as [`Model`] has one.
pub trait BatchModel: Send {
    /// Errors of passes and truncations.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Number of sequences that have a cache.
    fn sequences(&self) -> usize;

    /// Tokens that the cache of a sequence holds; 0 if there is no such sequence.
    fn position(&self, sequence: usize) -> usize;

    /// Most tokens that the cache of one sequence can hold.
    fn context(&self) -> usize;

    /// Length of a row of logits.
    fn vocabulary_size(&self) -> usize;

    /// Appends tokens to several sequences, any number to each, in one pass. Returns the rows of each input,
    /// bit for bit those of a pass of its own.
    ///
    /// # Errors
    /// If there is no such sequence, or one is named twice, or as [`Model::forward`] for any of them; all
    /// caches are then as before.
    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, Self::Error>;

    /// Forgets all tokens of a sequence from `position` on, in constant time.
    ///
    /// # Errors
    /// If there is no such sequence, or `position` is past the end of its cache.
    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), Self::Error>;

    /// Tokens whose memory a sequence of `tokens` tokens takes, at least as many: a model may take memory in
    /// larger pieces. Default: as many.
    fn reserved(&self, tokens: usize) -> usize {
        tokens
    }

    /// Positions of a block of keys and values that can be copied, if the model can copy them. Default: it
    /// cannot.
    fn copied_block(&self) -> Option<usize> {
        None
    }

    /// A copy of the keys and values of positions that a sequence holds, whole [blocks](Self::copied_block).
    /// `None` if it does not hold them, or cannot copy.
    fn copy_out(&self, _sequence: usize, _positions: Range<usize>) -> Option<KvCopy> {
        None
    }

    /// Appends copied keys and values to a sequence, as if their tokens had been given: for those tokens, and
    /// the same ones before them, the copy was made, by a model of the same weights. Says whether that was
    /// done; it is not where they do not fit, or the sequence does not end with a whole block.
    fn copy_in(&mut self, _sequence: usize, _copy: &KvCopy) -> bool {
        false
    }
}

/// Lets a pointer to a batch of caches stand for it.
macro_rules! through {
    ($($pointer:ty),*) => {$(
        impl<B: BatchModel + ?Sized> BatchModel for $pointer {
            type Error = B::Error;

            fn sequences(&self) -> usize {
                (**self).sequences()
            }

            fn position(&self, sequence: usize) -> usize {
                (**self).position(sequence)
            }

            fn context(&self) -> usize {
                (**self).context()
            }

            fn vocabulary_size(&self) -> usize {
                (**self).vocabulary_size()
            }

            fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, Self::Error> {
                (**self).forward(inputs)
            }

            fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), Self::Error> {
                (**self).truncate(sequence, position)
            }

            fn reserved(&self, tokens: usize) -> usize {
                (**self).reserved(tokens)
            }

            fn copied_block(&self) -> Option<usize> {
                (**self).copied_block()
            }

            fn copy_out(&self, sequence: usize, positions: Range<usize>) -> Option<KvCopy> {
                (**self).copy_out(sequence, positions)
            }

            fn copy_in(&mut self, sequence: usize, copy: &KvCopy) -> bool {
                (**self).copy_in(sequence, copy)
            }
        }
    )*};
}

through!(&mut B, Box<B>);

/// Errors of [`OneByOne`] and of [`InTurns`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OneByOneError<E: std::error::Error + 'static> {
    /// The number of a sequence is too high.
    #[error("there is no sequence {0}")]
    NoSuchSequence(usize),
    /// A sequence has two inputs in one pass.
    #[error("sequence {0} is in one pass twice")]
    Twice(usize),
    /// A truncation goes past the end of a sequence.
    #[error("cannot truncate sequence {sequence} to position {position}, past its end")]
    PastEnd {
        /// Number of the sequence.
        sequence: usize,
        /// Position asked for.
        position: usize,
    },
    /// A model failed.
    #[error(transparent)]
    Model(E),
}

/// Several models of the same weights, run one after the other: a [`BatchModel`] that saves nothing, for
/// tests.
#[derive(Debug, Clone)]
pub struct OneByOne<M> {
    models: Vec<M>,
}

impl<M: Model> OneByOne<M> {
    /// Makes a sequence of each of `models`.
    #[must_use]
    pub fn new(models: Vec<M>) -> Self {
        Self { models }
    }

    fn model(&mut self, sequence: usize) -> Result<&mut M, OneByOneError<M::Error>> {
        self.models.get_mut(sequence).ok_or(OneByOneError::NoSuchSequence(sequence))
    }

    /// Runs one input after the other, up to the first that fails.
    fn run(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, OneByOneError<M::Error>> {
        let run = |input: &BatchInput<'_>| {
            let model = self.model(input.sequence)?;
            model.forward(input.tokens, input.rows).map_err(OneByOneError::Model)
        };
        inputs.iter().map(run).collect()
    }
}

impl<M: Model> BatchModel for OneByOne<M> {
    type Error = OneByOneError<M::Error>;

    fn sequences(&self) -> usize {
        self.models.len()
    }

    fn position(&self, sequence: usize) -> usize {
        self.models.get(sequence).map_or(0, Model::position)
    }

    fn context(&self) -> usize {
        self.models.iter().map(Model::context).min().unwrap_or(0)
    }

    fn vocabulary_size(&self) -> usize {
        self.models.iter().map(Model::vocabulary_size).min().unwrap_or(0)
    }

    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, Self::Error> {
        if let Some(sequence) = named_twice(inputs) {
            return Err(OneByOneError::Twice(sequence));
        }
        let before: Vec<usize> = inputs.iter().map(|input| self.position(input.sequence)).collect();
        let rows = self.run(inputs);
        if rows.is_err() {
            for (input, position) in inputs.iter().zip(before) {
                if let Some(model) = self.models.get_mut(input.sequence) {
                    model.truncate(position.min(model.position())).map_err(OneByOneError::Model)?;
                }
            }
        }
        rows
    }

    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), Self::Error> {
        self.model(sequence)?.truncate(position).map_err(OneByOneError::Model)
    }
}

/// The first sequence that has two of the inputs.
pub(super) fn named_twice(inputs: &[BatchInput<'_>]) -> Option<usize> {
    let mut sequences: Vec<usize> = inputs.iter().map(|input| input.sequence).collect();
    sequences.sort_unstable();
    sequences.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Keys and values of some positions of a sequence, copied from a model's cache. Only a model of the same
/// weights and the same format of its cache can take them back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvCopy {
    positions: usize,
    bytes: Vec<u8>,
}

impl KvCopy {
    /// A copy of `positions` positions; `bytes` are in the model's own form.
    #[must_use]
    pub fn new(positions: usize, bytes: Vec<u8>) -> Self {
        Self { positions, bytes }
    }

    /// Number of positions.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// The copy, in the model's own form.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.bytes
    }

    /// Memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

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
        super::scripted::{ScriptedError, ScriptedModel},
        *,
    };

    fn tokens(ids: &[u32]) -> Vec<TokenId> {
        ids.iter().copied().map(TokenId::new).collect()
    }

    #[test]
    fn sequences_of_a_batch_are_independent() {
        let alone = || ScriptedModel::new(30, 10, 7);
        let mut batch = OneByOne::new(vec![alone(), alone()]);
        let (first, second) = (tokens(&[1, 2, 3]), tokens(&[4]));
        let input = |sequence, tokens, rows| BatchInput { sequence, tokens, rows };
        let rows = batch.forward(&[input(1, &first, Rows::All), input(0, &second, Rows::Last)]).unwrap();
        assert_eq!(rows[0], alone().forward(&first, Rows::All).unwrap());
        assert_eq!(rows[1], alone().forward(&second, Rows::Last).unwrap());
        assert_eq!((batch.position(0), batch.position(1), batch.position(2)), (1, 3, 0));
        // A pass that fails changes nothing.
        let unknown = tokens(&[99]);
        let error = batch.forward(&[input(0, &first, Rows::Last), input(1, &unknown, Rows::Last)]);
        assert_eq!(error, Err(OneByOneError::Model(ScriptedError::UnknownToken(TokenId::new(99)))));
        let error = batch.forward(&[input(0, &first, Rows::Last), input(0, &first, Rows::Last)]);
        assert_eq!(error, Err(OneByOneError::Twice(0)));
        assert_eq!(batch.truncate(2, 0), Err(OneByOneError::NoSuchSequence(2)));
        assert_eq!((batch.position(0), batch.position(1)), (1, 3));
        batch.truncate(1, 2).unwrap();
        assert_eq!(batch.position(1), 2);
    }
}

#[cfg(test)]
mod serial_batch_tests {
    use super::*;
    use crate::model::{OneByOne, Rows, ScriptedModel};

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
