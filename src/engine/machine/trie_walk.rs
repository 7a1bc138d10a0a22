//! Makes masks by a depth-first walk over the vocabulary's trie, with one state per node.
//!
//! This is the slow exact way, for places where subterminal trees take too much work: where terminals follow
//! each other in very many ways, there are far more terminal sequences than trie nodes. States are interned
//! and their moves memoised, so a node costs a lookup, and only distinct sets of threads cost more. Subtrees
//! in which every byte leads on are taken whole: those of repeats, counted or not. A walk that runs out of
//! work is resumed where it stopped. At finite lookahead a state is a set of threads with counts, otherwise a
//! constraint state.

use hashbrown::HashMap;

use super::{
    memos::{CountedSets, KindEdge, TrieWalk},
    state_automaton::StateAutomaton,
};
use crate::{
    ids::{StateId, TrieNodeId},
    limits::{LimitExceeded, Work},
    program::Program,
    subterminal::Lookahead,
    vocab::{ByteTrie, TokenSet, byte_kind},
};

/// Least size of a subtree, in nodes, for which finding out which bytes lead on from a state pays.
const WORTH_RUNS: u32 = 16;

/// Work of 256 lookups.
const RUN_WORK: usize = 64;

/// Nodes of the trie for each unit of work that may go into runs before they have saved any.
const NODES_OF_RUN_WORK: usize = 16;

impl TrieWalk {
    /// Starts a walk at the root, in `state`.
    pub(super) fn new(machine: &StateAutomaton, program: &Program, state: StateId) -> Self {
        let trie = program.vocabulary.trie();
        let counted = match program.lookahead {
            Lookahead::Unbounded => None,
            Lookahead::Terminals(most) => Some((most, CountedSets::new(machine, program, state))),
        };
        let start = if counted.is_some() { 0 } else { state.raw() };
        let path = vec![(trie.end(ByteTrie::ROOT).raw(), start)];
        let (mask, room) = (TokenSet::zeros(trie.everything().size()), trie.len() / NODES_OF_RUN_WORK);
        Self { mask, path, next: 1, runs: HashMap::new(), room, counted }
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
        machine: &mut StateAutomaton,
        program: &Program,
        work: &mut Work,
    ) -> Result<(), LimitExceeded> {
        let before = self.next;
        let done = self.visit(machine, program, work);
        if self.next > before {
            work.keep();
        }
        done
    }

    /// Visits the nodes from the next one on.
    fn visit(
        &mut self,
        machine: &mut StateAutomaton,
        program: &Program,
        work: &mut Work,
    ) -> Result<(), LimitExceeded> {
        let trie = program.vocabulary.trie();
        let last = trie.end(ByteTrie::ROOT).raw();
        while self.next < last {
            work.spend(1)?;
            while self.path.last().is_some_and(|&(end, _)| end <= self.next) {
                self.path.pop();
            }
            let Some(&(_, from)) = self.path.last() else { return Ok(()) };
            let node = TrieNodeId::new(self.next);
            let end = trie.end(node).raw();
            let Some(to) = self.step(machine, program, (from, trie.byte(node)), work)? else {
                self.next = end;
                continue;
            };
            if end - self.next >= WORTH_RUNS && self.is_whole(machine, program, (node, to), work)? {
                self.room += (end - self.next) as usize;
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

    /// Steps by a byte: from a set with counted terminals if they are counted, or else from a state.
    fn step(
        &mut self,
        machine: &mut StateAutomaton,
        program: &Program,
        (from, byte): (u32, u8),
        work: &mut Work,
    ) -> Result<Option<u32>, LimitExceeded> {
        match &mut self.counted {
            Some((most, sets)) => sets.step(machine, program, (from, byte), *most, work),
            None => Ok(machine.step(program, StateId::new(from), byte, work)?.map(StateId::raw)),
        }
    }

    /// May all tokens below `node`, which leads to `state`, follow? Repeats lead on from one state to the
    /// next, or back to the same. `false` also where it is not worth a look.
    fn is_whole(
        &mut self,
        machine: &mut StateAutomaton,
        program: &Program,
        (node, mut state): (TrieNodeId, u32),
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let trie = program.vocabulary.trie();
        let kinds = trie.kinds_below(node);
        let mut left = trie.height(node);
        while left != Some(0) {
            left = left.map(|left| left - 1);
            work.spend(1)?;
            let Some(run) = self.run_from(machine, program, state, work)? else { return Ok(false) };
            if kinds & !run.kinds != 0 {
                return Ok(false);
            }
            if run.next == state {
                break;
            }
            state = run.next;
        }
        Ok(true)
    }

    /// Returns the state that most bytes lead to from `state`: itself, if any byte leads back. `None` once
    /// runs have cost more than they save.
    fn run_from(
        &mut self,
        machine: &mut StateAutomaton,
        program: &Program,
        state: u32,
        work: &mut Work,
    ) -> Result<Option<KindEdge>, LimitExceeded> {
        if let Some(run) = self.runs.get(&state) {
            return Ok(Some(*run));
        }
        if self.room == 0 {
            return Ok(None);
        }
        let before = work.spent();
        work.spend(RUN_WORK)?;
        let mut ways: Vec<(u8, Option<u32>)> = Vec::with_capacity(256);
        for byte in 0..=u8::MAX {
            ways.push((byte, self.step(machine, program, (state, byte), work)?));
        }
        let mut counts: HashMap<u32, usize> = HashMap::new();
        ways.iter().filter_map(|&(_, to)| to).for_each(|to| *counts.entry(to).or_default() += 1);
        let most = counts.into_iter().max_by_key(|&(to, count)| (to == state, count, to));
        let next = most.map_or(state, |(to, _)| to);
        let others = ways.iter().filter(|&&(_, to)| to != Some(next));
        let kinds = others.fold(u64::MAX, |kinds, &(byte, _)| kinds & !(1 << byte_kind(byte)));
        let run = KindEdge { next, kinds };
        self.runs.insert(state, run);
        self.room = self.room.saturating_sub(work.spent() - before);
        Ok(Some(run))
    }
}
