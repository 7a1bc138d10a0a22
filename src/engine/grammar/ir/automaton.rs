//! Deterministic byte automata as leaves of a grammar.
//!
//! Some languages have small automata and only huge regular expressions: complements, products, multiples of
//! a number. They are given as automata.
//!
//! Invariant: states are reachable and live (but for the start of the empty language); the start is state 0;
//! states are numbered breadth-first over ascending bytes; the edges of a state ascend, and equal neighbours
//! are joined. So automata of the same shape are equal values. They need not be minimal.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::{
    automata::{Grouped, mix},
    limits::AUTOMATON_STATES,
};

/// An edge: a range of bytes, and the state that they lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The first byte.
    pub first: u8,
    /// The last byte, at least `first`.
    pub last: u8,
    /// The state that the bytes lead to.
    pub to: u32,
}

/// A state of an [`Automaton`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    /// True if the text may end here.
    pub accepts: bool,
    /// The edges; no two have a byte in common.
    pub edges: Vec<Edge>,
}

/// A deterministic automaton over bytes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Automaton {
    states: Arc<[State]>,
    minimal: bool,
    /// Memory of the states, in bytes.
    bytes: usize,
    /// A hash of the states: a grammar has many automata, and many of them are equal.
    hash: u64,
}

impl PartialEq for Automaton {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.states, &other.states) || self.states == other.states)
    }
}

impl Eq for Automaton {}

