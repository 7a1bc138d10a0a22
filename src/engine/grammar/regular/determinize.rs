//! The subset construction, within budgets, by `regex-automata`; and trimming of its result.

use hashbrown::HashMap;
use regex_automata::{
    Anchored, MatchKind,
    dfa::{Automaton, StartKind, dense},
    nfa::thompson::NFA,
    util::primitives::StateID,
};

use crate::{
    automata::minimize::{DfaTable, NONE},
    grammar::automaton::Automaton as ByteAutomaton,
};

/// Upper bound on the bytes that `regex-automata` needs for a DFA state: a row of 256, and its set of NFA
/// states.
const BYTES_PER_STATE: usize = 2048;

/// Room for the states of its table that ours does not have, such as dead states and matches at the end, and
/// for its memory beside the table, counted in states.
const MORE_STATES: usize = 64;

/// An automaton under construction: any classes, any numbering, dead states allowed.
#[derive(Debug, Clone)]
pub(crate) struct RawDfa {
    /// The class of each byte.
    pub(crate) classes: Box<[u8; 256]>,
    /// The automaton, whose symbols are these classes.
    pub(crate) table: DfaTable,
}

impl Default for RawDfa {
    /// The automaton with one class and no state.
    fn default() -> Self {
        let table = DfaTable { width: 1, transitions: Vec::new(), accepting: Vec::new() };
        Self { classes: Box::new([0; 256]), table }
    }
}

impl From<&ByteAutomaton> for RawDfa {
    /// Converts an automaton; the bytes between two neighbouring ends of edges are a class.
    fn from(automaton: &ByteAutomaton) -> Self {
        let states = automaton.states();
        let mut begins = [false; 256];
        for edge in states.iter().flat_map(|state| &state.edges) {
            begins[usize::from(edge.first)] = true;
            if let Some(after) = edge.last.checked_add(1) {
                begins[usize::from(after)] = true;
            }
        }
        let mut classes = Box::new([0_u8; 256]);
        for byte in 1..256 {
            classes[byte] = classes[byte - 1] + u8::from(begins[byte]);
        }
        let width = usize::from(classes[255]) + 1;
        let mut transitions = vec![NONE; states.len() * width];
        for (state, row) in states.iter().zip(transitions.chunks_exact_mut(width)) {
            for edge in &state.edges {
                let (first, last) = (classes[usize::from(edge.first)], classes[usize::from(edge.last)]);
                row[usize::from(first)..=usize::from(last)].fill(edge.to);
            }
        }
        let accepting = states.iter().map(|state| state.accepts).collect();
        Self { classes, table: DfaTable { width, transitions, accepting } }
    }
}

/// The reachable states of the subset construction, or `None` if there are more than `max_states`.
///
/// An NFA of `n` states can have `2^n` of them; the budget ends that.
pub(crate) fn determinize(nfa: &NFA, max_states: usize) -> Option<RawDfa> {
    let memory = max_states.saturating_mul(BYTES_PER_STATE);
    // A table with more states than the limit is of no use; rows are narrow if classes are few.
    let row = size_of::<u32>() << nfa.byte_classes().stride2();
    let table = max_states.saturating_add(MORE_STATES).saturating_mul(row).min(memory);
    let dense = dense::Builder::new()
        .configure(
            dense::Config::new()
                .match_kind(MatchKind::All)
                .start_kind(StartKind::Anchored)
                .accelerate(false)
                .dfa_size_limit(Some(table))
                .determinize_size_limit(Some(memory)),
        )
        .build_from_nfa(nfa)
        .ok()?;
    explore(&dense, max_states)
}

/// Copies the reachable part. `regex-automata` reports a match one byte late, so a state accepts if its
/// end-of-input transition is a match.
fn explore(dense: &dense::DFA<Vec<u32>>, max_states: usize) -> Option<RawDfa> {
    // All bytes of a class step alike, so one byte stands for each class.
    let mut classes = Box::new([0_u8; 256]);
    let mut representatives: Vec<u8> = Vec::new();
    let byte_classes = dense.byte_classes();
    for byte in 0..=u8::MAX {
        let class = byte_classes.get(byte);
        classes[usize::from(byte)] = class;
        if usize::from(class) == representatives.len() {
            representatives.push(byte);
        }
    }
    // A breadth-first search numbers the states that the start state leads to.
    let start = dense.universal_start_state(Anchored::Yes)?;
    let mut number: HashMap<StateID, u32> = HashMap::from([(start, 0)]);
    let mut order = vec![start];
    let mut table = DfaTable { width: representatives.len(), transitions: Vec::new(), accepting: Vec::new() };
    let mut next = 0;
    while next < order.len() {
        let state = order[next];
        table.accepting.push(dense.is_match_state(dense.next_eoi_state(state)));
        for &byte in &representatives {
            let to = dense.next_state(state, byte);
            if dense.is_dead_state(to) {
                table.transitions.push(NONE);
                continue;
            }
            let fresh = u32::try_from(order.len()).ok()?;
            let to = *number.entry(to).or_insert_with_key(|&to| {
                order.push(to);
                fresh
            });
            table.transitions.push(to);
        }
        if order.len() > max_states {
            return None;
        }
        next += 1;
    }
    Some(RawDfa { classes, table })
}
