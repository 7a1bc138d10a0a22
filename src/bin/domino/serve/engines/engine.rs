//! The interface of engines.

use std::sync::Arc;

use domino::{
    CompiledGrammar, TokenId,
    decode::{DecodeOptions, DecodeStats, Finish, Logprobs},
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    super::{bounds::gate::Places, problem::Problem},
    client::Client,
    guessing::GrammarGuesses,
};

/// A model that writes texts, by itself and beside one another.
pub(crate) trait Engine: Send + Sync {
    /// Begins a text, and returns the receiver of its events. Dropping the receiver cancels the text.
    fn begin(&self, text: TextOrder) -> UnboundedReceiver<EngineEvent>;

    /// Refuses options that this engine does not support.
    ///
    /// # Errors
    /// If there is such an option.
    fn check(&self, options: &DecodeOptions) -> Result<(), Problem>;
}

/// A text to be written.
pub(crate) struct TextOrder {
    /// Tokens of the prompt, at least one; the model has room for these and the most new ones.
    pub(crate) prompt: Arc<[TokenId]>,
    /// Drawing, penalties, seed, length, log-probabilities. Stop strings are not the engine's.
    pub(crate) options: DecodeOptions,
    /// The grammar of the text; `None`: any text.
    pub(crate) grammar: Option<CompiledGrammar>,
    /// Proposers of drafts for the grammar. `None`: nothing is guessed.
    pub(crate) guesses: Option<GrammarGuesses>,
    /// The client, among whom turns are fair.
    pub(crate) client: Client,
    /// The client with whom counts and prefixes of prompts are shared: the same one, unless all share them.
    pub(crate) shared: Client,
    /// Number of the request, which its texts have in common.
    pub(crate) request: u64,
    /// Held until the engine has let go of the text.
    pub(crate) places: Arc<Places>,
}

/// An event of a text that is being written.
#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// Log-probabilities of the prompt's tokens but the first, before any token, if they were asked for.
    Prompt(Vec<Logprobs>),
    /// Another token.
    Token(WrittenToken),
    /// The text has ended: by end of text, or by length.
    End(Finish, DecodeStats),
    Failed(Problem),
}

/// A token of a text.
#[derive(Debug)]
pub(crate) struct WrittenToken {
    pub(crate) token: TokenId,
    /// Bytes that it adds to the text.
    pub(crate) bytes: Vec<u8>,
    pub(crate) logprobs: Option<Logprobs>,
    /// Work of the text so far, for whoever ends it here.
    pub(crate) stats: DecodeStats,
}
