//! Stop strings, found across the boundaries of tokens by one automaton for all of them (Aho-Corasick).
//!
//! Invariant: what a search finds depends on the bytes only, not on how tokens cut them. The stop string that
//! ends first ends the text; of several that end there, the longest one does, which begins first.

use std::{fmt, sync::Arc};

use aho_corasick::{
    Anchored,
    automaton::{Automaton, StateID},
    nfa::contiguous::NFA,
};

/// Strings of which the first one that is generated ends the run; the text is cut before it. Cloning is
/// cheap. Their order and number do not matter.
///
/// ```
/// use domino::decode::StopStrings;
///
/// let stops = StopStrings::new(["END", "\n\n"])?;
/// let (mut search, mut text) = (stops.search(), Vec::new());
/// assert!(!search.append(&mut text, b"a list: E"));
/// assert_eq!(search.held(), 1); // The E may be the beginning of END.
/// assert!(search.append(&mut text, b"ND and more"));
/// assert_eq!(text, b"a list: ");
/// # Ok::<(), domino::decode::StopStringError>(())
/// ```
#[derive(Clone, Default)]
pub struct StopStrings {
    /// `None`: there are no strings.
    automaton: Option<Arc<StopAutomaton>>,
}

/// The automaton of at least one string.
struct StopAutomaton {
    /// The strings in ascending order, each once.
    strings: Vec<Vec<u8>>,
    nfa: NFA,
    start: StateID,
    /// Depths of the states in the trie of the strings, in the order of the states; the root, of depth 0, is
    /// not listed. A depth is the length of the longest beginning of a string that the text ends with, which
    /// the crate does not tell.
    depths: Box<[(StateID, usize)]>,
}

/// An unusable stop string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopStringError {
    /// A string without a byte: it would end every run before its first token.
    #[error("a stop string is empty; it must have at least one byte")]
    Empty,
    /// Too many bytes in all: an automaton has room for about two billion states.
    #[error("the stop strings are too long for one search")]
    TooLong,
}

impl StopStrings {
    /// Creates stop strings. Takes about 30 bytes of memory for each of their bytes.
    ///
    /// # Errors
    /// If one is empty, or all together have billions of bytes.
    pub fn new<S: Into<Vec<u8>>>(strings: impl IntoIterator<Item = S>) -> Result<Self, StopStringError> {
        let mut strings: Vec<Vec<u8>> = strings.into_iter().map(Into::into).collect();
        if strings.iter().any(Vec::is_empty) {
            return Err(StopStringError::Empty);
        }
        strings.sort_unstable();
        strings.dedup();
        if strings.is_empty() {
            return Ok(Self::default());
        }
        let automaton = StopAutomaton::new(strings).ok_or(StopStringError::TooLong)?;
        Ok(Self { automaton: Some(Arc::new(automaton)) })
    }

    /// Are there no strings?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Starts a search at the beginning of a text.
    #[must_use]
    pub fn search(&self) -> StopSearch {
        let state = self.automaton.as_deref().map(|automaton| automaton.start).unwrap_or_default();
        StopSearch { strings: self.clone(), state }
    }

    /// Returns where the stop string begins that ends first in `text`. Takes a lookup for each byte.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<usize> {
        let mut search = self.search();
        text.iter().enumerate().find_map(|(at, byte)| search.push(*byte).map(|length| at + 1 - length))
    }

    /// The strings in ascending order, each once.
    fn strings(&self) -> &[Vec<u8>] {
        self.automaton.as_deref().map_or(&[][..], |automaton| &automaton.strings[..])
    }
}

impl PartialEq for StopStrings {
    fn eq(&self, other: &Self) -> bool {
        self.strings() == other.strings()
    }
}

impl Eq for StopStrings {}

impl fmt::Debug for StopStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.strings().iter().map(|string| String::from_utf8_lossy(string))).finish()
    }
}

impl StopAutomaton {
    /// Builds the automaton of strings in ascending order; `None` if it would have too many states.
    fn new(strings: Vec<Vec<u8>>) -> Option<Self> {
        // A prefilter skips bytes at the start state; here bytes come one by one.
        let nfa = NFA::builder().prefilter(false).build(&strings).ok()?;
        let start = nfa.start_state(Anchored::No).ok()?;
        let mut depths = Vec::new();
        for string in &strings {
            let mut state = start;
            for (at, &byte) in string.iter().enumerate() {
                state = nfa.next_state(Anchored::No, state, byte);
                depths.push((state, at + 1));
            }
        }
        depths.sort_unstable();
        depths.dedup();
        Some(Self { strings, nfa, start, depths: depths.into() })
    }

    /// Returns the length of the longest string that ends in this state, if one does.
    fn longest(&self, state: StateID) -> Option<usize> {
        if !self.nfa.is_match(state) {
            return None;
        }
        let found = (0..self.nfa.match_len(state)).map(|at| self.nfa.match_pattern(state, at));
        found.map(|string| self.nfa.pattern_len(string)).max()
    }

    fn depth(&self, state: StateID) -> usize {
        self.depths.binary_search_by_key(&state, |(state, _)| *state).map_or(0, |at| self.depths[at].1)
    }
}

/// A search for stop strings in one text. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct StopSearch {
    strings: StopStrings,
    state: StateID,
}

impl StopSearch {
    /// Reads one byte. If stop strings end here, returns the length of the longest of them, and the search is
    /// over. Takes a lookup, however many strings there are.
    pub fn push(&mut self, byte: u8) -> Option<usize> {
        let automaton = self.strings.automaton.as_deref()?;
        self.state = automaton.nfa.next_state(Anchored::No, self.state, byte);
        automaton.longest(self.state)
    }

    /// Appends `bytes` to `text`, which ends with all bytes that are [held](Self::held), up to the first stop
    /// string. Returns whether there is one; it is cut off then, and the search is over.
    pub fn append(&mut self, text: &mut Vec<u8>, bytes: &[u8]) -> bool {
        if self.strings.is_empty() {
            text.extend_from_slice(bytes);
            return false;
        }
        for &byte in bytes {
            text.push(byte);
            if let Some(length) = self.push(byte) {
                text.truncate(text.len().saturating_sub(length));
                return true;
            }
        }
        false
    }

    /// Returns how many bytes at the end of the text may turn out to be the beginning of a stop string, and
    /// so must not be shown yet. Takes a binary search among the bytes of the strings.
    #[must_use]
    pub fn held(&self) -> usize {
        self.strings.automaton.as_deref().map_or(0, |automaton| automaton.depth(self.state))
    }
}

#[cfg(test)]
mod tests;