impl Hash for Automaton {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The reason why states do not make an [`Automaton`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AutomatonError {
    /// There is no state.
    #[error("an automaton has a state at least")]
    NoState,
    /// There are more than [`AUTOMATON_STATES`].
    #[error("an automaton has at most {AUTOMATON_STATES} states")]
    TooManyStates,
    /// An edge leads to no state, or from a byte to a lesser one.
    #[error("an edge of state {0} leads nowhere")]
    WrongEdge(usize),
    /// Two edges have a byte in common.
    #[error("two edges of state {0} have a byte in common")]
    NotDeterministic(usize),
}

impl Automaton {
    /// Makes an automaton of these states, of which the first is the start. `O(n log n)` in the edges.
    ///
    /// # Errors
    /// If the states are not those of a deterministic automaton.
    pub fn new(mut states: Vec<State>) -> Result<Self, AutomatonError> {
        check(&mut states)?;
        let live = live(&states);
        for state in &mut states {
            state.edges.retain(|edge| live[edge.to as usize]);
        }
        Ok(Self::of(states, false))
    }

    /// Makes an automaton like [`new`](Self::new), of states no two of which are equivalent. That is not
    /// checked: if it is wrong, the language is right, but automata are larger than needed.
    ///
    /// # Errors
    /// If the states are not those of a deterministic automaton.
    pub(crate) fn minimal(states: Vec<State>) -> Result<Self, AutomatonError> {
        Ok(Self { minimal: true, ..Self::new(states)? })
    }

    /// Makes an automaton like [`minimal`](Self::minimal), of states that are all live. That is not checked
    /// either, as it takes longest to find out. Linear.
    ///
    /// # Errors
    /// If the states are not those of a deterministic automaton.
    pub(crate) fn trimmed(mut states: Vec<State>) -> Result<Self, AutomatonError> {
        check(&mut states)?;
        debug_assert!(live(&states).into_iter().all(|live| live), "a state leads nowhere");
        Ok(Self::of(states, true))
    }

    /// Makes an automaton of states that were checked.
    fn of(states: Vec<State>, minimal: bool) -> Self {
        let (states, hash) = numbered(states);
        let edges: usize = states.iter().map(|state| state.edges.capacity()).sum();
        let bytes = size_of_val(&states[..]) + edges * size_of::<Edge>();
        Self { states: states.into(), minimal, bytes, hash }
    }

    /// Memory of the states, in bytes. Clones share them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if it is known that no two states are equivalent.
    pub(crate) fn is_minimal(&self) -> bool {
        self.minimal
    }

    /// The states; the start is the first.
    #[must_use]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The lexicographically least of the shortest texts; `None` if there is no text. A breadth-first search,
    /// linear.
    #[must_use]
    pub fn shortest(&self) -> Option<Vec<u8>> {
        /// The predecessor of states that have none.
        const NOWHERE: u32 = u32::MAX;
        if self.states[0].accepts {
            return Some(Vec::new());
        }
        let mut from = vec![(NOWHERE, 0_u8); self.states.len()];
        let (mut order, mut next) = (vec![0_u32], 0);
        // States are met in order of their least shortest text, so the first end found is the right one.
        let mut at = loop {
            let state = *order.get(next)?;
            let known = order.len();
            for edge in &self.states[state as usize].edges {
                let way = &mut from[edge.to as usize];
                if edge.to != 0 && way.0 == NOWHERE {
                    *way = (state, edge.first);
                    order.push(edge.to);
                }
            }
            if let Some(&end) = order[known..].iter().find(|to| self.states[**to as usize].accepts) {
                break end;
            }
            next += 1;
        };
        let mut text = Vec::new();
        while at != 0 {
            let (before, byte) = from[at as usize];
            text.push(byte);
            at = before;
        }
        text.reverse();
        Some(text)
    }
}

/// Sorts the edges of each state, and checks that the states are those of a deterministic automaton.
fn check(states: &mut [State]) -> Result<(), AutomatonError> {
    if states.is_empty() {
        return Err(AutomatonError::NoState);
    }
    let count = states.len();
    if count > AUTOMATON_STATES {
        return Err(AutomatonError::TooManyStates);
    }
    let ascend = |edges: &[Edge]| edges.windows(2).all(|pair| pair[0].last < pair[1].first);
    for (at, State { edges, .. }) in states.iter_mut().enumerate() {
        if edges.iter().any(|edge| edge.to as usize >= count || edge.first > edge.last) {
            return Err(AutomatonError::WrongEdge(at));
        }
        if !ascend(edges) {
            edges.sort_unstable();
            if !ascend(edges) {
                return Err(AutomatonError::NotDeterministic(at));
            }
        }
    }
    Ok(())
}

/// The live states, by a search backwards from the ends. Linear.
fn live(states: &[State]) -> Vec<bool> {
    if states.iter().all(|state| state.accepts) {
        return vec![true; states.len()];
    }
    incoming(states).leading_to(states.iter().map(|state| state.accepts).collect())
}

/// The predecessors of each state, once for each edge. Linear.
pub(super) fn incoming(states: &[State]) -> Grouped {
    Grouped::new(states.len(), || {
        let edges = (0_u32..).zip(states);
        edges.flat_map(|(from, state)| state.edges.iter().map(move |edge| (edge.to, from)))
    })
}

/// The reachable states, numbered breadth-first, with neighbouring edges joined, and a hash of them.
fn numbered(mut states: Vec<State>) -> (Vec<State>, u64) {
    /// The number of states not reached yet.
    const NO_NUMBER: u32 = u32::MAX;
    let mut number = vec![NO_NUMBER; states.len()];
    number[0] = 0;
    // There are at most as many new numbers as old ones.
    let (mut order, mut next, mut fresh) = (vec![0_usize], 0, 1_u32);
    let mut found = Vec::with_capacity(states.len());
    let mut hash = 0;
    while let Some(&at) = order.get(next) {
        let mut state = std::mem::take(&mut states[at]);
        state.edges.dedup_by(|next, last| {
            let joins = next.to == last.to && last.last.checked_add(1) == Some(next.first);
            if joins {
                last.last = next.last;
            }
            joins
        });
        hash = mix(hash, u64::from(state.accepts));
        for Edge { first, last, to } in &mut state.edges {
            let number = &mut number[*to as usize];
            if *number == NO_NUMBER {
                *number = fresh;
                fresh += 1;
                order.push(*to as usize);
            }
            *to = *number;
            hash = mix(hash, u64::from(*to) << 16 | u64::from(*first) << 8 | u64::from(*last));
        }
        found.push(state);
        next += 1;
    }
    (found, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(first: u8, last: u8, to: u32) -> Edge {
        Edge { first, last, to }
    }

    fn state(accepts: bool, edges: &[Edge]) -> State {
        State { accepts, edges: edges.to_vec() }
    }

    #[test]
    fn automata_of_equal_shape_are_equal() {
        let plain = Automaton::new(vec![state(false, &[edge(b'a', b'c', 1)]), state(true, &[])]);
        let odd = Automaton::new(vec![
            state(false, &[edge(b'c', b'c', 3), edge(b'a', b'b', 3), edge(b'x', b'z', 2)]),
            state(true, &[]),
            state(false, &[edge(0, 255, 2)]),
            state(true, &[edge(b'q', b'q', 2)]),
        ]);
        assert_eq!(plain.clone().unwrap(), odd.unwrap());
        assert_eq!(plain.unwrap().shortest().unwrap(), b"a");
    }

    #[test]
    fn the_empty_language_has_one_state() {
        let none = Automaton::new(vec![state(false, &[edge(0, 255, 1)]), state(false, &[edge(7, 7, 0)])]);
        assert_eq!(none.as_ref().unwrap().states(), [State::default()]);
        assert_eq!(none.unwrap().shortest(), None);
    }

    #[test]
    fn wrong_automata_are_errors() {
        assert_eq!(Automaton::new(Vec::new()), Err(AutomatonError::NoState));
        for (edges, error) in [
            (vec![edge(1, 2, 1)], AutomatonError::WrongEdge(0)),
            (vec![edge(2, 1, 0)], AutomatonError::WrongEdge(0)),
            (vec![edge(1, 5, 0), edge(5, 6, 0)], AutomatonError::NotDeterministic(0)),
        ] {
            assert_eq!(Automaton::new(vec![State { accepts: true, edges }]), Err(error));
        }
    }
}
