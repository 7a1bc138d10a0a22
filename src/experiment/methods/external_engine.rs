//! Methods of another engine that runs the model itself, and so writes whole texts.
//!
//! This module knows no such engine: a program hands one to [`run_with`](crate::experiment::run_with). It
//! draws with the same noise; but its numbers are not quite those of our runner, so texts diverge where two
//! tokens are nearly equally likely. Measures that need rows of logits (`nll`, `log_kept`) are computed
//! afterwards by our runner, as for all methods.

use std::{fmt, time::Duration};

use super::{Method, MethodError, Outcome, Stage};
use crate::{
    compile::CompiledGrammar,
    decode::{DecodeError, DecodeOptions, Generation},
    experiment::{
        Task,
        error::{ExperimentError, PeerError},
    },
    ids::TokenId,
    model::Model,
    proposer::Prior,
    vocab::Vocabulary,
};

/// The constraint on the texts of such an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExternalWay {
    /// There is none.
    Free,
    /// The engine's own constraint, which reads the grammar itself.
    Own,
    /// Our masks.
    Masks,
    /// Our masks, with all drafts of `ours`, after the same warm-ups.
    Drafts,
}

impl ExternalWay {
    /// Is there a grammar?
    pub(in crate::experiment) fn is_constrained(self) -> bool {
        self != Self::Free
    }
}

/// The texts to be written.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExternalJob<'a> {
    /// The model, by its index in the definition.
    pub model: usize,
    /// The constraint.
    pub way: ExternalWay,
    /// Grammar and prompts.
    pub task: &'a Task,
    /// The grammar, compiled for the vocabulary; `None` where there is none.
    pub grammar: Option<&'a CompiledGrammar>,
    /// The vocabulary that prompts and texts are in.
    pub vocabulary: &'a Vocabulary,
    /// The prior learnt before, for drafts.
    pub prior: Option<Prior>,
}

/// An engine that runs models itself.
pub trait ExternalEngine {
    /// Creates a writer for such texts.
    ///
    /// # Errors
    /// If the engine cannot load the model, or cannot read the grammar.
    fn writer(&self, job: ExternalJob<'_>) -> Result<Box<dyn ExternalWriter>, ExperimentError>;
}

/// Writes texts of one model and grammar.
pub trait ExternalWriter {
    /// Writes a text after a prompt; also returns the time until its first token. Of the options, sampling,
    /// seed and length count.
    ///
    /// # Errors
    /// If the engine fails.
    fn write(
        &mut self,
        prompt: &[TokenId],
        options: &DecodeOptions,
    ) -> Result<(Generation, Duration), PeerError>;
}

/// Texts of such an engine.
pub(in crate::experiment) struct ByExternalEngine {
    writer: Box<dyn ExternalWriter>,
}

impl ByExternalEngine {
    pub(in crate::experiment) fn new(writer: Box<dyn ExternalWriter>) -> Self {
        Self { writer }
    }
}

impl<M: Model> Method<M> for ByExternalEngine {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        let options = stage.decoder.options_mut().clone();
        let written = self.writer.write(prompt, &options).map_err(DecodeError::peer);
        let (generation, first) = written?;
        let mut outcome = Outcome::new(generation, first);
        if let Some(mut constraint) = stage.grammar.map(CompiledGrammar::constraint) {
            // The engine's own constraint may mean another language by the same grammar.
            let whole = constraint.advance_text(&outcome.text).map_err(DecodeError::from)?;
            outcome.complete = whole && constraint.is_complete();
        }
        Ok(outcome)
    }
}

impl fmt::Debug for ByExternalEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByExternalEngine").finish_non_exhaustive()
    }
}
