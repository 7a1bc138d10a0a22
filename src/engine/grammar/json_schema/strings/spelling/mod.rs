//! Automata over characters -> automata over the bytes of JSON strings.
//!
//! A character is written in UTF-8, as a short escape, as `\uXXXX`, or as two of these. Each is a number in
//! digits of some base: UTF-8 in groups of bits of the code point, escapes in hex. So one recursion over
//! digits serves all. A block of code points with one target gets one shared tail, and only blocks with
//! several are split.

pub(super) mod word;

use std::{ops::Range, rc::Rc};

use hashbrown::{HashMap, HashSet, HashTable};

use crate::{
    Limits,
    automata::mix,
    grammar::{
        automaton::{Automaton, AutomatonError, Edge, State},
        json_schema::{
            dfa::CharDfa,
            leaf::{Escapes, LeafError, ValueSpelling},
        },
        regular::Language,
    },
    ids::{as_index, number},
};

/// Limit on the byte states of one spelled automaton. The engine's own limit for a terminal is 20,000.
pub(super) const MAX_SPELLED: usize = 16_000;

/// Byte states for each state of characters in most automata: those of its escape but the last, and itself.
const STATES_OF_A_CHARACTER: usize = 6;

/// The characters that are escaped: [`Escapes`], and a level in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    All,
    /// Short escapes, and `\uXXXX` for characters that some writers escape.
    Usual,
    Minimal,
    /// Characters as they are in UTF-8, control characters and quotes too: text that is not JSON.
    Plain,
}

impl Style {
    pub(super) fn of(spelling: ValueSpelling) -> Self {
        match spelling.escapes {
            _ if spelling.style.delimiter().is_some() => Self::Plain,
            Escapes::All => Self::All,
            Escapes::Minimal => Self::Minimal,
        }
    }

    /// The ranges of code points that may be written as `\uXXXX`.
    fn escaped(self) -> CodePointRanges {
        match self {
            Self::All => &[(0, 0x10_ffff)],
            // Go and .NET also escape the characters that HTML gives a meaning.
            Self::Usual => &[
                (0, 0x1f),
                (0x22, 0x22),
                (0x26, 0x27),
                (0x2b, 0x2b),
                (0x3c, 0x3c),
                (0x3e, 0x3e),
                (0x5c, 0x5c),
                (0x60, 0x60),
                (0x7f, 0x10_ffff),
            ],
            Self::Minimal => &[(0, 0x7), (0xb, 0xb), (0xe, 0x1f)],
            Self::Plain => &[],
        }
    }

    /// True if the code point may be written as `\u` and four hex digits.
    pub(super) fn escapes(self, code: u32) -> bool {
        self.escaped().iter().any(|&(low, high)| (low..=high).contains(&code))
    }

    /// The letters of short escapes, and the code points that they mean.
    pub(super) fn short(self) -> &'static [(u8, u32)] {
        const SHORT: [(u8, u32); 8] = [
            (b'"', 0x22),
            (b'\\', 0x5c),
            (b'b', 8),
            (b'f', 0xc),
            (b'n', 0xa),
            (b'r', 0xd),
            (b't', 9),
            (b'/', 0x2f),
        ];
        match self {
            Self::All | Self::Usual => &SHORT,
            Self::Minimal => &SHORT[..7],
            Self::Plain => &[],
        }
    }
}

/// Ranges of code points: first and last of each.
type CodePointRanges = &'static [(u32, u32)];

/// The JSON strings of the strings of `dfa`, with quotes; or the strings as they are.
pub(super) fn quoted(dfa: &CharDfa, style: Style) -> Result<Automaton, LeafError> {
    match style {
        Style::All => dfa.spelled(|dfa| spell(dfa, style, (true, true))),
        Style::Plain => in_utf8(dfa),
        _ => spell(dfa, style, (true, true)),
    }
}

/// The strings of `dfa` as they are in UTF-8, without quotes or escapes.
pub(in super::super) fn in_utf8(dfa: &CharDfa) -> Result<Automaton, LeafError> {
    spell(dfa, Style::Plain, (false, false))
}

