//! One terminal's DFA over bytes.
//!
//! Invariant: every state can be reached from the start and can still reach an accepting state, so "there is
//! a transition" means "the terminal can still end". The start is state 0. States are numbered in
//! breadth-first order over classes in order of their least byte, so that equal minimal automata are equal
//! values.
//!
//! The substrings of a long text and strings of counted characters are exceptions: their states are made when
//! texts come to them, need not be minimal, and are in no table. Code that reads tables asks
//! [`is_table`](TerminalDfa::is_table) first.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{implicit_dfa::ImplicitDfa, substrings::Substrings};
use crate::automata::{
    ClassNumbers, HASH_FACTOR,
    minimize::{DfaTable, longest, minimize},
    mix,
};
use crate::grammar::{
    LengthBounded, Spelled,
    automaton::{Automaton, Edge, State},
    spelled::MayNumber,
};
use crate::{ids::as_index, limits::LimitExceeded, store::PayloadWriter};

pub(crate) use crate::{automata::minimize::NONE, grammar::regular::RawDfa};

/// A minimal, trimmed DFA. Values are equal exactly if their languages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalDfa {
    /// Hash of all fields below: each grammar looks its automata up several times.
    hash: u64,
    /// Class of each byte; classes are numbered by their least byte.
    classes: Box<[u8; 256]>,
    class_count: usize,
    /// State after each `state * class_count + class`, or [`NONE`].
    transitions: Box<[u32]>,
    accepting: Box<[bool]>,
    /// The automaton that replaces the table, which then has no states.
    unlisted: Option<ImplicitDfa>,
}

impl Hash for TerminalDfa {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl TerminalDfa {
    /// Makes an automaton and its hash.
    fn new(
        classes: Box<[u8; 256]>,
        class_count: usize,
        transitions: Box<[u32]>,
        accepting: Box<[bool]>,
    ) -> Self {
        let hash = classes.iter().fold(0, |hash, &class| mix(hash, u64::from(class)));
        let hash = accepting.iter().fold(hash, |hash, &accepts| mix(hash, u64::from(accepts)));
        // In four lanes, as each step of a lane waits for its last.
        let (blocks, rest) = transitions.as_chunks::<8>();
        let mut lanes = [hash, 1, 2, 3];
        for block in blocks {
            for (lane, pair) in lanes.iter_mut().zip(block.as_chunks::<2>().0) {
                *lane = mix(*lane, u64::from(pair[0]) << 32 | u64::from(pair[1]));
            }
        }
        let hash = lanes.into_iter().fold(0, mix);
        let hash = rest.iter().fold(hash, |hash, &to| mix(hash, u64::from(to)));
        Self { hash, classes, class_count, transitions, accepting, unlisted: None }
    }

    /// Creates the DFA of the substrings of a text, made on demand. Linear in the text.
    ///
    /// # Errors
    /// If the text has too many.
    pub(crate) fn of_substrings(text: &Arc<str>) -> Result<Self, LimitExceeded> {
        let (classes, class_count) = classes_of(text.as_bytes());
        let substrings = ImplicitDfa::Substrings(Substrings::new(Arc::clone(text), true)?);
        Ok(Self::made_as_needed(classes, class_count, substrings))
    }

    /// Creates the DFA of strings with bounds on their length, made on demand. Costs as much as
    /// [`from_minimal`](Self::from_minimal) for the unbounded strings.
    pub(crate) fn of_bounded(bounded: &LengthBounded) -> Self {
        let automaton = bounded.automaton();
        // States have to keep their numbers, which they do unless some mean the same after all.
        let minimal = if automaton.is_minimal() { Self::from_minimal(automaton) } else { None };
        let minimal = minimal.filter(|dfa| dfa.len() == automaton.states().len());
        let dfa = minimal.unwrap_or_else(|| {
            let RawDfa { classes, table } = RawDfa::from(automaton);
            canonical(&classes, &table)
        });
        let (classes, class_count) = (dfa.classes.clone(), dfa.class_count);
        let unlisted = ImplicitDfa::LengthBounded(bounded.clone(), Arc::new(dfa));
        Self::made_as_needed(classes, class_count, unlisted)
    }

