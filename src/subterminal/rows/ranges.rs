//! Sets of numbers as sorted ranges: trie nodes are numbered in depth-first order, so a whole subtree is one
//! range.
//!
//! Invariant after `normalise`: ranges are ascending, not empty, and neither overlap nor touch.

use std::ops::Range;

/// A set of 32-bit numbers. After [`normalise`](Self::normalise): ascending, disjoint, not touching.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ranges {
    ranges: Vec<Range<u32>>,
    sorted: bool,
}

impl Ranges {
    /// The empty set.
    pub(crate) fn new() -> Self {
        Self { ranges: Vec::new(), sorted: true }
    }

    /// Creates the set with these bounds, start and end in turn; `None` if they are not ascending.
    pub(crate) fn from_bounds(bounds: &[u32]) -> Option<Self> {
        let ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]) && bounds.len().is_multiple_of(2);
        let ranges = bounds.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        ascending.then_some(Self { ranges, sorted: true })
    }

    /// Lists start and end of each range in turn.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|range| [range.start, range.end])
    }

    /// Adds a range. Constant time.
    pub(crate) fn push(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            Some(last) if last.end > range.start => {
                // Inside the last one already, as exits below exits are.
                if last.start > range.start || last.end < range.end {
                    self.sorted = false;
                    self.ranges.push(range);
                }
            }
            _ => self.ranges.push(range),
        }
    }

    /// Sorts and merges. `O(n log n)` where ranges were pushed out of order, nothing otherwise.
    pub(crate) fn normalise(&mut self) {
        if std::mem::replace(&mut self.sorted, true) {
            return;
        }
        // Several ascending runs, mostly: a stable sort merges them.
        self.ranges.sort_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<u32>> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.ranges = merged;
    }

    /// Iterates over the ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Calls `take` with the intersections with these ranges, which are in order and disjoint. Needs a
    /// normalised set.
    pub(crate) fn within(&self, ranges: &[Range<u32>], mut take: impl FnMut(Range<u32>)) {
        let mut next = 0;
        for range in ranges {
            next += self.ranges[next..].partition_point(|own| own.end <= range.start);
            for own in self.ranges[next..].iter().take_while(|own| own.start < range.end) {
                take(own.start.max(range.start)..own.end.min(range.end));
            }
        }
    }

    /// Number of elements, once normalised.
    pub(crate) fn total(&self) -> usize {
        self.ranges.iter().map(|range| (range.end - range.start) as usize).sum()
    }

    /// Is the set empty?
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Memory on the heap, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range<u32>>()
    }

    /// One past the greatest number.
    pub(crate) fn end(&self) -> u32 {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_that_do_not_ascend_are_no_set() {
        for bounds in [&[3, 3][..], &[5, 2], &[1, 4, 4, 6], &[1, 4, 5]] {
            assert_eq!(Ranges::from_bounds(bounds), None, "{bounds:?}");
        }
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_set_of_numbers(
            pushed in proptest::collection::vec((0_u32..40, 0_u32..6), 0..20),
        ) {
            let mut ranges = Ranges::new();
            let mut set = std::collections::BTreeSet::new();
            for (start, length) in pushed {
                ranges.push(start..start + length);
                set.extend(start..start + length);
            }
            ranges.normalise();
            let found: Vec<u32> = ranges.iter().flatten().collect();
            prop_assert_eq!(found, set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(ranges.total(), set.len());
            let bounds: Vec<u32> = ranges.bounds().collect();
            prop_assert_eq!(Ranges::from_bounds(&bounds), Some(ranges));
        }
    }
}
