//! The trait of a model that runs several sequences in one pass, and a plain implementation of it.
//!
//! Invariant: the logits of a sequence do not depend on the others that share its passes.

use std::ops::Range;

use super::{
    kv_copy::KvCopy,
    model::{Logits, Model, Rows},
};
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

impl<B: BatchModel + ?Sized> BatchModel for &mut B {
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

/// Errors of [`OneByOne`] and of [`InTurns`](super::InTurns).
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
