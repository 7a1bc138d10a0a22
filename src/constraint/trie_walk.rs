//! Masks by a depth-first walk over the vocabulary's trie, one constraint state a node.
//!
//! The slow exact way, for places where subterminal trees take too much work: where terminals follow each other in very
//! many ways there are many more terminal sequences than trie nodes. Constraint states are interned and their moves are
//! memoised, so a node costs a lookup, and only distinct sets of threads cost more. A walk that runs out of work is
//! resumed where it stopped.

use super::{machine::Machine, program::Program};
use crate::{
    ids::{StateId, TrieNodeId},
    limits::{LimitExceeded, Work},
    vocab::{ByteTrie, TokenSet, byte_kind},
};

/// Nodes of a subtree from which on it pays to work out which bytes lead from a state back to itself.
const WORTH_LOOPS: u32 = 64;

/// Work of 256 lookups.
const LOOPS_WORK: usize = 64;

/// Trie nodes walked for a unit of work.
const NODES_OF_A_UNIT: usize = 1;

/// A walk in progress. Invariant: all nodes before `next` are done, and `path` holds the ancestors of `next` with the
/// ends of their subtrees and the states that they lead to.
#[derive(Debug)]
pub(super) struct TrieWalk {
    mask: TokenSet,
    path: Vec<(u32, StateId)>,
    next: u32,
    /// The last state whose loops were worked out, and their byte kinds.
    loops: Option<(StateId, u64)>,
}

impl TrieWalk {
    /// A walk that begins at the root, in `state`.
    pub(super) fn new(trie: &ByteTrie, state: StateId) -> Self {
        let path = vec![(trie.end(ByteTrie::ROOT).raw(), state)];
        Self { mask: TokenSet::empty(trie.everything().size()), path, next: 1, loops: None }
    }

    /// The tokens found. All of them once [`go_on`](Self::go_on) has returned without error.
    pub(super) fn into_mask(self) -> TokenSet {
        self.mask
    }

    /// Walks to the end of the trie.
    ///
    /// # Errors
    /// When work or memory is used up; called again, it goes on from there.
    pub(super) fn go_on(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        work: &mut Work,
    ) -> Result<(), LimitExceeded> {
        let trie = program.vocabulary.trie();
        let last = trie.end(ByteTrie::ROOT).raw();
        let mut unpaid = 0;
        while self.next < last {
            unpaid += 1;
            if unpaid >= NODES_OF_A_UNIT {
                work.spend(unpaid / NODES_OF_A_UNIT)?;
                unpaid = 0;
            }
            while self.path.last().is_some_and(|&(end, _)| end <= self.next) {
                self.path.pop();
            }
            let Some(&(_, from)) = self.path.last() else { return Ok(()) };
            let node = TrieNodeId::new(self.next);
            let end = trie.end(node).raw();
            let Some(to) = machine.step(program, from, trie.byte(node), work)? else {
                self.next = end;
                continue;
            };
            let whole = to == from
                && end - self.next >= WORTH_LOOPS
                && trie.kinds_below(node) & !self.loops_of(machine, program, to, work)? == 0;
            if whole {
                trie.tokens_at(trie.subtree_tokens(node)).iter().for_each(|&token| self.mask.insert(token));
                self.next = end;
                continue;
            }
            trie.tokens_at(trie.own_tokens(node)).iter().for_each(|&token| self.mask.insert(token));
            self.path.push((end, to));
            self.next += 1;
        }
        Ok(())
    }

    /// The kinds of bytes that all lead from `state` back to it.
    fn loops_of(
        &mut self,
        machine: &mut Machine,
        program: &Program,
        state: StateId,
        work: &mut Work,
    ) -> Result<u64, LimitExceeded> {
        if let Some((known, loops)) = self.loops
            && known == state
        {
            return Ok(loops);
        }
        work.spend(LOOPS_WORK)?;
        let mut loops = u64::MAX;
        for byte in 0..=u8::MAX {
            if machine.step(program, state, byte, work)? != Some(state) {
                loops &= !(1 << byte_kind(byte));
            }
        }
        self.loops = Some((state, loops));
        Ok(loops)
    }
}