/// The JSON strings of the strings of `dfa`, with an opening and a closing quote as asked for. Linear in the
/// edges and in the states made.
pub(super) fn spell(dfa: &CharDfa, style: Style, quotes: (bool, bool)) -> Result<Automaton, LeafError> {
    if dfa.is_empty() {
        return Automaton::minimal(vec![State::default()]).map_err(|_| too_many(style));
    }
    // First a start of its own if needed, then the states of `dfa`, the end, and states between characters.
    let shift = u32::from(quotes.0);
    let end = number(as_index(shift) + dfa.len(), "states of the automaton of a JSON string")?;
    let mut speller = Speller::new(style, as_index(end) + 1);
    if quotes.0 {
        speller.nodes[0].edges = vec![Edge { first: b'"', last: b'"', to: shift }];
    }
    speller.nodes[as_index(end)].accepts = true;
    for state in dfa.states() {
        let mut ways = code_points(&dfa.edges(state));
        ways.iter_mut().for_each(|way| way.2 += shift);
        let mut edges = speller.character(&ways)?;
        let accepts = dfa.accepts(state);
        if accepts && quotes.1 {
            edges.push(Edge { first: b'"', last: b'"', to: end });
        }
        speller.nodes[as_index(shift + state)] = State { accepts: accepts && !quotes.1, edges };
    }
    // The states of `dfa` differ, states between characters with equal edges are shared, and each reaches the
    // end, as those of `dfa` do. So the result is minimal but where a state inside of an escape may mean the
    // same as one of `dfa`: what is left of `\n` is left of `Bern` behind `Ber`.
    let (before, between) = speller.nodes.split_at(as_index(end) + 1);
    let inside: HashSet<u128> = between.iter().filter_map(ascii_of).collect();
    let alike = !inside.is_empty() && before.iter().filter_map(ascii_of).any(|bytes| inside.contains(&bytes));
    let spelled = Automaton::trimmed(speller.nodes).map_err(|error| {
        debug_assert_eq!(error, AutomatonError::TooManyStates, "edges overlap");
        too_many(style)
    })?;
    if !alike {
        return Ok(spelled);
    }
    Language::of_automaton(&spelled).automaton(&Limits::default()).map_err(|_| too_many(style))
}

/// The bytes with which a state goes on, if they are ASCII and no text ends there.
fn ascii_of(state: &State) -> Option<u128> {
    let mut bytes = 0;
    for edge in &state.edges {
        if edge.last >= 0x80 {
            return None;
        }
        bytes |= (edge.first..=edge.last).fold(0, |bits, byte| bits | 1 << byte);
    }
    (bytes != 0 && !state.accepts).then_some(bytes)
}

pub(super) fn too_many(style: Style) -> LeafError {
    let what = match style {
        Style::Plain => "states of the automaton of a string without quotes",
        _ => "states of the automaton of a JSON string",
    };
    LeafError::Budget { what, limit: MAX_SPELLED }
}

/// Turns numbers of characters into code points, among which surrogates are left out.
pub(super) fn code_points(edges: &[(u32, u32, u32)]) -> Vec<RangeTo> {
    let mut ways = Vec::with_capacity(edges.len() + 1);
    for &(first, last, to) in edges {
        if first < 0xd800 {
            ways.push((first, last.min(0xd7ff), to));
        }
        if last >= 0xd800 {
            ways.push((first.max(0xd800) + 0x800, last + 0x800, to));
        }
    }
    ways
}

/// The parts of `ways` in any of these ranges.
fn clipped(ways: &[RangeTo], ranges: &[(u32, u32)]) -> Vec<RangeTo> {
    let clip = |&(low, high): &(u32, u32)| {
        let parts = ways.iter().map(move |&(first, last, to)| (first.max(low), last.min(high), to));
        parts.filter(|(first, last, _)| first <= last)
    };
    ranges.iter().flat_map(clip).collect()
}

