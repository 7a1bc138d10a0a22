//! Walks over the vocabulary's trie that are not at their end.

use hashbrown::HashMap;

use crate::{program::Thread, vocab::TokenSet};

/// Bytes of the kinds in `kinds` all lead from a state to `next`.
#[derive(Debug, Clone, Copy)]
pub(in crate::machine) struct KindEdge {
    pub(in crate::machine) next: u32,
    pub(in crate::machine) kinds: u64,
}

/// A walk in progress. Invariant: all nodes before `next` are done, and `path` holds the ancestors of `next`
/// with the ends of their subtrees and the states that they lead to.
#[derive(Debug)]
pub(in crate::machine) struct TrieWalk {
    pub(in crate::machine) mask: TokenSet,
    pub(in crate::machine) path: Vec<(u32, u32)>,
    pub(in crate::machine) next: u32,
    /// Runs by state.
    pub(in crate::machine) runs: HashMap<u32, KindEdge>,
    /// Work that may still go into runs; bounds the loss where they save nothing.
    pub(in crate::machine) room: usize,
    /// At finite lookahead, the bound and the sets that states are the numbers of.
    pub(in crate::machine) counted: Option<(u32, CountedSets)>,
}

/// A thread, and the least number of terminals that the token has begun past its first one on the way to it.
pub(in crate::machine) type CountedThread = (Thread, u32);

/// Hash-consed sets of counted threads, and the moves between them: the memo of one walk over the trie.
#[derive(Debug)]
pub(in crate::machine) struct CountedSets {
    pub(in crate::machine) sets: Vec<Box<[CountedThread]>>,
    /// Number of threads before the token that are inside a terminal.
    pub(in crate::machine) inside: usize,
    pub(in crate::machine) index: HashMap<Box<[CountedThread]>, u32>,
    /// Moves by set and byte class.
    pub(in crate::machine) moves: HashMap<(u32, usize), Option<u32>>,
}
