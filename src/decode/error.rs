//! Errors of building a decoder, and of runs.
//!
//! Invariant: a failed step has generated nothing; the text before it stands.

use super::sampling::sampler::DrawError;
use crate::StepError;

/// Kinds of [`BuildError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// No vocabulary was given.
    #[error("a decoder needs a vocabulary")]
    NoVocabulary,
    /// The vocabulary has ids for which the model has no logits: it is another model's.
    #[error(
        "the vocabulary has {vocabulary} tokens but the model only {model}: they do not \
         belong together"
    )]
    VocabularyTooLarge {
        /// One more than the vocabulary's highest id.
        vocabulary: usize,
        /// Length of the model's rows of logits.
        model: usize,
    },
    /// The constraint was compiled for another vocabulary (or for other end-of-text tokens).
    #[error("the constraint was compiled for another vocabulary than the decoder's")]
    OtherVocabulary,
    /// The model of a batch has no room for a sequence.
    #[error("the model has no room for a sequence")]
    NoSequences,
    /// An option that a draw from the conditional distribution does not support.
    #[error("draws from the conditional distribution do not go with {0}")]
    NotConditional(&'static str),
    /// An option, or a kind of grammar, that canonical texts do not support.
    #[error("canonical tokens do not go with {0}")]
    NotCanonical(&'static str),
}

/// A decoder that cannot be built from its parts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct BuildError {
    #[from]
    kind: BuildErrorKind,
}

impl BuildError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &BuildErrorKind {
        &self.kind
    }
}

/// Kinds of [`DecodeError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The prompt has no tokens; a model needs one to go on from.
    #[error("the prompt is empty: a model needs at least one token")]
    EmptyPrompt,
    /// The prompt does not fit in the model's context.
    #[error("the prompt has {tokens} tokens, the model's context holds {context}")]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that the model's context holds.
        context: usize,
    },
    /// Prompt and text do not fit in the model's context together.
    #[error("prompt and text do not fit in the model's context, which holds {context} tokens")]
    TextTooLong {
        /// Tokens that the model's context holds.
        context: usize,
    },
    /// The forward pass failed; see the source.
    #[error("the model's forward pass failed")]
    Model,
    /// The model's logits cannot be drawn from.
    #[error("the model's output for position {position} cannot be used: {error}")]
    Logits {
        /// Index of the token to be drawn in the whole sequence, prompt included.
        position: usize,
        /// The fault.
        error: DrawError,
    },
    /// The text is not complete, yet no token of the vocabulary can follow: it lacks tokens for bytes that
    /// the grammar needs.
    #[error(
        "no token of the vocabulary can follow at position {position}: it lacks tokens for \
         bytes that the grammar needs"
    )]
    NothingAllowed {
        /// Index of the token to be drawn in the whole sequence, prompt included.
        position: usize,
    },
    /// The constraint failed, e.g. by a budget; see the source.
    #[error("the constraint failed")]
    Constraint,
    /// Another engine, which made the masks, has failed; see the source.
    #[error("the other engine failed")]
    Peer,
    /// The Rust type to be written has no grammar, or cannot read a text that its schema allows; see the
    /// source.
    #[error("the type's values cannot be written, or not be read again")]
    Type,
}

/// A run that cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct DecodeError {
    kind: DecodeErrorKind,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl DecodeError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &DecodeErrorKind {
        &self.kind
    }

    /// Creates the error of a type that cannot be written or read.
    #[cfg(feature = "schemars")]
    pub(super) fn of_type(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { kind: DecodeErrorKind::Type, source: Some(Box::new(source)) }
    }

    /// Creates the error of a draw that failed at a position.
    pub(crate) fn draw(error: DrawError, position: usize) -> Self {
        match error {
            DrawError::NoneAllowed => DecodeErrorKind::NothingAllowed { position },
            error => DecodeErrorKind::Logits { position, error },
        }
        .into()
    }

    /// Refuses prompts that are empty, or longer than the model's context. Both are counted in tokens.
    pub(super) fn check_prompt(tokens: usize, context: usize) -> Result<(), Self> {
        match tokens {
            0 => Err(DecodeErrorKind::EmptyPrompt.into()),
            _ if tokens > context => Err(DecodeErrorKind::PromptTooLong { tokens, context }.into()),
            _ => Ok(()),
        }
    }

    /// Creates the error of another engine.
    #[cfg(feature = "experiments")]
    pub(crate) fn peer(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { kind: DecodeErrorKind::Peer, source: Some(Box::new(source)) }
    }

    /// Creates the error of a failed forward pass.
    pub(crate) fn model(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { kind: DecodeErrorKind::Model, source: Some(Box::new(source)) }
    }
}

impl From<DecodeErrorKind> for DecodeError {
    fn from(kind: DecodeErrorKind) -> Self {
        Self { kind, source: None }
    }
}

impl From<StepError> for DecodeError {
    fn from(error: StepError) -> Self {
        Self { kind: DecodeErrorKind::Constraint, source: Some(Box::new(error)) }
    }
}
