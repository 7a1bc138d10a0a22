//! Finite languages: automata of lists of strings, and lists of strings of automata.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Alphabet, CharDfa, DfaTable, MAX_CELLS, NONE, char_at, index, ops::complement};
use crate::{
    grammar::json_schema::leaf::LeafError,
    ids::{Numbered, as_index},
};

/// Limit on the characters of all strings that are listed from one automaton: their number is bounded, and so
/// is their length, but not the product. As many as the longest list of strings that a text of 16 MiB spells.
const MAX_LISTED: usize = 1 << 24;

/// A node under construction: true if it accepts, and its edges by character.
type TrieNode = (bool, Vec<(u32, u32)>);

impl CharDfa {
    /// The language of exactly these strings, by Daciuk's incremental construction of a minimal automaton
    /// from sorted words. `O(n log n)`.
    ///
    /// # Errors
    /// If the table of transitions would be too large.
    pub(in crate::grammar::json_schema) fn of<S: AsRef<str>>(
        strings: impl IntoIterator<Item = S>,
    ) -> Result<Self, LeafError> {
        match automaton(strings)? {
            Some((alphabet, table)) => Ok(Self::from_minimal(&alphabet, &table)),
            None => Ok(Self::none()),
        }
    }

    /// The language of all strings but these. Costs as much as [`of`](Self::of).
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(in crate::grammar::json_schema) fn all_but<S: AsRef<str>>(
        strings: impl IntoIterator<Item = S>,
    ) -> Result<Self, LeafError> {
        match automaton(strings)? {
            Some((alphabet, table)) => Ok(complement(&alphabet, &table)),
            None => Ok(Self::all()),
        }
    }

    /// The strings of the language, in order of their characters, if there are at most `limit`, and if they
    /// have at most [`MAX_LISTED`] characters together.
    pub(in crate::grammar::json_schema) fn strings(&self, limit: usize) -> Option<Vec<String>> {
        if self.count(limit) > limit {
            return None;
        }
        let mut found = Vec::new();
        if self.is_empty() {
            return Some(found);
        }
        let (mut text, mut left): (Vec<char>, usize) = (Vec::new(), MAX_LISTED);
        let mut open = vec![(0_usize, None, 0_u32)];
        while let Some((length, character, state)) = open.pop() {
            text.truncate(length.saturating_sub(1));
            text.extend(character);
            if self.accepts(state) {
                left = left.checked_sub(text.len())?;
                found.push(text.iter().collect());
            }
            for (first, last, to) in self.edges(state).into_iter().rev() {
                open.extend((first..=last).rev().map(|at| (length + 1, Some(char_at(at)), to)));
            }
        }
        Some(found)
    }
}

/// The minimal automaton of these strings; `None` if there are none.
fn automaton<S: AsRef<str>>(
    strings: impl IntoIterator<Item = S>,
) -> Result<Option<(Alphabet, DfaTable)>, LeafError> {
    let mut words: Vec<Vec<u32>> =
        strings.into_iter().map(|string| string.as_ref().chars().map(index).collect()).collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() {
        return Ok(None);
    }
    let mut frozen = Frozen::default();
    // The nodes along the last word, and the characters between them.
    let (mut path, mut last): (Vec<TrieNode>, Vec<u32>) = (vec![(false, Vec::new())], Vec::new());
    for word in words {
        let common = word.iter().zip(&last).take_while(|(left, right)| left == right).count();
        frozen.close(&mut path, &last, common)?;
        path.resize_with(word.len() + 1, TrieNode::default);
        if let Some(end) = path.last_mut() {
            end.0 = true;
        }
        last = word;
    }
    frozen.close(&mut path, &last, 0)?;
    let root = frozen.id(path.pop().unwrap_or_default())?;
    frozen.table(root).map(Some)
}

/// Nodes that will not change any more; equal ones are stored once (the register of Daciuk's algorithm).
#[derive(Debug, Default)]
struct Frozen {
    nodes: Numbered<TrieNode>,
    /// The ids of the nodes, by their contents.
    known: HashTable<u32>,
    hashes: DefaultHashBuilder,
}

impl Frozen {
    fn id(&mut self, node: TrieNode) -> Result<u32, LeafError> {
        let Self { nodes, known, hashes } = self;
        let hash = hashes.hash_one(&node);
        if let Some(&id) = known.find(hash, |&id| nodes[as_index(id)] == node) {
            return Ok(id);
        }
        let id = nodes.push(node, "states of a list of strings")?;
        known.insert_unique(hash, id, |&id| hashes.hash_one(&nodes[as_index(id)]));
        Ok(id)
    }

    /// Freezes the nodes of `path` after the first `keep + 1`; `word` leads along it.
    fn close(&mut self, path: &mut Vec<TrieNode>, word: &[u32], keep: usize) -> Result<(), LeafError> {
        while path.len() > keep + 1 {
            let Some(node) = path.pop() else { break };
            let id = self.id(node)?;
            let character = path.len().checked_sub(1).and_then(|at| word.get(at));
            if let (Some(parent), Some(&character)) = (path.last_mut(), character) {
                parent.1.push((character, id));
            }
        }
        Ok(())
    }

    fn table(self, root: u32) -> Result<(Alphabet, DfaTable), LeafError> {
        let mut used: Vec<u32> =
            self.nodes.iter().flat_map(|(_, edges)| edges.iter().map(|(character, _)| *character)).collect();
        used.sort_unstable();
        used.dedup();
        let alphabet = Alphabet::singles(&used);
        let width = alphabet.classes();
        let cells = self.nodes.len().saturating_mul(width);
        if cells > MAX_CELLS {
            return Err(LeafError::Budget { what: "transitions of a list of strings", limit: MAX_CELLS });
        }
        // The root was frozen last. It becomes state 0.
        let state = |node: u32| root - node;
        let mut transitions = vec![NONE; cells];
        let mut accepting = vec![false; self.nodes.len()];
        for (node, (accepts, edges)) in (0..).zip(&*self.nodes) {
            accepting[as_index(state(node))] = *accepts;
            for &(character, to) in edges {
                transitions[as_index(state(node)) * width + alphabet.class_of(character)] = state(to);
            }
        }
        Ok((alphabet, DfaTable { width, transitions, accepting }))
    }
}
