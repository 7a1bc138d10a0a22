//! Tools for automata: sets and classes of bytes, sparse rows, equal values as equal numbers, strongly
//! connected components, minimisation.

pub(crate) mod minimize;

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// The position of a number in a list.
fn position(number: u32) -> usize {
    number as usize
}

/// A set of bytes, as 256 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    /// All bytes.
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    /// Returns the number of its bytes that are below `byte`.
    pub(crate) fn rank(&self, byte: u8) -> usize {
        let word = usize::from(byte / 64);
        let below = self.0[word] & ((1 << (byte % 64)) - 1);
        let ones = self.0[..word].iter().map(|word| word.count_ones()).sum::<u32>() + below.count_ones();
        ones as usize
    }

    pub(crate) fn union_with(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Have the two sets a byte in common?
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(word, other)| word & other != 0)
    }
}

impl Extend<u8> for ByteSet {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        bytes.into_iter().for_each(|byte| self.insert(byte));
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::default();
        set.extend(bytes);
        set
    }
}

/// Hands out the numbers of classes of bytes, from 0.
///
/// Invariant: each class has a byte of its own, so that there are at most 256 and the last number is 255.
#[derive(Debug, Default)]
pub(crate) struct ClassNumbers {
    last: Option<u8>,
}

impl ClassNumbers {
    /// Returns the number of the next class.
    pub(crate) fn fresh(&mut self) -> u8 {
        let fresh = self.last.map_or(0, |last| last + 1);
        self.last = Some(fresh);
        fresh
    }

    /// Number of classes so far.
    pub(crate) fn count(&self) -> usize {
        self.last.map_or(0, |last| usize::from(last) + 1)
    }
}

/// Lists of numbers by index, in one array.
#[derive(Debug)]
pub(crate) struct Grouped {
    numbers: Vec<u32>,
    /// Start of each list, and the end of the last.
    starts: Vec<u32>,
}

impl Grouped {
    /// Groups pairs of an index below `count` and a number; each list keeps the order of its pairs. Linear;
    /// iterates over the pairs twice.
    pub(crate) fn new<I>(count: usize, pairs: impl Fn() -> I) -> Self
    where
        I: Iterator<Item = (u32, u32)>,
    {
        // List `i` is counted at `i + 2`, so that the sums have its start at `i + 1`. Filling the list moves
        // that to its end, which is the start of the next list and stands where that belongs.
        let mut starts = vec![0_u32; count + 2];
        pairs().for_each(|(of, _)| starts[position(of) + 2] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut numbers = vec![0; end as usize];
        for (of, number) in pairs() {
            let next = &mut starts[position(of) + 1];
            numbers[*next as usize] = number;
            *next += 1;
        }
        starts.pop();
        Self { numbers, starts }
    }

    /// Marks all indices that lead to a marked one, where the list of each has those that lead to it. Linear.
    pub(crate) fn leading_to(&self, mut marked: Vec<bool>) -> Vec<bool> {
        let mut open: Vec<u32> = (0..).zip(&marked).filter(|(_, is)| **is).map(|(at, _)| at).collect();
        while let Some(one) = open.pop() {
            for &before in self.of(one) {
                if !std::mem::replace(&mut marked[position(before)], true) {
                    open.push(before);
                }
            }
        }
        marked
    }

    /// Returns the list of an index.
    pub(crate) fn of(&self, one: u32) -> &[u32] {
        let one = one as usize;
        &self.numbers[self.starts[one] as usize..self.starts[one + 1] as usize]
    }
}

/// An odd number with well-mixed bits.
pub(crate) const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash.
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(HASH_FACTOR).rotate_left(29)
}

/// Finds the number of a value. The user stores the values.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    /// The hash and number of each value, so that growing need not look at the values.
    table: HashTable<(u32, u32)>,
    hasher: DefaultHashBuilder,
}

