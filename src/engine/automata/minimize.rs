//! Minimisation of partial DFAs: Revuz' algorithm for those without cycles, Hopcroft's for all others.
//!
//! Most terminals of a JSON Schema are keys and fixed texts, whose languages are finite. Revuz (1992) takes
//! linear time for them, where Hopcroft's lists of predecessors by symbol cost more than the answer.
//!
//! "No transition" is a sink state of its own that no other state is equal to, because the input is
//! trimmed: every other state can still accept. States and symbols are numbers, so automata over bytes and
//! over characters share this.

use hashbrown::HashTable;

use super::mix;

/// Stands for a missing transition.
pub(crate) const NONE: u32 = u32::MAX;

/// A partial DFA as a table; the start is state 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DfaTable {
    /// Number of symbols.
    pub(crate) width: usize,
    /// State after each `state * width + symbol`, or [`NONE`].
    pub(crate) transitions: Vec<u32>,
    /// Does each state accept?
    pub(crate) accepting: Vec<bool>,
}

impl DfaTable {
    /// Memory on the heap, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.transitions.capacity() * size_of::<u32>() + self.accepting.capacity()
    }
}

/// Blocks of a partition of `0..n`, each a range of `order`.
struct Partition {
    /// The states, block by block.
    order: Vec<u32>,
    /// Place of each state in `order`.
    place: Vec<u32>,
    block_of: Vec<u32>,
    /// Start, end, and number of marked members, which are at the front.
    blocks: Vec<(u32, u32, u32)>,
    /// Number of the next block. A block has a state of its own, so numbers of states suffice.
    next_block: u32,
    touched: Vec<u32>,
}

impl Partition {
    /// Partitions the states into accepting ones and others.
    fn new(accepting: &[bool]) -> Self {
        let (mut order, mut blocks) = (Vec::with_capacity(accepting.len()), Vec::new());
        let mut place = vec![0; accepting.len()];
        let mut block_of = vec![0; accepting.len()];
        let (mut next_block, mut at) = (0_u32, 0_u32);
        for accepts in [true, false] {
            let start = at;
            let members = (0_u32..).zip(accepting).filter(|(_, accepting)| **accepting == accepts);
            for (state, _) in members {
                order.push(state);
                place[state as usize] = at;
                block_of[state as usize] = next_block;
                at += 1;
            }
            if start < at {
                blocks.push((start, at, 0));
                next_block += 1;
            }
        }
        Self { order, place, block_of, blocks, next_block, touched: Vec::new() }
    }

    /// Marks a state: moves it to the marked ones at the front of its block.
    fn mark(&mut self, state: u32) {
        let block = self.block_of[state as usize];
        let (start, _, marked) = &mut self.blocks[block as usize];
        let (front, at) = (*start + *marked, self.place[state as usize]);
        if at < front {
            return;
        }
        if *marked == 0 {
            self.touched.push(block);
        }
        *marked += 1;
        let other = self.order[front as usize];
        self.order.swap(front as usize, at as usize);
        self.place[state as usize] = front;
        self.place[other as usize] = at;
    }

    /// Splits the touched blocks into marked and unmarked members; calls `split(old, new)` for each real
    /// split, where `new` is the smaller part.
    fn split(&mut self, mut on_split: impl FnMut(u32, u32)) {
        while let Some(block) = self.touched.pop() {
            let (start, end, marked) = self.blocks[block as usize];
            self.blocks[block as usize].2 = 0;
            let middle = start + marked;
            if middle == end {
                continue;
            }
            let new = self.next_block;
            self.next_block += 1;
            let (keep, give) = if marked <= end - middle {
                ((middle, end), (start, middle))
            } else {
                ((start, middle), (middle, end))
            };
            self.blocks[block as usize] = (keep.0, keep.1, 0);
            self.blocks.push((give.0, give.1, 0));
            for &state in &self.order[give.0 as usize..give.1 as usize] {
                self.block_of[state as usize] = new;
            }
            on_split(block, new);
        }
    }
}

/// Minimises a trimmed DFA. Linear if its language is finite, `O(n c log n)` otherwise.
pub(crate) fn minimize(dfa: &DfaTable) -> DfaTable {
    acyclic(dfa).unwrap_or_else(|| hopcroft(dfa))
}

