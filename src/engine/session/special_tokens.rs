//! Special tokens and classes of tokens in texts: the names of special tokens that a grammar asks for stand
//! for the tokens, and in some places any token of a class may stand.

use std::borrow::Cow;

use super::constraint::{Constraint, TextPosition};
use super::error::StepError;
use crate::ids::{StateId, TokenId};
use crate::json_readers::JsonReaders;
use crate::{special, subterminal::Lookahead, vocab::TokenSet};

impl Constraint {
    /// The names of the special tokens that the grammar asks for, sorted.
    #[must_use]
    pub fn specials(&self) -> &[String] {
        &self.program.asked.specials
    }

    /// Is this one of the special tokens that the grammar asks for?
    #[doc(hidden)]
    pub fn asks_for(&self, token: TokenId) -> bool {
        let is_special = self.program.asked.vocabulary.is_special(token);
        let by_class = || self.program.specials_of_classes().any(|asked| asked == token);
        is_special && (self.program.vocabulary.bytes(token).is_some() || by_class())
    }

    /// May a special token stand in its texts?
    #[doc(hidden)]
    pub fn asks_for_specials(&self) -> bool {
        !self.specials().is_empty() || self.program.specials_of_classes().next().is_some()
    }

    /// Adds the special tokens that the grammar asks for to a set.
    #[doc(hidden)]
    pub fn with_specials(&self, tokens: &TokenSet) -> TokenSet {
        let mut all = tokens.clone();
        let asked = self.program.asked.vocabulary.special_tokens();
        let spelled = asked.filter(|&(id, _)| self.program.vocabulary.bytes(id).is_some());
        spelled.for_each(|(id, _)| all.insert(id));
        self.program.specials_of_classes().for_each(|id| all.insert(id));
        all
    }

    /// The text that a token adds: its bytes, or the name of a special token that the grammar asks for.
    #[must_use]
    pub fn text_of(&self, token: TokenId) -> &[u8] {
        self.program.text_of(token)
    }

    /// Advances as [`advance_bytes`](Self::advance_bytes) does, by a text with names of special tokens that
    /// the grammar asks for. Returns whether all of it can follow; otherwise nothing has moved.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn advance_text(&mut self, text: &[u8]) -> Result<bool, StepError> {
        let bytes = self.spell(text);
        Ok(self.advance_bytes(&bytes)? == bytes.len())
    }

    /// Spells a text like [`Grammar::spell`](crate::Grammar::spell) of the session's grammar.
    #[must_use]
    pub fn spell<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.specials().is_empty() { text.into() } else { special::spell(text, self.specials()).into() }
    }

    /// Finds the first name of such a token in a text: its offset and the name, the longest that begins
    /// there.
    #[must_use]
    pub fn first_special(&self, text: &[u8]) -> Option<(usize, &str)> {
        special::first(text, self.specials())
    }

    /// Shows bytes of the grammar as text, with special tokens by their names.
    #[doc(hidden)]
    pub fn shown<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let marked = !self.specials().is_empty() || !self.program.classes.is_empty();
        if marked { special::shown(bytes).into() } else { bytes.into() }
    }
}

// A class has bytes that no text has ([`TokenClass::marked`](crate::special::TokenClass::marked),
// [`Picked::marked`](crate::special::Picked::marked)). In the vocabulary that the grammar is compiled for,
// these bytes are one token, past the tokens of the model. So grammar, parser and trees see a class as text,
// and its members come in above them: a mask that has the class's token gets them all (`Program::widened`),
// a step reads a token in every way (`machine/class_steps.rs`), and a completion has the shortest one.

impl Constraint {
    /// Returns the state after `token`, read in every possible way.
    pub(super) fn after_by_class(&mut self, token: TokenId) -> Result<Option<StateId>, StepError> {
        let TextPosition::In(mut state) = self.here else { return Ok(None) };
        let steps = self.program.vocabulary.bytes(token).map_or(1, |bytes| bytes.len().max(1));
        self.run_over(&mut state, steps, |machine, program, state, work| {
            machine.after_token(program, state, token, work)
        })
    }

    /// The readers after `token`, where there are classes.
    pub(super) fn readers_after(&self, token: TokenId) -> JsonReaders {
        let mut readers = self.readers.clone();
        let program = &self.program;
        readers.read_thought(program.vocabulary.bytes(token).unwrap_or_else(|| program.text_of(token)));
        readers
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
                let mut readers = self.readers.clone();
                readers.read_thought(bytes);
                self.go(TextPosition::In(to), bytes.len(), readers);
                bytes.len()
            }
            Err(taken) => taken,
        })
    }
}
