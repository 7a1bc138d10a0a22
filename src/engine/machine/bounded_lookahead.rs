//! Checks tokens byte by byte at finite lookahead, where terminals are counted (opportunistic masking; paper,
//! 3.5).
//!
//! A breadth-first search over the token's bytes. Each thread carries the least number of terminals that the
//! token has begun past the first one it touches. Unlike in `StateAutomaton::step`, the parser sets in which
//! a terminal may have ended are not merged: they may have been reached at different counts.

use hashbrown::HashMap;

use super::{
    memos::{CountedSets, CountedThread},
    state_automaton::StateAutomaton,
};
use crate::{
    ids::{StateId, as_index, number},
    limits::{LimitExceeded, Work},
    program::{Program, Thread},
};

impl CountedSets {
    /// Creates the memo with the set before a token in `state`, which is number 0.
    pub(super) fn new(machine: &StateAutomaton, shared: &Program, state: StateId) -> Self {
        let start = machine.counted_start(shared, state).into();
        let inside = machine.threads(state).len();
        Self { sets: vec![start], inside, index: HashMap::new(), moves: HashMap::new() }
    }

    /// Returns the set after one more byte, or `None` if no token of at most `most` further terminals goes on
    /// so.
    pub(super) fn step(
        &mut self,
        machine: &mut StateAutomaton,
        shared: &Program,
        (set, byte): (u32, u8),
        most: u32,
        work: &mut Work,
    ) -> Result<Option<u32>, LimitExceeded> {
        let class = shared.lowered.scanner.byte_class(byte);
        if let Some(&known) = self.moves.get(&(set, class)) {
            return Ok(known);
        }
        let first = (set == 0).then_some(self.inside);
        let next = machine.counted_step(shared, &self.sets[as_index(set)], (byte, first), most, work)?;
        let to = if next.is_empty() { None } else { Some(self.intern(next)?) };
        self.moves.insert((set, class), to);
        work.keep();
        Ok(to)
    }

    /// Returns the number of a set of threads; makes one if there is none.
    fn intern(&mut self, threads: Vec<CountedThread>) -> Result<u32, LimitExceeded> {
        let threads: Box<[CountedThread]> = threads.into();
        if let Some(&known) = self.index.get(&threads) {
            return Ok(known);
        }
        let number = number(self.sets.len(), "sets of counted threads")?;
        self.index.insert(threads.clone(), number);
        self.sets.push(threads);
        Ok(number)
    }
}

impl StateAutomaton {
    /// May a token of these bytes (at least one) follow that begins at most `most` terminals past its first?
    /// Costs a step for each byte and thread, and a look at the terminals that follow where a thread may end.
    pub(crate) fn reaches(
        &mut self,
        shared: &Program,
        state: StateId,
        bytes: &[u8],
        most: u32,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let mut threads = self.counted_start(shared, state);
        let inside = self.threads(state).len();
        for (at, &byte) in bytes.iter().enumerate() {
            let first = (at == 0).then_some(inside);
            threads = self.counted_step(shared, &threads, (byte, first), most, work)?;
            if threads.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the threads before a token: inside a terminal, or at the start of one that may come next.
    fn counted_start(&self, shared: &Program, state: StateId) -> Vec<CountedThread> {
        let mut threads: Vec<CountedThread> = self.threads(state).iter().map(|&thread| (thread, 0)).collect();
        if let Some(set) = self.boundary(state) {
            let scanner = &shared.lowered.scanner;
            let starts = self.parser().accepts(set).iter();
            threads.extend(starts.map(|&terminal| (Thread { set, scan: scanner.start(terminal) }, 0)));
        }
        threads
    }

    /// Returns the sorted threads after one more byte. Before the first byte of a token, the terminals that
    /// may come next are already threads, after the first `first` ones, which are inside a terminal.
    fn counted_step(
        &mut self,
        shared: &Program,
        threads: &[CountedThread],
        (byte, first): (u8, Option<usize>),
        most: u32,
        work: &mut Work,
    ) -> Result<Vec<CountedThread>, LimitExceeded> {
        let (scanner, cfg) = (&shared.lowered.scanner, &shared.lowered.cfg);
        let takes = |&(Thread { scan, .. }, _): &CountedThread| scanner.takes(scan, byte);
        let inside = first.unwrap_or(threads.len());
        let goes_on = shared.lowered.greedy && threads[..inside].iter().any(takes);
        let threads = if goes_on { &threads[..inside] } else { threads };
        let mut next: HashMap<Thread, u32> = HashMap::new();
        let mut reach = |set, scan, further| -> Result<(), LimitExceeded> {
            if let Some(scan) = scanner.step(scan, byte).map_err(|limit| *limit)? {
                let least = next.entry(Thread { set, scan }).or_insert(further);
                *least = further.min(*least);
            }
            Ok(())
        };
        for &(Thread { set, scan }, further) in threads {
            work.spend(4)?;
            reach(set, scan, further)?;
            if goes_on || first.is_some() || further == most || !scanner.accepts(scan) {
                continue;
            }
            let Some(set) = self.parser_mut().shift(cfg, set, scanner.terminal(scan), work)? else {
                continue;
            };
            let starts = self.parser().accepts(set);
            work.spend(2 * starts.len())?;
            for &terminal in starts {
                reach(set, scanner.start(terminal), further + 1)?;
            }
        }
        let mut next: Vec<CountedThread> = next.into_iter().collect();
        next.sort_unstable();
        Ok(next)
    }
}
