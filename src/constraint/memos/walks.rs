//! Walks over the vocabulary's trie that are not at their end.

use hashbrown::HashMap;

use crate::{constraint::states::Thread, vocab::TokenSet};

/// Bytes of the kinds in `kinds` all lead from a state to `next`.
#[derive(Debug, Clone, Copy)]
pub(in crate::constraint) struct KindEdge {
    pub(in crate::constraint) next: u32,
    pub(in crate::constraint) kinds: u64,
}

/// A walk in progress. Invariant: all nodes before `next` are done, and `path` holds the ancestors of `next`
/// with the ends of their subtrees and the states that they lead to.
#[derive(Debug)]
pub(in crate::constraint) struct TrieWalk {
    pub(in crate::constraint) mask: TokenSet,
    pub(in crate::constraint) path: Vec<(u32, u32)>,
    pub(in crate::constraint) next: u32,
    /// Runs by state.
    pub(in crate::constraint) runs: HashMap<u32, KindEdge>,
    /// Work that may still go into runs; bounds the loss where they save nothing.
    pub(in crate::constraint) room: usize,
    /// At finite lookahead, the bound and the sets that states are the numbers of.
    pub(in crate::constraint) counted: Option<(u32, CountedSets)>,
}

/// A thread, and the least number of terminals that the token has begun past its first one on the way to it.
pub(in crate::constraint) type CountedThread = (Thread, u32);

/// Hash-consed sets of counted threads, and the moves between them: the memo of one walk over the trie.
#[derive(Debug)]
pub(in crate::constraint) struct CountedSets {
    pub(in crate::constraint) sets: Vec<Box<[CountedThread]>>,
    /// Number of threads before the token that are inside a terminal.
    pub(in crate::constraint) inside: usize,
    pub(in crate::constraint) index: HashMap<Box<[CountedThread]>, u32>,
    /// Moves by set and byte class.
    pub(in crate::constraint) moves: HashMap<(u32, usize), Option<u32>>,
}