struct Speller {
    style: Style,
    nodes: Vec<State>,
    /// The states between characters, by their edges.
    known: HashTable<u32>,
    /// States from which any further digits lead to one state.
    tails: HashMap<(&'static [Digit], u32), u32>,
    /// The edges by which every character leads to one state.
    usual: HashMap<u32, Rc<[Edge]>>,
    /// Plans, by the characters and the numbers of their targets.
    plans: HashMap<Box<[RangeTo]>, Rc<CharacterPlan>>,
}

/// The byte states of one character, for all states that treat characters alike: a counted pattern has one
/// such state for each count. Targets are numbered from 0, in order of the characters;
/// [`Speller::character_by_ranges`] puts real states in their place.
#[derive(Debug)]
pub(super) struct CharacterPlan {
    /// The states inside of a character, numbered behind the targets; edges lead to targets or earlier ones.
    pub(super) between: Box<[State]>,
    /// The edges of the first byte.
    pub(super) first: Vec<Edge>,
}

impl Speller {
    /// A speller for an automaton with this many states, which exist but are empty.
    fn new(style: Style, states: usize) -> Self {
        let most = MAX_SPELLED.min(states * STATES_OF_A_CHARACTER);
        let mut nodes = Vec::with_capacity(most.max(states));
        nodes.resize(states, State::default());
        Self {
            style,
            nodes,
            known: HashTable::with_capacity(most),
            tails: HashMap::new(),
            usual: HashMap::new(),
            plans: HashMap::new(),
        }
    }

    /// The edges of a state at the start of a character.
    ///
    /// Most states, such as those of names and of all strings but some, send a few ASCII characters elsewhere
    /// and all others to one state: they get the edges of the latter, with a few changed.
    fn character(&mut self, ways: &[RangeTo]) -> Result<Vec<Edge>, LeafError> {
        match few_others(ways).filter(|_| self.style != Style::Plain) {
            Some((usual, others)) => self.all_but(usual, &others),
            None => self.character_by_ranges(ways),
        }
    }

    fn all_but(&mut self, usual: Usual, others: &[(u32, Usual)]) -> Result<Vec<Edge>, LeafError> {
        let plain = self.edges_of(usual)?;
        if others.is_empty() {
            return Ok(plain.to_vec());
        }
        // All of them are ASCII.
        let bytes = others.iter().filter_map(|&(code, to)| Some((u8::try_from(code).ok()?, to)));
        let raw = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        let mut changed: Vec<(u8, Usual)> = bytes.filter(|&(byte, _)| raw(byte)).collect();
        let escape = plain.iter().find(|edge| edge.first == b'\\').map(|edge| edge.to);
        let escape = self.escape_but(escape, others)?;
        changed.push((b'\\', escape));
        Ok(with_changed(&plain, &mut changed))
    }

    /// The state behind a backslash: like `plain`, which is for all characters, but for some.
    fn escape_but(&mut self, plain: Usual, others: &[(u32, Usual)]) -> Result<Usual, LeafError> {
        let known: Vec<Edge> = plain.map_or_else(Vec::new, |plain| self.nodes[plain as usize].edges.clone());
        let short = self.style.short().iter();
        let mut changed: Vec<(u8, Usual)> = short
            .filter_map(|&(letter, code)| {
                others.iter().find(|other| other.0 == code).map(|other| (letter, other.1))
            })
            .collect();
        let units: Vec<(u32, Usual)> =
            others.iter().copied().filter(|other| self.style.escapes(other.0)).collect();
        if !units.is_empty() {
            let plain = known.iter().find(|edge| edge.first <= b'u' && b'u' <= edge.last).map(|edge| edge.to);
            changed.push((b'u', self.unit_but(plain, &units)?));
        }
        self.node(with_changed(&known, &mut changed))
    }

    /// The state behind `\u`: like `plain`, but for some ASCII characters.
    fn unit_but(&mut self, plain: Usual, units: &[(u32, Usual)]) -> Result<Usual, LeafError> {
        let zero = self.after(plain, b'0');
        let zeros = self.after(zero, b'0');
        let mut high: Vec<(u8, Usual)> = Vec::new();
        for group in units.chunk_by(|one, other| one.0 >> 4 == other.0 >> 4) {
            let mut low: Vec<(u8, Usual)> = Vec::new();
            for &(code, to) in group {
                low.extend(hex_bytes(code & 0xf).map(|byte| (byte, to)));
            }
            // The third digit of an ASCII character is below 8.
            let digit = b'0' + u8::try_from(group[0].0 >> 4).unwrap_or(0);
            let before = self.after(zeros, digit);
            high.push((digit, self.node_but(before, &mut low)?));
        }
        let zeros = self.node_but(zeros, &mut high)?;
        let zero = self.node_but(zero, &mut [(b'0', zeros)])?;
        self.node_but(plain, &mut [(b'0', zero)])
    }