impl HashIndex {
    /// Returns the hash of a value; it means nothing to other indices.
    pub(crate) fn hash(&self, value: &(impl Hash + ?Sized)) -> u32 {
        let hash = self.hasher.hash_one(value);
        // Half of a good hash is a good hash.
        (hash >> 32) as u32
    }

    /// Returns the number with this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(spread(hash), |&(other, number)| other == hash && is_it(number)).map(|entry| entry.1)
    }

    /// Adds a value that is not there.
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        self.table.insert_unique(spread(hash), (hash, number), |&(hash, _)| spread(hash));
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

/// Spreads 32 bits over 64, so that the low and the high bits differ, which tables look at.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the strongly connected components reachable from `starts`, each after those it leads to (Tarjan's
/// algorithm, without recursion). `successors(n)` lists the successors of `n`, and is called once each.
/// Linear.
pub(crate) fn components(
    count: usize,
    starts: impl IntoIterator<Item = usize>,
    mut successors: impl FnMut(usize) -> Vec<usize>,
) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let (mut index, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let mut on_stack = vec![false; count];
    let (mut stack, mut components, mut next) = (Vec::new(), Vec::new(), 0);
    // The stack of calls: nodes with the successors that are still to be visited.
    let mut calls: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
    for start in starts {
        let mut enter = (index[start] == UNSEEN).then_some(start);
        loop {
            // Call: number the node and push it on both stacks.
            if let Some(node) = enter.take() {
                (index[node], low[node]) = (next, next);
                next += 1;
                stack.push(node);
                on_stack[node] = true;
                calls.push((node, successors(node).into_iter()));
            }
            let Some((node, open)) = calls.last_mut() else { break };
            let node = *node;
            if let Some(successor) = open.next() {
                if index[successor] == UNSEEN {
                    enter = Some(successor);
                } else if on_stack[successor] {
                    low[node] = low[node].min(index[successor]);
                }
                continue;
            }
            // Return: the caller can reach whatever the node reaches.
            calls.pop();
            if let Some((caller, _)) = calls.last() {
                low[*caller] = low[*caller].min(low[node]);
            }
            // `node` is the first one met of its component: the others are above it on the stack.
            if low[node] == index[node] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                components.push(component);
            }
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_counts_the_members_below_a_byte() {
        let all = [0, 1, 63, 64, 65, 127, 128, 200, 255];
        let set: ByteSet = all.into_iter().collect();
        for byte in 0..=u8::MAX {
            assert_eq!(set.rank(byte), all.iter().filter(|&&below| below < byte).count(), "{byte}");
        }
    }
}

#[cfg(test)]
mod class_numbers_tests {
    use super::*;

    #[test]
    fn there_are_as_many_classes_as_bytes() {
        let mut classes = ClassNumbers::default();
        assert_eq!(classes.count(), 0);
        for byte in 0..=u8::MAX {
            assert_eq!((classes.fresh(), classes.count()), (byte, usize::from(byte) + 1));
        }
    }
}

#[cfg(test)]
mod csr_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_row_has_its_own_numbers_in_order(
            pairs in prop::collection::vec((0..6_u32, any::<u32>()), 0..30),
        ) {
            let grouped = Grouped::new(6, || pairs.iter().copied());
            for one in 0..6 {
                let own = pairs.iter().filter(|(of, _)| *of == one).map(|(_, number)| *number);
                prop_assert_eq!(grouped.of(one), own.collect::<Vec<u32>>());
            }
        }
    }
}

#[cfg(test)]
mod components_tests {
    use super::components;

    #[test]
    fn components_come_after_those_they_lead_to() {
        // 0 -> 1 <-> 2 -> 3, 4 -> 0 is not reached, 3 -> 3.
        let edges: [&[usize]; 5] = [&[1], &[2], &[1, 3], &[3], &[0]];
        let mut found = components(5, [0], |node| edges[node].to_vec());
        found.iter_mut().for_each(|component| component.sort_unstable());
        assert_eq!(found, [vec![3], vec![1, 2], vec![0]]);
        assert_eq!(components(5, 0..5, |node| edges[node].to_vec()).len(), 4);
    }
}
