//! Regular languages over bytes as minimal automata, with the operations that regular expressions lack:
//! intersection, complement, shortest matches and quotients.
//!
//! Each operation returns a minimal automaton, so that chains of operations stay as small as their results.
//! Sequences and repeats go through an NFA and the subset construction, Boolean operations through products.
//! All of them are bounded by [`Limits::dfa_states`] and [`Limits::nfa_bytes`], and look at
//! [`Limits::cancel`] before they begin.

mod determinize;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;
use regex_automata::{
    nfa::thompson::{self, BuildError, Builder, Transition, WhichCaptures},
    util::primitives::StateID,
};
use regex_syntax::hir::{Dot, Hir, Repetition};

use super::automaton::{Automaton, Edge, State};
use crate::{
    automata::{
        ClassNumbers, Grouped,
        minimize::{DfaTable, NONE, minimize},
    },
    ids,
    limits::{Budget, LimitExceeded, Limits},
};

use self::determinize::determinize;

pub(crate) use self::determinize::RawDfa;

/// A regular language over bytes. Its automaton is minimal and trimmed; that of the empty language has no
/// states.
#[derive(Debug, Clone)]
pub(crate) struct Language {
    dfa: RawDfa,
}

/// A fragment of an NFA: its entry, and the state that is left to be connected.
pub(crate) type Fragment = (StateID, StateID);

/// The error that an NFA would be too large.
pub(crate) type NoRoom = Box<BuildError>;

impl Language {
    /// The language of an expression without look-around.
    ///
    /// # Errors
    /// As all constructors and operations: if automata would be larger than the limits allow, or the work was
    /// cancelled.
    pub(crate) fn of(hir: &Hir, limits: &Limits) -> Result<Self, LimitExceeded> {
        limits.look()?;
        automaton_of(hir, limits.dfa_states, limits).map(Self::minimal)
    }

    /// The language of an automaton.
    pub(crate) fn of_automaton(automaton: &Automaton) -> Self {
        Self::minimal(RawDfa::from(automaton))
    }

    /// The language of the empty text alone.
    pub(crate) fn empty_text(limits: &Limits) -> Result<Self, LimitExceeded> {
        Self::of(&Hir::empty(), limits)
    }

    /// The language of all texts of characters (valid UTF-8).
    pub(crate) fn texts(limits: &Limits) -> Result<Self, LimitExceeded> {
        let any = Repetition { min: 0, max: None, greedy: true, sub: Box::new(Hir::dot(Dot::AnyChar)) };
        Self::of(&Hir::repetition(any), limits)
    }

    /// The language of a raw automaton. `O(n c log n)` for `n` states and `c` classes.
    fn minimal(raw: RawDfa) -> Self {
        let table = raw.table.trimmed().map(|table| minimize(&table));
        Self { dfa: table.map_or_else(RawDfa::default, |table| RawDfa { table, ..raw }) }
    }

