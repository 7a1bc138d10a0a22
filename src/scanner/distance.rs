//! How far a terminal's end is, at least and at most.

use std::collections::VecDeque;

use super::dfa::{NONE, TerminalDfa};
use crate::grouped::Grouped;

/// The strings that may become of a state inside of quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strings {
    /// The number of strings without escapes: exact below one less than [`ENDLESS`](Self::ENDLESS), which
    /// stands for that many or more.
    pub(crate) plain: u32,
    /// May there be others, with escapes or by what follows the terminal?
    pub(crate) others: bool,
}

impl Strings {
    /// Infinitely many.
    pub(crate) const ENDLESS: u32 = u32::MAX;
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self { plain: 0, others: true };
}

impl TerminalDfa {
    /// By state of a table the fewest bytes after which the terminal may end. Linear in the transitions.
    pub(crate) fn distances(&self) -> Vec<u32> {
        let mut incoming: Vec<Vec<u32>> = vec![Vec::new(); self.len()];
        for (from, row) in (0..).zip(self.transitions().chunks_exact(self.class_count())) {
            for &to in row.iter().filter(|to| **to != NONE) {
                incoming[to as usize].push(from);
            }
        }
        let mut distances = vec![NONE; self.len()];
        let mut open = VecDeque::new();
        for (state, _) in (0..).zip(self.accepting()).filter(|(_, accepting)| **accepting) {
            distances[state as usize] = 0;
            open.push_back(state);
        }
        while let Some(state) = open.pop_front() {
            for &from in &incoming[state as usize] {
                if distances[from as usize] == NONE {
                    distances[from as usize] = distances[state as usize] + 1;
                    open.push_back(from);
                }
            }
        }
        distances
    }

    /// A shortest text; the least of these. `None` if there is none. Linear in the transitions of a table.
    pub(crate) fn shortest(&self) -> Option<Vec<u8>> {
        let distances = self.distances();
        let (mut text, mut state) = (Vec::new(), 0);
        let mut left = *distances.first()?;
        while left != 0 {
            let nearer = |byte: u8| {
                let to = self.step(state, byte)?;
                (distances[to as usize] == left - 1).then_some((byte, to))
            };
            let (byte, to) = (0..=u8::MAX).find_map(nearer)?;
            text.push(byte);
            (state, left) = (to, left - 1);
        }
        Some(text)
    }

    /// By state of a table, between the characters of a string: the [strings](Strings) that may come up to
    /// the next quote (a count of paths in topological order). Linear in the transitions.
    pub(crate) fn strings(&self) -> Vec<Strings> {
        let class = |byte: u8| usize::from(self.classes()[usize::from(byte)]);
        let (width, quote) = (self.class_count().max(1), class(b'"'));
        let mut plain = vec![0_u32; width];
        let is_plain = |byte: &u8| *byte >= b' ' && !matches!(byte, b'"' | b'\\');
        (0..=u8::MAX).filter(is_plain).for_each(|byte| plain[class(byte)] += 1);
        let rows = || (0..).zip(self.transitions().chunks_exact(width));
        let none = |(state, row): (u32, &[u32])| Strings {
            plain: u32::from(row[quote] != NONE),
            others: self.may_escape(state) || self.accepts(state),
        };
        let mut strings: Vec<Strings> = rows().map(none).collect();
        let on = rows().flat_map(|(from, row)| {
            let ways = row.iter().zip(&plain).filter(|(to, bytes)| **to != NONE && **bytes > 0);
            ways.map(move |(&to, &bytes)| (from, to, bytes))
        });
        let steps: Vec<(u32, u32, u32)> = on.collect();
        let mut ways = vec![0_u32; self.len()];
        steps.iter().for_each(|&(from, ..)| ways[from as usize] += 1);
        // There are fewer steps than transitions, whose numbers fit.
        let numbered = |(at, &(_, to, _)): (usize, &(u32, u32, u32))| (to, u32::try_from(at).unwrap_or(NONE));
        let leading_to = Grouped::new(self.len(), || steps.iter().enumerate().map(numbered));
        // States are taken away from which all ways on are counted; those on the way to a cycle stay.
        let mut open: Vec<u32> = (0..).zip(&ways).filter(|(_, ways)| **ways == 0).map(|(at, _)| at).collect();
        while let Some(state) = open.pop() {
            let to = strings[state as usize];
            for &at in leading_to.of(state) {
                let (from, _, bytes) = steps[at as usize];
                let here = &mut strings[from as usize];
                let sum = here.plain.saturating_add(to.plain.saturating_mul(bytes));
                here.plain = sum.min(Strings::ENDLESS - 1);
                here.others |= to.others;
                ways[from as usize] -= 1;
                if ways[from as usize] == 0 {
                    open.push(from);
                }
            }
        }
        let endless = (0..).zip(&ways).filter(|(_, ways)| **ways > 0);
        endless.for_each(|(state, _): (usize, _)| strings[state].plain = Strings::ENDLESS);
        strings
    }

