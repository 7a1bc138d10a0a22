//! Hopcroft's minimisation of partial DFAs.
//!
//! "No transition" is a sink state of its own that no other state is equal to, because the input is
//! trimmed: every other state can still accept. States and symbols are numbers, so automata over bytes and
//! over characters share this.

/// "No transition."
pub(crate) const NONE: u32 = u32::MAX;

/// A partial DFA as a table; the start is state 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Table {
    /// Number of symbols.
    pub(crate) width: usize,
    /// `state * width + symbol` -> state or [`NONE`].
    pub(crate) transitions: Vec<u32>,
    /// Which states accept.
    pub(crate) accepting: Vec<bool>,
}

/// Blocks of a partition of `0..n`, each a range of `order`.
struct Partition {
    order: Vec<u32>,
    place: Vec<u32>,
    block_of: Vec<u32>,
    /// Start, end, and how many members are marked (moved to the front).
    blocks: Vec<(u32, u32, u32)>,
    touched: Vec<u32>,
}

impl Partition {
    fn new(accepting: &[bool]) -> Self {
        let index = |n: usize| u32::try_from(n).unwrap_or(NONE);
        let mut order: Vec<u32> = (0..index(accepting.len())).collect();
        order.sort_by_key(|&state| !accepting[state as usize]);
        let mut place = vec![0; order.len()];
        for (at, &state) in order.iter().enumerate() {
            place[state as usize] = index(at);
        }
        let split = index(accepting.iter().filter(|accepts| **accepts).count());
        let count = index(accepting.len());
        let blocks: Vec<(u32, u32, u32)> =
            [(0, split, 0), (split, count, 0)].into_iter().filter(|(start, end, _)| start < end).collect();
        let mut block_of = vec![0; order.len()];
        for (block, &(start, end, _)) in blocks.iter().enumerate() {
            for &state in &order[start as usize..end as usize] {
                block_of[state as usize] = index(block);
            }
        }
        Self { order, place, block_of, blocks, touched: Vec::new() }
    }

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

    /// Splits the touched blocks into marked and unmarked; calls `split(old, new)` for each real split,
    /// where `new` is the smaller part.
    fn split(&mut self, mut on_split: impl FnMut(u32, u32)) {
        while let Some(block) = self.touched.pop() {
            let (start, end, marked) = self.blocks[block as usize];
            self.blocks[block as usize].2 = 0;
            let middle = start + marked;
            if middle == end {
                continue;
            }
            let new = u32::try_from(self.blocks.len()).unwrap_or(NONE);
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

/// The minimal DFA of a trimmed one. `O(n c log n)`.
pub(crate) fn minimize(dfa: &Table) -> Table {
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
    for (at, &to) in dfa.transitions.iter().enumerate() {
        if to != NONE {
            let slot = &mut fill[(at % width) * count + to as usize];
            from[*slot as usize] = u32::try_from(at / width).unwrap_or(NONE);
            *slot += 1;
        }
    }
    let mut partition = Partition::new(&dfa.accepting);
    // With partial transitions every block must be a splitter once: a missing edge is not the complement of a present one.
    let mut waiting: Vec<u32> = (0..u32::try_from(partition.blocks.len()).unwrap_or(0)).collect();
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

/// One state per block; the block of state 0 first.
fn quotient(dfa: &Table, partition: &Partition) -> Table {
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
    for (block, &(first, _, _)) in partition.blocks.iter().enumerate() {
        let state = partition.order[first as usize] as usize;
        let row = rename(u32::try_from(block).unwrap_or(NONE)) as usize;
        accepting[row] = dfa.accepting[state];
        for class in 0..width {
            let to = dfa.transitions[state * width + class];
            if to != NONE {
                transitions[row * width + class] = rename(partition.block_of[to as usize]);
            }
        }
    }
    Table { width, transitions, accepting }
}
