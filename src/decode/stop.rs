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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the first end of a stop string in `text`, and its longest beginning; and what may become one.
    fn plainly(strings: &[Vec<u8>], text: &[u8]) -> (Option<(usize, usize)>, usize) {
        for end in 1..=text.len() {
            let lengths = strings.iter().filter(|string| text[..end].ends_with(string)).map(Vec::len);
            if let Some(length) = lengths.max() {
                return (Some((end, length)), 0);
            }
        }
        let prefixes = strings.iter().flat_map(|string| (0..string.len()).map(|length| &string[..length]));
        (None, prefixes.filter(|prefix| text.ends_with(prefix)).map(<[u8]>::len).max().unwrap_or(0))
    }

    /// Searches a text byte by byte; also returns what may become a stop string after each of them.
    fn found(strings: &[Vec<u8>], text: &[u8]) -> (Option<(usize, usize)>, Vec<usize>) {
        let mut search = StopStrings::new(strings.to_vec()).unwrap().search();
        let mut held = Vec::new();
        for (at, &byte) in text.iter().enumerate() {
            if let Some(length) = search.push(byte) {
                return (Some((at + 1, length)), held);
            }
            held.push(search.held());
        }
        (None, held)
    }

    /// A few letters in every mixture; sometimes one far above them, so that classes of bytes matter.
    fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(b"aaabbc\xff".to_vec()), 1..most)
    }

    proptest! {
        #[test]
        fn stop_strings_are_found_as_by_a_plain_search(
            strings in prop::collection::vec(bytes(7), 0..6),
            text in bytes(60),
        ) {
            let (stop, held) = found(&strings, &text);
            let (expected, _) = plainly(&strings, &text);
            prop_assert_eq!(stop, expected);
            for (at, held) in held.into_iter().enumerate() {
                prop_assert_eq!(held, plainly(&strings, &text[..=at]).1, "after byte {}", at);
            }
            let begins = expected.map(|(end, length)| end - length);
            prop_assert_eq!(StopStrings::new(strings).unwrap().find(&text), begins);
        }

        /// However the bytes are cut, the text is the one before the first stop string.
        #[test]
        fn cuts_of_tokens_do_not_matter(
            strings in prop::collection::vec(bytes(5), 0..4),
            pieces in prop::collection::vec(bytes(5), 0..12),
        ) {
            let whole = pieces.concat();
            let mut search = StopStrings::new(strings.clone()).unwrap().search();
            let mut text = Vec::new();
            let stopped = pieces.iter().any(|piece| search.append(&mut text, piece));
            let expected = plainly(&strings, &whole).0.map(|(end, length)| end - length);
            prop_assert_eq!(stopped, expected.is_some());
            prop_assert_eq!(&text[..], &whole[..expected.unwrap_or(whole.len())]);
        }
    }

    /// Strings within strings, at their ends, begun again and again, and the same ones twice.
    #[test]
    fn the_first_end_wins_and_there_the_longest() {
        for (strings, text, expected) in [
            (&["b", "abc"][..], "xabc", Some((3, 1))),
            (&["abc", "bc", "c"], "xabc", Some((4, 3))),
            (&["bc", "c"], "xabc", Some((4, 2))),
            (&["aab"], "aaaab", Some((5, 3))),
            (&["abab", "ba"], "ababab", Some((3, 2))),
            (&["ab", "ab", "ab"], "aab", Some((3, 2))),
            (&["\u{e9}"], "e\u{e8}\u{e9}", Some((5, 2))),
            (&["a"], "", None),
            (&["abc"], "ab", None),
            (&[], "abc", None),
        ] {
            let strings: Vec<Vec<u8>> = strings.iter().map(|string| string.as_bytes().to_vec()).collect();
            assert_eq!(found(&strings, text.as_bytes()).0, expected, "{strings:?} {text}");
            assert_eq!(plainly(&strings, text.as_bytes()).0, expected, "{strings:?} {text}");
        }
    }

    #[test]
    fn long_strings_that_nearly_come_are_held_whole() {
        let string = [vec![b'a'; 3000], vec![b'b']].concat();
        let mut search = StopStrings::new([string.clone()]).unwrap().search();
        for at in 1..=5000 {
            assert_eq!(search.push(b'a'), None);
            assert_eq!(search.held(), at.min(3000));
        }
        assert_eq!(search.push(b'b'), Some(string.len()));
    }

    #[test]
    fn empty_stop_strings_are_refused() {
        assert_eq!(StopStrings::new(["a", ""]), Err(StopStringError::Empty));
        assert!(StopStrings::new(Vec::<String>::new()).unwrap().is_empty());
        assert_eq!(StopStrings::default().search().push(0), None);
    }

    #[test]
    fn order_and_number_do_not_matter() {
        let stops = |strings: &[&str]| StopStrings::new(strings.iter().copied()).unwrap();
        assert_eq!(stops(&["a", "b", "a"]), stops(&["b", "a"]));
        assert_ne!(stops(&["a"]), stops(&["a", "b"]));
        assert_eq!(format!("{:?}", stops(&["b", "a"])), r#"{"a", "b"}"#);
    }
}
