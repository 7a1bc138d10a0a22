//! Names of the sequences of a batch, and what happens to them.

use super::super::{
    error::DecodeError,
    run::{Generation, Step},
    sampling::logprobs::Logprobs,
};

/// The name of a sequence of a [`BatchDecoder`](super::super::BatchDecoder); ascending in the order of
/// addition, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub(super) u64);

/// The client and the request of a sequence. Places are shared evenly between the clients that ask for them,
/// and a client's places between its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SequenceTurn {
    /// The client.
    pub client: u64,
    /// The request, of which there may be several sequences.
    pub request: u64,
    /// Scope of cached prefixes: only sequences of one scope reuse one another's prompts.
    pub scope: u64,
}

/// An event of one sequence in a step.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// The log-probabilities of all tokens of a prompt but the first, before the first token of the text.
    /// They come if [`DecodeOptions::prompt_logprobs`](crate::decode::DecodeOptions::prompt_logprobs) asks
    /// for them, and not for a prompt of one token.
    Prompt {
        /// The sequence.
        sequence: SequenceId,
        /// The log-probabilities of each token, in order.
        logprobs: Vec<Logprobs>,
    },
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
