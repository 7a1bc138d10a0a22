//! Errors of requests, and of an engine's tokens.

use domino::{StepError, decode::DrawError, ids::TokenId, vocab::VocabularyError};

/// Reason why a request's text was ended early; it is then only a prefix of a text of the grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The constraint failed, for example by a budget.
    #[error("the constraint failed: {0}")]
    Constraint(#[source] StepError),
    /// The engine took a token that was masked: another processor or constraint changes its draws.
    #[error(
        "the engine went on by token {0}, which the grammar does not allow here\nhint: a request has one \
         grammar; leave its other constraints and processors out"
    )]
    Overruled(TokenId),
    /// The tokens that the engine shows are not those of one request: the processor is used by several.
    #[error("the processor is used by more than one request\nhint: make one for each request, with n = 1")]
    Shared,
    /// The contexts of an engine with speculation do not follow the text.
    #[error(
        "the engine's contexts do not follow the text\nhint: with speculation its prefix cache must be off \
         (`with_no_prefix_cache(true)`), and a processor belongs to one request"
    )]
    OutOfStep,
    /// The text is not complete, yet no token can follow: the vocabulary lacks tokens for bytes that the
    /// grammar needs.
    #[error("no token of the vocabulary can follow: it lacks tokens for bytes that the grammar needs")]
    NothingAllowed,
    /// The model's logits cannot be drawn from.
    #[error("the model's output cannot be used: {0}")]
    Logits(#[source] DrawError),
}

impl From<StepError> for RequestError {
    fn from(error: StepError) -> Self {
        Self::Constraint(error)
    }
}

impl From<DrawError> for RequestError {
    fn from(error: DrawError) -> Self {
        match error {
            DrawError::NoneAllowed => Self::NothingAllowed,
            error => Self::Logits(error),
        }
    }
}

/// Reason why the tokens of an engine cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineVocabularyError {
    /// The pipeline has no tokenizer.
    #[error("the engine's model has no tokenizer, so it is no model of text")]
    NoTokenizer,
    /// The engine does not know which tokens end a text.
    #[error(
        "the engine does not know which tokens end a text, so none would end\nhint: the model's folder \
         needs a tokenizer_config.json with eos_token, or a generation_config.json with eos_token_id"
    )]
    NoEndOfText,
    /// The tokenizer cannot be written down.
    #[error("the engine's tokenizer cannot be written as JSON: {0}")]
    Unwritable(String),
    /// The tokenizer is of a kind that is not supported.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
}
