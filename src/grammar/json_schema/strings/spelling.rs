//! Automata over characters -> automata over the bytes of JSON strings.
//!
//! A character is written in UTF-8, as a short escape, as `\uXXXX`, or as two of these. Each way is a number
//! written in digits of some base: UTF-8 in bits of the code point, escapes in hex. So one recursion over
//! digits serves all: a block of code points that lead to the same state needs one shared tail, and only
//! blocks in which ways part are looked into.

use hashbrown::HashMap;

use super::super::{
    dfa::CharDfa,
    leaf::{Escapes, LeafError},
};
use crate::grammar::automaton::{Automaton, Edge, State};

/// Byte states of one spelled automaton. The engine's own budget of a terminal is 20,000.
pub(super) const MAX_SPELLED: usize = 16_000;

/// How much is escaped; [`Escapes`] and what is between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    All,
    /// Short escapes, and `\uXXXX` for what some writers escape.
    Usual,
    Minimal,
}

impl Style {
    pub(super) fn of(escapes: Escapes) -> Self {
        match escapes {
            Escapes::All => Self::All,
            Escapes::Minimal => Self::Minimal,
        }
    }

    /// The code points that may be written as `\uXXXX`: ranges.
    fn escaped(self) -> Ranges {
        match self {
            Self::All => &[(0, 0x10_ffff)],
            // Besides, Go and .NET escape what HTML gives a meaning.
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
        }
    }

    /// Letters of short escapes and what they mean.
    fn short(self) -> &'static [(u8, u32)] {
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
        }
    }
}

/// A digit: how many values it has and which bytes write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Digit {
    /// Value `v < radix` is the byte `base + v`.
    Byte { base: u8, radix: u32 },
    /// Value `v < radix` is the hex digit of `base + v`, in either case.
    Hex { base: u32, radix: u32 },
}

impl Digit {
    fn radix(self) -> u32 {
        match self {
            Self::Byte { radix, .. } | Self::Hex { radix, .. } => radix,
        }
    }

