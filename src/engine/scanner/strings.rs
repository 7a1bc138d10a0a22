//! Counts the strings that a terminal can still complete: path counting in its DFA, in topological order. The
//! lengths of the shortest and the longest are here too.
//!
//! Masks use the counts to decide whether keys or items can run out without searching for one that is left.

use std::sync::OnceLock;

use super::dfa::{NONE, TerminalDfa};
use crate::limits::{ITEM_BYTES, KEY_BYTES};
use crate::{
    automata::{Grouped, minimize},
    ids::as_index,
};

/// The number of strings that a state inside of quotes can become.
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
    /// More than any text may have as keys or items.
    pub(crate) const MANY: Self = Self { plain: Self::ENDLESS - 1, others: true };

    /// Are there more than a text can have as keys or items? Their bytes are bounded.
    pub(crate) fn are_many(self) -> bool {
        self.plain >= Self::MANY.plain
    }

    /// Are there some, but not [many](Self::are_many)?
    fn are_few(self) -> bool {
        (1..Self::MANY.plain).contains(&self.plain)
    }
}

/// Least length for which binary choices make more strings than a text can have as keys or items: together
/// they exceed the byte budgets of both.
const MANY_CHARACTERS: u32 = (if KEY_BYTES > ITEM_BYTES { KEY_BYTES } else { ITEM_BYTES }).ilog2();

/// The string counts of a terminal, by state.
#[derive(Debug)]
pub(crate) struct StringCounts {
    /// Counts by state of a table; empty for others.
    by_state: Box<[Strings]>,
    /// Distance in bytes from each state of a table to the nearest state with few strings, that is some but
    /// not [many](Strings::are_many). Empty if no state has few.
    to_few: Box<[u32]>,
    choices: OnceLock<Choices>,
}

impl StringCounts {
    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let choices = self.choices.get().map_or(0, |choices| size_of_val(&*choices.0));
        size_of_val(&*self.by_state) + size_of_val(&*self.to_few) + choices
    }
}

/// Distance in one-byte characters from each state of a table to the nearest state with a choice. Such a
/// state loops on two bytes at least and can end the string, so `n` more characters make `2^n` strings.
/// [`NONE`] if no choice is in reach. The second field is the greatest distance of a state that has strings
/// without escapes, if there is one.
#[derive(Debug)]
struct Choices(Box<[u32]>, Option<u32>);

impl StringCounts {
    /// Counts the strings. Linear in the transitions of a table; of other automata nothing is known.
    pub(crate) fn new(dfa: &TerminalDfa) -> Self {
        let by_state = if dfa.is_table() { dfa.strings() } else { Vec::new() };
        // Where few strings may come, the last quote of one comes from a state that few may come from.
        let are_few = |state: u32| state > 0 && by_state[as_index(state)].are_few();
        let has_few = (0..).take(by_state.len()).any(are_few);
        let to_few = if has_few { dfa.distances_to(are_few, |_| true) } else { Vec::new() };
        Self { by_state: by_state.into(), to_few: to_few.into(), choices: OnceLock::new() }
    }

    /// Returns the distances to choices of the table that this was made of, computed on first use.
    fn choices(&self, dfa: &TerminalDfa) -> &Choices {
        self.choices.get_or_init(|| {
            let to_choice = dfa.to_choice();
            let within =
                self.by_state.iter().zip(&to_choice).skip(1).filter(|(strings, _)| strings.plain > 0);
            let farthest = within.map(|(_, &characters)| characters).max();
            Choices(to_choice.into(), farthest)
        })
    }

    /// Has this state [many](Strings::are_many) strings of at most `characters` more characters? A lower
    /// bound; `false` where it does not suffice.
    pub(crate) fn are_many_within(&self, dfa: &TerminalDfa, state: u32, characters: u32) -> bool {
        is_enough(self.choices(dfa).0[as_index(state)], characters)
    }

    /// Holds [`are_many_within`](Self::are_many_within) for every state that has strings without escapes?
    pub(crate) fn are_always_many_within(&self, dfa: &TerminalDfa, characters: u32) -> bool {
        self.choices(dfa).1.is_some_and(|farthest| is_enough(farthest, characters))
    }

    /// Does every continuation of at most `bytes` bytes from this state, which is between characters, keep
    /// [many](Strings::are_many) strings?
    pub(crate) fn never_run_out(&self, state: u32, bytes: u32) -> bool {
        let to_few = self.to_few.get(as_index(state)).filter(|to_few| **to_few != NONE);
        self.at(state).are_many() && to_few.is_none_or(|&to_few| to_few > bytes)
    }

    /// Returns the count of a state between the characters of a string.
    pub(crate) fn at(&self, state: u32) -> Strings {
        self.by_state.get(as_index(state)).copied().unwrap_or(Strings::UNKNOWN)
    }

    /// Has some prefix, inside the quotes, only finitely many strings?
    pub(crate) fn may_run_out(&self) -> bool {
        self.by_state.is_empty() || !self.to_few.is_empty()
    }
}

