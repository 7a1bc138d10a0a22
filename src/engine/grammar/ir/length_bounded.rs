//! The product of an automaton of strings and a counter of their characters, for bounds on the length. It is
//! never made as a whole.
//!
//! A state of the product is a state of the automaton with the number of characters so far. Dynamic
//! programming over that number, from the greatest down, finds the live states. Far from the bound, the same
//! states of the automaton are live at every number, so only the numbers at which this changes are kept, and
//! the sweep ends when nothing changes any more.
//!
//! Invariant: `step` leads to live states only, and the start is live.

use std::{
    cmp::Reverse,
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
};

use super::automaton::{Automaton, Edge, State, incoming};
use crate::{
    grammar::spelled::{CountLevels, Unfolded, WayOn},
    ids::as_index,
};

/// Limit on the states of the automaton times the counts: a grammar has numbers for 500 such terminals.
const MAX_NUMBERS: usize = 1 << 23;
/// Limit on the edges looked at while live states are found, which takes some 10 ms.
const MAX_LOOKS: usize = 1 << 22;

/// The texts of an automaton of JSON strings, or of texts between two `>`, with `min` to `max` characters
/// inside. An escape of JSON is one character, and so is a pair of escaped surrogates. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LengthBounded(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    automaton: Automaton,
    min: u32,
    /// The greatest number of characters; without a bound the least, beyond which all numbers are alike.
    max: u32,
    is_endless: bool,
    /// The place in a string of each state of the automaton.
    places: Box<[CharacterPlace]>,
    /// The states in an order in which bytes that end no character lead to earlier ones.
    order: Box<[u32]>,
    /// The number of low bits of a state that are its count.
    shift: u32,
    live: CountLevels<bool>,
    /// For each state of the automaton, the least count at which it is dead although the string may end;
    /// below, the least count at which a state reachable from it is.
    ends: Box<[u32]>,
    tight: Box<[u32]>,
    /// The flags of [`LengthBounded::is_free`].
    free: OnceLock<Box<[bool]>>,
    /// The fewest bytes to an end, made on first use.
    distances: OnceLock<CountLevels<u32>>,
}

/// The rule by which a state's value follows from those of its successors.
struct Rule<V> {
    none: V,
    end: V,
    step: fn(V) -> V,
    best: fn(V, V) -> V,
}

impl PartialEq for LengthBounded {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.0.min, of.0.max, of.0.is_endless);
        key(self) == key(other) && self.0.automaton == other.0.automaton
    }
}

impl Eq for LengthBounded {}

impl std::hash::Hash for LengthBounded {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.0.automaton, self.lengths()).hash(state);
    }
}

impl LengthBounded {
    /// The strings of `automaton`, with quotes or between two `>`, of `min` to `max` characters inside.
    /// `None` if there is none, if some state of the automaton is both between characters and inside of one,
    /// or if there would be too many states or levels. Linear in the edges for each level.
    pub(crate) fn new(automaton: &Automaton, min: u32, max: u32) -> Option<Self> {
        Self::made(automaton, (min, max), false)
    }

    /// The strings of at least `min` characters, like [`new`](Self::new).
    pub(crate) fn at_least(automaton: &Automaton, min: u32) -> Option<Self> {
        Self::made(automaton, (min, min), true)
    }

    fn made(automaton: &Automaton, (min, max): (u32, u32), is_endless: bool) -> Option<Self> {
        let shift = u32::BITS - max.leading_zeros();
        let states = automaton.states().len();
        if shift >= MAX_NUMBERS.ilog2() || states > MAX_NUMBERS >> shift {
            return None;
        }
        let places = character_places(automaton)?;
        // There are at most `MAX_NUMBERS`, so numbers fit.
        let mut order: Box<[u32]> = (0..).take(states).collect();
        order.sort_by_key(|&state| Reverse(places[state as usize]));
        let mut made = Inner {
            automaton: automaton.clone(),
            min,
            max,
            is_endless,
            places,
            order,
            shift,
            live: CountLevels::default(),
            ends: Box::default(),
            tight: Box::default(),
            free: OnceLock::new(),
            distances: OnceLock::new(),
        };
        let rule = Rule { none: false, end: true, step: |live| live, best: |one, other| one || other };
        made.live = made.sweep(&rule, MAX_LOOKS)?;
        made.ends = made.ends();
        made.tight = made.tight();
        let has_text = made.live.of(states, 0)[0];
        has_text.then(|| Self(Arc::new(made)))
    }

    /// The automaton of the strings of any length.
    #[must_use]
    pub fn automaton(&self) -> &Automaton {
        &self.0.automaton
    }

    /// The least and the greatest number of characters; `u32::MAX` stands for no bound.
    #[must_use]
    pub fn lengths(&self) -> RangeInclusive<u32> {
        self.0.min..=if self.0.is_endless { u32::MAX } else { self.0.max }
    }

