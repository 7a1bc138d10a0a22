//! Concatenation of strings with fixed texts, and with runs of white space.

use super::{Alphabet, CharDfa, DfaRow, NONE, explore, index};
use crate::grammar::json_schema::leaf::LeafError;

/// A state of the concatenation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    /// The text in front is being read: the number of characters read.
    Before(usize),
    /// The text in front has been read: the state of the string, [`NONE`] if it cannot go on, and a bit for
    /// each length of the text behind that may have been read.
    Inside(u32, u64),
}

impl CharDfa {
    /// The texts that are `before`, a string of this language and `after`, which has fewer than 64
    /// characters.
    ///
    /// Follows all occurrences of `after` at once (the bit-parallel shift-and method). Linear in the states
    /// if few occurrences of its beginning overlap; `O(n 2^k)` at worst, for `k` characters of `after`.
    ///
    /// # Errors
    /// If there would be too many states.
    pub(in crate::grammar::json_schema) fn between(
        &self,
        before: &str,
        after: &str,
    ) -> Result<Self, LeafError> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let numbers = |text: &str| text.chars().map(index).collect::<Vec<u32>>();
        let (before, after) = (numbers(before), numbers(after));
        let mut singles = [&before[..], &after[..]].concat();
        singles.sort_unstable();
        singles.dedup();
        let (alphabet, pairs) = self.alphabet().joined(&Alphabet::singles(&singles));
        // Class 0 is all other characters.
        let is = |class: usize, character: u32| class > 0 && singles[class - 1] == character;
        let starts = |state: u32, ends: u64| match state {
            NONE => ends,
            state => ends | u64::from(self.accepts(state)),
        };
        let start = if before.is_empty() { At::Inside(0, starts(0, 0)) } else { At::Before(0) };
        explore(alphabet, start, |at| {
            let to = pairs.iter().map(|&(own, single)| match *at {
                At::Before(read) if !is(single, before[read]) => None,
                At::Before(read) if read + 1 < before.len() => Some(At::Before(read + 1)),
                At::Before(_) => Some(At::Inside(0, starts(0, 0))),
                At::Inside(state, ends) => {
                    let state = if state == NONE { NONE } else { self.row(state)[own] };
                    let read =
                        (0..after.len()).filter(|&read| ends >> read & 1 == 1 && is(single, after[read]));
                    let ends = starts(state, read.fold(0, |ends, read| ends | 1 << (read + 1)));
                    (state != NONE || ends != 0).then_some(At::Inside(state, ends))
                }
            });
            let accepts = matches!(*at, At::Inside(_, ends) if ends >> after.len() & 1 == 1);
            Ok(DfaRow { accepts, to: to.collect() })
        })
    }

    /// The strings of this language with any number of `spaces` before and after. No string of it may be
    /// empty, or begin or end with one of these. Linear but for strings with spaces inside.
    ///
    /// # Errors
    /// If there would be too many states.
    pub(in crate::grammar::json_schema) fn among(&self, spaces: &str) -> Result<Self, LeafError> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let mut singles: Vec<u32> = spaces.chars().map(index).collect();
        singles.sort_unstable();
        let (alphabet, pairs) = self.alphabet().joined(&Alphabet::singles(&singles));
        // The state of the string, and true if a string may have ended before the spaces just read.
        explore(alphabet, (None, false), |&(at, ended): &(Option<u32>, bool)| {
            let to = pairs.iter().map(|&(own, single)| {
                let is_space = single > 0;
                let state = match at {
                    None if is_space => return Some((None, false)),
                    None => self.row(0)[own],
                    Some(NONE) => NONE,
                    Some(state) => self.row(state)[own],
                };
                let ends = at.is_some_and(|state| state != NONE && self.accepts(state));
                let ended = is_space && (ended || ends);
                (state != NONE || ended).then_some((Some(state), ended))
            });
            let accepts = ended || at.is_some_and(|state| state != NONE && self.accepts(state));
            Ok(DfaRow { accepts, to: to.collect() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::json_schema::dfa::CharClass;

    #[test]
    fn strings_stand_between_texts() {
        let some = CharDfa::repeated(&CharClass::new([('a', 'b')]), 0, Some(3));
        let between = some.between(">a", "ba").unwrap();
        for (text, is_in) in [
            (">aba", true),
            (">ababa", true),
            (">abbba", true),
            (">aabaaba", false),
            (">ba", false),
            (">abab", false),
            ("aba", false),
            ("", false),
        ] {
            assert_eq!(between.contains(text), is_in, "{text}");
        }
        let plain = some.between("", "").unwrap();
        assert_eq!(plain, some);
        assert!(CharDfa::none().between("a", "b").unwrap().is_empty());
    }

    #[test]
    fn words_stand_among_spaces() {
        let words = CharDfa::of(["a", "a b", "ac"]).unwrap().among(" \n").unwrap();
        for text in ["a", " a\n", "a b", "  a b ", "\nac", "a  "] {
            assert!(words.contains(text), "{text:?}");
        }
        for text in ["", " ", "a  b", "a b c", "ab", "a c"] {
            assert!(!words.contains(text), "{text:?}");
        }
    }
}
