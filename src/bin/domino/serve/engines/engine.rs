//! The interface of engines.

use std::sync::Arc;

use domino::{
    CompiledGrammar, TokenId,
    decode::{DecodeOptions, DecodeStats, Finish, Logprobs},
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{super::gate::Places, super::problem::Problem, client::Client, guessing::Guesses};

/// A model that writes texts, by itself and beside one another.
pub(crate) trait Engine: Send + Sync {
    /// Begins a text, and gives what hears of it. Whoever drops that has the text cancelled.
    fn begin(&self, text: TextOrder) -> UnboundedReceiver<Event>;

    /// Refuses what this engine does not do.
    ///
    /// # Errors
    /// If the options ask for such.
    fn check(&self, options: &DecodeOptions) -> Result<(), Problem>;
}

/// A text to be written.
pub(crate) struct TextOrder {
    /// Tokens of the prompt, at least one; the model has room for these and the most new ones.
    pub(crate) prompt: Arc<[TokenId]>,
    /// Drawing, penalties, seed, length, log-probabilities. Stop strings are not the engine's.
    pub(crate) options: DecodeOptions,
    /// `None`: any text.
    pub(crate) grammar: Option<CompiledGrammar>,
    /// Guesses for the grammar, if they are made.
    pub(crate) guesses: Option<Guesses>,
    pub(crate) client: Client,
    /// Number of the request, which its texts have in common.
    #[expect(dead_code, reason = "turns are not fair yet")]
    pub(crate) request: u64,
    /// Held until the engine has let go of the text.
    pub(crate) places: Arc<Places>,
}

/// News of a text.
#[derive(Debug)]
pub(crate) enum Event {
    /// Another token.
    Token(Written),
    /// The end: by end of text, or by length.
    End(Finish, Took),
    Failed(Problem),
}

/// A token of a text.
#[derive(Debug)]
pub(crate) struct Written {
    /// Its bytes in the text.
    pub(crate) bytes: Vec<u8>,
    pub(crate) logprobs: Option<Logprobs>,
}

/// Work that a text took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) stats: DecodeStats,
    /// Tokens of the prompt that were read before, for another text.
    pub(crate) cached: usize,
}
