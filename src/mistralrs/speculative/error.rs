//! Errors of loading an engine with speculation, and of attaching requests to it.

use std::time::Duration;

use domino::decode::{SamplingError, StopStringError};

use crate::EngineVocabularyError;

/// Reason why a model cannot be loaded for speculation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The model is not one of text, or does not describe its caches.
    #[error("this kind of model cannot be speculated with: {0}\nhint: load it without speculation")]
    Unsupported(&'static str),
    /// The engine's tokens cannot be used.
    #[error(transparent)]
    Vocabulary(#[from] EngineVocabularyError),
    /// The stand-in for a draft model cannot be made.
    #[error("the stand-in for a draft model cannot be made: {0}")]
    NullDraft(String),
    /// Upstream's pipeline cannot be made of the two models.
    #[error("mistral.rs refuses the pair of models: {0}")]
    Pipeline(String),
    /// The loader keeps the model for itself as well.
    #[error("the loader keeps a reference to the model it has loaded, so it cannot be speculated with")]
    NotSole,
    /// The test run did not end.
    #[error(
        "the speculative pipeline of mistral.rs hangs: a test run of a few tokens had not ended \
         after {0:?}\nhint: load the model without speculation; or allow more time if it is a very slow one"
    )]
    Hangs(Duration),
    /// The test run ended, but not as it should.
    #[error("the speculative pipeline of mistral.rs does not work with this model: {0}")]
    SelfTest(String),
}

/// Reason why a request cannot be attached to an engine with speculation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No model has been loaded yet.
    #[error("the loader has not loaded a model yet")]
    NotLoaded,
    /// Several choices would share one processor.
    #[error(
        "an engine with speculation makes one choice per request, not {0}\nhint: send as many requests \
         with n = 1"
    )]
    Choices(usize),
    /// The request has a constraint for the engine.
    #[error("the request has a constraint of mistral.rs' own\nhint: give the grammar to domino")]
    OtherConstraint,
    /// The request has processors already.
    #[error("the request has logits processors already")]
    OtherProcessors,
    /// The request wants log-probabilities, which are meaningless where the processor draws.
    #[error("log-probabilities are not available on an engine with speculation")]
    Logprobs,
    /// A number of the request's sampling is impossible.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
    /// The request's stop strings cannot be searched.
    #[error(transparent)]
    Stop(#[from] StopStringError),
}
