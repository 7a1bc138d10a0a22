//! Lengths of the shortest texts of a grammar.

use crate::{
    ids::ScanStateId,
    lower::{Lowered, rests},
    scanner::Scanner,
};

/// Shortest lengths of texts of a grammar, in bytes.
#[derive(Debug)]
pub(crate) struct ShortestLengths {
    /// Shortest rest of the production, by dot.
    pub(crate) rests: Vec<u64>,
    /// Shortest rest of the terminal, by scanner state, of terminals with tables.
    pub(super) scans: Vec<u32>,
}

impl ShortestLengths {
    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.rests) + size_of_val(&*self.scans)
    }

    /// Computes all lengths. Linear in the grammar.
    pub(super) fn new(lowered: &Lowered) -> Self {
        let (mut terminals, mut scans) = (Vec::new(), Vec::new());
        for dfa in lowered.scanner.dfas() {
            let start = match dfa.unlisted_distance(0) {
                Some(distance) => distance,
                None => {
                    let start = scans.len();
                    scans.extend(dfa.distances());
                    scans[start]
                }
            };
            terminals.push(u64::from(start));
        }
        Self { rests: rests(&lowered.cfg, &terminals), scans }
    }

    /// Returns the fewest bytes after which the terminal of a state may end.
    pub(crate) fn scan(&self, scanner: &Scanner, state: ScanStateId) -> u64 {
        let unlisted = || scanner.dfa(scanner.terminal(state)).unlisted_distance(scanner.local(state));
        let known = self.scans.get(state.index()).copied();
        u64::from(known.or_else(unlisted).unwrap_or_default())
    }
}
