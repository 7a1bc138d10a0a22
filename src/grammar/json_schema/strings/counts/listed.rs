//! Automata with all of their states, gone through in the slow obvious way, for tests of those without.

use crate::grammar::Automaton;

/// The state after one more byte.
pub(in crate::grammar::json_schema::strings) fn step(
    automaton: &Automaton,
    state: u32,
    byte: u8,
) -> Option<u32> {
    let edges = &automaton.states()[state as usize].edges;
    edges.iter().find(|edge| (edge.first..=edge.last).contains(&byte)).map(|edge| edge.to)
}

/// The fewest bytes from each state to an end, by a fixed point.
pub(in crate::grammar::json_schema::strings) fn distances(automaton: &Automaton) -> Vec<u32> {
    let mut distances = vec![u32::MAX; automaton.states().len()];
    loop {
        let before = distances.clone();
        for (at, state) in automaton.states().iter().enumerate().rev() {
            let next = state.edges.iter().map(|edge| distances[edge.to as usize].saturating_add(1)).min();
            distances[at] = if state.accepts { 0 } else { next.unwrap_or(u32::MAX) };
        }
        if distances == before {
            return distances;
        }
    }
}
