//! Minimal DFAs over characters: the regular languages of strings and of spellings of numbers.
//!
//! Boolean operations are product constructions; automata are minimised by Hopcroft's algorithm and numbered
//! canonically, so that equal languages are equal values. The alphabet is partitioned: a class is a set of
//! characters that the automaton treats alike. For example, the language of `[ab]x*` has
//!
//! ```text
//! classes:  0 = [ab]   1 = x   2 = all others
//! state 0:  to 1       -       -
//! state 1:  -          to 1    -       accepts
//! ```
//!
//! Invariant: all states are reachable and live; state 0 is the start; states are numbered breadth-first over
//! classes in order of their least characters. The empty language has no states. Cost: an operation takes
//! time linear in the cells of its product's table, which [`MAX_STATES`] and [`MAX_CELLS`] bound.

mod alphabet;
mod finite;
mod lengths;
mod nfa;
mod ops;
#[cfg(test)]
mod tests;

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

pub(super) use alphabet::{Alphabet, CHARS, CharClass, char_at, index};
pub(super) use nfa::{Assertion, LookAhead, Nfa, NfaState, Prev};
pub(super) use ops::{DfaRow, explore};

use super::leaf::LeafError;
use crate::{
    automata::minimize::{DfaTable, NONE, minimize},
    grammar::Automaton,
};

/// Limit on the states of an automaton over characters before it is minimised.
pub(super) const MAX_STATES: usize = 20_000;

/// Limit on the cells of a table of transitions. Each takes four bytes, and 10 to 50 ns to make.
pub(super) const MAX_CELLS: usize = 4_000_000;

pub(super) fn too_many_states(most: usize) -> LeafError {
    LeafError::Budget { what: "states of an automaton over characters", limit: most }
}

/// A regular language over characters. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CharDfa(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    alphabet: Alphabet,
    table: DfaTable,
    /// The automaton over bytes, made when it is first asked for.
    spelled: OnceLock<Result<Automaton, LeafError>>,
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        (&self.alphabet, &self.table) == (&other.alphabet, &other.table)
    }
}

impl Eq for Inner {}

impl Hash for Inner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.alphabet, &self.table).hash(state);
    }
}

impl CharDfa {
    /// The empty language.
    pub(super) fn none() -> Self {
        let table = DfaTable { width: 1, transitions: Vec::new(), accepting: Vec::new() };
        Self::made(Alphabet::one_class(), table)
    }

    /// The language of all strings.
    pub(super) fn all() -> Self {
        let table = DfaTable { width: 1, transitions: vec![0], accepting: vec![true] };
        Self::made(Alphabet::one_class(), table)
    }

    /// Joins parts that are canonical already.
    fn made(alphabet: Alphabet, table: DfaTable) -> Self {
        Self(Arc::new(Inner { alphabet, table, spelled: OnceLock::new() }))
    }

    /// The automaton over bytes, which the first call makes by `spell`. Clones share it, so that formats are
    /// spelled once. Waits while another thread makes it.
    pub(super) fn spelled(
        &self,
        spell: impl FnOnce(&Self) -> Result<Automaton, LeafError>,
    ) -> Result<Automaton, LeafError> {
        self.0.spelled.get_or_init(|| spell(self)).clone()
    }

    /// True if somebody else has it too, who may ask for what is made of it.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// True if the automaton over bytes has been made.
    pub(super) fn is_spelled(&self) -> bool {
        self.0.spelled.get().is_some()
    }

    /// Memory of the automaton and of its automaton over bytes, in bytes. Clones share it.
    pub(super) fn bytes(&self) -> usize {
        let Inner { alphabet, table, spelled } = &*self.0;
        let spelled = spelled.get().and_then(|spelled| spelled.as_ref().ok()).map_or(0, Automaton::bytes);
        size_of::<Inner>() + alphabet.bytes() + table.bytes() + spelled
    }