    /// A number above those of all states; the start is 0.
    pub(crate) fn bound(&self) -> usize {
        self.0.places.len() << self.0.shift
    }

    /// The state of the automaton, and the number of characters so far.
    pub(crate) fn place(&self, state: u32) -> (u32, u32) {
        (state >> self.0.shift, state & ((1 << self.0.shift) - 1))
    }

    /// The state for a state of the automaton and a number of characters.
    pub(crate) fn state(&self, of: u32, count: u32) -> u32 {
        of << self.0.shift | count
    }

    /// The state after one more byte, by binary search in the edges.
    pub(crate) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let edges = &self.0.automaton.states()[self.place(state).0 as usize].edges;
        let at = edges.partition_point(|edge| edge.last < byte);
        let edge = edges.get(at).filter(|edge| edge.first <= byte)?;
        self.after(state, edge.to)
    }

    /// The state after a byte that leads the automaton to its state `to`; `None` if no end can be reached
    /// from there.
    pub(crate) fn after(&self, state: u32, to: u32) -> Option<u32> {
        let (from, count) = self.place(state);
        let count = count + u32::from(self.0.counts(from, to));
        let count = if self.0.is_endless { count.min(self.0.max) } else { count };
        (count <= self.0.max && self.live_at(count)[to as usize]).then(|| self.state(to, count))
    }

    /// True if a byte that leads the automaton from one state to the other ends a character.
    pub(crate) fn counts(&self, from: u32, to: u32) -> bool {
        self.0.counts(from, to)
    }

    /// True if the string may end here.
    pub(crate) fn accepts(&self, state: u32) -> bool {
        // Ends outside of the bounds are not live.
        self.0.places[self.place(state).0 as usize] == CharacterPlace::END
    }

    /// The fewest bytes after which the string may end. The first call computes it for all states.
    pub(crate) fn distance(&self, state: u32) -> u32 {
        let (of, count) = self.place(state);
        self.distances().of(self.0.places.len(), count)[of as usize]
    }

    fn distances(&self) -> &CountLevels<u32> {
        let step = |bytes: u32| bytes.saturating_add(1);
        let rule = Rule { none: u32::MAX, end: 0, step, best: u32::min };
        // The number of looks is not limited, so the sweep succeeds.
        self.0.distances.get_or_init(|| self.0.sweep(&rule, usize::MAX).unwrap_or_default())
    }

    /// The counts around `count` at which the same states of the automaton are live.
    pub(crate) fn alike(&self, count: u32) -> RangeInclusive<u32> {
        self.0.live.around(count)
    }

    /// True if there are finitely many strings, whatever the automaton.
    pub(crate) fn is_finite(&self) -> bool {
        !self.0.is_endless
    }

    /// The fewest characters from a state of the automaton to an end, if that is within the bounds.
    pub(crate) fn to_end(&self, of: u32) -> u32 {
        (self.0.max + 1).saturating_sub(self.0.ends[of as usize])
    }

    /// The greatest number of characters up to which all texts from this state go on, and may end, as in the
    /// automaton alone; `None` if there is no such number.
    pub(crate) fn room(&self, state: u32) -> Option<u32> {
        let (of, count) = self.place(state);
        let room = self.0.tight[of as usize].checked_sub(count + 1)?;
        (count >= self.0.min).then_some(room)
    }

    /// True if a string in a state of the automaton may both end and go on after each further character, as
    /// far as the automaton says. Then the bounds alone decide its length. The first call computes it for all
    /// states, linear in the edges.
    pub(crate) fn is_free(&self, of: u32) -> bool {
        self.0.free.get_or_init(|| self.0.free())[of as usize]
    }

    fn live_at(&self, count: u32) -> &[bool] {
        self.0.live.of(self.0.places.len(), count)
    }

    /// Memory beside the automaton's, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let Inner { places, order, live, ends, tight, distances, .. } = &*self.0;
        let late =
            distances.get().map_or(0, CountLevels::bytes) + self.0.free.get().map_or(0, |free| free.len());
        let numbers = [order, ends, tight].map(|list| size_of_val(&**list)).iter().sum::<usize>();
        size_of::<Inner>() + size_of_val(&**places) + numbers + live.bytes() + late
    }
}

impl Unfolded for LengthBounded {
    type At = u32;

    fn start(&self) -> u32 {
        0
    }

    fn ends_at(&self, state: u32) -> bool {
        self.accepts(state)
    }

    fn ways(&self, state: u32) -> Vec<WayOn<u32>> {
        let edges = &self.0.automaton.states()[self.place(state).0 as usize].edges;
        let live = |edge: &Edge| Some((edge.first, edge.last, self.after(state, edge.to)?));
        edges.iter().filter_map(live).collect()
    }