    /// Creates the DFA of strings of an automaton over characters, made on demand. Costs as much as finding
    /// its byte classes.
    pub(crate) fn of_spelled(spelled: &Spelled) -> Self {
        let spelled = spelled.afresh();
        let (classes, class_count) = spelled.byte_classes();
        let unbounded = spelled.unbounded().map(|unbounded| Arc::new(Self::of_spelled(&unbounded)));
        Self::made_as_needed(classes, class_count, ImplicitDfa::Spelled(spelled, unbounded))
    }

    pub(super) fn made_as_needed(classes: Box<[u8; 256]>, class_count: usize, unlisted: ImplicitDfa) -> Self {
        let mut made = Self::new(classes, class_count, Box::default(), Box::default());
        made.hash = mix(made.hash, unlisted.hash());
        made.unlisted = Some(unlisted);
        made
    }

    /// Are its states in a table? If not, they are made on demand.
    pub(crate) fn is_table(&self) -> bool {
        self.unlisted.is_none()
    }

    /// Returns the length-bounded strings and the DFA of the unbounded ones, if it counts characters.
    pub(crate) fn bounded(&self) -> Option<(&LengthBounded, &Arc<Self>)> {
        match &self.unlisted {
            Some(ImplicitDfa::LengthBounded(bounded, dfa)) => Some((bounded, dfa)),
            _ => None,
        }
    }

    /// Returns the strings of an automaton over characters, if it is one, with the DFA of the unbounded
    /// strings if their length is bounded.
    pub(crate) fn spelled(&self) -> Option<(&Spelled, Option<&Arc<Self>>)> {
        match &self.unlisted {
            Some(ImplicitDfa::Spelled(spelled, unbounded)) => Some((spelled, unbounded.as_ref())),
            _ => None,
        }
    }

    /// The automaton in place of a table.
    pub(super) fn unlisted(&self) -> Option<&ImplicitDfa> {
        self.unlisted.as_ref()
    }

    /// Returns the fewest bytes from a state to an end, of an automaton without a table.
    pub(crate) fn unlisted_distance(&self, state: u32) -> Option<u32> {
        self.unlisted.as_ref().map(|unlisted| unlisted.distance(state))
    }

    /// Returns a name that identifies a state, the same in every run.
    pub(crate) fn name(&self, state: u32) -> u64 {
        self.unlisted.as_ref().map_or(u64::from(state), |unlisted| unlisted.name(state))
    }

    /// The hash of the whole automaton.
    pub(super) fn hash_of_all(&self) -> u64 {
        self.hash
    }

    /// Steps by one byte, if the terminal can go on with it. For automata whose states all have numbers:
    /// tables and automata [of a walk](Self::of_a_walk); for others see [`go`](Self::go).
    pub(crate) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        if let Some(unlisted) = &self.unlisted {
            return unlisted.step(state, byte, MayNumber::Yes).ok().flatten();
        }
        let class = usize::from(self.classes[usize::from(byte)]);
        let to = self.transitions[as_index(state) * self.class_count + class];
        (to != NONE).then_some(to)
    }

    /// May the terminal end here?
    pub(crate) fn accepts(&self, state: u32) -> bool {
        match &self.unlisted {
            None => self.accepting[as_index(state)],
            Some(unlisted) => unlisted.accepts(state),
        }
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_spelled = self.spelled().and_then(|(_, unbounded)| unbounded);
        let unbounded = self.bounded().map(|(_, unbounded)| unbounded).or(of_spelled);
        self.bytes_alone() + unbounded.map_or(0, |unbounded| unbounded.bytes())
    }

