//! Terminals as byte automata. This stage knows patterns, not grammars or vocabularies.
//!
//! [`Scanner`] is the union of all terminals of a grammar, with a number for every pair of terminal and DFA
//! state. Invariant: a [`ScanStateId`] names a live state: its terminal can still end. Terminals in tables
//! have ranges of numbers first; those whose states are made on demand follow. A step in a table is a
//! look-up.

mod build;
mod dfa;
mod implicit_dfa;
mod strings;
mod substrings;

use std::sync::Arc;

use crate::ids::{ScanStateId, TerminalId};
use crate::{automata::ClassNumbers, grammar::spelled::MayNumber, limits::LimitExceeded};

pub(crate) use build::{build, build_pattern};
pub(crate) use dfa::{NONE, TerminalDfa};
pub(crate) use strings::{StringCounts, Strings};

/// The DFAs of all terminals, in one numbering of states.
#[derive(Debug)]
pub(crate) struct Scanner {
    dfas: Vec<Arc<TerminalDfa>>,
    /// First state of each terminal.
    starts: Vec<u32>,
    /// Terminal of each state in a table.
    terminals: Vec<TerminalId>,
    /// The terminals whose states are made on demand, ascending by their first states, which come after those
    /// of tables.
    made_as_needed: Vec<TerminalId>,
    /// Memory that the automata may take, and what they took before any text, in bytes.
    room: (usize, usize),
    /// Joint classes: every terminal treats bytes of one class alike.
    byte_class: Box<[u8; 256]>,
    byte_class_count: usize,
}

impl Scanner {
    /// Creates the scanner of these terminals, whose automata may take `most` bytes with the states made on
    /// demand. `None` if there are over 2^32 states.
    pub(crate) fn new(dfas: Vec<Arc<TerminalDfa>>, most: usize) -> Option<Self> {
        let mut starts = vec![0; dfas.len()];
        let (mut terminals, mut made_as_needed) = (Vec::new(), Vec::new());
        for (index, dfa) in dfas.iter().enumerate() {
            let terminal = TerminalId::from_index(index)?;
            starts[index] = u32::try_from(terminals.len()).ok()?;
            if dfa.is_table() {
                terminals.extend(std::iter::repeat_n(terminal, dfa.len()));
            } else {
                made_as_needed.push(terminal);
            }
        }
        let mut states = terminals.len();
        for terminal in &made_as_needed {
            starts[terminal.index()] = u32::try_from(states).ok()?;
            states += dfas[terminal.index()].len();
        }
        u32::try_from(states).ok().filter(|&count| count < NONE)?;
        let (byte_class, byte_class_count) = joint_classes(&dfas);
        let room = (most, dfas.iter().map(|dfa| dfa.bytes()).sum());
        Some(Self { dfas, starts, terminals, made_as_needed, room, byte_class, byte_class_count })
    }

    /// Number of terminals.
    pub(crate) fn terminal_count(&self) -> usize {
        self.dfas.len()
    }

    /// The DFA of a terminal.
    pub(crate) fn dfa(&self, terminal: TerminalId) -> &TerminalDfa {
        &self.dfas[terminal.index()]
    }

    /// The terminals' automata.
    pub(crate) fn dfas(&self) -> &[Arc<TerminalDfa>] {
        &self.dfas
    }

    /// Number of states in tables of all terminals.
    pub(crate) fn state_count(&self) -> usize {
        self.terminals.len()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.dfas.iter().map(|dfa| dfa.bytes()).sum::<usize>() + self.index_bytes()
    }

    /// Memory without the automata, in bytes.
    pub(crate) fn index_bytes(&self) -> usize {
        let dfas = self.dfas.capacity() * size_of::<Arc<TerminalDfa>>();
        dfas + 4 * (self.starts.capacity() + self.terminals.capacity()) + size_of_val(&*self.byte_class)
    }

    /// Replaces automata by equal ones, so that grammars share them.
    pub(crate) fn share(&mut self, dfas: impl Iterator<Item = Arc<TerminalDfa>>) {
        for (own, shared) in self.dfas.iter_mut().zip(dfas) {
            debug_assert_eq!(*own, shared);
            *own = shared;
        }
    }