    fn distance_at(&self, state: u32) -> u32 {
        self.distance(state)
    }
}

impl Inner {
    /// Implements [`LengthBounded::counts`].
    fn counts(&self, from: u32, to: u32) -> bool {
        self.places[to as usize] == CharacterPlace::BETWEEN
            && self.places[from as usize] != CharacterPlace::START
    }

    /// For each state, the least count at which it is dead; 0 if it is dead whenever the string may end.
    /// Linear in the levels.
    fn ends(&self) -> Box<[u32]> {
        let states = self.automaton.states();
        let mut ends = vec![0; states.len()];
        for (level, live) in self.live.values.chunks_exact(states.len().max(1)).enumerate() {
            let last = *self.live.around(self.live.first(level)).end();
            let dead = if self.is_endless { u32::MAX } else { last + 1 };
            let live = ends.iter_mut().zip(live).filter(|(_, live)| **live && last >= self.min);
            live.for_each(|(end, _)| *end = dead);
        }
        ends.into()
    }

    /// For each state, the least of the ends of all states reachable from it. Linear in the edges.
    fn tight(&self) -> Box<[u32]> {
        let (states, ends) = (self.automaton.states(), &self.ends);
        let incoming = incoming(states);
        // A search backwards, from the least end up, so that each state is first met from the least that it
        // can reach.
        let mut order: Vec<u32> = (0..).take(states.len()).collect();
        order.sort_by_key(|&state| ends[state as usize]);
        let mut tight: Vec<Option<u32>> = vec![None; states.len()];
        for least in order {
            let end = ends[least as usize];
            let mut open = vec![least];
            while let Some(state) = open.pop() {
                if tight[state as usize].is_none() {
                    tight[state as usize] = Some(end);
                    open.extend(incoming.of(state));
                }
            }
        }
        tight.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Computes [`LengthBounded::is_free`]: a search backwards from the states between characters in which a
    /// string can only end, or only go on.
    fn free(&self) -> Box<[bool]> {
        let states = self.automaton.states();
        let is_bound = |at: &u32| {
            let mut ends = states[*at as usize]
                .edges
                .iter()
                .map(|edge| self.places[edge.to as usize] == CharacterPlace::END);
            let first = ends.next();
            self.places[*at as usize] == CharacterPlace::BETWEEN && ends.all(|end| Some(end) == first)
        };
        let bound = incoming(states).leading_to((0..).take(states.len()).map(|at| is_bound(&at)).collect());
        bound.into_iter().map(|bound| !bound).collect()
    }

    /// The values of all states for each count, each from those of its successors; `None` if that takes more
    /// than `looks` looks at edges.
    fn sweep<V: Copy + PartialEq>(&self, rule: &Rule<V>, looks: usize) -> Option<CountLevels<V>> {
        let states = self.automaton.states();
        let edges: usize = states.iter().map(|state| state.edges.len()).sum();
        let mut left = looks;
        let (mut last, mut now) = (vec![rule.none; states.len()], vec![rule.none; states.len()]);
        // From the greatest count down; the result is reversed at the end.
        let (mut values, mut firsts): (Vec<V>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut count = self.max;
        loop {
            left = left.checked_sub(edges)?;
            let may_end = count >= self.min;
            for &state in &self.order {
                let State { accepts, edges } = &states[state as usize];
                let start = if *accepts && may_end { rule.end } else { rule.none };
                now[state as usize] = edges.iter().fold(start, |best, edge| {
                    let of = if self.counts(state, edge.to) { &last } else { &now };
                    (rule.best)(best, (rule.step)(of[edge.to as usize]))
                });
            }
            let same = now == last;
            if !same && self.is_endless && count == self.max {
                // The greatest count leads to itself.
                std::mem::swap(&mut last, &mut now);
                continue;
            }
            if !same || firsts.is_empty() {
                values.extend_from_slice(&now);
                firsts.push(count);
            }
            if same {
                // Values follow from those at the count above, and from whether the string may end.
                count = if may_end { self.min } else { 0 };
            }
            if let Some(first) = firsts.last_mut() {
                *first = count;
            }
            std::mem::swap(&mut last, &mut now);
            let Some(lower) = count.checked_sub(1) else { break };
            count = lower;
        }
        Some(CountLevels::turned(self.max, firsts, &values, states.len()))
    }
}

// Each state of an automaton of strings is between characters or inside of one. The bytes of JSON determine
// where characters end, whatever the automaton: UTF-8 by the first byte, escapes by the letter, surrogates by
// the first two digits. So one pass of that lexer over the automaton finds it out. Strings without quotes and
// escapes, such as arguments between tags, stand between two `>`.

/// A place in a JSON string. Bytes that do not end a character lead to greater places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CharacterPlace(u8);

/// The place at which this many bytes end the current character. At most eight: the last two digits of a
/// first surrogate, and the second surrogate.
const fn left(bytes: u8) -> CharacterPlace {
    CharacterPlace(13 - bytes)
}

impl CharacterPlace {
    /// The place in front of the opening quote.
    pub(super) const START: Self = Self(0);
    /// The place where a character has just ended, or none has begun.
    pub(super) const BETWEEN: Self = Self(1);
    /// The place behind a backslash that begins a character.
    const ESCAPE: Self = Self(2);
    /// The place behind `\u` that begins a character.
    const UNIT: Self = Self(3);
    /// The place behind `\ud`, which begins a surrogate.
    const MAYBE_SURROGATE: Self = Self(4);
    /// The place behind the closing quote.
    pub(super) const END: Self = Self(13);

    /// The place after a byte; `None` if JSON has no such byte there.
    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::START, b'"') => Self::BETWEEN,
            (Self::BETWEEN, b'"') => Self::END,
            (Self::BETWEEN, b'\\') => Self::ESCAPE,
            (Self::BETWEEN, 0x20..=0x7f) => Self::BETWEEN,
            (Self::BETWEEN, 0xc2..=0xdf) => left(1),
            (Self::BETWEEN, 0xe0..=0xef) => left(2),
            (Self::BETWEEN, 0xf0..=0xf4) => left(3),
            (Self::ESCAPE, b'u') => Self::UNIT,
            (Self::ESCAPE, _) => Self::BETWEEN,
            (Self::UNIT, b'd' | b'D') => Self::MAYBE_SURROGATE,
            (Self::UNIT, _) => left(3),
            (Self::MAYBE_SURROGATE, b'8' | b'9' | b'a' | b'b' | b'A' | b'B') => left(8),
            (Self::MAYBE_SURROGATE, b'0'..=b'7') => left(2),
            (Self::START | Self::BETWEEN | Self::MAYBE_SURROGATE | Self::END, _) => return None,
            (inside, _) if inside == left(1) => Self::BETWEEN,
            (Self(inside), _) => Self(inside + 1),
        })
    }

    /// The place after a byte of a string between two `>`, the last of which leads to an end.
    fn after_plain(self, byte: u8, is_end: bool) -> Option<Self> {
        match (self, byte) {
            (Self::START, b'>') => Some(Self::BETWEEN),
            (Self::START, _) => None,
            (Self::BETWEEN, b'>') if is_end => Some(Self::END),
            (Self::BETWEEN, 0..=0x7f) => Some(Self::BETWEEN),
            _ => self.after(byte),
        }
    }
}

