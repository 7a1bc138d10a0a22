//! A slow, obvious walk over automata with all of their states, to test those that have none.

use crate::grammar::Automaton;

/// The distance of states from which no end can be reached.
const NEVER: u32 = u32::MAX;

/// The position of a state in lists by state.
pub(in crate::grammar::json_schema::strings) fn index(state: u32) -> usize {
    usize::try_from(state).unwrap()
}

/// The state after one more byte.
pub(in crate::grammar::json_schema::strings) fn step(
    automaton: &Automaton,
    state: u32,
    byte: u8,
) -> Option<u32> {
    let edges = &automaton.states()[index(state)].edges;
    edges.iter().find(|edge| (edge.first..=edge.last).contains(&byte)).map(|edge| edge.to)
}

/// The fewest bytes from each state to an end, as a fixpoint.
pub(in crate::grammar::json_schema::strings) fn distances(automaton: &Automaton) -> Vec<u32> {
    let mut distances = vec![NEVER; automaton.states().len()];
    loop {
        let before = distances.clone();
        for (at, state) in automaton.states().iter().enumerate().rev() {
            let next = state.edges.iter().map(|edge| distances[index(edge.to)].saturating_add(1)).min();
            distances[at] = if state.accepts { 0 } else { next.unwrap_or(NEVER) };
        }
        if distances == before {
            return distances;
        }
    }
}