    /// The state that a byte leads to.
    fn after(&self, from: Usual, byte: u8) -> Usual {
        let edges = &self.nodes[from? as usize].edges;
        edges.iter().find(|edge| edge.first <= byte && byte <= edge.last).map(|edge| edge.to)
    }

    /// A state like `plain`, with the edges of some bytes changed.
    fn node_but(&mut self, plain: Usual, changed: &mut [(u8, Usual)]) -> Result<Usual, LeafError> {
        let edges = plain.map_or(&[][..], |plain| &self.nodes[plain as usize].edges);
        self.node(with_changed(edges, changed))
    }

    /// The edges by which every character leads to one state.
    fn edges_of(&mut self, usual: Usual) -> Result<Rc<[Edge]>, LeafError> {
        let Some(to) = usual else { return Ok(Rc::from([])) };
        if let Some(known) = self.usual.get(&to) {
            return Ok(known.clone());
        }
        let mut made = self.character_by_ranges(&[(0, 0xd7ff, to), (0xe000, 0x10_ffff, to)])?;
        made.sort_unstable();
        let made: Rc<[Edge]> = made.into();
        self.usual.insert(to, made.clone());
        Ok(made)
    }

    fn character_by_ranges(&mut self, ways: &[RangeTo]) -> Result<Vec<Edge>, LeafError> {
        let mut states: Vec<u32> = Vec::new();
        let numbered = ways.iter().map(|&(first, last, to)| {
            let known = states.iter().rposition(|&state| state == to);
            let at = known.unwrap_or_else(|| {
                states.push(to);
                states.len() - 1
            });
            number(at, "targets of a character").map(|at| (first, last, at))
        });
        let numbered = numbered.collect::<Result<Vec<RangeTo>, _>>()?;
        let plan = match self.plans.get(&numbered[..]) {
            Some(plan) => Rc::clone(plan),
            None => {
                let plan = Rc::new(CharacterPlan::new(self.style, &numbered, states.len())?);
                self.plans.insert(numbered.into(), Rc::clone(&plan));
                plan
            }
        };
        for State { edges, .. } in &plan.between {
            let edges = edges.iter().map(|&edge| Edge { to: states[edge.to as usize], ..edge }).collect();
            let made = self.sorted_node(edges)?;
            states.push(made);
        }
        Ok(plan.first.iter().map(|&edge| Edge { to: states[edge.to as usize], ..edge }).collect())
    }