    /// True if the language has no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.dfa.table.accepting.is_empty()
    }

    /// True if the language has the empty text.
    pub(crate) fn has_empty_text(&self) -> bool {
        self.dfa.table.accepting.first() == Some(&true)
    }

    /// The concatenation of the parts.
    pub(crate) fn sequence(parts: &[Self], limits: &Limits) -> Result<Self, LimitExceeded> {
        Self::by_nfa(limits, |builder| {
            let start = builder.add_empty()?;
            let mut end = start;
            for part in parts {
                let (from, to) = part.piece(builder)?;
                builder.patch(end, from)?;
                end = to;
            }
            Ok((start, end))
        })
    }

    /// The union of the parts.
    pub(crate) fn union(parts: &[Self], limits: &Limits) -> Result<Self, LimitExceeded> {
        Self::by_nfa(limits, |builder| {
            let (start, end) = (builder.add_union(Vec::new())?, builder.add_empty()?);
            for part in parts {
                let (from, to) = part.piece(builder)?;
                builder.patch(start, from)?;
                builder.patch(to, end)?;
            }
            Ok((start, end))
        })
    }

    /// The language repeated `min` to `max` times.
    pub(crate) fn repeat(&self, min: u32, max: Option<u32>, limits: &Limits) -> Result<Self, LimitExceeded> {
        Self::by_nfa(limits, |builder| {
            let start = builder.add_empty()?;
            let mut end = start;
            for _ in 0..min {
                let (from, to) = self.piece(builder)?;
                builder.patch(end, from)?;
                end = to;
            }
            let after = builder.add_empty()?;
            let Some(max) = max else {
                let again = builder.add_union(Vec::new())?;
                builder.patch(end, again)?;
                let (from, to) = self.piece(builder)?;
                builder.patch(again, from)?;
                builder.patch(to, again)?;
                builder.patch(again, after)?;
                return Ok((start, after));
            };
            for _ in min..max {
                let once_more = builder.add_union(vec![after])?;
                builder.patch(end, once_more)?;
                let (from, to) = self.piece(builder)?;
                builder.patch(once_more, from)?;
                end = to;
            }
            builder.patch(end, after)?;
            Ok((start, after))
        })
    }

    /// The texts without a proper prefix in the language: the matches of a search that stops at the shortest
    /// one.
    pub(crate) fn shortest(&self) -> Self {
        let mut dfa = self.dfa.clone();
        let DfaTable { width, transitions, accepting } = &mut dfa.table;
        let rows = transitions.chunks_exact_mut(*width);
        rows.zip(accepting).filter(|(_, accepts)| **accepts).for_each(|(row, _)| row.fill(NONE));
        Self::minimal(dfa)
    }

    /// The language as a leaf of a grammar.
    pub(crate) fn automaton(&self, limits: &Limits) -> Result<Automaton, LimitExceeded> {
        let rows = self.dfa.table.transitions.chunks_exact(self.dfa.table.width);
        let states = rows.zip(&self.dfa.table.accepting).map(|(row, &accepts)| State {
            accepts,
            edges: ranges(&self.dfa.classes, row)
                .into_iter()
                .map(|(first, last, to)| Edge { first, last, to })
                .collect(),
        });
        let mut states: Vec<State> = states.collect();
        if states.is_empty() {
            states.push(State::default());
        }
        Automaton::minimal(states).map_err(|_| too_many(limits))
    }

    /// The language of an NFA fragment, which `build` makes.
    pub(crate) fn by_nfa(
        limits: &Limits,
        build: impl FnOnce(&mut Builder) -> Result<Fragment, NoRoom>,
    ) -> Result<Self, LimitExceeded> {
        limits.look()?;
        let mut builder = Builder::new();
        let nfa = (|| {
            builder.set_size_limit(Some(limits.nfa_bytes))?;
            builder.start_pattern()?;
            let (start, end) = build(&mut builder)?;
            let found = builder.add_match()?;
            builder.patch(end, found)?;
            builder.finish_pattern(start)?;
            Ok(builder.build(start, start)?)
        })()
        .map_err(|_: NoRoom| too_large(limits))?;
        determinize(&nfa, limits.dfa_states).map(Self::minimal).ok_or_else(|| too_many(limits))
    }

    /// Adds the automaton to an NFA: each state is a union of its edges and, if it accepts, of the end.
    pub(crate) fn piece(&self, builder: &mut Builder) -> Result<Fragment, NoRoom> {
        let end = builder.add_empty()?;
        if self.is_empty() {
            return Ok((builder.add_fail()?, end));
        }
        let mut states = Vec::with_capacity(self.dfa.table.accepting.len());
        for _ in 0..self.dfa.table.accepting.len() {
            states.push(builder.add_union(Vec::new())?);
        }
        for (at, row) in self.dfa.table.transitions.chunks_exact(self.dfa.table.width).enumerate() {
            let ways: Vec<Transition> = ranges(&self.dfa.classes, row)
                .into_iter()
                .map(|(start, end, to)| Transition { start, end, next: states[to as usize] })
                .collect();
            if !ways.is_empty() {
                let ways = builder.add_sparse(ways)?;
                builder.patch(states[at], ways)?;
            }
            if self.dfa.table.accepting[at] {
                builder.patch(states[at], end)?;
            }
        }
        Ok((states[0], end))
    }
}

/// The edges of a state as ranges of bytes, ascending, with neighbours joined.
fn ranges(classes: &[u8; 256], row: &[u32]) -> Vec<(u8, u8, u32)> {
    let mut found: Vec<(u8, u8, u32)> = Vec::new();
    for byte in 0..=u8::MAX {
        let to = row[usize::from(classes[usize::from(byte)])];
        match found.last_mut() {
            _ if to == NONE => {}
            Some((_, last, same)) if *same == to && last.checked_add(1) == Some(byte) => *last = byte,
            _ => found.push((byte, byte, to)),
        }
    }
    found
}

/// The automaton of an expression, by an NFA, of at most `most` states before it is minimised.
///
/// # Errors
/// If automata would be larger than that, or than the limits allow.
pub(crate) fn automaton_of(hir: &Hir, most: usize, limits: &Limits) -> Result<RawDfa, LimitExceeded> {
    let nfa = thompson::Compiler::new()
        .configure(
            thompson::Config::new()
                .utf8(false)
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(Some(limits.nfa_bytes)),
        )
        .build_from_hir(hir)
        .map_err(|_| too_large(limits))?;
    let too_many = || LimitExceeded::new(Budget::DfaStates, "DFA states of a terminal", most);
    determinize(&nfa, most).ok_or_else(too_many)
}

fn too_many(limits: &Limits) -> LimitExceeded {
    LimitExceeded::new(Budget::DfaStates, "DFA states of a terminal", limits.dfa_states)
}

fn too_large(limits: &Limits) -> LimitExceeded {
    LimitExceeded::new(Budget::NfaBytes, "bytes of a terminal's NFA", limits.nfa_bytes)
}

// Boolean operations and quotients are product constructions.

impl Language {
    /// The intersection of both languages.
    pub(crate) fn and(&self, other: &Self, limits: &Limits) -> Result<Self, LimitExceeded> {
        self.product(other, limits, |left, right| left && right)
    }

