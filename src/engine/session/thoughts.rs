//! The thought before a text: where it is, how long it may be.

use std::sync::Arc;

use super::constraint::Constraint;
use crate::{grammar::ThoughtPlace, ids::TokenId, json_readers::ThoughtProgress, vocab::TokenSet};

impl Constraint {
    /// Sets after how many steps a thought must be closed: from then on only tokens follow that go on with
    /// what is left of its closing mark. Steps are tokens; those of the opening mark count. Default: any
    /// number.
    #[must_use]
    pub fn reasoning_tokens(mut self, most: Option<usize>) -> Self {
        self.reasoning_tokens = most;
        self.mask = None;
        self
    }

    /// Where the text is with regard to its thought; `None` if the grammar has none
    /// ([`Grammar::after_thought`](crate::Grammar::after_thought)).
    #[must_use]
    pub fn thought(&self) -> Option<ThoughtPlace> {
        self.readers.thought.as_ref().map(ThoughtProgress::place)
    }

    /// Length of the thought and its marks so far, in bytes of the text as [`text_of`](Self::text_of) shows
    /// it.
    #[must_use]
    pub fn thought_bytes(&self) -> usize {
        self.readers.thought.as_ref().map_or(0, |thought| thought.bytes)
    }

    /// Takes the text so far apart: the thought without its marks, and what is behind it. Without a thought
    /// all is behind it. `text` is what [`text_of`](Self::text_of) shows of all tokens.
    #[must_use]
    pub fn split_thought<'t>(&self, text: &'t [u8]) -> (&'t [u8], &'t [u8]) {
        match &self.readers.thought {
            Some(thought) => thought.thought().split(text, thought.bytes),
            None => (&[], text),
        }
    }

    /// What must come of the closing mark, where the thought has become as long as it may.
    fn closing(&self) -> Option<&[u8]> {
        self.readers.thought.as_ref()?.closing(self.reasoning_tokens)
    }

    /// Must the thought be closed here, and does this token not go on with its mark?
    pub(super) fn thinks_too_long(&self, token: TokenId) -> bool {
        let goes_on = |left: &[u8]| {
            let bytes = self.program.vocabulary.bytes(token).unwrap_or_default();
            !bytes.is_empty() && left.starts_with(bytes)
        };
        self.closing().is_some_and(|left| !goes_on(left))
    }

    /// The bytes among these that may come, where the thought must be closed.
    pub(crate) fn keep_closing(&self, bytes: &mut Vec<u8>) {
        if let Some(left) = self.closing() {
            bytes.retain(|byte| left.first() == Some(byte));
        }
    }

    /// The tokens of a mask with which the thought is closed, where it must be.
    pub(super) fn only_closing(&self, mask: Arc<TokenSet>) -> Arc<TokenSet> {
        match self.closing() {
            None => mask,
            Some(left) => {
                let mut closing = TokenSet::empty(mask.size());
                let tokens = self.program.vocabulary.prefixes_of(left);
                tokens.iter().filter(|&token| mask.contains(token)).for_each(|token| closing.insert(token));
                Arc::new(closing)
            }
        }
    }
}
