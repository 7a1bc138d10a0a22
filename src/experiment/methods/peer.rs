//! The masks of another engine as a method: the interface of such engines, and the loop around them.
//!
//! The library has no other engine; a program that has one hands it to
//! [`run_with`](crate::experiment::run_with). Our constraint follows its text too, so a token outside of the
//! language ends the run with an error. That takes some microseconds a token, which count as the peer's.

use std::fmt;

use super::{Method, MethodError, Outcome, Stage, chosen};
use crate::{
    decode::{
        DecodeError, DecodeStats, Sampler,
        single::{Choose, SingleText, TokenChoice},
        timed,
    },
    experiment::{Task, error::PeerError},
    ids::TokenId,
    model::Model,
    session::Constraint,
    vocab::{TokenSet, Vocabulary},
};

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
