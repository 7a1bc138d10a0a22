//! Computes byte classes and a transition table from the edges of an automaton.

use crate::{
    automata::{class_numbers::ClassNumbers, hash::HASH_FACTOR, minimize::NONE},
    grammar::automaton::{Edge, State},
};

/// The finest intervals of bytes that edges distinguish: an edge has all of an interval or nothing.
pub(super) struct Intervals {
    /// Number of intervals, at least one.
    count: usize,
    /// The interval of each byte.
    pub(super) of: [u8; 256],
}

impl Intervals {
    /// Finds the largest intervals that no edge splits.
    pub(super) fn new(states: &[State]) -> Self {
        let mut begins = [false; 257];
        begins[0] = true;
        for edge in states.iter().flat_map(|state| &state.edges) {
            begins[usize::from(edge.first)] = true;
            begins[usize::from(edge.last) + 1] = true;
        }
        let (mut intervals, mut of) = (ClassNumbers::default(), [0; 256]);
        let mut last = 0;
        for (of, begins) in of.iter_mut().zip(begins) {
            if begins {
                last = intervals.fresh();
            }
            *of = last;
        }
        Self { count: intervals.count(), of }
    }

    /// Returns the numbers of the intervals in an edge.
    fn numbers(&self, edge: &Edge) -> std::ops::RangeInclusive<usize> {
        usize::from(self.of[usize::from(edge.first)])..=usize::from(self.of[usize::from(edge.last)])
    }

    /// Groups intervals into classes by hashes: the hash of an interval is the sum over the edges that have
    /// it, by prefix sums, and intervals of one hash are a class. Returns the class of each interval, and the
    /// number of classes. Linear in the edges.
    pub(super) fn classes(&self, states: &[State]) -> (Vec<u8>, usize) {
        // Added where an edge begins, taken away behind its end.
        let mut hashes = vec![0_u64; self.count + 1];
        for (state, at) in states.iter().zip(0_u64..) {
            for edge in &state.edges {
                let word = (at << 32 | u64::from(edge.to)).wrapping_mul(HASH_FACTOR);
                let hash = (word ^ word >> 29).wrapping_mul(HASH_FACTOR);
                let numbers = self.numbers(edge);
                let begin = &mut hashes[*numbers.start()];
                *begin = begin.wrapping_add(hash);
                let behind = &mut hashes[numbers.end() + 1];
                *behind = behind.wrapping_sub(hash);
            }
        }
        let mut members: Vec<(u64, u8)> = Vec::new();
        let (mut classes, mut sum) = (ClassNumbers::default(), 0_u64);
        let class_of = hashes[..self.count].iter().map(|hash| {
            sum = sum.wrapping_add(*hash);
            let known = members.iter().find(|(other, _)| *other == sum).map(|(_, class)| *class);
            known.unwrap_or_else(|| {
                let fresh = classes.fresh();
                members.push((sum, fresh));
                fresh
            })
        });
        (class_of.collect(), classes.count())
    }

    /// Returns the state that each class leads to from each state. `None` if two intervals of a class do not
    /// lead to the same state from every state, that is, if their hashes are equal by chance.
    pub(super) fn table(&self, states: &[State], class_of: &[u8], class_count: usize) -> Option<Box<[u32]>> {
        let mut sizes = vec![0_usize; class_count];
        class_of.iter().for_each(|&class| sizes[usize::from(class)] += 1);
        // States are numbered breadth-first over ascending bytes, which is also in order of the classes.
        let mut transitions = vec![NONE; states.len() * class_count].into_boxed_slice();
        for (state, row) in states.iter().zip(transitions.chunks_exact_mut(class_count)) {
            // Edges have no byte in common, so if these are equal each class is met as a whole.
            let (mut intervals, mut of_classes) = (0, 0);
            for edge in &state.edges {
                let met = &class_of[self.numbers(edge)];
                intervals += met.len();
                for &class in met {
                    let to = &mut row[usize::from(class)];
                    if *to == NONE {
                        *to = edge.to;
                        of_classes += sizes[usize::from(class)];
                    } else if *to != edge.to {
                        return None;
                    }
                }
            }
            if intervals != of_classes {
                return None;
            }
        }
        Some(transitions)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        grammar::{Automaton, regular::RawDfa},
        scanner::{Scanner, TerminalDfa},
    };

    fn edge(first: u8, last: u8, to: u32) -> Edge {
        Edge { first, last, to }
    }

    /// An automaton with three intervals: those before `a`, `a` to `c`, and those after.
    fn states(edges: Vec<Edge>) -> (Vec<State>, Intervals) {
        let states = vec![State { accepts: false, edges }, State { accepts: true, edges: Vec::new() }];
        let intervals = Intervals::new(&states);
        (states, intervals)
    }

    #[test]
    fn bytes_that_lead_alike_are_a_class() {
        let (states, intervals) = states(vec![edge(b'a', b'c', 1), edge(b'x', b'x', 1)]);
        let (class_of, count) = intervals.classes(&states);
        assert_eq!((&*class_of, count), (&[0, 1, 0, 1, 0][..], 2));
        let table = intervals.table(&states, &class_of, count).unwrap();
        assert_eq!(&*table, [NONE, 1, NONE, NONE]);
    }

    /// Equal hashes by chance are found out.
    #[test]
    fn classes_of_bytes_that_lead_to_different_states_are_found_out() {
        let (to_both, intervals) = states(vec![edge(b'a', b'c', 1), edge(b'x', b'x', 0)]);
        assert_eq!(intervals.table(&to_both, &[0, 1, 0, 1, 0], 2), None);
        // Only one of the two leads anywhere.
        let (to_one, intervals) = states(vec![edge(b'a', b'c', 1)]);
        assert_eq!(intervals.table(&to_one, &[0, 0, 1], 2), None);
        assert!(intervals.table(&to_one, &[0, 1, 0], 2).is_some());
    }

    /// An automaton in which every byte leads to a state of its own: no two have the same way to the end.
    fn told_apart() -> Automaton {
        let edges = (0..=u8::MAX).zip(1..).map(|(byte, to)| edge(byte, byte, to)).collect();
        let mut states = vec![State { accepts: false, edges }, State { accepts: true, edges: Vec::new() }];
        states.extend((1..256).map(|to| State { accepts: false, edges: vec![edge(0, 0, to)] }));
        Automaton::minimal(states).unwrap()
    }

    #[test]
    fn every_byte_may_be_a_class_of_its_own() {
        let automaton = told_apart();
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let (class_of, count) = Intervals::new(automaton.states()).classes(automaton.states());
        assert_eq!((&class_of, count), (&all, 256));
        let dfa = TerminalDfa::from_minimal(&automaton).unwrap();
        assert_eq!((&dfa.classes()[..], dfa.class_count()), (&all[..], 256));
        assert_eq!(Some(&dfa), TerminalDfa::from_raw(RawDfa::from(&automaton)).as_ref());
        let literal = TerminalDfa::literal(&all).unwrap();
        assert_eq!((&literal.classes()[..], literal.class_count()), (&all[..], 256));
        // There are no more of several terminals, whichever comes first.
        let few = TerminalDfa::literal(b"ab").unwrap();
        for dfas in [[&dfa, &few], [&few, &dfa]] {
            let scanner = Scanner::new(dfas.map(|dfa| Arc::new(dfa.clone())).into(), usize::MAX).unwrap();
            assert_eq!(scanner.byte_class_count(), 256);
            let classes: std::collections::BTreeSet<usize> =
                all.iter().map(|&byte| scanner.byte_class(byte)).collect();
            assert!(classes.into_iter().eq(0..256));
        }
    }
}
