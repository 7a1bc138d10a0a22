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
    /// iterates over the pairs twice, once backwards.
    pub(crate) fn new<I>(count: usize, pairs: impl Fn() -> I) -> Self
    where
        I: DoubleEndedIterator<Item = (u32, u32)>,
    {
        let mut starts = vec![0_u32; count + 1];
        pairs().for_each(|(of, _)| starts[of as usize] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        // From the back, so that each start ends up as one.
        let mut numbers = vec![0; end as usize];
        for (of, number) in pairs().rev() {
            let start = &mut starts[of as usize];
            *start -= 1;
            numbers[*start as usize] = number;
        }
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