/// Minimises by Revuz' algorithm: states in post-order from the start, so that successors are merged before
/// their predecessors are compared. `None` if there is a cycle.
fn acyclic(dfa: &DfaTable) -> Option<DfaTable> {
    /// Marks a state on the path from the start to the current one.
    const OPEN: u32 = NONE - 1;
    let width = dfa.width;
    // Number of the merged state, `OPEN`, or `NONE` for one that was not met.
    let mut merged = vec![NONE; dfa.accepting.len()];
    let mut minimal = DfaTable { width, transitions: Vec::new(), accepting: Vec::new() };
    let mut known: HashTable<(u64, u32)> = HashTable::new();
    // The path of a depth-first search: each state, and the first column that is still to be followed.
    let mut path = vec![(0_usize, 0_usize)];
    merged[0] = OPEN;
    while let Some((state, from)) = path.last_mut() {
        let row = &dfa.transitions[*state * width..][..width];
        let next = row[*from..].iter().position(|&to| to != NONE && merged[to as usize] >= OPEN);
        if let Some(at) = next {
            let to = row[*from + at] as usize;
            *from += at + 1;
            if merged[to] == OPEN {
                return None;
            }
            merged[to] = OPEN;
            path.push((to, 0));
            continue;
        }
        // All successors have numbers: an equal row with equal acceptance is the same state.
        let (state, start) = (*state, minimal.transitions.len());
        let number = |to: &u32| if *to == NONE { NONE } else { merged[*to as usize] };
        minimal.transitions.extend(row.iter().map(number));
        let accepts = dfa.accepting[state];
        let mix = |hash: u64, to: &u32| mix(hash, u64::from(*to));
        let hash = minimal.transitions[start..].iter().fold(u64::from(accepts), mix);
        let fresh = u32::try_from(minimal.accepting.len()).ok()?;
        let equal = |&(other_hash, other): &(u64, u32)| {
            let (before, own) = minimal.transitions.split_at(start);
            let other = other as usize;
            other_hash == hash
                && minimal.accepting[other] == accepts
                && before[other * width..][..width] == *own
        };
        merged[state] = match known.find(hash, equal) {
            Some(&(_, other)) => {
                minimal.transitions.truncate(start);
                other
            }
            None => {
                known.insert_unique(hash, (hash, fresh), |&(hash, _)| hash);
                minimal.accepting.push(accepts);
                fresh
            }
        };
        path.pop();
    }
    swap(&mut minimal, merged[0]);
    Some(minimal)
}

/// Swaps the numbers of a state and of state 0.
fn swap(dfa: &mut DfaTable, start: u32) {
    let (width, at) = (dfa.width, start as usize);
    dfa.accepting.swap(0, at);
    let (first, rest) = dfa.transitions.split_at_mut(at.min(1) * width);
    if at > 0 {
        first.swap_with_slice(&mut rest[(at - 1) * width..at * width]);
    }
    for to in &mut dfa.transitions {
        *to = match *to {
            0 => start,
            to if to == start => 0,
            to => to,
        };
    }
}

