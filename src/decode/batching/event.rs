//! Names of the sequences of a batch, and what happens to them.

use super::super::{
    error::DecodeError,
    run::{Generation, Step},
};

/// The name of a sequence of a [`BatchDecoder`](super::super::BatchDecoder); ascending in the order of
/// addition, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub(in super::super) u64);

/// The client and the request that a sequence is of. Clients get the same number of places, as far as they
/// ask for them, and so do the requests of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SequenceTurn {
    /// The client.
    pub client: u64,
    /// The request, of which there may be several sequences.
    pub request: u64,
    /// Sequences of the same scope, and only they, find what is kept of one another's prompts.
    pub scope: u64,
}

/// An event of one sequence in a step.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// The sequence has another token.
    Token {
        /// The sequence.
        sequence: SequenceId,
        /// The token.
        step: Step,
    },
    /// The sequence has ended and left its place to another.
    Finished {
        /// The sequence.
        sequence: SequenceId,
        /// The generated text. The time of a shared pass counts in full.
        generation: Generation,
    },
    /// The sequence cannot go on, and has left its place. The others are not affected.
    Failed {
        /// The sequence.
        sequence: SequenceId,
        /// The cause.
        error: DecodeError,
        /// The text generated until then, as if cut by length.
        generation: Generation,
    },
}
