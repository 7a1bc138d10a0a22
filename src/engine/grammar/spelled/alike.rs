//! States that treat all texts up to some length alike: Moore's partition refinement, stopped early.
//!
//! Far from the end of a count, all of its states treat the bytes of one token alike. Refinement goes round
//! by round, and a round looks only at predecessors of the states that the last round told apart: for a count
//! these are one or two.

use hashbrown::HashMap;

use crate::automata::{
    Grouped,
    minimize::{DfaTable, NONE, incoming},
};

/// Least length of a long text, in characters. Few tokens of a vocabulary are long.
pub(crate) const LONG: u32 = 32;

/// The least equivalent state of each state.
#[derive(Debug)]
pub(crate) struct Alike {
    /// The least states that are equivalent for all texts.
    all: Box<[u32]>,
    /// The least states that are equivalent for texts of at most [`LONG`] characters.
    short: Box<[u32]>,
}

impl Alike {
    /// Compares the states of a table by texts of at most `longest` characters. Linear in the table, and in
    /// what each round tells apart.
    pub(super) fn new(table: &DfaTable, longest: u32) -> Self {
        let mut parts = Parts::new(table);
        let mut short = None;
        for round in 0..longest {
            if round == LONG {
                short = Some(parts.firsts());
            }
            if parts.changed.is_empty() {
                break;
            }
            parts.refine(table);
        }
        let all = parts.firsts();
        Self { short: short.unwrap_or_else(|| all.clone()), all }
    }

    /// The least state that is equivalent to this one for all texts.
    pub(crate) fn to_all(&self, state: u32) -> u32 {
        self.all[state as usize]
    }

    /// The least state that is equivalent to this one for texts of at most [`LONG`] characters.
    pub(crate) fn to_short(&self, state: u32) -> u32 {
        self.short[state as usize]
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.all) + size_of_val(&*self.short)
    }
}

/// A partition of the states.
struct Parts {
    part_of: Vec<u32>,
    /// The number of members of each part.
    sizes: Vec<usize>,
    /// The number of the next new part.
    next: u32,
    /// The states that the last round moved to a new part.
    changed: Vec<u32>,
    back: Grouped,
}

impl Parts {
    /// The first partition: by the classes that may come next, and by whether the text may end.
    fn new(table: &DfaTable) -> Self {
        let mut known: HashMap<Vec<bool>, u32> = HashMap::new();
        let (mut part_of, mut sizes): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        // There are no more parts than states, which have numbers.
        let mut next = 0;
        for (row, &ends) in table.transitions.chunks_exact(table.width).zip(&table.accepting) {
            let signature: Vec<bool> = row.iter().map(|to| *to != NONE).chain([ends]).collect();
            let part = *known.entry(signature).or_insert(next);
            if part == next {
                sizes.push(0);
                next += 1;
            }
            sizes[part as usize] += 1;
            part_of.push(part);
        }
        let changed = (0..).take(part_of.len()).collect();
        Self { part_of, sizes, next, changed, back: incoming(table.width, &table.transitions) }
    }

    /// One round of refinement: tells states apart whose successors the last round told apart.
    fn refine(&mut self, table: &DfaTable) {
        let mut touched: Vec<u32> =
            self.changed.iter().flat_map(|&state| self.back.of(state)).copied().collect();
        touched.sort_unstable();
        touched.dedup();
        // States are compared by their part so far and the parts of their successors.
        let mut rows: Vec<u32> = Vec::with_capacity(touched.len() * (table.width + 1));
        for &state in &touched {
            let row = &table.transitions[state as usize * table.width..][..table.width];
            let part = |&to: &u32| if to == NONE { NONE } else { self.part_of[to as usize] };
            rows.push(self.part_of[state as usize]);
            rows.extend(row.iter().map(part));
        }
        let mut groups: Vec<(&[u32], u32)> =
            rows.chunks_exact(table.width + 1).zip(touched.iter().copied()).collect();
        groups.sort_unstable();
        self.changed.clear();
        for of_part in groups.chunk_by(|one, other| one.0[0] == other.0[0]) {
            let part = of_part[0].0[0];
            let mut whole = self.sizes[part as usize] == of_part.len();
            for group in of_part.chunk_by(|one, other| one.0 == other.0) {
                // If all of a part were looked at, the first group keeps its number.
                if std::mem::take(&mut whole) {
                    continue;
                }
                self.sizes.push(group.len());
                self.sizes[part as usize] -= group.len();
                for &(_, state) in group {
                    self.part_of[state as usize] = self.next;
                    self.changed.push(state);
                }
                self.next += 1;
            }
        }
    }

    /// The least state of each state's part.
    fn firsts(&self) -> Box<[u32]> {
        let mut first = vec![NONE; self.sizes.len()];
        let least = |(state, part): (u32, &u32)| {
            let first = &mut first[*part as usize];
            if *first == NONE {
                *first = state;
            }
            *first
        };
        (0..).zip(&self.part_of).map(least).collect()
    }
}
