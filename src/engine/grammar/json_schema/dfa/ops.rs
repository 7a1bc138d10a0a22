//! Automata made by exploring a deterministic step function, and what is built on that: Boolean operations,
//! and concatenation with fixed texts and with runs of white space.

use std::hash::Hash;

use hashbrown::HashMap;

use super::{Alphabet, CharDfa, DfaTable, MAX_CELLS, MAX_STATES, NONE, index, too_many_states};
use crate::{grammar::json_schema::leaf::LeafError, ids::as_index};

/// A state's row: true if it accepts, and its successor by each class.
pub(in crate::grammar::json_schema) struct DfaRow<S> {
    pub(in crate::grammar::json_schema) accepts: bool,
    pub(in crate::grammar::json_schema) to: Vec<Option<S>>,
}

/// The minimised automaton of all states that can be reached from `start`.
///
/// # Errors
/// If there are more than [`MAX_STATES`] states, or if `row` fails.
pub(in crate::grammar::json_schema) fn explore<S: Clone + Eq + Hash>(
    alphabet: Alphabet,
    start: S,
    row: impl FnMut(&S) -> Result<DfaRow<S>, LeafError>,
) -> Result<CharDfa, LeafError> {
    explore_up_to(MAX_STATES, alphabet, start, row)
}

/// Explores like [`explore`], with another limit on the states.
pub(super) fn explore_up_to<S: Clone + Eq + Hash>(
    most: usize,
    alphabet: Alphabet,
    start: S,
    mut row: impl FnMut(&S) -> Result<DfaRow<S>, LeafError>,
) -> Result<CharDfa, LeafError> {
    let width = alphabet.classes();
    let mut number: HashMap<S, u32> = HashMap::from([(start.clone(), 0)]);
    let mut order = vec![start];
    let mut table = DfaTable { width, transitions: Vec::new(), accepting: Vec::new() };
    while table.accepting.len() < order.len() {
        let DfaRow { accepts, to } = row(&order[table.accepting.len()])?;
        table.accepting.push(accepts);
        for class in 0..width {
            let Some(to) = to.get(class).and_then(Option::as_ref) else {
                table.transitions.push(NONE);
                continue;
            };
            let id = match number.get(to) {
                Some(&id) => id,
                None => {
                    let fresh = u32::try_from(order.len()).map_err(|_| too_many_states(most))?;
                    number.insert(to.clone(), fresh);
                    order.push(to.clone());
                    fresh
                }
            };
            table.transitions.push(id);
        }
        if order.len() > most || table.transitions.len() > MAX_CELLS {
            return Err(too_many_states(most));
        }
    }
    Ok(CharDfa::from_table(alphabet, table))
}

/// A Boolean operation under which a string in neither language is not in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    And,
    Or,
    Minus,
}

impl CharDfa {
    /// The intersection.
    pub(in crate::grammar::json_schema) fn and(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(other.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(self.clone());
        }
        self.product(other, Op::And)
    }

    /// The union.
    pub(in crate::grammar::json_schema) fn or(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(self.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(other.clone());
        }
        self.product(other, Op::Or)
    }

    /// The difference: strings that are not in `other`.
    pub(in crate::grammar::json_schema) fn minus(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_empty() || other.is_empty() {
            return Ok(self.clone());
        }
        if other.is_all() || self == other {
            return Ok(Self::none());
        }
        self.product(other, Op::Minus)
    }

    /// The complement. Linear.
    pub(in crate::grammar::json_schema) fn not(&self) -> Self {
        complement(self.alphabet(), &self.0.table)
    }

    /// The product construction. [`NONE`] stands for the state in which one side can no longer accept.
    fn product(&self, other: &Self, op: Op) -> Result<Self, LeafError> {
        let (alphabet, pairs) = self.0.alphabet.joined(&other.0.alphabet);
        explore(alphabet, (0_u32, 0_u32), |&(left, right)| {
            let accepts = |dfa: &Self, state: u32| state != NONE && dfa.accepts(state);
            let (in_left, in_right) = (accepts(self, left), accepts(other, right));
            let accepts = match op {
                Op::And => in_left && in_right,
                Op::Or => in_left || in_right,
                Op::Minus => in_left && !in_right,
            };
            let step = |dfa: &Self, state: u32, class: usize| {
                if state == NONE { NONE } else { dfa.row(state)[class] }
            };
            let to = pairs.iter().map(|&(left_class, right_class)| {
                let to = (step(self, left, left_class), step(other, right, right_class));
                let dead = match op {
                    Op::And => to.0 == NONE || to.1 == NONE,
                    Op::Or => to == (NONE, NONE),
                    Op::Minus => to.0 == NONE,
                };
                (!dead).then_some(to)
            });
            Ok(DfaRow { accepts, to: to.collect() })
        })
    }
}

/// The complement of a minimal, trimmed automaton. Linear.
pub(super) fn complement(alphabet: &Alphabet, table: &DfaTable) -> CharDfa {
    let width = table.width;
    // The state behind the last; the states have numbers below `NONE`, and it stands in for `NONE`.
    let sink = table.accepting.iter().fold(0_u32, |sink, _| sink + 1);
    // From at most one state every string is accepted, and no edge leaves it: no string that gets there is in
    // the complement. From every other state some string is not accepted.
    let all = (0..sink)
        .find(|&state| table.accepting[as_index(state)] && table.row(state).iter().all(|to| *to == state));
    if all == Some(0) {
        return CharDfa::none();
    }
    let turned = |&to: &u32| match to {
        NONE => sink,
        to if Some(to) == all => NONE,
        to => to,
    };
    let mut transitions: Vec<u32> = Vec::with_capacity(table.transitions.len() + width);
    transitions.extend(table.transitions.iter().map(turned));
    transitions.extend(std::iter::repeat_n(sink, width));
    let accepting = table.accepting.iter().map(|accepts| !accepts).chain([true]).collect();
    // Two states that differ still do when both accept what they did not.
    CharDfa::from_minimal(alphabet, &DfaTable { width, transitions, accepting })
}

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