    /// May an escape of a character follow that cannot stand for itself?
    fn may_escape(&self, state: u32) -> bool {
        let Some(escape) = self.step(state, b'\\') else { return false };
        let along = |bytes: &[u8]| bytes.iter().try_fold(escape, |state, &byte| self.step(state, byte));
        b"\"\\bfnrt".iter().any(|&byte| along(&[byte]).is_some())
            || [b"u000", b"u001"].iter().any(|bytes| along(*bytes).is_some())
    }

    /// Is every text of the terminal at most `bytes` long? Linear in the transitions for each byte.
    pub(crate) fn is_within(&self, bytes: usize) -> bool {
        if let Some(unlisted) = self.unlisted() {
            return unlisted.is_within(bytes);
        }
        let mut states = vec![0_u32];
        for _ in 0..=bytes {
            let row = |state: &u32| {
                self.transitions()[*state as usize * self.class_count()..].iter().take(self.class_count())
            };
            let mut next: Vec<u32> = states.iter().flat_map(row).copied().filter(|&to| to != NONE).collect();
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        states.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, scanner};

    #[test]
    fn strings_are_counted() {
        let strings = |pattern: &str, text: &str| {
            let hir = regex_syntax::parse(pattern).unwrap();
            let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
            let state = text.bytes().fold(0, |state, byte| dfa.step(state, byte).unwrap());
            dfa.strings()[state as usize]
        };
        for (pattern, text, plain, others) in [
            ("[a-z]*\"", "", Strings::ENDLESS, false),
            ("[a-z]*\"", "ab", Strings::ENDLESS, false),
            ("[a-z]*\"", "ab\"", 0, true),
            ("[a-z]{3}\"", "a", 26 * 26, false),
            ("[a-z]{9}\"", "", Strings::ENDLESS - 1, false),
            // What is behind the quote does not count, what is behind the terminal is not known.
            ("a(\"a)+", "a", 1, false),
            ("a(\"a)*", "a", 1, true),
            ("ab\"|ac*\"", "a", Strings::ENDLESS, false),
            ("ab\"|ac*\"", "ab", 1, false),
            ("(foo|bar(s|\\\\n)?|é)\"", "", 4, true),
            ("(foo|bar(s|\\\\n)?|é)\"", "bar", 2, true),
            ("(foo|bar(s|\\\\n)?|é)\"", "f", 1, false),
            // A letter that may stand for itself need not be escaped.
            ("(a|\\\\u0061)\"", "", 1, false),
            ("(a|\\\\u001[0-9a-f])\"", "", 1, true),
        ] {
            assert_eq!(strings(pattern, text), Strings { plain, others }, "{pattern} after {text}");
        }
    }

    #[test]
    fn longest_texts() {
        for (pattern, longest) in
            [("a", Some(1)), ("[a-zé]", Some(2)), ("\\PC", Some(4)), ("ab{0,3}|c", Some(4)), ("ab*", None)]
        {
            let hir = regex_syntax::parse(pattern).unwrap();
            let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
            assert_eq!((0..20).find(|&bytes| dfa.is_within(bytes)), longest, "{pattern}");
        }
    }
}
