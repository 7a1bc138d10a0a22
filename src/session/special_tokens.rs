//! Special tokens in texts: the names of those that a grammar asks for stand for the tokens.

use std::borrow::Cow;

use super::{constraint::Constraint, error::StepError};
use crate::{ids::TokenId, special, vocab::TokenSet};

impl Constraint {
    /// The names of the special tokens that the grammar asks for, sorted.
    #[must_use]
    pub fn specials(&self) -> &[String] {
        &self.program.asked.specials
    }

    /// Is this one of the special tokens that the grammar asks for?
    #[cfg(feature = "mistralrs")]
    pub(crate) fn asks_for(&self, token: TokenId) -> bool {
        let is_special = self.program.asked.vocabulary.is_special(token);
        let by_class = || self.program.specials_of_classes().any(|asked| asked == token);
        is_special && (self.program.vocabulary.bytes(token).is_some() || by_class())
    }

    /// May a special token stand in its texts?
    pub(crate) fn asks_for_specials(&self) -> bool {
        !self.specials().is_empty() || self.program.specials_of_classes().next().is_some()
    }

    /// Adds the special tokens that the grammar asks for to a set.
    pub(crate) fn with_specials(&self, tokens: &TokenSet) -> TokenSet {
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
    pub(crate) fn shown<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let marked = !self.specials().is_empty() || !self.program.classes.is_empty();
        if marked { special::shown(bytes).into() } else { bytes.into() }
    }
}