/// Do `characters` characters reach the choice and then make [many](Strings::are_many) strings?
fn is_enough(to_choice: u32, characters: u32) -> bool {
    to_choice != NONE && to_choice.saturating_add(MANY_CHARACTERS) <= characters
}

impl TerminalDfa {
    /// Returns, for each byte class, its number of one-byte characters other than quote and backslash.
    fn plain_bytes(&self) -> Vec<u32> {
        let mut plain = vec![0_u32; self.class_count().max(1)];
        let is_plain = |byte: &u8| *byte >= b' ' && !matches!(byte, b'"' | b'\\');
        for byte in (0..=u8::MAX).filter(is_plain) {
            plain[usize::from(self.classes()[usize::from(byte)])] += 1;
        }
        plain
    }

    /// Computes the distances to choices; see [`StringCounts`]. Linear in the transitions of a table.
    fn to_choice(&self) -> Vec<u32> {
        let plain = self.plain_bytes();
        let is_choice = |state: u32| {
            let ways = self.row(state).iter().zip(&plain).filter(|(to, _)| **to == state);
            let ends = self.step(state, b'"').is_some_and(|end| self.accepts(end));
            ends && ways.map(|(_, bytes)| bytes).sum::<u32>() >= 2
        };
        self.distances_to(is_choice, |class| plain[class] > 0)
    }

    /// Counts the strings up to the next quote for each state of a table between characters (paths in
    /// topological order). Linear in the transitions.
    fn strings(&self) -> Vec<Strings> {
        let class = |byte: u8| usize::from(self.classes()[usize::from(byte)]);
        let (plain, quote) = (self.plain_bytes(), class(b'"'));
        let width = plain.len();
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
        steps.iter().for_each(|&(from, ..)| ways[as_index(from)] += 1);
        // There are fewer steps than transitions, whose numbers fit.
        let leading_to = Grouped::new(self.len(), || (0..).zip(&steps).map(|(at, &(_, to, _))| (to, at)));
        // States are taken away from which all ways on are counted; those on the way to a cycle stay.
        let mut open: Vec<u32> = (0..).zip(&ways).filter(|(_, ways)| **ways == 0).map(|(at, _)| at).collect();
        while let Some(state) = open.pop() {
            let to = strings[as_index(state)];
            for &at in leading_to.of(state) {
                let (from, _, bytes) = steps[as_index(at)];
                let here = &mut strings[as_index(from)];
                let sum = here.plain.saturating_add(to.plain.saturating_mul(bytes));
                here.plain = sum.min(Strings::ENDLESS - 1);
                here.others |= to.others;
                ways[as_index(from)] -= 1;
                if ways[as_index(from)] == 0 {
                    open.push(from);
                }
            }
        }
        let endless = (0..).zip(&ways).filter(|(_, ways)| **ways > 0);
        endless.for_each(|(state, _): (usize, _)| strings[state].plain = Strings::ENDLESS);
        strings
    }

    /// May an escape follow of a character that cannot stand for itself?
    fn may_escape(&self, state: u32) -> bool {
        let Some(escape) = self.step(state, b'\\') else { return false };
        let along = |bytes: &[u8]| bytes.iter().try_fold(escape, |state, &byte| self.step(state, byte));
        b"\"\\bfnrt".iter().any(|&byte| along(&[byte]).is_some())
            || [b"u000", b"u001"].iter().any(|bytes| along(*bytes).is_some())
    }
}

impl TerminalDfa {
    /// Returns the fewest bytes after which the terminal may end, by state of a table. Linear in the
    /// transitions.
    pub(crate) fn distances(&self) -> Vec<u32> {
        self.distances_to(|state| self.accepts(state), |_| true)
    }

    /// Returns the distance in bytes of each state of a table to the nearest goal, by byte classes for which
    /// `is_way` holds; [`NONE`] if none is in reach. Linear in the transitions.
    fn distances_to(&self, is_goal: impl Fn(u32) -> bool, is_way: impl Fn(usize) -> bool) -> Vec<u32> {
        minimize::distances((self.class_count(), self.transitions()), is_goal, is_way)
    }

    /// Returns the least of the shortest texts; `None` if there is none. Linear in the transitions of a
    /// table.
    pub(crate) fn shortest(&self) -> Option<Vec<u8>> {
        let distances = self.distances();
        let (mut text, mut state) = (Vec::new(), 0);
        let mut left = *distances.first()?;
        while left != 0 {
            let nearer = |byte: u8| {
                let to = self.step(state, byte)?;
                (distances[as_index(to)] == left - 1).then_some((byte, to))
            };
            let (byte, to) = (0..=u8::MAX).find_map(nearer)?;
            text.push(byte);
            (state, left) = (to, left - 1);
        }
        Some(text)
    }

    /// Is every text of the terminal at most `bytes` long? Linear in the transitions for each byte.
    pub(crate) fn is_within(&self, bytes: usize) -> bool {
        if let Some(unlisted) = self.unlisted() {
            return unlisted.is_within(bytes);
        }
        let mut states = vec![0_u32];
        for _ in 0..=bytes {
            let row = |state: &u32| {
                self.transitions()[as_index(*state) * self.class_count()..].iter().take(self.class_count())
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
mod tests;