    /// Memory without the DFA of the unbounded strings, if it counts characters; in bytes.
    pub(crate) fn bytes_alone(&self) -> usize {
        let table =
            size_of_val(self.classes()) + size_of_val(self.transitions()) + size_of_val(self.accepting());
        size_of::<Self>() + table + self.unlisted.as_ref().map_or(0, ImplicitDfa::bytes)
    }

    /// Minimises a DFA (Hopcroft's algorithm); `None` if its language is empty. `O(n c log n)` for `n` states
    /// and `c` classes.
    pub(crate) fn from_raw(raw: RawDfa) -> Option<Self> {
        Some(canonical(&raw.classes, &minimize(&raw.table.trimmed()?)))
    }

    /// Converts an automaton that is minimal already; `None` if its language is empty. Linear in the edges
    /// and in the table made: automata of keys are chains, with few edges for each state.
    pub(crate) fn from_minimal(automaton: &Automaton) -> Option<Self> {
        let states = automaton.states();
        if states.len() == 1 && !states[0].accepts {
            return None;
        }
        let intervals = Intervals::new(states);
        let (class_of, class_count) = intervals.classes(states);
        let Some(transitions) = intervals.table(states, &class_of, class_count) else {
            return Self::from_raw(RawDfa::from(automaton));
        };
        let classes = Box::new(intervals.of.map(|number| class_of[usize::from(number)]));
        let accepting = states.iter().map(|state| state.accepts).collect();
        let dfa = Some(Self::new(classes, class_count, transitions, accepting));
        debug_assert_eq!(dfa, Self::from_raw(RawDfa::from(automaton)));
        dfa
    }

    /// Creates the DFA of exactly these bytes (at least one). Linear.
    pub(crate) fn literal(bytes: &[u8]) -> Option<Self> {
        let (classes, class_count) = classes_of(bytes);
        let states = bytes.len() + 1;
        let mut transitions = vec![NONE; states * class_count].into_boxed_slice();
        for (state, &byte) in bytes.iter().enumerate() {
            transitions[state * class_count + usize::from(classes[usize::from(byte)])] =
                u32::try_from(state + 1).ok()?;
        }
        let mut accepting = vec![false; states].into_boxed_slice();
        accepting[states - 1] = true;
        // A chain is minimal and trimmed already, and numbered from its start.
        Some(Self::new(classes, class_count, transitions, accepting))
    }

    /// Removes the empty string; `None` if nothing is left. Linear where nothing leads back to the start, as
    /// in the substrings of a text; else costs as [`from_raw`](Self::from_raw).
    pub(crate) fn without_empty(&self) -> Option<Self> {
        if !self.accepts_empty() {
            return Some(self.clone());
        }
        if let Some(unlisted) = &self.unlisted {
            let classes = self.classes.clone();
            return Some(Self::made_as_needed(classes, self.class_count, unlisted.without_empty()));
        }
        if self.len() == 1 || self.transitions.contains(&0) {
            return self.without_empty_of_any();
        }
        // Without the empty string the start may mean the same as a state that does not accept.
        let start = self.row(0);
        if (1..).zip(&self.accepting[1..]).any(|(state, accepts)| !accepts && self.row(state) == start) {
            return self.without_empty_of_any();
        }
        let mut accepting = self.accepting.clone();
        accepting[0] = false;
        let dfa = Self::new(self.classes.clone(), self.class_count, self.transitions.clone(), accepting);
        debug_assert_eq!(Some(&dfa), self.without_empty_of_any().as_ref());
        Some(dfa)
    }

    /// Returns the automaton of all its texts but the empty one.
    fn without_empty_of_any(&self) -> Option<Self> {
        // A new start that does what the old one did but does not accept.
        let shift = |to: &u32| if *to == NONE { NONE } else { to + 1 };
        let mut transitions: Vec<u32> = self.transitions[..self.class_count].iter().map(shift).collect();
        transitions.extend(self.transitions.iter().map(shift));
        let mut accepting = vec![false];
        accepting.extend_from_slice(&self.accepting);
        let table = DfaTable { width: self.class_count, transitions, accepting };
        Self::from_raw(RawDfa { classes: self.classes.clone(), table })
    }