/// The place of each state. `None` if some text is not such a string, or if a state has two places. Linear in
/// the bytes of all edges.
fn character_places(automaton: &Automaton) -> Option<Box<[CharacterPlace]>> {
    let states = automaton.states();
    let is_plain = matches!(&states[0].edges[..], [edge] if (edge.first, edge.last) == (b'>', b'>'));
    let mut places: Vec<Option<CharacterPlace>> = vec![None; states.len()];
    places[0] = Some(CharacterPlace::START);
    // States are numbered breadth-first, so each has its place before its turn.
    for (at, state) in states.iter().enumerate() {
        let place = places[at]?;
        if state.accepts != (place == CharacterPlace::END) {
            return None;
        }
        for edge in &state.edges {
            for byte in edge.first..=edge.last {
                let after = match is_plain {
                    true => place.after_plain(byte, states[as_index(edge.to)].accepts)?,
                    false => place.after(byte)?,
                };
                if *places[as_index(edge.to)].get_or_insert(after) != after {
                    return None;
                }
            }
        }
    }
    places.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of characters that end in each prefix of a text.
    fn characters(text: &str) -> Vec<usize> {
        let mut place = CharacterPlace::START;
        let mut count = 0;
        let mut step = |byte: u8| {
            let begun = place != CharacterPlace::START;
            place = place.after(byte).unwrap();
            count += usize::from(begun && place == CharacterPlace::BETWEEN);
            count
        };
        text.bytes().map(&mut step).collect()
    }

    #[test]
    fn a_character_ends_with_its_last_byte() {
        assert_eq!(characters("\"aé\""), [0, 1, 1, 2, 2]);
        assert_eq!(characters(r#""\n\u00e9""#), [0, 0, 1, 1, 1, 1, 1, 1, 2, 2]);
        assert_eq!(characters(r#""\ud7ff😀""#), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        let pair = characters(r#""\uD83D\uDE00\\""#);
        assert_eq!(pair[..12], [0; 12]);
        assert_eq!(pair[12..], [1, 1, 2, 2]);
        assert_eq!(CharacterPlace::BETWEEN.after(b'\n'), None);
    }
}
