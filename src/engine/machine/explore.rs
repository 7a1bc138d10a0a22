//! Makes constraint states and masks ahead of their use: best-first search from the start, those with the
//! fewest open rules first.
//!
//! A token is a string of bytes, so single bytes, one for each class, reach every state that a text can come
//! to. Texts nest little and are long, so states are taken by the depth of their stacks, and within a depth
//! in the order in which they were found. A grammar that does not nest is soon known as a whole.

use std::collections::VecDeque;

use super::state_automaton::StateAutomaton;
use crate::{
    ids::{SetId, StateId},
    limits::{LimitExceeded, Work},
    program::Program,
};

/// The extent to which a grammar was explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exploration {
    /// Constraint states whose masks were made.
    pub states: usize,
    /// Are these all states that a text can come to?
    pub complete: bool,
}

/// Work of filing a state and its mask, and number of a mask's tokens that one unit files.
const STATE_WORK: usize = 20;
const TOKENS_OF_A_UNIT: usize = 1_024;

/// States found and not yet looked at, by their numbers in one machine.
#[derive(Debug)]
pub(super) struct Frontier {
    /// A byte of each class.
    bytes: Vec<u8>,
    /// Length of the longest chain of sets that each set refers to.
    depths: Vec<u32>,
    /// States by depth.
    open: Vec<VecDeque<StateId>>,
    /// No state of a lesser depth is open.
    least: usize,
    /// By state: was it found?
    found: Vec<bool>,
}

impl Frontier {
    /// Creates a frontier that holds the start of `machine`.
    pub(super) fn new(program: &Program, machine: &StateAutomaton) -> Self {
        let scanner = &program.lowered.scanner;
        let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
        bytes.sort_by_key(|&byte| scanner.byte_class(byte));
        bytes.dedup_by_key(|byte| scanner.byte_class(*byte));
        let (depths, open, found) = (Vec::new(), Vec::new(), Vec::new());
        let mut frontier = Self { bytes, depths, open, least: 0, found };
        frontier.find(machine, machine.start());
        frontier
    }

    /// Queues a state, unless it was found before.
    fn find(&mut self, machine: &StateAutomaton, state: StateId) {
        if state.index() >= self.found.len() {
            self.found.resize(state.index() + 1, false);
        }
        if std::mem::replace(&mut self.found[state.index()], true) {
            return;
        }
        let sets = machine.threads(state).iter().map(|thread| thread.set).chain(machine.boundary(state));
        let depth = sets.map(|set| self.depth(machine, set)).max().unwrap_or(0) as usize;
        if depth >= self.open.len() {
            self.open.resize_with(depth + 1, VecDeque::new);
        }
        self.open[depth].push_back(state);
        self.least = self.least.min(depth);
    }

    /// Returns the depth of a set: the longest chain of origins from it.
    fn depth(&mut self, machine: &StateAutomaton, set: SetId) -> u32 {
        let parser = machine.parser();
        // A set refers to older ones only.
        for known in self.depths.len()..=set.index() {
            let depths = &self.depths;
            let origins = SetId::from_index(known).into_iter().flat_map(|set| parser.origins_of(set));
            let depth = origins.map(|origin| depths[origin.index()] + 1).max().unwrap_or(0);
            self.depths.push(depth);
        }
        self.depths[set.index()]
    }

    /// Takes a queued state of the least depth.
    fn next(&mut self) -> Option<StateId> {
        self.least += self.open[self.least..].iter().take_while(|open| open.is_empty()).count();
        self.open.get_mut(self.least)?.pop_front()
    }
}

impl StateAutomaton {
    /// Makes the mask of the next state and finds its successors: `Some(true)`. Returns `Some(false)` if no
    /// state is left, `None` if there is no more room or work.
    pub(super) fn explore(
        &mut self,
        program: &Program,
        frontier: &mut Frontier,
        work: &mut Work,
    ) -> Option<bool> {
        if !self.has_room(program) {
            return None;
        }
        let Some(state) = frontier.next() else { return Some(false) };
        self.follow(program, frontier, state, work).ok()
    }

    /// Makes the mask of a state and queues its successors.
    fn follow(
        &mut self,
        program: &Program,
        frontier: &mut Frontier,
        state: StateId,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        // A rehearsal would come too late.
        self.skip_rehearsal();
        work.spend(STATE_WORK + program.vocabulary.size() / TOKENS_OF_A_UNIT)?;
        self.mask(program, state, work)?;
        for at in 0..frontier.bytes.len() {
            if let Some(to) = self.step(program, state, frontier.bytes[at], work)? {
                frontier.find(self, to);
            }
        }
        Ok(true)
    }
}