    /// The texts of the language that are not in `other`.
    pub(crate) fn minus(&self, other: &Self, limits: &Limits) -> Result<Self, LimitExceeded> {
        self.product(other, limits, |left, right| left && !right)
    }

    /// The complement within all texts of characters.
    pub(crate) fn not(&self, limits: &Limits) -> Result<Self, LimitExceeded> {
        Self::texts(limits)?.minus(self, limits)
    }

    /// The right quotient: the texts that a text of `suffix` completes to a text of the language. `O(n m)` in
    /// the numbers of states.
    pub(crate) fn before(&self, suffix: &Self, limits: &Limits) -> Result<Self, LimitExceeded> {
        limits.look()?;
        let (mine, other) = (&self.dfa.table, &suffix.dfa.table);
        let width = other.accepting.len();
        let pairs = mine.accepting.len().saturating_mul(width);
        let (_, joined) = joined(&self.dfa, &suffix.dfa);
        if pairs > limits.dfa_states.saturating_mul(64) {
            return Err(too_many(limits));
        }
        let edges = pairs.saturating_mul(joined.len());
        if edges.saturating_mul(size_of::<u32>()) > limits.terminal_bytes {
            return Err(LimitExceeded::of_terminals(limits.terminal_bytes));
        }
        ids::number(edges, "edges between pairs of states")?;
        let all = || (0..mine.accepting.len()).flat_map(|left| (0..width).map(move |right| (left, right)));
        let numbers = ids::numbers(pairs, "pairs of states")?;
        // Pairs have numbers below that of the last, which fits, and so do those that lead to them.
        let incoming = Grouped::new(pairs, || {
            let joined = &joined;
            numbers.clone().zip(all()).flat_map(move |(from, (left, right))| {
                let after = move |&(one, two): &(u8, u8)| {
                    let to = step(mine, left, one)? * width + step(other, right, two)?;
                    Some((u32::try_from(to).ok()?, from))
                };
                joined.iter().filter_map(after)
            })
        });
        let ends = |(left, right): (usize, usize)| mine.accepting[left] && other.accepting[right];
        let found = incoming.leading_to(all().map(ends).collect());
        let accepting = (0..mine.accepting.len()).map(|left| width > 0 && found[left * width]).collect();
        let table = DfaTable { accepting, ..mine.clone() };
        Ok(Self::minimal(RawDfa { table, classes: self.dfa.classes.clone() }))
    }

    /// The product construction. `keep` decides by membership in both; it must be false of texts that are not
    /// in `self`, so a pair without a state on the left is dead.
    fn product(
        &self,
        other: &Self,
        limits: &Limits,
        keep: impl Fn(bool, bool) -> bool,
    ) -> Result<Self, LimitExceeded> {
        limits.look()?;
        if self.is_empty() {
            return Ok(self.clone());
        }
        let (classes, pairs) = joined(&self.dfa, &other.dfa);
        // `None` on the right: no text of `other` goes on like this.
        let start = (0_usize, (!other.is_empty()).then_some(0_usize));
        let mut number: HashMap<(usize, Option<usize>), u32> = HashMap::from([(start, 0)]);
        let mut order = vec![start];
        let mut made = DfaTable { width: pairs.len(), transitions: Vec::new(), accepting: Vec::new() };
        while let Some(&(left, right)) = order.get(made.accepting.len()) {
            let in_other = right.is_some_and(|right| other.dfa.table.accepting[right]);
            made.accepting.push(keep(self.dfa.table.accepting[left], in_other));
            for &(one, two) in &pairs {
                let Some(left) = step(&self.dfa.table, left, one) else {
                    made.transitions.push(NONE);
                    continue;
                };
                let to = (left, right.and_then(|right| step(&other.dfa.table, right, two)));
                let fresh = ids::number(order.len(), "states of a product")?;
                made.transitions.push(*number.entry(to).or_insert_with(|| {
                    order.push(to);
                    fresh
                }));
            }
            if order.len() > limits.dfa_states {
                return Err(too_many(limits));
            }
        }
        Ok(Self::minimal(RawDfa { classes, table: made }))
    }
}

fn step(dfa: &DfaTable, state: usize, class: u8) -> Option<usize> {
    let to = dfa.transitions[state * dfa.width + usize::from(class)];
    (to != NONE).then_some(to as usize)
}

/// The coarsest common refinement of both partitions of the bytes, and the classes that each of its classes
/// is in.
fn joined(left: &RawDfa, right: &RawDfa) -> (Box<[u8; 256]>, Vec<(u8, u8)>) {
    let mut pairs: Vec<(u8, u8)> = Vec::new();
    let mut number: HashMap<(u8, u8), u8> = HashMap::new();
    let mut classes = Box::new([0_u8; 256]);
    let mut numbers = ClassNumbers::default();
    for (byte, class) in classes.iter_mut().enumerate() {
        let pair = (left.classes[byte], right.classes[byte]);
        *class = *number.entry(pair).or_insert_with(|| {
            pairs.push(pair);
            numbers.fresh()
        });
    }
    (classes, pairs)
}
