//! How many strings a terminal may still become.

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

/// The strings of a terminal, by state.
#[derive(Debug)]
pub(crate) struct StringCounts {
    /// Of a table; empty for others.
    by_state: Box<[Strings]>,
    may_run_out: bool,
}

impl StringCounts {
    /// Counts them. Linear in the transitions of a table; of other automata nothing is known.
    pub(crate) fn new(dfa: &TerminalDfa) -> Self {
        if !dfa.is_table() {
            return Self { by_state: Box::default(), may_run_out: true };
        }
        let by_state = dfa.strings();
        // Where few strings may come, the last quote of one comes from a state that few may come from.
        let are_few = |strings: &Strings| (1..Strings::ENDLESS).contains(&strings.plain);
        Self { may_run_out: by_state.iter().skip(1).any(are_few), by_state: by_state.into() }
    }

    /// Those that may become of a state between the characters of a string.
    pub(crate) fn at(&self, state: u32) -> Strings {
        self.by_state.get(state as usize).copied().unwrap_or(Strings::UNKNOWN)
    }

    /// Can there be a beginning, inside of quotes, that only finitely many strings have?
    pub(crate) fn may_run_out(&self) -> bool {
        self.may_run_out
    }
}

impl TerminalDfa {
    /// By state of a table, between the characters of a string: the [strings](Strings) that may come up to
    /// the next quote (a count of paths in topological order). Linear in the transitions.
    fn strings(&self) -> Vec<Strings> {
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
    fn strings_run_out_or_never_do() {
        for (pattern, may_run_out) in [
            ("\"[a-z]*\"", false),
            ("\"([^\"\\\\]|\\\\([nu\"]|u[0-9]{4}))*\"", false),
            // A half of a character that needs two escapes is no beginning of few.
            ("\"([a-z]|\\\\ud83d\\\\ude0[0-9])*\"", false),
            ("\"(a|b[a-z]*)\"", true),
            ("\"(\\\\n(a|b)|x[a-z]*)\"", true),
            ("\"a\"", true),
            ("-?[0-9]+", false),
        ] {
            let hir = regex_syntax::parse(pattern).unwrap();
            let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
            assert_eq!(StringCounts::new(&dfa).may_run_out(), may_run_out, "{pattern}");
        }
    }
}