    /// The strings of `min` to `max` characters of a class that is not empty. Linear.
    pub(super) fn repeated(class: &CharClass, min: u64, max: Option<u64>) -> Self {
        let (alphabet, members) = Alphabet::of(std::slice::from_ref(class));
        let width = alphabet.classes();
        let last = max.unwrap_or(min);
        let mut table = DfaTable { width, transitions: Vec::new(), accepting: Vec::new() };
        for (length, state) in (0..=last).zip(0_u32..) {
            let next = match max {
                _ if length < last => state + 1,
                Some(_) => NONE,
                None => state,
            };
            table.transitions.extend(members[0].iter().map(|&inside| if inside { next } else { NONE }));
            table.accepting.push(length >= min);
        }
        Self::from_minimal(&alphabet, &table)
    }

    /// The language of any partial automaton, by Hopcroft's minimisation. `O(n c log n)` for `n` states and
    /// `c` classes.
    fn from_table(alphabet: Alphabet, table: DfaTable) -> Self {
        let Some(trimmed) = table.trimmed() else { return Self::none() };
        let minimal = minimize(&trimmed);
        let (alphabet, table) = canonical(&alphabet, &minimal);
        Self::made(alphabet, table)
    }

    /// The language of a table that is minimal and trimmed already. `O(n c)`.
    fn from_minimal(alphabet: &Alphabet, table: &DfaTable) -> Self {
        let (alphabet, made) = canonical(alphabet, table);
        let made = Self::made(alphabet, made);
        debug_assert_eq!(made.len(), Self::from_table(made.0.alphabet.clone(), made.0.table.clone()).len());
        made
    }

    /// True if the language has no string.
    pub(super) fn is_empty(&self) -> bool {
        self.0.table.accepting.is_empty()
    }

    /// True if the language has every string.
    pub(super) fn is_all(&self) -> bool {
        // The minimal automaton of all strings is one accepting state with a loop.
        self.len() == 1 && self.accepts(0) && self.0.table.transitions == [0]
    }

    /// The number of states.
    pub(super) fn len(&self) -> usize {
        self.0.table.accepting.len()
    }

    /// All states, in order.
    pub(super) fn states(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        (0..).take(self.len())
    }

    pub(super) fn accepts(&self, state: u32) -> bool {
        self.0.table.accepting[state as usize]
    }

    /// The table of transitions.
    pub(super) fn table(&self) -> &DfaTable {
        &self.0.table
    }

    pub(super) fn alphabet(&self) -> &Alphabet {
        &self.0.alphabet
    }

    /// The successors of a state by class, [`NONE`] where there is none.
    pub(super) fn row(&self, state: u32) -> &[u32] {
        self.0.table.row(state)
    }

    /// The state that a character (by number) leads to.
    pub(super) fn next(&self, state: u32, character: u32) -> Option<u32> {
        Some(self.row(state)[self.0.alphabet.class_of(character)]).filter(|to| *to != NONE)
    }

    /// The edges of a state: first and last number of their characters, inclusive, and the state that they
    /// lead to. Ascending; neighbours with the same target are joined.
    pub(super) fn edges(&self, state: u32) -> Vec<(u32, u32, u32)> {
        let row = self.row(state);
        let mut edges: Vec<(u32, u32, u32)> = Vec::new();
        for (first, last, class) in self.0.alphabet.intervals() {
            let to = row[class];
            match edges.last_mut() {
                _ if to == NONE => {}
                Some((_, end, last_to)) if *last_to == to && *end + 1 == first => *end = last,
                _ => edges.push((first, last, to)),
            }
        }
        edges
    }

    /// True if the string is in the language.
    pub(super) fn contains(&self, string: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut state = 0;
        for character in string.chars() {
            state = self.row(state)[self.0.alphabet.class_of(index(character))];
            if state == NONE {
                return false;
            }
        }
        self.accepts(state)
    }
}

/// Drops unreachable states, merges classes that are treated alike, and renumbers all. Linear.
fn canonical(alphabet: &Alphabet, table: &DfaTable) -> (Alphabet, DfaTable) {
    let (table, renamed) = table.canonical(&alphabet.by_least());
    (alphabet.renamed(&renamed), table)
}
