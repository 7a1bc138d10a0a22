//! Shortest and longest distances, in bytes, from each state of a terminal to its end. Linear in the table.

use std::collections::VecDeque;

use super::dfa::{NONE, TerminalDfa};
use crate::ids::as_index;

impl TerminalDfa {
    /// Returns the fewest bytes after which the terminal may end, by state of a table. Linear in the
    /// transitions.
    pub(crate) fn distances(&self) -> Vec<u32> {
        self.distances_to(|state| self.accepts(state), |_| true)
    }

    /// Returns the distance in bytes of each state of a table to the nearest goal, by byte classes for which
    /// `is_way` holds; [`NONE`] if none is in reach. Breadth-first search backwards, linear in the
    /// transitions.
    pub(super) fn distances_to(
        &self,
        is_goal: impl Fn(u32) -> bool,
        is_way: impl Fn(usize) -> bool,
    ) -> Vec<u32> {
        let mut incoming: Vec<Vec<u32>> = vec![Vec::new(); self.len()];
        for (from, row) in (0..).zip(self.transitions().chunks_exact(self.class_count())) {
            for (_, &to) in row.iter().enumerate().filter(|(class, to)| **to != NONE && is_way(*class)) {
                incoming[as_index(to)].push(from);
            }
        }
        let mut distances = vec![NONE; self.len()];
        let mut open = VecDeque::new();
        for state in (0..).take(self.len()).filter(|&state| is_goal(state)) {
            distances[as_index(state)] = 0;
            open.push_back(state);
        }
        while let Some(state) = open.pop_front() {
            for &from in &incoming[as_index(state)] {
                if distances[as_index(from)] == NONE {
                    distances[as_index(from)] = distances[as_index(state)] + 1;
                    open.push_back(from);
                }
            }
        }
        distances
    }

    /// Returns the least of the shortest texts; `None` if there is none. Linear in the transitions of a
    /// table.
    pub(crate) fn shortest(&self) -> Option<Vec<u8>> {
        let distances = self.distances();
        let (mut text, mut state) = (Vec::new(), 0);
        let mut left = *distances.first()?;
        while left != 0 {
            let nearer = |byte: u8| {
                let to = self.step(state, byte)?;
                (distances[as_index(to)] == left - 1).then_some((byte, to))
            };
            let (byte, to) = (0..=u8::MAX).find_map(nearer)?;
            text.push(byte);
            (state, left) = (to, left - 1);
        }
        Some(text)
    }

    /// Is every text of the terminal at most `bytes` long? Linear in the transitions for each byte.
    pub(crate) fn is_within(&self, bytes: usize) -> bool {
        if let Some(unlisted) = self.unlisted() {
            return unlisted.is_within(bytes);
        }
        let mut states = vec![0_u32];
        for _ in 0..=bytes {
            let row = |state: &u32| {
                self.transitions()[as_index(*state) * self.class_count()..].iter().take(self.class_count())
            };
            let mut next: Vec<u32> = states.iter().flat_map(row).copied().filter(|&to| to != NONE).collect();
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        states.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, scanner};

    #[test]
    fn longest_distances_are_those_of_the_longest_texts() {
        for (pattern, longest) in
            [("a", Some(1)), ("[a-zé]", Some(2)), ("\\PC", Some(4)), ("ab{0,3}|c", Some(4)), ("ab*", None)]
        {
            let hir = regex_syntax::parse(pattern).unwrap();
            let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
            assert_eq!((0..20).find(|&bytes| dfa.is_within(bytes)), longest, "{pattern}");
        }
    }
}
