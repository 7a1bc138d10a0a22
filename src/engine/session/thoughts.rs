//! The thought before a text: where it is, how long it may be.

use std::sync::Arc;

use super::constraint::Constraint;
use crate::grammar::{Thought, ThoughtPlace, thought::ThoughtReader};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{
    ids::TokenId,
    json_readers::{ThoughtEnd, ThoughtProgress},
    special,
};

impl Constraint {
    /// Bounds the length of a thought, in steps. A thought that is as long must be closed: the mask has only
    /// tokens that spell what is left of its closing mark, and inside of a character those that end it. Steps
    /// are tokens; those of the opening mark count. Default: any number.
    #[must_use]
    pub fn reasoning_tokens(mut self, most: Option<usize>) -> Self {
        self.reasoning_tokens = most;
        self.mask = None;
        self
    }

    /// Tells where the text is with regard to its thought; `None` if the grammar has none
    /// ([`Grammar::after_thought`](crate::Grammar::after_thought)).
    #[must_use]
    pub fn thought(&self) -> Option<ThoughtPlace> {
        self.readers.thought.as_ref().map(|thought| thought.place())
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
            // What only began like the mark of a thought is the answer.
            Some(thought) if thought.place() == ThoughtPlace::Before && self.is_complete() => (&[], text),
            Some(thought) => thought.thought().split(text, thought.bytes),
            None => (&[], text),
        }
    }

    /// Returns what must come, where the thought has become as long as it may.
    fn closing(&self) -> Option<ThoughtEnd<'_>> {
        self.readers.thought.as_ref()?.closing(self.reasoning_tokens)
    }

    /// Must the thought be closed here, and does this token not go on with its mark?
    pub(super) fn thinks_too_long(&self, token: TokenId) -> bool {
        // A text that may end is not in a thought, even if it begins like one.
        let ends = self.program.vocabulary.is_end_of_text(token);
        let bytes = || self.program.vocabulary.bytes(token).unwrap_or_default();
        !ends && self.closing().is_some_and(|closing| !closing.takes(bytes()))
    }

    /// The bytes among these that may come, where the thought must be closed.
    pub(crate) fn keep_closing(&self, bytes: &mut Vec<u8>) {
        if let Some(closing) = self.closing() {
            bytes.retain(|byte| closing.takes(&[*byte]));
        }
    }

    /// The tokens of a mask with which the thought is closed, where it must be.
    pub(super) fn only_closing(&self, mask: Arc<TokenSet>) -> Arc<TokenSet> {
        let Some(closing) = self.closing() else { return mask };
        let vocabulary = &self.program.vocabulary;
        let mut found = TokenSet::empty(mask.size());
        match closing {
            ThoughtEnd::Character => {
                let takes =
                    |token: &TokenId| vocabulary.bytes(*token).is_some_and(|bytes| closing.takes(bytes));
                mask.iter().filter(takes).for_each(|token| found.insert(token));
            }
            ThoughtEnd::Mark(left) => {
                let ends = vocabulary.end_of_text().iter().copied();
                let tokens = vocabulary.prefixes_of(left);
                let allowed = tokens.iter().chain(ends).filter(|&token| mask.contains(token));
                allowed.for_each(|token| found.insert(token));
            }
        }
        Arc::new(found)
    }
}

/// Follows the tokens of a text to the end of its thought, without a grammar: for those who only see what
/// comes out of a decoder.
///
/// # Examples
/// ```
/// use domino::grammar::{Reasoning, Thought, ThoughtMarks};
/// use domino::{ThoughtWatch, TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
/// let thought = Thought::new(&ThoughtMarks::default(), Reasoning::Open, []);
/// let mut watch = ThoughtWatch::new(thought, vocabulary);
/// let text = b"a while</think>\n\n7";
/// text.iter().for_each(|&byte| watch.push(TokenId::new(byte.into()), &[byte]));
/// assert_eq!(watch.split(text, true), (&b"a while"[..], &b"7"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ThoughtWatch {
    vocabulary: Vocabulary,
    progress: ThoughtProgress,
}