    /// Returns the start state of a terminal.
    pub(crate) fn start(&self, terminal: TerminalId) -> ScanStateId {
        ScanStateId::new(self.starts[terminal.index()])
    }

    /// Returns the terminal that a state is inside of.
    pub(crate) fn terminal(&self, state: ScanStateId) -> TerminalId {
        self.terminals.get(state.index()).copied().unwrap_or_else(|| {
            let begun = |terminal: &TerminalId| self.starts[terminal.index()] <= state.raw();
            // A state past those in tables is of one of these.
            self.made_as_needed[self.made_as_needed.partition_point(begun).saturating_sub(1)]
        })
    }

    /// Returns a name that identifies the state within its terminal, the same in every run.
    pub(crate) fn name(&self, state: ScanStateId) -> u64 {
        self.dfas[self.terminal(state).index()].name(self.local(state))
    }

    /// Returns the state's number within its terminal's DFA.
    pub(crate) fn local(&self, state: ScanStateId) -> u32 {
        state.raw() - self.starts[self.terminal(state).index()]
    }

    /// Steps by one byte, if the terminal can go on with it. Errors are boxed, as this is the innermost step
    /// of texts.
    ///
    /// # Errors
    /// If the state is made on demand, and there is no room for it, or no number.
    pub(crate) fn step(
        &self,
        state: ScanStateId,
        byte: u8,
    ) -> Result<Option<ScanStateId>, Box<LimitExceeded>> {
        let terminal = self.terminal(state).index();
        let (dfa, start) = (&self.dfas[terminal], self.starts[terminal]);
        let local = state.raw() - start;
        let to = match dfa.go(local, byte, MayNumber::No) {
            Ok(to) => to,
            Err(_) => {
                self.has_room()?;
                dfa.go(local, byte, MayNumber::Yes).map_err(|full| Box::new(full.into()))?
            }
        };
        Ok(to.map(|to| ScanStateId::new(start + to)))
    }

    /// Can the terminal go on with a byte?
    pub(crate) fn takes(&self, state: ScanStateId, byte: u8) -> bool {
        self.dfas[self.terminal(state).index()].takes(self.local(state), [byte])
    }

    /// Can the terminal go on at all?
    pub(crate) fn goes_on(&self, state: ScanStateId) -> bool {
        self.dfas[self.terminal(state).index()].goes_on(self.local(state))
    }

    /// Fails if the automata, with the states that texts have come to, take more memory than allowed.
    fn has_room(&self) -> Result<(), Box<LimitExceeded>> {
        let (most, before) = self.room;
        let met = self.made_as_needed.iter().map(|terminal| self.dfas[terminal.index()].met_bytes());
        if before + met.sum::<usize>() <= most {
            return Ok(());
        }
        Err(Box::new(LimitExceeded::of_terminals(most)))
    }

    /// May the terminal end here?
    pub(crate) fn accepts(&self, state: ScanStateId) -> bool {
        let terminal = self.terminal(state).index();
        self.dfas[terminal].accepts(state.raw() - self.starts[terminal])
    }

    /// The joint class of a byte.
    pub(crate) fn byte_class(&self, byte: u8) -> usize {
        usize::from(self.byte_class[usize::from(byte)])
    }

    /// Number of joint classes.
    pub(crate) fn byte_class_count(&self) -> usize {
        self.byte_class_count
    }
}

/// Computes the coarsest partition of bytes that refines every terminal's. `O(256 n)`.
fn joint_classes(dfas: &[Arc<TerminalDfa>]) -> (Box<[u8; 256]>, usize) {
    let mut classes = Box::new([0_u8; 256]);
    let mut count = 1;
    // By class so far and class of the automaton at hand: the new class, and the automaton it was given for.
    let mut names = Vec::new();
    for (turn, dfa) in (1..=u32::MAX).zip(dfas) {
        if count == 256 {
            break;
        }
        names.resize(names.len().max(count * dfa.class_count()), (0_u32, 0_u8));
        let mut numbers = ClassNumbers::default();
        for (class, &other) in classes.iter_mut().zip(dfa.classes()) {
            let name = &mut names[usize::from(*class) * dfa.class_count() + usize::from(other)];
            if name.0 != turn {
                *name = (turn, numbers.fresh());
            }
            *class = name.1;
        }
        count = numbers.count();
    }
    (classes, count)
}