    /// Serialises all that distinguishes it from other automata.
    pub(crate) fn write(&self, writer: &mut PayloadWriter) {
        writer.bytes(&*self.classes);
        writer.u32s(self.transitions.iter().copied());
        writer.bytes(&self.accepting.iter().map(|&accepts| u8::from(accepts)).collect::<Vec<_>>());
        if let Some(unlisted) = &self.unlisted {
            unlisted.write(writer);
        }
    }

    /// Number of states; if they are made on demand, an upper bound.
    pub(crate) fn len(&self) -> usize {
        self.unlisted.as_ref().map_or(self.accepting.len(), ImplicitDfa::bound)
    }

    /// Has the language the empty string?
    pub(crate) fn accepts_empty(&self) -> bool {
        self.accepts(0)
    }

    /// Marks the bytes with which texts may come to an end. Linear.
    pub(crate) fn last_bytes(&self) -> [bool; 256] {
        let mut ends = vec![false; self.class_count];
        let mut accepting = (0..).zip(&self.accepting).filter(|(_, accepts)| **accepts).map(|(at, _)| at);
        let only: Option<u32> = accepting.next().filter(|_| accepting.next().is_none());
        for row in self.transitions.chunks_exact(self.class_count) {
            let each = ends.iter_mut().zip(row);
            match only {
                // Strings have one end: a comparison, which the compiler vectorises, is enough.
                Some(only) => each.for_each(|(ends, &to)| *ends |= to == only),
                None => each.for_each(|(ends, &to)| *ends |= to != NONE && self.accepting[as_index(to)]),
            }
        }
        self.classes.map(|class| ends[usize::from(class)])
    }

    /// Returns the state that each class of bytes leads to, or [`NONE`].
    pub(crate) fn row(&self, state: u32) -> &[u32] {
        &self.transitions[as_index(state) * self.class_count..][..self.class_count]
    }

    /// Is the language finite? With a table every state lies on a way to the end. Linear.
    pub(crate) fn is_finite(&self) -> bool {
        if let Some(unlisted) = &self.unlisted {
            return unlisted.is_finite();
        }
        longest(self.class_count, &self.transitions)[0].is_some()
    }

    /// Class of each byte.
    pub(crate) fn classes(&self) -> &[u8; 256] {
        &self.classes
    }

    /// Number of classes.
    pub(crate) fn class_count(&self) -> usize {
        self.class_count
    }

    /// State after each `state * class_count + class`, or [`NONE`].
    pub(crate) fn transitions(&self) -> &[u32] {
        &self.transitions
    }

    /// Does each state accept?
    pub(crate) fn accepting(&self) -> &[bool] {
        &self.accepting
    }
}

/// Returns the class of each byte if each byte of the text has one of its own, and the number of classes.
fn classes_of(bytes: &[u8]) -> (Box<[u8; 256]>, usize) {
    let mut used = [false; 256];
    bytes.iter().for_each(|&byte| used[usize::from(byte)] = true);
    // All bytes that do not occur share a class; in order of their least bytes, as `canonical` numbers them.
    let mut classes = Box::new([0_u8; 256]);
    let (mut numbers, mut rest) = (ClassNumbers::default(), None);
    for (class, used) in classes.iter_mut().zip(used) {
        *class = if used { numbers.fresh() } else { *rest.get_or_insert_with(|| numbers.fresh()) };
    }
    (classes, numbers.count())
}

/// Merges equal byte classes and numbers states breadth-first from the start, so that minimal automata of
/// equal languages are equal.
fn canonical(classes: &[u8; 256], table: &DfaTable) -> TerminalDfa {
    // Visit classes in order of their least byte, so that the numbering does not depend on class names.
    let mut by_least_byte: Vec<usize> = Vec::with_capacity(table.width);
    let mut met = [false; 256];
    for &class in classes {
        if !std::mem::replace(&mut met[usize::from(class)], true) {
            by_least_byte.push(usize::from(class));
        }
    }
    let (table, renamed) = table.canonical(&by_least_byte);
    // There are no more classes than bytes.
    let names: Vec<u8> = (0..=u8::MAX).collect();
    let classes = Box::new(classes.map(|class| names[as_index(renamed[usize::from(class)])]));
    TerminalDfa::new(classes, table.width, table.transitions.into(), table.accepting.into())
}