    fn make_character(&mut self, ways: &[RangeTo]) -> Result<Vec<Edge>, LeafError> {
        let mut edges = Vec::new();
        let ascii: CodePointRanges = match self.style {
            Style::Plain => &[(0, 0x7f)],
            _ => &[(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f)],
        };
        let raw: [(&'static [Digit], CodePointRanges); 4] = [
            (ASCII, ascii),
            (TWO_BYTES, &[(0x80, 0x7ff)]),
            (THREE_BYTES, &[(0x800, 0xffff)]),
            (FOUR_BYTES, &[(0x1_0000, 0x10_ffff)]),
        ];
        for (digits, ranges) in raw {
            edges.extend(self.tree(digits, 0, &clipped(ways, ranges))?);
        }
        let mut escape = Vec::new();
        for &(letter, code) in self.style.short() {
            if let Some(&(_, _, to)) = ways.iter().find(|(first, last, _)| (first..=last).contains(&&code)) {
                escape.push(Edge { first: letter, last: letter, to });
            }
        }
        if let Some(to) = self.unit(&clipped(ways, self.style.escaped()))? {
            escape.push(Edge { first: b'u', last: b'u', to });
        }
        if let Some(to) = self.node(escape)? {
            edges.push(Edge { first: b'\\', last: b'\\', to });
        }
        Ok(edges)
    }

    /// The state behind `\u`.
    fn unit(&mut self, ways: &[RangeTo]) -> Result<Option<u32>, LeafError> {
        let mut edges = self.tree(UNIT, 0, &clipped(ways, &[(0, 0xcfff), (0xe000, 0xffff)]))?;
        let mut after_d = self.tree(&UNIT[1..], 0xd000, &clipped(ways, &[(0xd000, 0xd7ff)]))?;
        after_d.extend(self.tree(PAIR, 0x1_0000, &clipped(ways, &[(0x1_0000, 0x10_ffff)]))?);
        if let Some(to) = self.node(after_d)? {
            UNIT[0].edges(0xd, to, &mut edges);
        }
        self.node(edges)
    }

    /// The edges that read `digits` of a code point from `base` on. Recurses as deep as there are digits.
    fn tree(&mut self, digits: &'static [Digit], base: u32, to: &[RangeTo]) -> Result<Vec<Edge>, LeafError> {
        let mut edges = Vec::new();
        let Some((digit, rest)) = digits.split_first() else { return Ok(edges) };
        let size: u32 = rest.iter().map(|digit| digit.radix()).product();
        let mut next = 0;
        for value in 0..digit.radix() {
            let (first, last) = (base + value * size, base + (value + 1) * size - 1);
            while to.get(next).is_some_and(|way| way.1 < first) {
                next += 1;
            }
            let here = to[next..].iter().take_while(|way| way.0 <= last).count();
            let here = &to[next..next + here];
            let state = match here {
                [] => None,
                _ if rest.is_empty() => Some(here[0].2),
                &[(from, until, to)] if from <= first && until >= last => Some(self.uniform(rest, to)?),
                _ => {
                    let edges = self.tree(rest, first, here)?;
                    self.node(edges)?
                }
            };
            if let Some(state) = state {
                digit.edges(value, state, &mut edges);
            }
        }
        Ok(edges)
    }

    /// The state from which any `digits` lead to `to`.
    fn uniform(&mut self, digits: &'static [Digit], to: u32) -> Result<u32, LeafError> {
        if let Some(&known) = self.tails.get(&(digits, to)) {
            return Ok(known);
        }
        let mut state = to;
        for digit in digits.iter().rev() {
            let mut edges = Vec::new();
            (0..digit.radix()).for_each(|value| digit.edges(value, state, &mut edges));
            state = self.node(edges)?.unwrap_or(state);
        }
        self.tails.insert((digits, to), state);
        Ok(state)
    }

    /// The state with these edges; `None` if there are none.
    fn node(&mut self, mut edges: Vec<Edge>) -> Result<Option<u32>, LeafError> {
        if edges.is_empty() {
            return Ok(None);
        }
        // Equal nodes must have equal lists of edges.
        edges.sort_unstable();
        edges.dedup_by(|next, last| {
            let joins = next.to == last.to && last.last.checked_add(1) == Some(next.first);
            if joins {
                last.last = next.last;
            }
            joins
        });
        self.sorted_node(edges).map(Some)
    }

    /// The state with these edges, which are sorted and cannot be joined any further.
    fn sorted_node(&mut self, edges: Vec<Edge>) -> Result<u32, LeafError> {
        let hash = hash_of(&edges);
        if let Some(&known) = self.known.find(hash, |&id| self.nodes[id as usize].edges == edges) {
            return Ok(known);
        }
        let id = u32::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < MAX_SPELLED);
        let id = id.ok_or_else(|| too_many(self.style))?;
        self.nodes.push(State { accepts: false, edges });
        let Self { known, nodes, .. } = self;
        known.insert_unique(hash, id, |&id| hash_of(&nodes[id as usize].edges));
        Ok(id)
    }
}

/// A hash of edges, each of which is one word.
fn hash_of(edges: &[Edge]) -> u64 {
    let word = |edge: &Edge| u64::from(edge.to) << 16 | u64::from(edge.first) << 8 | u64::from(edge.last);
    edges.iter().map(word).fold(0, mix)
}

impl CharacterPlan {
    /// The plan for characters that lead to the states `0..states`.
    pub(super) fn new(style: Style, ways: &[RangeTo], states: usize) -> Result<Self, LeafError> {
        let mut speller = Speller::new(style, states);
        let first = speller.make_character(ways)?;
        Ok(Self { between: speller.nodes.drain(states..).collect(), first })
    }
}

// Digits are groups of bits of a code point, or hex digits.

/// A digit: the number of its values, and the bytes that write each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Digit {
    /// A byte: value `v < radix` is the byte `base + v`.
    Byte { base: u8, radix: u32 },
    /// A hex digit: value `v < radix` is the digit of `base + v`, in either case.
    Hex { base: u32, radix: u32 },
}

