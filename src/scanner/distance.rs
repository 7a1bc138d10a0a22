//! How far a terminal's end is.

use std::collections::VecDeque;

use super::dfa::{NONE, TerminalDfa};

impl TerminalDfa {
    /// By state the fewest bytes after which the terminal may end. Linear in the transitions.
    pub(crate) fn distances(&self) -> Vec<u32> {
        let mut incoming: Vec<Vec<u32>> = vec![Vec::new(); self.len()];
        for (from, row) in (0..).zip(self.transitions().chunks_exact(self.class_count())) {
            for &to in row.iter().filter(|to| **to != NONE) {
                incoming[to as usize].push(from);
            }
        }
        let mut distances = vec![NONE; self.len()];
        let mut open = VecDeque::new();
        for (state, _) in (0..).zip(self.accepting()).filter(|(_, accepting)| **accepting) {
            distances[state as usize] = 0;
            open.push_back(state);
        }
        while let Some(state) = open.pop_front() {
            for &from in &incoming[state as usize] {
                if distances[from as usize] == NONE {
                    distances[from as usize] = distances[state as usize] + 1;
                    open.push_back(from);
                }
            }
        }
        distances
    }
}
