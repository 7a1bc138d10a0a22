//! Names of the sequences of a batch, and what happens to them.

use super::super::{
    error::DecodeError,
    run::{Generation, Step},
};

/// Names a sequence of a [`BatchDecoder`](super::super::BatchDecoder); ascending in the order in which they
/// were added, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub(in super::super) u64);

/// What happened to one sequence in a step.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// It has another token.
    Token {
        /// Which sequence.
        sequence: SequenceId,
        /// The token.
        step: Step,
    },
    /// It has ended and left its place to another.
    Finished {
        /// Which sequence.
        sequence: SequenceId,
        /// What it generated. The time of a shared pass counts in full.
        generation: Generation,
    },
    /// It cannot go on, and has left its place. The others are not concerned.
    Failed {
        /// Which sequence.
        sequence: SequenceId,
        /// Why.
        error: DecodeError,
        /// What it generated until then, as if cut by length.
        generation: Generation,
    },
}
