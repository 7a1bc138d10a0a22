//! Partial DFAs as tables: searches in them, their canonical form, and their minimisation, by Revuz'
//! algorithm for those without cycles and by Hopcroft's for all others.
//!
//! Most terminals of a JSON Schema are keys and fixed texts, whose languages are finite. Revuz (1992) takes
//! linear time for them, where Hopcroft's lists of predecessors by symbol cost more than the answer.
//!
//! "No transition" is a sink state of its own that no other state is equal to, because the input is
//! trimmed: every other state can still accept. States and symbols are numbers, so automata over bytes and
//! over characters share this.

use hashbrown::HashTable;

use super::{Grouped, mix, position};

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

    /// The state after each symbol, or [`NONE`].
    pub(crate) fn row(&self, state: u32) -> &[u32] {
        &self.transitions[position(state) * self.width..][..self.width]
    }

    /// Drops transitions into states from which nothing is accepted; `None` if the start is one. Unreachable
    /// states may stay. Linear.
    pub(crate) fn trimmed(mut self) -> Option<Self> {
        let live = match self.accepting.contains(&false) {
            true => incoming(self.width, &self.transitions).leading_to(self.accepting.clone()),
            false => self.accepting.clone(),
        };
        if live.first() != Some(&true) {
            return None;
        }
        for to in &mut self.transitions {
            if *to != NONE && !live[position(*to)] {
                *to = NONE;
            }
        }
        Some(self)
    }

    /// Drops unreachable states, merges symbols that are treated alike, and renumbers all: states
    /// breadth-first over the symbols in this order, symbols in this order too. Also returns the new number
    /// of each symbol. So minimal automata of equal languages are equal. Linear, apart from columns whose
    /// hashes collide.
    pub(crate) fn canonical(&self, symbols: &[usize]) -> (Self, Vec<u32>) {
        let mut number = vec![NONE; self.accepting.len()];
        number[0] = 0;
        // There are at most as many new numbers as old ones.
        let (mut order, mut next, mut fresh) = (vec![0_u32], 0, 1_u32);
        // For each symbol a hash of its column (its target from each state, in order), and the rows with all
        // symbols.
        let mut hashes = vec![0_u64; self.width];
        let mut rows: Vec<u32> = Vec::with_capacity(self.transitions.len());
        while let Some(&state) = order.get(next) {
            let row = self.row(state);
            for &symbol in symbols {
                let to = row[symbol];
                if to != NONE && number[position(to)] == NONE {
                    number[position(to)] = fresh;
                    fresh += 1;
                    order.push(to);
                }
            }
            for (&to, hash) in row.iter().zip(&mut hashes) {
                let to = if to == NONE { NONE } else { number[position(to)] };
                *hash = mix(*hash, u64::from(to));
                rows.push(to);
            }
            next += 1;
        }
        let same = |one: usize, other: usize| rows.chunks_exact(self.width).all(|row| row[one] == row[other]);
        // Of symbols with equal columns the first is kept; hashes say which columns to compare.
        let (mut kept, mut renamed): (Vec<usize>, Vec<u32>) = (Vec::new(), vec![0; self.width]);
        let mut known: HashTable<u32> = HashTable::with_capacity(symbols.len());
        let mut next_symbol = 0_u32;
        for &symbol in symbols {
            let hash = hashes[symbol];
            let hash_of = |place: u32| hashes[kept[position(place)]];
            let alike = |&place: &u32| hash_of(place) == hash && same(kept[position(place)], symbol);
            renamed[symbol] = match known.find(hash, alike) {
                Some(&place) => place,
                None => {
                    known.insert_unique(hash, next_symbol, |&place| hash_of(place));
                    kept.push(symbol);
                    next_symbol += 1;
                    next_symbol - 1
                }
            };
        }
        let transitions =
            rows.chunks_exact(self.width).flat_map(|row| kept.iter().map(|&symbol| row[symbol]));
        let accepting = order.iter().map(|&state| self.accepting[position(state)]).collect();
        (Self { width: kept.len(), transitions: transitions.collect(), accepting }, renamed)
    }
}

/// The predecessors of each state, once for each symbol that leads from there. Linear.
pub(crate) fn incoming(width: usize, transitions: &[u32]) -> Grouped {
    by_targets(width, transitions, |_| true)
}

/// The predecessors of each state by symbols for which `is_way` holds.
fn by_targets(width: usize, transitions: &[u32], is_way: impl Fn(usize) -> bool) -> Grouped {
    let (width, is_way) = (width.max(1), &is_way);
    Grouped::new(transitions.len() / width, || {
        let rows = (0_u32..).zip(transitions.chunks_exact(width));
        rows.flat_map(move |(from, row)| {
            let ways = row.iter().enumerate().filter(move |(symbol, to)| **to != NONE && is_way(*symbol));
            ways.map(move |(_, &to)| (to, from))
        })
    })
}

/// The distance of each state to the nearest goal, by symbols for which `is_way` holds; [`NONE`] if none is
/// in reach. Breadth-first search backwards, linear.
pub(crate) fn distances(
    (width, transitions): (usize, &[u32]),
    is_goal: impl Fn(u32) -> bool,
    is_way: impl Fn(usize) -> bool,
) -> Vec<u32> {
    let incoming = by_targets(width, transitions, is_way);
    let states = transitions.len() / width.max(1);
    let mut distances = vec![NONE; states];
    let mut open: Vec<u32> = (0..).take(states).filter(|&state| is_goal(state)).collect();
    open.iter().for_each(|&state| distances[position(state)] = 0);
    let mut next = 0;
    while let Some(&state) = open.get(next) {
        next += 1;
        for &from in incoming.of(state) {
            if distances[position(from)] == NONE {
                distances[position(from)] = distances[position(state)] + 1;
                open.push(from);
            }
        }
    }
    distances
}

/// The length of the longest text read from each state of a trimmed automaton; `None` if there is none.
/// Kahn's topological sort from the ends: states that lead to a cycle are never taken. Linear.
pub(crate) fn longest(width: usize, transitions: &[u32]) -> Vec<Option<u64>> {
    let incoming = incoming(width, transitions);
    let rows = || transitions.chunks_exact(width.max(1));
    let mut ways: Vec<usize> = rows().map(|row| row.iter().filter(|to| **to != NONE).count()).collect();
    let mut longest: Vec<Option<u64>> = vec![None; ways.len()];
    let mut open: Vec<u32> = (0..).zip(&ways).filter(|(_, ways)| **ways == 0).map(|(at, _)| at).collect();
    while let Some(state) = open.pop() {
        let row = &transitions[position(state) * width..][..width];
        let further = row.iter().filter(|to| **to != NONE).filter_map(|&to| longest[position(to)]).max();
        // Every state is live, so a state without a way on accepts.
        longest[position(state)] = Some(further.map_or(0, |further| further + 1));
        for &from in incoming.of(state) {
            ways[position(from)] -= 1;
            if ways[position(from)] == 0 {
                open.push(from);
            }
        }
    }
    longest
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
                place[position(state)] = at;
                block_of[position(state)] = next_block;
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
        let block = self.block_of[position(state)];
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
