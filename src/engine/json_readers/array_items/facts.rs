//! A persistent set of byte strings: a treap with immutable nodes, so copies share structure.
//!
//! A session keeps what it has read before each step that can be undone, so copies must cost nothing, and an
//! insertion only the nodes on its path. Priorities are hashes of the keys, so the shape depends on the
//! contents alone, and the expected depth is logarithmic.

use std::{cmp::Ordering, sync::Arc};

use crate::split_mix::mixed;

#[derive(Debug, Clone, Default)]
pub(super) struct ItemFacts {
    root: TreapLink,
    /// Bytes of all strings.
    bytes: usize,
}

type TreapLink = Option<Arc<TreapNode>>;

#[derive(Debug)]
struct TreapNode {
    key: Arc<[u8]>,
    priority: u64,
    left: TreapLink,
    right: TreapLink,
}

/// Encodes a value or part at a path.
pub(super) fn fact(path: u64, kind: u8, value: &[u8]) -> Vec<u8> {
    let mut fact = Vec::with_capacity(value.len() + 9);
    fact.extend_from_slice(&path.to_be_bytes());
    fact.push(kind);
    fact.extend_from_slice(value);
    fact
}

impl ItemFacts {
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Bytes of the strings in the set, and one for each.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Is this string in the set? A search in a binary tree.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let mut here = self.root.as_deref();
        while let Some(node) = here {
            here = match key.cmp(&node.key) {
                Ordering::Less => node.left.as_deref(),
                Ordering::Greater => node.right.as_deref(),
                Ordering::Equal => return true,
            };
        }
        false
    }

    /// Does any string in the set begin with this?
    pub(super) fn has_beginning(&self, beginning: &[u8]) -> bool {
        self.first_from(beginning).is_some_and(|key| key.starts_with(beginning))
    }

    /// Lists the strings that begin with `beginning`, without it, ascending.
    pub(super) fn rests<'f>(&'f self, beginning: &[u8], found: &mut Vec<&'f [u8]>) {
        let mut open: Vec<&TreapNode> = Vec::new();
        let mut here = self.root.as_deref();
        loop {
            while let Some(node) = here {
                here = if *node.key >= *beginning {
                    open.push(node);
                    node.left.as_deref()
                } else {
                    node.right.as_deref()
                };
            }
            let Some(node) = open.pop() else { return };
            let Some(rest) = node.key.strip_prefix(beginning) else { return };
            found.push(rest);
            here = node.right.as_deref();
        }
    }

    /// Counts the strings that begin with `beginning`, up to `most`.
    pub(super) fn count(&self, beginning: &[u8], most: usize) -> usize {
        let (mut count, mut open) = (0, self.root.as_deref().into_iter().collect::<Vec<_>>());
        while let Some(node) = open.pop().filter(|_| count < most) {
            let is_one = node.key.starts_with(beginning);
            count += usize::from(is_one);
            let (is_less, is_greater) = (*node.key < *beginning, !is_one && *node.key > *beginning);
            open.extend(node.left.as_deref().filter(|_| !is_less));
            open.extend(node.right.as_deref().filter(|_| !is_greater));
        }
        count
    }

    /// Adds a string. Returns whether it is new.
    pub(super) fn insert(&mut self, key: Arc<[u8]>) -> bool {
        if self.contains(&key) {
            return false;
        }
        self.bytes += key.len() + 1;
        let priority = key.iter().fold(key.len() as u64, |hash, &byte| mixed(hash, byte.into()));
        self.root = Some(inserted(self.root.as_ref(), key, priority));
        true
    }

    /// Returns the least string that is not less than `least`.
    fn first_from(&self, least: &[u8]) -> Option<&[u8]> {
        let (mut here, mut found) = (self.root.as_deref(), None);
        while let Some(node) = here {
            here = if *node.key < *least {
                node.right.as_deref()
            } else {
                found = Some(&*node.key);
                node.left.as_deref()
            };
        }
        found
    }
}

/// Returns the tree with a new key. Recursion is as deep as the tree.
fn inserted(tree: Option<&Arc<TreapNode>>, key: Arc<[u8]>, priority: u64) -> Arc<TreapNode> {
    let Some(node) = tree.filter(|node| node.priority >= priority) else {
        let (left, right) = split(tree, &key);
        return Arc::new(TreapNode { key, priority, left, right });
    };
    let (mut left, mut right) = (node.left.clone(), node.right.clone());
    if key < node.key {
        left = Some(inserted(left.as_ref(), key, priority));
    } else {
        right = Some(inserted(right.as_ref(), key, priority));
    }
    Arc::new(TreapNode { key: Arc::clone(&node.key), priority: node.priority, left, right })
}

/// Splits a tree into the keys less than `key` and those greater.
fn split(tree: Option<&Arc<TreapNode>>, key: &[u8]) -> (TreapLink, TreapLink) {
    let Some(node) = tree else { return (None, None) };
    let with = |left: TreapLink, right: TreapLink| {
        Some(Arc::new(TreapNode { key: Arc::clone(&node.key), priority: node.priority, left, right }))
    };
    if *node.key < *key {
        let (less, greater) = split(node.right.as_ref(), key);
        (with(node.left.clone(), less), greater)
    } else {
        let (less, greater) = split(node.left.as_ref(), key);
        (less, with(greater, node.right.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with an ordered set; copies stay as they were.
        #[test]
        fn facts_are_an_ordered_set(keys in prop::collection::vec("[ab]{0,4}", 0..60), asked in "[ab]{0,3}") {
            let (mut facts, mut all) = (ItemFacts::default(), BTreeSet::new());
            let mut before: Vec<(ItemFacts, BTreeSet<String>)> = Vec::new();
            for key in keys {
                before.push((facts.clone(), all.clone()));
                prop_assert_eq!(facts.insert(key.as_bytes().into()), all.insert(key));
            }
            before.push((facts, all));
            for (facts, all) in before {
                let mut rests = Vec::new();
                facts.rests(asked.as_bytes(), &mut rests);
                let wanted = all.iter().filter_map(|key| key.strip_prefix(&*asked)).map(str::as_bytes);
                prop_assert_eq!(&rests, &wanted.collect::<Vec<_>>());
                prop_assert_eq!(facts.has_beginning(asked.as_bytes()), !rests.is_empty());
                prop_assert_eq!(facts.count(asked.as_bytes(), 2), rests.len().min(2));
                prop_assert_eq!(facts.contains(asked.as_bytes()), all.contains(&asked));
                prop_assert_eq!(facts.bytes(), all.iter().map(|key| key.len() + 1).sum::<usize>());
            }
        }
    }
}