/// The finest intervals of bytes that edges distinguish: an edge has all of an interval or nothing.
pub(super) struct Intervals {
    /// Number of intervals, at least one.
    count: usize,
    /// The interval of each byte.
    pub(super) of: [u8; 256],
}

impl Intervals {
    /// Finds the largest intervals that no edge splits.
    pub(super) fn new(states: &[State]) -> Self {
        let mut begins = [false; 257];
        begins[0] = true;
        for edge in states.iter().flat_map(|state| &state.edges) {
            begins[usize::from(edge.first)] = true;
            begins[usize::from(edge.last) + 1] = true;
        }
        let (mut intervals, mut of) = (ClassNumbers::default(), [0; 256]);
        let mut last = 0;
        for (of, begins) in of.iter_mut().zip(begins) {
            if begins {
                last = intervals.fresh();
            }
            *of = last;
        }
        Self { count: intervals.count(), of }
    }

    /// Returns the numbers of the intervals in an edge.
    fn numbers(&self, edge: &Edge) -> std::ops::RangeInclusive<usize> {
        usize::from(self.of[usize::from(edge.first)])..=usize::from(self.of[usize::from(edge.last)])
    }

    /// Groups intervals into classes by hashes: the hash of an interval is the sum over the edges that have
    /// it, by prefix sums, and intervals of one hash are a class. Returns the class of each interval, and the
    /// number of classes. Linear in the edges.
    pub(super) fn classes(&self, states: &[State]) -> (Vec<u8>, usize) {
        // Added where an edge begins, taken away behind its end.
        let mut hashes = vec![0_u64; self.count + 1];
        for (state, at) in states.iter().zip(0_u64..) {
            for edge in &state.edges {
                let word = (at << 32 | u64::from(edge.to)).wrapping_mul(HASH_FACTOR);
                let hash = (word ^ word >> 29).wrapping_mul(HASH_FACTOR);
                let numbers = self.numbers(edge);
                let begin = &mut hashes[*numbers.start()];
                *begin = begin.wrapping_add(hash);
                let behind = &mut hashes[numbers.end() + 1];
                *behind = behind.wrapping_sub(hash);
            }
        }
        let mut members: Vec<(u64, u8)> = Vec::new();
        let (mut classes, mut sum) = (ClassNumbers::default(), 0_u64);
        let class_of = hashes[..self.count].iter().map(|hash| {
            sum = sum.wrapping_add(*hash);
            let known = members.iter().find(|(other, _)| *other == sum).map(|(_, class)| *class);
            known.unwrap_or_else(|| {
                let fresh = classes.fresh();
                members.push((sum, fresh));
                fresh
            })
        });
        (class_of.collect(), classes.count())
    }

    /// Returns the state that each class leads to from each state. `None` if two intervals of a class do not
    /// lead to the same state from every state, that is, if their hashes are equal by chance.
    pub(super) fn table(&self, states: &[State], class_of: &[u8], class_count: usize) -> Option<Box<[u32]>> {
        let mut sizes = vec![0_usize; class_count];
        class_of.iter().for_each(|&class| sizes[usize::from(class)] += 1);
        // States are numbered breadth-first over ascending bytes, which is also in order of the classes.
        let mut transitions = vec![NONE; states.len() * class_count].into_boxed_slice();
        for (state, row) in states.iter().zip(transitions.chunks_exact_mut(class_count)) {
            // Edges have no byte in common, so if these are equal each class is met as a whole.
            let (mut intervals, mut of_classes) = (0, 0);
            for edge in &state.edges {
                let met = &class_of[self.numbers(edge)];
                intervals += met.len();
                for &class in met {
                    let to = &mut row[usize::from(class)];
                    if *to == NONE {
                        *to = edge.to;
                        of_classes += sizes[usize::from(class)];
                    } else if *to != edge.to {
                        return None;
                    }
                }
            }
            if intervals != of_classes {
                return None;
            }
        }
        Some(transitions)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        grammar::{Automaton, regular::RawDfa},
        scanner::{Scanner, TerminalDfa},
    };

