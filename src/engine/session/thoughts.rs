//! The thought before a text: where it is, how long it may be.

use std::sync::Arc;

use super::constraint::Constraint;
use crate::grammar::{Thought, ThoughtPlace, thought::ThoughtReader};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{ids::TokenId, json_readers::ThoughtProgress, special};

impl Constraint {
    /// Bounds the length of a thought, in steps. A thought that is as long must be closed: the mask has only
    /// tokens that spell what is left of its closing mark. Steps are tokens; those of the opening mark count.
    /// Default: any number.
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

    /// Returns what must come of the closing mark, where the thought has become as long as it may.
    fn closing(&self) -> Option<&[u8]> {
        self.readers.thought.as_ref()?.closing(self.reasoning_tokens)
    }

    /// Must the thought be closed here, and does this token not go on with its mark?
    pub(super) fn thinks_too_long(&self, token: TokenId) -> bool {
        // A text that may end is not in a thought, even if it begins like one.
        let ends = self.program.vocabulary.is_end_of_text(token);
        let goes_on = |left: &[u8]| {
            let bytes = self.program.vocabulary.bytes(token).unwrap_or_default();
            !bytes.is_empty() && left.starts_with(bytes)
        };
        !ends && self.closing().is_some_and(|left| !goes_on(left))
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
                let vocabulary = &self.program.vocabulary;
                let ends = vocabulary.end_of_text().iter().copied();
                let tokens = vocabulary.prefixes_of(left);
                tokens
                    .iter()
                    .chain(ends)
                    .filter(|&token| mask.contains(token))
                    .for_each(|token| closing.insert(token));
                Arc::new(closing)
            }
        }
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