impl Digit {
    /// The number of its values.
    fn radix(self) -> u32 {
        match self {
            Self::Byte { radix, .. } | Self::Hex { radix, .. } => radix,
        }
    }

    /// Adds edges for the bytes that write a value to a state's edges.
    fn edges(self, value: u32, to: u32, edges: &mut Vec<Edge>) {
        let mut push = |code: u32| {
            // A value below the radix is written by one byte.
            let Ok(byte) = u8::try_from(code) else { return };
            match edges.last_mut() {
                Some(last) if last.to == to && last.last.checked_add(1) == Some(byte) => last.last = byte,
                _ => edges.push(Edge { first: byte, last: byte, to }),
            }
        };
        match self {
            Self::Byte { base, .. } => push(u32::from(base) + value),
            Self::Hex { base, .. } => {
                let digit = base + value;
                if digit < 10 {
                    push(u32::from(b'0') + digit);
                } else {
                    push(u32::from(b'A') + digit - 10);
                    push(u32::from(b'a') + digit - 10);
                }
            }
        }
    }
}

const fn byte(base: u8, radix: u32) -> Digit {
    Digit::Byte { base, radix }
}

const fn hex(base: u32, radix: u32) -> Digit {
    Digit::Hex { base, radix }
}

const REST: Digit = byte(0x80, 64);
/// Characters of one byte of UTF-8.
const ASCII: &[Digit] = &[byte(0, 128)];
/// Characters of two bytes.
const TWO_BYTES: &[Digit] = &[byte(0xc0, 32), REST];
/// Characters of three bytes.
const THREE_BYTES: &[Digit] = &[byte(0xe0, 16), REST, REST];
/// Characters of four bytes.
const FOUR_BYTES: &[Digit] = &[byte(0xf0, 8), REST, REST, REST];
const ANY_HEX: Digit = hex(0, 16);
/// The four hex digits behind `\u`.
const UNIT: &[Digit] = &[ANY_HEX, ANY_HEX, ANY_HEX, ANY_HEX];
/// The rest of a surrogate pair behind its `\uD`: the bits of the code point minus `0x10000`.
const PAIR: &[Digit] =
    &[hex(8, 4), ANY_HEX, ANY_HEX, byte(b'\\', 1), byte(b'u', 1), hex(0xd, 1), hex(0xc, 4), ANY_HEX, ANY_HEX];

// A state that sends most characters to one state and a few elsewhere has the edges of the common case,
// patched for the few.

/// A range of code points, first and last, and the state that it leads to.
pub(super) type RangeTo = (u32, u32, u32);

/// The target of all characters but a few; `None` if they have none.
type Usual = Option<u32>;

/// The first code point beyond ASCII.
const ASCII_END: u32 = 0x80;

/// Limit on the characters that lead elsewhere; with more of them, ranges are followed instead.
const MOST_OTHERS: usize = 24;