    fn edge(first: u8, last: u8, to: u32) -> Edge {
        Edge { first, last, to }
    }

    /// An automaton with three intervals: those before `a`, `a` to `c`, and those after.
    fn states(edges: Vec<Edge>) -> (Vec<State>, Intervals) {
        let states = vec![State { accepts: false, edges }, State { accepts: true, edges: Vec::new() }];
        let intervals = Intervals::new(&states);
        (states, intervals)
    }

    #[test]
    fn bytes_that_lead_alike_are_a_class() {
        let (states, intervals) = states(vec![edge(b'a', b'c', 1), edge(b'x', b'x', 1)]);
        let (class_of, count) = intervals.classes(&states);
        assert_eq!((&*class_of, count), (&[0, 1, 0, 1, 0][..], 2));
        let table = intervals.table(&states, &class_of, count).unwrap();
        assert_eq!(&*table, [NONE, 1, NONE, NONE]);
    }

    /// Equal hashes by chance are found out.
    #[test]
    fn classes_of_bytes_that_lead_to_different_states_are_found_out() {
        let (to_both, intervals) = states(vec![edge(b'a', b'c', 1), edge(b'x', b'x', 0)]);
        assert_eq!(intervals.table(&to_both, &[0, 1, 0, 1, 0], 2), None);
        // Only one of the two leads anywhere.
        let (to_one, intervals) = states(vec![edge(b'a', b'c', 1)]);
        assert_eq!(intervals.table(&to_one, &[0, 0, 1], 2), None);
        assert!(intervals.table(&to_one, &[0, 1, 0], 2).is_some());
    }

    /// An automaton in which every byte leads to a state of its own: no two have the same way to the end.
    fn told_apart() -> Automaton {
        let edges = (0..=u8::MAX).zip(1..).map(|(byte, to)| edge(byte, byte, to)).collect();
        let mut states = vec![State { accepts: false, edges }, State { accepts: true, edges: Vec::new() }];
        states.extend((1..256).map(|to| State { accepts: false, edges: vec![edge(0, 0, to)] }));
        Automaton::minimal(states).unwrap()
    }

    #[test]
    fn every_byte_may_be_a_class_of_its_own() {
        let automaton = told_apart();
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let (class_of, count) = Intervals::new(automaton.states()).classes(automaton.states());
        assert_eq!((&class_of, count), (&all, 256));
        let dfa = TerminalDfa::from_minimal(&automaton).unwrap();
        assert_eq!((&dfa.classes()[..], dfa.class_count()), (&all[..], 256));
        assert_eq!(Some(&dfa), TerminalDfa::from_raw(RawDfa::from(&automaton)).as_ref());
        let literal = TerminalDfa::literal(&all).unwrap();
        assert_eq!((&literal.classes()[..], literal.class_count()), (&all[..], 256));
        // There are no more of several terminals, whichever comes first.
        let few = TerminalDfa::literal(b"ab").unwrap();
        for dfas in [[&dfa, &few], [&few, &dfa]] {
            let scanner = Scanner::new(dfas.map(|dfa| Arc::new(dfa.clone())).into(), usize::MAX).unwrap();
            assert_eq!(scanner.byte_class_count(), 256);
            let classes: std::collections::BTreeSet<usize> =
                all.iter().map(|&byte| scanner.byte_class(byte)).collect();
            assert!(classes.into_iter().eq(0..256));
        }
    }
}
