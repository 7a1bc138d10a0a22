//! A view of one terminal's DFA, with transitions by ranges of bytes.

use std::ops::RangeInclusive;

use super::Inspection;
use crate::{ids::TerminalId, scanner::NONE};

/// An inclusive range of bytes.
pub type ByteRange = RangeInclusive<u8>;

/// A terminal's minimal DFA. State 0 is the start; from every state the terminal can still end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AutomatonView {
    /// The states, by number.
    pub states: Vec<StateView>,
}

/// A state of a DFA.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateView {
    /// May the terminal end here?
    pub accepting: bool,
    /// The transitions, one for each next state, in order of that state's number.
    pub transitions: Vec<TransitionView>,
}

/// A transition of a DFA.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransitionView {
    /// The bytes, as ascending ranges that do not touch.
    pub bytes: Vec<ByteRange>,
    /// The next state.
    pub to: u32,
}

impl Inspection {
    /// Returns the DFA of a terminal, if there is one of this number and its states are in a table, as all
    /// are but those of the substrings of long texts and of strings of counted characters. 256 lookups for
    /// each state.
    #[must_use]
    pub fn automaton(&self, terminal: TerminalId) -> Option<AutomatonView> {
        let scanner = &self.program().lowered.scanner;
        let dfa = (terminal.index() < scanner.terminal_count()).then(|| scanner.dfa(terminal))?;
        if !dfa.is_table() {
            return None;
        }
        let state = |(row, accepting): (&[u32], &bool)| {
            let mut transitions: Vec<TransitionView> = Vec::new();
            for byte in 0..=u8::MAX {
                let to = row[usize::from(dfa.classes()[usize::from(byte)])];
                if to == NONE {
                    continue;
                }
                let at = transitions.binary_search_by_key(&to, |transition| transition.to);
                let at = at.unwrap_or_else(|at| {
                    transitions.insert(at, TransitionView { bytes: Vec::new(), to });
                    at
                });
                add(&mut transitions[at].bytes, byte);
            }
            StateView { accepting: *accepting, transitions }
        };
        let rows = dfa.transitions().chunks_exact(dfa.class_count());
        Some(AutomatonView { states: rows.zip(dfa.accepting()).map(state).collect() })
    }
}

/// Adds a byte above all others.
fn add(ranges: &mut Vec<ByteRange>, byte: u8) {
    match ranges.last_mut() {
        Some(last) if last.end().checked_add(1) == Some(byte) => *last = *last.start()..=byte,
        _ => ranges.push(byte..=byte),
    }
}
