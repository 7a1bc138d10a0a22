//! Stop strings in a text that another engine writes.

use domino::{
    Constraint,
    decode::{DecodeOptions, StopSearch},
    ids::TokenId,
    vocab::Vocabulary,
};

/// The text of the tokens so far, and the place where a stop string ends it.
pub(super) struct Stopped<'a> {
    vocabulary: &'a Vocabulary,
    constraint: Option<&'a Constraint>,
    search: StopSearch,
    pub(super) text: Vec<u8>,
    seen: usize,
    /// Tokens up to the one that ends the stop string.
    pub(super) found: Option<usize>,
}

impl<'a> Stopped<'a> {
    pub(super) fn new(
        options: &DecodeOptions,
        vocabulary: &'a Vocabulary,
        constraint: Option<&'a Constraint>,
    ) -> Self {
        let (search, text) = (options.stop.search(), Vec::new());
        Self { vocabulary, constraint, search, text, seen: 0, found: None }
    }

    /// Searches the tokens that are new.
    pub(super) fn search(&mut self, tokens: &[TokenId]) {
        while self.found.is_none() && self.seen < tokens.len() {
            let bytes = match self.constraint {
                Some(constraint) => constraint.text_of(tokens[self.seen]),
                None => self.vocabulary.bytes(tokens[self.seen]).unwrap_or_default(),
            };
            self.seen += 1;
            if self.search.append(&mut self.text, bytes) {
                self.found = Some(self.seen);
            }
        }
    }

    /// Keeps the tokens up to that place.
    pub(super) fn kept<'t>(&self, tokens: &'t [TokenId]) -> &'t [TokenId] {
        &tokens[..self.found.unwrap_or(tokens.len()).min(tokens.len())]
    }
}
