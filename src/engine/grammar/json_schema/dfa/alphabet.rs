//! Characters as numbers without gaps, sets of them, and partitions into classes.

use hashbrown::HashMap;

use crate::ids::as_index;

/// Number of characters: all code points but the surrogates.
pub(in crate::grammar::json_schema) const CHARS: u32 = 0x11_0000 - 0x800;

/// The number of a character. The surrogates are left out, so there is no gap.
pub(in crate::grammar::json_schema) fn index(character: char) -> u32 {
    let code = u32::from(character);
    if code < 0xd800 { code } else { code - 0x800 }
}

/// The character with a number below [`CHARS`].
pub(in crate::grammar::json_schema) fn char_at(index: u32) -> char {
    let code = if index < 0xd800 { index } else { index + 0x800 };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A set of characters: inclusive ranges of their numbers, ascending, with gaps between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(in crate::grammar::json_schema) struct CharClass(Vec<(u32, u32)>);

impl CharClass {
    /// The characters of these inclusive ranges, in any order.
    pub(in crate::grammar::json_schema) fn new(ranges: impl IntoIterator<Item = (char, char)>) -> Self {
        Self::of_numbers(ranges.into_iter().map(|(first, last)| (index(first), index(last))).collect())
    }

    fn of_numbers(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.retain(|(first, last)| first <= last);
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// The set of one character.
    pub(in crate::grammar::json_schema) fn one(character: char) -> Self {
        Self(vec![(index(character), index(character))])
    }

    /// All characters.
    pub(in crate::grammar::json_schema) fn all() -> Self {
        Self(vec![(0, CHARS - 1)])
    }

    pub(in crate::grammar::json_schema) fn union(&self, other: &Self) -> Self {
        Self::of_numbers(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(in crate::grammar::json_schema) fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(first, last) in &self.0 {
            if next < first {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next < CHARS {
            ranges.push((next, CHARS - 1));
        }
        Self(ranges)
    }
}

/// A partition of all characters into classes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::grammar::json_schema) struct Alphabet {
    /// The first character of each interval, ascending from 0.
    starts: Vec<u32>,
    /// The class of each interval.
    class: Vec<u32>,
}

impl Alphabet {
    /// Memory of the partition, in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.class.capacity()) * size_of::<u32>()
    }
}

impl Alphabet {
    /// The partition with one class, that of all characters.
    pub(super) fn one_class() -> Self {
        Self { starts: vec![0], class: vec![0] }
    }

    /// The coarsest partition that respects these sets, and a table that says of each set and class whether
    /// the class is in the set.
    pub(in crate::grammar::json_schema) fn of(sets: &[CharClass]) -> (Self, Vec<Vec<bool>>) {
        // Sweep over all ends of ranges; `inside` is the signature of the current interval.
        let mut events: Vec<(u32, u32)> = Vec::new();
        for (set, class) in (0_u32..).zip(sets) {
            for &(first, last) in &class.0 {
                events.push((first, set));
                events.push((last + 1, set));
            }
        }
        events.sort_unstable();
        let mut inside = vec![0_u64; sets.len().div_ceil(64).max(1)];
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut signatures: Vec<Vec<u64>> = Vec::new();
        let mut alphabet = Self { starts: Vec::new(), class: Vec::new() };
        // A class has a character of its own, so numbers of characters suffice.
        let mut fresh = 0_u32;
        let (mut at, mut next) = (0, 0);
        while at < CHARS {
            while let Some(&(_, set)) = events.get(next).filter(|(place, _)| *place == at) {
                inside[as_index(set) / 64] ^= 1 << (set % 64);
                next += 1;
            }
            let class = *known.entry(inside.clone()).or_insert_with(|| {
                signatures.push(inside.clone());
                fresh += 1;
                fresh - 1
            });
            alphabet.push(at, class);
            at = events.get(next).map_or(CHARS, |(place, _)| *place);
        }
        let members = (0..sets.len())
            .map(|set| signatures.iter().map(|bits| bits[set / 64] >> (set % 64) & 1 == 1).collect())
            .collect();
        (alphabet, members)
    }

    /// A partition with a class for each of these characters, which ascend, and class 0 for all others.
    /// Linear.
    pub(super) fn singles(characters: &[u32]) -> Self {
        let mut alphabet = Self { starts: Vec::new(), class: Vec::new() };
        let mut next = 0;
        for (class, &character) in (1..).zip(characters) {
            if next < character {
                alphabet.push(next, 0);
            }
            alphabet.push(character, class);
            next = character + 1;
        }
        if next < CHARS {
            alphabet.push(next, 0);
        }
        alphabet
    }

    fn push(&mut self, start: u32, class: u32) {
        if self.class.last() != Some(&class) {
            self.starts.push(start);
            self.class.push(class);
        }
    }

    /// The coarsest common refinement of both partitions, and the pair of classes that each of its classes is
    /// in.
    pub(super) fn joined(&self, other: &Self) -> (Self, Vec<(usize, usize)>) {
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut pairs = Vec::new();
        let mut joined = Self { starts: Vec::new(), class: Vec::new() };
        let mut fresh = 0_u32;
        let (mut left, mut right) = (0, 0);
        loop {
            let start = self.starts[left].max(other.starts[right]);
            let pair = (self.class[left], other.class[right]);
            let class = *known.entry(pair).or_insert_with(|| {
                pairs.push((pair.0 as usize, pair.1 as usize));
                fresh += 1;
                fresh - 1
            });
            joined.push(start, class);
            let end = |starts: &[u32], at: usize| starts.get(at + 1).copied().unwrap_or(CHARS);
            let (left_end, right_end) = (end(&self.starts, left), end(&other.starts, right));
            if left_end == CHARS && right_end == CHARS {
                return (joined, pairs);
            }
            left += usize::from(left_end <= right_end);
            right += usize::from(right_end <= left_end);
        }
    }

    /// The class of `coarser`, of which this is a refinement, for each class. `O(n log n)` in the intervals.
    pub(super) fn classes_in(&self, coarser: &Self) -> Vec<usize> {
        let mut classes = vec![0; self.classes()];
        for (first, _, class) in self.intervals() {
            classes[class] = coarser.class_of(first);
        }
        classes
    }

    /// The number of classes.
    pub(in crate::grammar::json_schema) fn classes(&self) -> usize {
        self.class.iter().max().map_or(0, |&most| most as usize + 1)
    }

    /// The classes, in order of their least characters.
    pub(super) fn by_least(&self) -> Vec<usize> {
        let mut seen = vec![false; self.classes()];
        let fresh = |class: &usize| !std::mem::replace(&mut seen[*class], true);
        self.class.iter().map(|&class| class as usize).filter(fresh).collect()
    }

    /// The partition with classes renumbered by `names`; classes that get the same number become one.
    pub(super) fn renamed(&self, names: &[u32]) -> Self {
        let mut renamed = Self { starts: Vec::new(), class: Vec::new() };
        for (&start, &class) in self.starts.iter().zip(&self.class) {
            renamed.push(start, names[as_index(class)]);
        }
        renamed
    }

    /// The first and last character of each interval, and its class.
    pub(in crate::grammar::json_schema) fn intervals(&self) -> impl Iterator<Item = (u32, u32, usize)> {
        let ends = self.starts.iter().skip(1).copied().chain([CHARS]);
        let first = self.starts.iter().zip(ends).zip(&self.class);
        first.map(|((&first, end), &class)| (first, end - 1, class as usize))
    }

    /// The class of a character, by binary search.
    pub(in crate::grammar::json_schema) fn class_of(&self, index: u32) -> usize {
        let after = self.starts.partition_point(|&start| start <= index);
        self.class[after - 1] as usize
    }
}
