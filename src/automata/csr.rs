//! Compressed sparse rows: lists of numbers by index, such as the states that lead to each state, in one
//! array.

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
        pairs().for_each(|(of, _)| starts[of as usize + 2] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut numbers = vec![0; end as usize];
        for (of, number) in pairs() {
            let next = &mut starts[of as usize + 1];
            numbers[*next as usize] = number;
            *next += 1;
        }
        starts.pop();
        Self { numbers, starts }
    }

    /// Returns the list of an index.
    pub(crate) fn of(&self, one: u32) -> &[u32] {
        let one = one as usize;
        &self.numbers[self.starts[one] as usize..self.starts[one + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
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