/// Minimises by Hopcroft's algorithm.
fn hopcroft(dfa: &DfaTable) -> DfaTable {
    let (count, width) = (dfa.accepting.len(), dfa.width);
    // Predecessors by class, in compressed rows: `from[first[class * count + to] ..]`.
    let mut first = vec![0_u32; count * width + 1];
    for (at, &to) in dfa.transitions.iter().enumerate() {
        if to != NONE {
            first[(at % width) * count + to as usize + 1] += 1;
        }
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut fill = first.clone();
    let mut from = vec![0_u32; first.last().copied().unwrap_or(0) as usize];
    for (state, row) in (0_u32..).zip(dfa.transitions.chunks_exact(width.max(1))) {
        for (class, &to) in row.iter().enumerate().filter(|(_, to)| **to != NONE) {
            let slot = &mut fill[class * count + to as usize];
            from[*slot as usize] = state;
            *slot += 1;
        }
    }
    let mut partition = Partition::new(&dfa.accepting);
    // With partial transitions every block must be a splitter once: a missing edge is not the complement of a
    // present one.
    let mut waiting: Vec<u32> = (0..partition.next_block).collect();
    let mut members: Vec<u32> = Vec::new();
    while let Some(splitter) = waiting.pop() {
        let (start, end, _) = partition.blocks[splitter as usize];
        members.clear();
        members.extend_from_slice(&partition.order[start as usize..end as usize]);
        for class in 0..width {
            for &to in &members {
                let row = class * count + to as usize;
                for &state in &from[first[row] as usize..first[row + 1] as usize] {
                    partition.mark(state);
                }
            }
            partition.split(|_, new| {
                // The smaller part is enough: the old block was a splitter already or is still waiting,
                // and a state has one successor per class.
                waiting.push(new);
            });
        }
    }
    quotient(dfa, &partition)
}

/// Builds the quotient automaton: one state per block, the block of state 0 first.
fn quotient(dfa: &DfaTable, partition: &Partition) -> DfaTable {
    let width = dfa.width;
    let blocks = partition.blocks.len();
    let start = partition.block_of[0];
    // Swap the names of block 0 and the start's block.
    let rename = |block: u32| match block {
        block if block == start => 0,
        0 => start,
        block => block,
    };
    let mut transitions = vec![NONE; blocks * width];
    let mut accepting = vec![false; blocks];
    for (block, &(first, _, _)) in (0_u32..).zip(&partition.blocks) {
        let state = partition.order[first as usize] as usize;
        let row = rename(block) as usize;
        accepting[row] = dfa.accepting[state];
        for class in 0..width {
            let to = dfa.transitions[state * width + class];
            if to != NONE {
                transitions[row * width + class] = rename(partition.block_of[to as usize]);
            }
        }
    }
    DfaTable { width, transitions, accepting }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Renumbers the states breadth-first from the start.
    fn numbered(dfa: &DfaTable) -> DfaTable {
        let (mut order, mut number) = (vec![0_u32], vec![NONE; dfa.accepting.len()]);
        number[0] = 0;
        let mut next = 0;
        while next < order.len() {
            for &to in &dfa.transitions[order[next] as usize * dfa.width..][..dfa.width] {
                if to != NONE && number[to as usize] == NONE {
                    number[to as usize] = u32::try_from(order.len()).unwrap();
                    order.push(to);
                }
            }
            next += 1;
        }
        let row = |state: &u32| dfa.transitions[*state as usize * dfa.width..][..dfa.width].iter();
        let rename = |to: &u32| if *to == NONE { NONE } else { number[*to as usize] };
        DfaTable {
            width: dfa.width,
            transitions: order.iter().flat_map(|state| row(state).map(rename)).collect(),
            accepting: order.iter().map(|&state| dfa.accepting[state as usize]).collect(),
        }
    }

    /// Random automata whose states all accept or lead to a later one, so that they are trimmed apart from
    /// unreachable states; edges lead on, or anywhere.
    fn automata(cyclic: bool) -> impl Strategy<Value = DfaTable> {
        (1..4_usize, 1..12_u32).prop_flat_map(move |(width, count)| {
            let rows = (0..count).map(|state| {
                let from = if cyclic { 0 } else { state + 1 };
                let edge = prop_oneof![Just(NONE), (from..count.max(from + 1))];
                let edge = edge.prop_map(move |to| if to < count { to } else { NONE });
                (proptest::collection::vec(edge, width), any::<bool>())
            });
            rows.collect::<Vec<_>>().prop_map(move |rows| {
                let mut table = DfaTable { width, transitions: Vec::new(), accepting: Vec::new() };
                for (state, (row, accepts)) in (0..).zip(rows) {
                    table.accepting.push(accepts || row.iter().all(|&to| to == NONE || to <= state));
                    table.transitions.extend(row);
                }
                table
            })
        })
    }

    proptest! {
        #[test]
        fn finite_languages_have_the_automata_that_hopcrofts_algorithm_gives(dfa in automata(false)) {
            // Hopcroft's keeps what is not reached; numbering drops it.
            prop_assert_eq!(acyclic(&dfa).map(|dfa| numbered(&dfa)), Some(numbered(&hopcroft(&dfa))));
        }

        #[test]
        fn an_automaton_is_acyclic_unless_a_cycle_can_be_reached(dfa in automata(true)) {
            let reached = numbered(&dfa);
            // As many steps as there are states lead nowhere without a cycle.
            let mut ends = vec![true; reached.accepting.len()];
            for _ in 0..ends.len() {
                let row = |state: usize| reached.transitions[state * reached.width..][..reached.width].iter();
                let goes_on = |state| row(state).any(|&to| to != NONE && ends[to as usize]);
                ends = (0..ends.len()).map(goes_on).collect();
            }
            prop_assert_eq!(acyclic(&dfa).is_none(), ends[0]);
        }
    }
}