/// The common target, and the ASCII characters that lead elsewhere, ascending. `None` if the state is not of
/// this kind.
fn few_others(ways: &[RangeTo]) -> Option<(Usual, Vec<(u32, Usual)>)> {
    // All characters beyond ASCII must have one target.
    let usual = match ways.iter().find(|way| way.1 >= 0x80) {
        None => None,
        Some(&(first, last, to)) => {
            let after = ways.iter().filter(|way| way.0 > last);
            let rest: Vec<&RangeTo> = after.collect();
            let whole = match rest[..] {
                [] => last == 0x10_ffff,
                [&(0xe000, 0x10_ffff, other)] => last == 0xd7ff && other == to,
                _ => false,
            };
            (first <= 0x80 && whole).then_some(())?;
            Some(to)
        }
    };
    let mut others = Vec::new();
    let mut add = |codes: Range<u32>, to: Usual| {
        if to == usual {
            return Some(());
        }
        for code in codes {
            (others.len() < MOST_OTHERS).then_some(())?;
            others.push((code, to));
        }
        Some(())
    };
    // The edges of ASCII characters, and the gaps between them.
    let mut next = 0;
    for &(first, last, to) in ways.iter().take_while(|way| way.0 < ASCII_END) {
        add(next..first, None)?;
        next = ASCII_END.min(last + 1);
        add(first..next, Some(to))?;
    }
    add(next..ASCII_END, None)?;
    Some((usual, others))
}

/// The bytes that write a hex digit, ascending.
fn hex_bytes(digit: u32) -> impl Iterator<Item = u8> {
    let digit = u8::try_from(digit).unwrap_or(0);
    let (one, other) =
        if digit < 10 { (b'0' + digit, None) } else { (b'A' + digit - 10, Some(b'a' + digit - 10)) };
    std::iter::once(one).chain(other)
}

/// Replaces the targets of some bytes in a list of edges, which ascend.
fn with_changed(edges: &[Edge], changed: &mut [(u8, Usual)]) -> Vec<Edge> {
    changed.sort_unstable();
    let mut made: Vec<Edge> = Vec::with_capacity(edges.len() + 2 * changed.len());
    let mut push = |first: u8, last: u8, to: u32| match made.last_mut() {
        Some(before) if before.to == to && before.last.checked_add(1) == Some(first) => before.last = last,
        _ => made.push(Edge { first, last, to }),
    };
    let mut left = changed.iter().peekable();
    for edge in edges {
        // First the changed bytes before the edge, then those in it with what the edge has between them.
        let mut first = Some(edge.first);
        while let Some(&&(byte, to)) = left.peek().filter(|(byte, _)| *byte <= edge.last) {
            left.next();
            if let Some(from) = first.filter(|from| *from < byte) {
                push(from, byte - 1, edge.to);
            }
            if let Some(to) = to {
                push(byte, byte, to);
            }
            if byte >= edge.first {
                first = byte.checked_add(1);
            }
        }
        if let Some(from) = first.filter(|from| *from <= edge.last) {
            push(from, edge.last, edge.to);
        }
    }
    for &(byte, to) in left {
        if let Some(to) = to {
            push(byte, byte, to);
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::json_schema::strings::StringSet;

    fn check_minimal(dfa: &CharDfa) -> Result<(), TestCaseError> {
        for style in [Style::All, Style::Usual, Style::Minimal] {
            for quotes in [(true, true), (false, true), (true, false), (false, false)] {
                let spelled = spell(dfa, style, quotes).unwrap();
                let minimal = Language::of_automaton(&spelled).automaton(&Limits::default()).unwrap();
                prop_assert_eq!(spelled.states().len(), minimal.states().len(), "{:?} {:?}", style, quotes);
            }
        }
        Ok(())
    }

    proptest! {
        /// Scanners take the result for minimal.
        #[test]
        fn spelled_words_are_minimal(words in prop::collection::vec(r#"[\\\n"/]?[\\\nnu0aA"]{0,4}"#, 1..5)) {
            let words: std::collections::BTreeSet<String> = words.into_iter().collect();
            check_minimal(&CharDfa::of(words).unwrap())?;
        }
    }

    #[test]
    fn spelled_patterns_are_minimal() {
        for pattern in [r"^\\*[\nn]$", r"^((er)?n|\n)$", r"^\\?u0{0,3}a$", "^.*$", r"^[^\n]*\n$", r#"^"+$"#] {
            let set = StringSet::from_pattern(pattern).unwrap();
            set.windows().for_each(|(_, _, dfa)| check_minimal(dfa).unwrap());
        }
    }
}