    fn edges(self, value: u32, to: u32, edges: &mut Vec<Edge>) {
        let mut push = |code: u32| {
            let byte = u8::try_from(code).unwrap_or(u8::MAX);
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
const ASCII: &[Digit] = &[byte(0, 128)];
const TWO_BYTES: &[Digit] = &[byte(0xc0, 32), REST];
const THREE_BYTES: &[Digit] = &[byte(0xe0, 16), REST, REST];
const FOUR_BYTES: &[Digit] = &[byte(0xf0, 8), REST, REST, REST];
const ANY_HEX: Digit = hex(0, 16);
const UNIT: &[Digit] = &[ANY_HEX, ANY_HEX, ANY_HEX, ANY_HEX];
/// A surrogate pair after its `\uD`: the bits of the code point past `0x10000`.
const PAIR: &[Digit] =
    &[hex(8, 4), ANY_HEX, ANY_HEX, byte(b'\\', 1), byte(b'u', 1), hex(0xd, 1), hex(0xc, 4), ANY_HEX, ANY_HEX];

/// Code points: first and last of each range.
type Ranges = &'static [(u32, u32)];

/// Code points, first and last, and the state they lead to.
type Way = (u32, u32, u32);

/// The JSON strings of the strings of `dfa`, with quotes.
pub(super) fn quoted(dfa: &CharDfa, style: Style) -> Result<Automaton, LeafError> {
    match style {
        Style::All => dfa.spelled(|dfa| spell(dfa, style, (true, true))),
        _ => spell(dfa, style, (true, true)),
    }
}

/// The JSON strings of the strings of `dfa`, each with the quotes asked for: before and after. Linear in the
/// edges and in the states made.
pub(super) fn spell(dfa: &CharDfa, style: Style, quotes: (bool, bool)) -> Result<Automaton, LeafError> {
    let count = dfa.len();
    let number = |state: usize| u32::try_from(state).unwrap_or(u32::MAX);
    // The character states first, then the end, then what is between characters, then the start.
    let mut speller = Speller {
        style,
        nodes: vec![State::default(); count + 1],
        known: HashMap::new(),
        tails: HashMap::new(),
    };
    let end = number(count);
    speller.nodes[count].accepts = true;
    for state in 0..number(count) {
        let mut edges = speller.character(&code_points(&dfa.edges(state)))?;
        let accepts = dfa.accepts(state);
        if accepts && quotes.1 {
            edges.push(Edge { first: b'"', last: b'"', to: end });
        }
        speller.nodes[state as usize] = State { accepts: accepts && !quotes.1, edges };
    }
    let mut states = speller.nodes;
    if count == 0 {
        states = vec![State::default()];
    } else if quotes.0 {
        // The first state becomes the second, and all numbers move on by one.
        for edge in states.iter_mut().flat_map(|state| &mut state.edges) {
            edge.to += 1;
        }
        let quote = Edge { first: b'"', last: b'"', to: 1 };
        states.insert(0, State { accepts: false, edges: vec![quote] });
    }
    Automaton::new(states).map_err(|_| too_many())
}

fn too_many() -> LeafError {
    LeafError::Budget { what: "states of the automaton of a JSON string", limit: MAX_SPELLED }
}

/// Numbers of characters as code points: none is a surrogate.
fn code_points(edges: &[(u32, u32, u32)]) -> Vec<Way> {
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
fn clipped(ways: &[Way], ranges: &[(u32, u32)]) -> Vec<Way> {
    let clip = |&(low, high): &(u32, u32)| {
        let parts = ways.iter().map(move |&(first, last, to)| (first.max(low), last.min(high), to));
        parts.filter(|(first, last, _)| first <= last)
    };
    ranges.iter().flat_map(clip).collect()
}

struct Speller {
    style: Style,
    nodes: Vec<State>,
    /// States between characters, by their edges.
    known: HashMap<Vec<Edge>, u32>,
    /// States from which any further digits lead to a state.
    tails: HashMap<(&'static [Digit], u32), u32>,
}

impl Speller {
    /// The edges of a state at the start of a character.
    fn character(&mut self, ways: &[Way]) -> Result<Vec<Edge>, LeafError> {
        let mut edges = Vec::new();
        let raw: [(&'static [Digit], Ranges); 4] = [
            (ASCII, &[(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f)]),
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

    /// What follows `\u`.
    fn unit(&mut self, ways: &[Way]) -> Result<Option<u32>, LeafError> {
        let mut edges = self.tree(UNIT, 0, &clipped(ways, &[(0, 0xcfff), (0xe000, 0xffff)]))?;
        let mut after_d = self.tree(&UNIT[1..], 0xd000, &clipped(ways, &[(0xd000, 0xd7ff)]))?;
        after_d.extend(self.tree(PAIR, 0x1_0000, &clipped(ways, &[(0x1_0000, 0x10_ffff)]))?);
        if let Some(to) = self.node(after_d)? {
            UNIT[0].edges(0xd, to, &mut edges);
        }
        self.node(edges)
    }

    /// The edges that read `digits` of a code point from `base` on. Recursion is as deep as there are digits.
    fn tree(&mut self, digits: &'static [Digit], base: u32, ways: &[Way]) -> Result<Vec<Edge>, LeafError> {
        let mut edges = Vec::new();
        let Some((digit, rest)) = digits.split_first() else { return Ok(edges) };
        let size: u32 = rest.iter().map(|digit| digit.radix()).product();
        let mut next = 0;
        for value in 0..digit.radix() {
            let (first, last) = (base + value * size, base + (value + 1) * size - 1);
            while ways.get(next).is_some_and(|way| way.1 < first) {
                next += 1;
            }
            let here = ways[next..].iter().take_while(|way| way.0 <= last).count();
            let here = &ways[next..next + here];
            let to = match here {
                [] => None,
                _ if rest.is_empty() => Some(here[0].2),
                &[(from, until, to)] if from <= first && until >= last => Some(self.uniform(rest, to)?),
                _ => {
                    let edges = self.tree(rest, first, here)?;
                    self.node(edges)?
                }
            };
            if let Some(to) = to {
                digit.edges(value, to, &mut edges);
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

    /// The state with these edges, if there are any.
    fn node(&mut self, edges: Vec<Edge>) -> Result<Option<u32>, LeafError> {
        if edges.is_empty() {
            return Ok(None);
        }
        if let Some(&known) = self.known.get(&edges) {
            return Ok(Some(known));
        }
        if self.nodes.len() >= MAX_SPELLED {
            return Err(too_many());
        }
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(State { accepts: false, edges: edges.clone() });
        self.known.insert(edges, id);
        Ok(Some(id))
    }
}
