//! Methods of another engine, which either runs the model itself, and so writes whole texts, or only makes
//! the masks.
//!
//! This module knows no such engine: a program hands one to [`run_with`](crate::experiment::run_with). An
//! engine that runs the model draws with the same noise; but its numbers are not quite those of our runner,
//! so texts diverge where two tokens are nearly equally likely. Measures that need rows of logits (`nll`,
//! `log_kept`) are computed afterwards by our runner, as for all methods.
//!
//! Our constraint follows the text of an engine that makes masks, too, so a token outside of the language
//! ends the run with an error. That takes some microseconds a token, which count as the peer's.

use std::{fmt, time::Duration};

use super::{Method, MethodError, Outcome, Stage, chosen};
use crate::decode::single::{Choose, SingleText, TokenChoice};
use crate::decode::{DecodeError, DecodeOptions, DecodeStats, Generation, Sampler, timed};
use crate::experiment::Task;
use crate::experiment::error::{ExperimentError, PeerError};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{CompiledGrammar, Constraint, ids::TokenId, model::Model, proposer::Prior};

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

/// Another engine.
pub trait Peer {
    /// Compiles the grammar of a task for a vocabulary.
    ///
    /// # Errors
    /// If it cannot, in words: for instance since it does not read the notation.
    fn compile(&self, task: &Task, vocabulary: &Vocabulary) -> Result<Box<dyn PeerGrammar>, PeerError>;
}

/// A grammar that another engine compiled.
pub trait PeerGrammar {
    /// Starts a text at the beginning.
    ///
    /// # Errors
    /// If the engine fails.
    fn text(&self) -> Result<Box<dyn PeerText>, PeerError>;
}

/// A text that another engine follows.
pub trait PeerText {
    /// Returns the tokens that may follow, end of text included if the text is complete; `size` is the
    /// vocabulary's.
    ///
    /// # Errors
    /// If the engine fails.
    fn mask(&mut self, size: usize) -> Result<TokenSet, PeerError>;

    /// Advances by a token that does not end the text.
    ///
    /// # Errors
    /// If the engine fails.
    fn advance(&mut self, token: TokenId) -> Result<(), PeerError>;
}

/// Masks of another engine after every pass.
pub(in crate::experiment) struct ByPeer {
    grammar: Box<dyn PeerGrammar>,
}

impl ByPeer {
    pub(in crate::experiment) fn new(grammar: Box<dyn PeerGrammar>) -> Self {
        Self { grammar }
    }
}

/// Draws from its masks.
struct Masks {
    text: Box<dyn PeerText>,
}

impl Choose for Masks {
    fn choose(
        &mut self,
        row: &[f32],
        text: &SingleText,
        sampler: &Sampler,
        constraint: &mut Constraint,
        stats: &mut DecodeStats,
    ) -> Result<TokenChoice, DecodeError> {
        let position = text.position();
        stats.masks += 1;
        let mask = timed(&mut stats.mask_time, || self.text.mask(row.len()));
        let token = sampler
            .draw(row, &mask.map_err(DecodeError::peer)?, position)
            .map_err(|error| DecodeError::draw(error, position))?;
        if !constraint.vocabulary().is_end_of_text(token) {
            let advanced = timed(&mut stats.mask_time, || self.text.advance(token));
            advanced.map_err(DecodeError::peer)?;
        }
        Ok(TokenChoice::Token(token))
    }
}

impl<M: Model> Method<M> for ByPeer {
    fn generate(&mut self, stage: &mut Stage<'_, M>, prompt: &[TokenId]) -> Result<Outcome, MethodError> {
        let text = self.grammar.text().map_err(DecodeError::peer)?;
        chosen(stage, prompt, &mut Masks { text })
    }
}

impl fmt::Debug for ByPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByPeer").finish_non_exhaustive()
    }
}
