//! Classes of tokens in a session: places where any token of a class may stand, as one token.
//!
//! A class has bytes that no text has ([`TokenClass::marked`](crate::special::TokenClass::marked),
//! [`Picked::marked`](crate::special::Picked::marked)). In the vocabulary that the grammar is compiled for,
//! these bytes are one token, past the tokens of the model. So grammar, parser and trees see a class as text,
//! and its members come in above them: a mask that has the class's token gets them all (`Program::widened`),
//! a step reads a token in every way (`machine/class_steps.rs`), and a completion has the shortest one.

use super::{
    constraint::{Constraint, TextPosition},
    error::StepError,
};
use crate::{
    ids::{StateId, TokenId},
    subterminal::Lookahead,
};

impl Constraint {
    /// Returns the state after `token`, read in every possible way.
    pub(super) fn after_by_class(&mut self, token: TokenId) -> Result<Option<StateId>, StepError> {
        let TextPosition::In(mut state) = self.here else { return Ok(None) };
        let steps = self.program.vocabulary.bytes(token).map_or(1, |bytes| bytes.len().max(1));
        self.run_over(&mut state, steps, |machine, program, state, work| {
            machine.after_token(program, state, token, work)
        })
    }

    /// [`allows`](Self::allows) where there are classes.
    pub(super) fn allows_by_class(&mut self, token: TokenId) -> Result<bool, StepError> {
        match self.program.lookahead {
            Lookahead::Unbounded => self.after(token).map(|place| place.is_some()),
            // A class is one terminal, whatever the token.
            Lookahead::Terminals(_) => self.mask().map(|mask| mask.contains(token)),
        }
    }

    /// [`advance_bytes`](Self::advance_bytes) where there are classes: the text may be cut into tokens in any
    /// way, and ends where one of them does.
    pub(super) fn advance_bytes_by_class(&mut self, bytes: &[u8]) -> Result<usize, StepError> {
        let TextPosition::In(mut state) = self.here else { return Ok(0) };
        let steps = bytes.len().max(1);
        let found = self.run_over(&mut state, steps, |machine, program, state, work| {
            machine.along_tokens(program, state, bytes, work)
        })?;
        Ok(match found {
            Ok(to) => {
                self.go(TextPosition::In(to), bytes.len(), self.readers.clone());
                bytes.len()
            }
            Err(taken) => taken,
        })
    }
}
