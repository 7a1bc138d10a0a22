//! How many integers a terminal may still become.

use super::dfa::TerminalDfa;

/// The integers that may become of a state by digits alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Integers {
    /// How many, up to [`ENDLESS`](Self::ENDLESS); the digits so far may be one.
    pub(crate) count: u32,
    /// The most digits that may come, unless they are endlessly many.
    pub(crate) digits: u32,
}

impl Integers {
    /// Infinitely many.
    pub(crate) const ENDLESS: u32 = u32::MAX;
}

impl TerminalDfa {
    /// By state the [integers](Integers) that may come (a count of paths). None where states are not in a
    /// table. Linear in the transitions.
    pub(crate) fn integers(&self) -> Vec<Integers> {
        if !self.is_table() {
            return Vec::new();
        }
        let mut figures = vec![0_u32; self.class_count().max(1)];
        (b'0'..=b'9').for_each(|byte| figures[usize::from(self.classes()[usize::from(byte)])] += 1);
        let ended = |&is_end: &bool| Integers { count: u32::from(is_end), digits: 0 };
        let mut integers: Vec<Integers> = self.accepting().iter().map(ended).collect();
        let endless = self.count_paths(&figures, &mut integers, |here, to, bytes| {
            let sum = here.count.saturating_add(to.count.saturating_mul(bytes));
            here.count = sum.min(Integers::ENDLESS - 1);
            here.digits = here.digits.max(to.digits + 1);
        });
        endless.into_iter().for_each(|state| integers[state].count = Integers::ENDLESS);
        integers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, scanner};

    #[test]
    fn integers_are_counted() {
        for (pattern, text, count, digits) in [
            ("[0-9]{1,3}", "", 1_110, 3),
            ("[0-9]{1,3}", "4", 111, 2),
            ("[0-9]{1,3}", "456", 1, 0),
            ("0|[1-9][0-9]?(\\.[0-9])?", "", 100, 2),
            ("0|[1-9][0-9]?(\\.[0-9])?", "7", 11, 1),
            ("0|[1-9][0-9]?(\\.[0-9])?", "7.", 10, 1),
            ("-?(1|20)", "", 2, 2),
            ("-?(1|20)", "-", 2, 2),
            ("[0-9]{12}", "", Integers::ENDLESS - 1, 12),
            ("[0-9]+", "1", Integers::ENDLESS, 0),
            ("true", "", 0, 0),
        ] {
            let hir = regex_syntax::parse(pattern).unwrap();
            let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
            let state = text.bytes().fold(0, |state, byte| dfa.step(state, byte).unwrap());
            let found = dfa.integers()[state as usize];
            assert_eq!(found.count, count, "{pattern} after {text}");
            assert!(count == Integers::ENDLESS || found.digits == digits, "{pattern} after {text}");
        }
    }
}
