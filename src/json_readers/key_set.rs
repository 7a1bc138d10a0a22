//! The keys of an open object: a persistent ordered set with look-ups by prefix.
//!
//! Method: the logarithmic method (Bentley and Saxe). The set is a list of sorted runs, each longer than the
//! next, which the moments of a text share. A new key is a run of its own, merged with those before it that
//! are no longer. So `n` keys cost `O(n log n)` in all though every moment keeps its set, and a look-up is a
//! binary search in each of `O(log n)` runs.

use std::{
    cmp::Ordering,
    sync::{Arc, OnceLock},
};

use crate::ids::TrieNodeId;

/// Number of bytes in a head.
const HEAD: usize = 8;

/// A key of an open object.
#[derive(Debug)]
pub(super) struct ObjectKey {
    text: Box<str>,
    /// Trie node of its spelling without escapes and with the closing quote, once it was looked up.
    spelt: OnceLock<Option<TrieNodeId>>,
}

impl ObjectKey {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The trie node of its spelling up to the closing quote, looked up once.
    pub(super) fn node(&self, look_up: impl FnOnce() -> Option<TrieNodeId>) -> Option<TrieNodeId> {
        *self.spelt.get_or_init(look_up)
    }
}

/// An entry of a run.
#[derive(Debug, Clone)]
pub(super) struct Filed {
    /// The [`head`] of the key, so that most comparisons look at nothing else.
    head: u64,
    /// Length of the key in bytes.
    length: usize,
    key: Arc<ObjectKey>,
}

impl Filed {
    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Compares the key with a text, bytewise; `head` is that of the text.
    fn order(&self, head: u64, text: &[u8]) -> Ordering {
        self.head.cmp(&head).then_with(|| self.key.text.as_bytes().cmp(text))
    }
}

/// A set of keys. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub(super) struct KeySet {
    /// Runs, each sorted by text and longer than the next.
    runs: Vec<Arc<[Filed]>>,
    /// Bit `n` is set if a key has `n` bytes, bit 63 if one has more than 62.
    lengths: u64,
}

impl KeySet {
    /// Is the key in the set?
    pub(super) fn contains(&self, key: &str) -> bool {
        self.lengths & length_bit(key) != 0 && {
            let head = head(key.as_bytes(), 0);
            self.runs
                .iter()
                .any(|run| run.binary_search_by(|filed| filed.order(head, key.as_bytes())).is_ok())
        }
    }

    /// Adds a key that is not in the set.
    pub(super) fn insert(&mut self, key: &str) {
        self.lengths |= length_bit(key);
        let (head, length) = (head(key.as_bytes(), 0), key.len());
        let key = Arc::new(ObjectKey { text: key.into(), spelt: OnceLock::new() });
        let mut merged = vec![Filed { head, length, key }];
        while let Some(run) = self.runs.pop_if(|run| run.len() <= merged.len()) {
            merged.extend_from_slice(&run);
        }
        merged.sort_unstable_by(|one, other| one.order(other.head, other.key.text.as_bytes()));
        self.runs.push(merged.into());
    }

    /// Returns the keys with this beginning, as a range of each run that has any: two binary searches a run.
    pub(super) fn beginning_with<'k>(&'k self, beginning: &[u8]) -> impl Iterator<Item = &'k [Filed]> {
        let (least, most) = (head(beginning, 0), head(beginning, u8::MAX));
        // Heads between the two begin as a short `beginning` does; of a longer one the rest is compared.
        let is_within = move |filed: &Filed| {
            filed.head <= most
                && (beginning.len() <= HEAD || filed.key.text.as_bytes().starts_with(beginning))
        };
        self.runs.iter().filter_map(move |run| {
            let rest = &run[run.partition_point(|filed| filed.order(least, beginning).is_lt())..];
            let found = &rest[..rest.partition_point(is_within)];
            (!found.is_empty()).then_some(found)
        })
    }
}

/// Packs the first eight bytes, padded with `fill`, into a number of the same order.
fn head(text: &[u8], fill: u8) -> u64 {
    let mut bytes = [fill; HEAD];
    let known = text.len().min(bytes.len());
    bytes[..known].copy_from_slice(&text[..known]);
    u64::from_be_bytes(bytes)
}

fn length_bit(key: &str) -> u64 {
    1 << key.len().min(63)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a sorted set; older sets stay as they were.
        #[test]
        fn keys_are_found_by_their_prefixes(
            keys in prop::collection::vec("(abcdefgh)?[ab\u{e9}\u{0}]{0,4}", 0..40),
            asked in prop::collection::vec("(abcdefgh)?[ab\u{e9}\u{0}]{0,4}", 0..8),
        ) {
            let (mut set, mut expected) = (KeySet::default(), BTreeSet::new());
            let mut moments = vec![(set.clone(), expected.clone())];
            for key in &keys {
                if expected.insert(key.clone()) {
                    set.insert(key);
                }
                moments.push((set.clone(), expected.clone()));
            }
            for (set, expected) in &moments {
                for beginning in &asked {
                    prop_assert_eq!(set.contains(beginning), expected.contains(beginning));
                    // Within a character too.
                    for end in 0..=beginning.len() {
                        let beginning = &beginning.as_bytes()[..end];
                        let found = set.beginning_with(beginning).flatten();
                        let mut found: Vec<&str> = found.map(|filed| filed.key.text()).collect();
                        found.sort_unstable();
                        let all = expected.iter().filter(|key| key.as_bytes().starts_with(beginning));
                        prop_assert_eq!(found, all.map(String::as_str).collect::<Vec<_>>());
                    }
                }
                prop_assert!(set.runs.len() <= 6);
            }
        }
    }
}
