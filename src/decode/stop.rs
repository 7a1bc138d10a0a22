//! Stop strings, found across the boundaries of tokens (Knuth-Morris-Pratt).
//!
//! Invariant: what a search finds depends on the bytes only, not on how tokens cut them.

use std::sync::Arc;

/// Strings of which the first one that is generated ends the run; the text is cut before it. Cloning is
/// cheap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopStrings {
    patterns: Arc<[StopPattern]>,
}

/// One string with its Knuth-Morris-Pratt table: `border[n]` is the length of the longest proper prefix of
/// its first `n + 1` bytes that is also their suffix.
#[derive(Debug, PartialEq, Eq)]
struct StopPattern {
    bytes: Vec<u8>,
    border: Vec<usize>,
}

/// A stop string without a byte: it would end every run before its first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stop string is empty; it must have at least one byte")]
pub struct EmptyStopString;

impl StopStrings {
    /// Creates stop strings. 9 bytes of memory for each of their bytes.
    ///
    /// # Errors
    /// If one is empty.
    pub fn new<S: Into<Vec<u8>>>(strings: impl IntoIterator<Item = S>) -> Result<Self, EmptyStopString> {
        let pattern = |string: S| Some(string.into()).filter(|bytes| !bytes.is_empty()).map(StopPattern::new);
        let patterns: Option<Vec<StopPattern>> = strings.into_iter().map(pattern).collect();
        Ok(Self { patterns: patterns.ok_or(EmptyStopString)?.into() })
    }

    /// Are there no strings?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Starts a search at the beginning of a text.
    pub(crate) fn search(&self) -> StopSearch {
        StopSearch { matched: vec![0; self.patterns.len()], strings: self.clone() }
    }
}

impl StopPattern {
    /// Computes the borders of all prefixes (Knuth-Morris-Pratt).
    fn new(bytes: Vec<u8>) -> Self {
        let mut pattern = Self { border: Vec::with_capacity(bytes.len()), bytes };
        pattern.border.push(0);
        for at in 1..pattern.bytes.len() {
            let before = pattern.border[at - 1];
            let border = pattern.longer(before, pattern.bytes[at]);
            pattern.border.push(border);
        }
        pattern
    }

    /// Returns how much of the pattern the text ends with after `byte`, if it was `matched` bytes (less than
    /// all) before.
    fn longer(&self, mut matched: usize, byte: u8) -> usize {
        while self.bytes[matched] != byte {
            if matched == 0 {
                return 0;
            }
            matched = self.border[matched - 1];
        }
        matched + 1
    }
}

/// A search for stop strings in one text.
#[derive(Debug, Clone)]
pub(crate) struct StopSearch {
    strings: StopStrings,
    /// Number of bytes of each string that the text ends with; less than all of them.
    matched: Vec<usize>,
}

impl StopSearch {
    /// Reads one byte. If stop strings end here, returns the length of the longest of them, and the search is
    /// over.
    pub(crate) fn push(&mut self, byte: u8) -> Option<usize> {
        let mut found = None;
        for (pattern, matched) in self.strings.patterns.iter().zip(&mut self.matched) {
            *matched = pattern.longer(*matched, byte);
            if *matched == pattern.bytes.len() {
                found = found.max(Some(*matched));
                *matched = 0;
            }
        }
        found
    }

    /// Length of the end of the text that may turn out to be the beginning of a stop string.
    pub(super) fn held(&self) -> usize {
        self.matched.iter().copied().max().unwrap_or(0)
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

    proptest! {
        #[test]
        fn stop_strings_are_found_as_by_a_plain_search(
            strings in prop::collection::vec(prop::collection::vec(0..3_u8, 1..6), 0..4),
            text in prop::collection::vec(0..3_u8, 0..40),
        ) {
            let mut search = StopStrings::new(strings.clone()).unwrap().search();
            let mut found = None;
            for (at, &byte) in text.iter().enumerate() {
                if let Some(length) = search.push(byte) {
                    found = Some((at + 1, length));
                    break;
                }
            }
            let (expected, held) = plainly(&strings, &text);
            prop_assert_eq!(found, expected);
            prop_assert!(found.is_some() || search.held() == held);
        }
    }

    #[test]
    fn empty_stop_strings_are_refused() {
        assert_eq!(StopStrings::new(["a", ""]), Err(EmptyStopString));
        assert!(StopStrings::new(Vec::<String>::new()).unwrap().is_empty());
    }
}