impl ThoughtWatch {
    /// Begins at the beginning of a text in this vocabulary.
    #[must_use]
    pub fn new(thought: Thought, vocabulary: Vocabulary) -> Self {
        Self { vocabulary, progress: ThoughtProgress::new(ThoughtReader::new(Arc::new(thought))) }
    }

    /// Reads a token, which is shown by these bytes: its own, or the name of a special token, or none.
    pub fn push(&mut self, token: TokenId, shown: &[u8]) {
        let special = || self.vocabulary.name(token).map(special::spelled);
        match self.vocabulary.bytes(token) {
            Some(bytes) => self.progress.read_shown(bytes, shown.len()),
            None => self.progress.read_shown(&special().unwrap_or_default(), shown.len()),
        }
    }

    /// Reads bytes that are no token's, such as those of a completion, as they are shown.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let spelt = special::spell(bytes, self.progress.thought().specials());
        self.progress.read_shown(&spelt, bytes.len());
    }

    /// Tells where the text is.
    #[must_use]
    pub fn place(&self) -> ThoughtPlace {
        self.progress.place()
    }

    /// Takes a text apart: the thought without its marks, and the answer. `shown` is the beginning of what
    /// was shown of all tokens. Unless that is `whole`, what may yet become the closing mark is in neither.
    #[must_use]
    pub fn split<'t>(&self, shown: &'t [u8], whole: bool) -> (&'t [u8], &'t [u8]) {
        let held = if whole { 0 } else { self.progress.held() };
        let seen = shown.len().min(self.progress.bytes.saturating_sub(held));
        match self.place() {
            ThoughtPlace::Behind => self.progress.thought().split(shown, self.progress.bytes),
            ThoughtPlace::Before if whole => (&[], shown),
            ThoughtPlace::Before | ThoughtPlace::Inside => {
                (self.progress.thought().split(&shown[..seen], seen).0, &[])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::{Reasoning, ThoughtMarks};
    use crate::{Compiler, Grammar, Limits, Syntax};

    /// A thought that is cut inside of a character ends the character, and then must be closed.
    #[test]
    fn thoughts_are_not_closed_inside_of_a_character() {
        let limits = Limits::default();
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        // The rest of a snowman, and that with more.
        let builder = builder.token(TokenId::new(257), b"\x98\x83").token(TokenId::new(258), b"\x98\x83 ");
        let thought = Thought::new(&ThoughtMarks::default(), Reasoning::Open, []);
        let number = Grammar::parse(Syntax::Regex, "[0-9]+", &limits).unwrap();
        let number = number.after_thought(&thought, &limits).unwrap();
        let compiled = Compiler::new(builder.build().unwrap()).compile(&number).unwrap();
        for (bytes, tokens) in [(&b"a"[..], vec![60]), (b"a\xE2", (0x80..0xC0).chain([257]).collect())] {
            let mut constraint = compiled.constraint().reasoning_tokens(Some(bytes.len()));
            for &byte in bytes {
                constraint.advance(TokenId::new(byte.into())).unwrap();
            }
            let mask: Vec<u32> = constraint.mask().unwrap().iter().map(TokenId::raw).collect();
            assert_eq!(mask, tokens);
            for token in 0..259 {
                let token = TokenId::new(token);
                assert_eq!(constraint.allows(token).unwrap(), mask.contains(&token.raw()), "{token}");
            }
            if bytes.len() > 1 {
                assert!(constraint.next_bytes().unwrap().iter().all(|byte| matches!(byte, 0x80..=0xBF)));
                constraint.advance(TokenId::new(257)).unwrap();
            }
            assert_eq!(constraint.next_bytes().unwrap(), b"<");
            assert_eq!(constraint.advance_bytes(b"</think>7").unwrap(), 9);
            assert!(constraint.is_complete());
        }
    }
}
