//! The substrings of a text as an automaton: the suffix automaton (Blumer et al., 1985), built online in
//! linear time.
//!
//! Symbols are characters, or pieces of a text that may only be taken as wholes.

use regex_automata::nfa::thompson::{Builder, Transition};

use super::{
    automaton::{Automaton, Edge, State},
    regular::{Language, NoRoom, Piece},
};
use crate::limits::{AUTOMATON_STATES, Budget, LimitExceeded, Limits};

/// "No state", "no edge".
const NONE: u32 = u32::MAX;

/// An edge of a state, as an element of a linked list.
#[derive(Debug, Clone, Copy)]
struct Link {
    symbol: u32,
    to: u32,
    next: u32,
}

/// All ways to read a part of a sequence of symbols. State 0 is the start; the texts of any state are
/// substrings. At most `2n` states and `3n` edges for `n` symbols.
#[derive(Debug)]
struct SuffixAutomaton {
    /// Length of the longest text of each state.
    length: Vec<u32>,
    /// The state of the longest suffix that occurs elsewhere too.
    suffix: Vec<u32>,
    /// The first edge of each state.
    first: Vec<u32>,
    edges: Vec<Link>,
}

impl SuffixAutomaton {
    /// Linear in the symbols, times the number of different ones that follow the same text.
    fn new(symbols: impl Iterator<Item = u32>) -> Self {
        let mut made = Self { length: vec![0], suffix: vec![NONE], first: vec![NONE], edges: Vec::new() };
        let mut last = 0;
        for symbol in symbols {
            last = made.extend(last, symbol);
        }
        made
    }

    fn state(&mut self, length: u32, suffix: u32, first: u32) -> u32 {
        self.length.push(length);
        self.suffix.push(suffix);
        self.first.push(first);
        u32::try_from(self.length.len() - 1).unwrap_or(NONE)
    }

    /// The edge of a state by a symbol.
    fn edge(&self, state: u32, symbol: u32) -> Option<usize> {
        let mut at = self.first[state as usize];
        while at != NONE {
            let edge = &self.edges[at as usize];
            if edge.symbol == symbol {
                return Some(at as usize);
            }
            at = edge.next;
        }
        None
    }

    fn add(&mut self, state: u32, symbol: u32, to: u32) {
        let next = self.first[state as usize];
        self.first[state as usize] = u32::try_from(self.edges.len()).unwrap_or(NONE);
        self.edges.push(Link { symbol, to, next });
    }

    /// One more symbol behind the text of `last`; gives the state of the whole text.
    fn extend(&mut self, last: u32, symbol: u32) -> u32 {
        let whole = self.state(self.length[last as usize] + 1, 0, NONE);
        let mut at = last;
        let found = loop {
            if at == NONE {
                return whole;
            }
            if let Some(edge) = self.edge(at, symbol) {
                break edge;
            }
            self.add(at, symbol, whole);
            at = self.suffix[at as usize];
        };
        let to = self.edges[found].to;
        if self.length[to as usize] == self.length[at as usize] + 1 {
            self.suffix[whole as usize] = to;
            return whole;
        }
        // The texts of `to` that are suffixes of the whole get a state of their own, with the same edges.
        let copy = self.state(self.length[at as usize] + 1, self.suffix[to as usize], NONE);
        let mut from = self.first[to as usize];
        while from != NONE {
            let Link { symbol, to, next } = self.edges[from as usize];
            self.add(copy, symbol, to);
            from = next;
        }
        while at != NONE {
            match self.edge(at, symbol) {
                Some(edge) if self.edges[edge].to == to => self.edges[edge].to = copy,
                _ => break,
            }
            at = self.suffix[at as usize];
        }
        self.suffix[to as usize] = copy;
        self.suffix[whole as usize] = copy;
        whole
    }

    /// The edges of a state, by symbols.
    fn sorted(&self, state: usize) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut at = self.first[state];
        while at != NONE {
            let edge = &self.edges[at as usize];
            found.push((edge.symbol, edge.to));
            at = edge.next;
        }
        found.sort_unstable();
        found
    }
}

/// The substrings of a text, the empty one among them, of whole characters.
///
/// # Errors
/// If the automaton would have more than [`AUTOMATON_STATES`].
pub(super) fn of_text(text: &str) -> Result<Automaton, LimitExceeded> {
    let too_many =
        || LimitExceeded::new(Budget::DfaStates, "states of an automaton of substrings", AUTOMATON_STATES);
    if text.len() > AUTOMATON_STATES {
        return Err(too_many());
    }
    let suffixes = SuffixAutomaton::new(text.chars().map(u32::from));
    let count = suffixes.length.len();
    let mut states: Vec<State> = vec![State { accepts: true, edges: Vec::new() }; count];
    for state in 0..count {
        let edges: Vec<([u8; 4], usize, u32)> = suffixes
            .sorted(state)
            .into_iter()
            .filter_map(|(symbol, to)| {
                let mut bytes = [0; 4];
                let length = char::from_u32(symbol)?.encode_utf8(&mut bytes).len();
                Some((bytes, length, to))
            })
            .collect();
        spell(&mut states, state, &edges, 0);
    }
    Automaton::new(states).map_err(|_| too_many())
}

/// Adds the bytes from `depth` on of edges, ascending, to a state. At most four levels deep.
fn spell(states: &mut Vec<State>, at: usize, edges: &[([u8; 4], usize, u32)], depth: usize) {
    for same in edges.chunk_by(|one, other| one.0[depth] == other.0[depth]) {
        let (bytes, length, to) = same[0];
        let byte = bytes[depth];
        let to = if length == depth + 1 {
            to
        } else {
            states.push(State::default());
            let inner = states.len() - 1;
            spell(states, inner, same, depth + 1);
            u32::try_from(inner).unwrap_or(NONE)
        };
        states[at].edges.push(Edge { first: byte, last: byte, to });
    }
}

/// What some pieces in a row spell, any number of them from any one on.
///
/// # Errors
/// If automata would be larger than the limits allow.
pub(super) fn of_pieces(pieces: &[&str], limits: &Limits) -> Result<Automaton, LimitExceeded> {
    let mut names: hashbrown::HashMap<&str, u32> = hashbrown::HashMap::new();
    let mut known: Vec<&str> = Vec::new();
    let symbols: Vec<u32> = pieces
        .iter()
        .filter(|piece| !piece.is_empty())
        .map(|&piece| {
            *names.entry(piece).or_insert_with(|| {
                known.push(piece);
                u32::try_from(known.len() - 1).unwrap_or(NONE)
            })
        })
        .collect();
    let suffixes = SuffixAutomaton::new(symbols.into_iter());
    Language::by_nfa(limits, |builder| states(builder, &suffixes, &known))?.automaton(limits)
}

/// The automaton's states as those of an NFA, with a chain of bytes for each edge.
fn states(builder: &mut Builder, suffixes: &SuffixAutomaton, pieces: &[&str]) -> Result<Piece, NoRoom> {
    let end = builder.add_empty()?;
    let mut made = Vec::with_capacity(suffixes.length.len());
    for _ in 0..suffixes.length.len() {
        made.push(builder.add_union(vec![end])?);
    }
    for (state, &at) in made.iter().enumerate() {
        for (piece, to) in suffixes.sorted(state) {
            let mut next = made[to as usize];
            for &byte in pieces[piece as usize].as_bytes().iter().rev() {
                next = builder.add_range(Transition { start: byte, end: byte, next })?;
            }
            builder.patch(at, next)?;
        }
    }
    Ok((made[0], end))
}

/// The runs of letters and digits, of white space, and of other characters, in order.
pub(super) fn words(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_whitespace() => 0,
        c if c.is_alphanumeric() || c == '_' => 1,
        _ => 2,
    };
    let mut found = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| last != class(c)) {
            found.push(&text[start..at]);
            start = at;
        }
        last = Some(class(c));
    }
    if start < text.len() {
        found.push(&text[start..]);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn accepts(automaton: &Automaton, text: &str) -> bool {
        let mut at = 0_usize;
        for byte in text.bytes() {
            let edges = &automaton.states()[at].edges;
            let Some(edge) = edges.iter().find(|edge| (edge.first..=edge.last).contains(&byte)) else {
                return false;
            };
            at = edge.to as usize;
        }
        automaton.states()[at].accepts
    }

    #[test]
    fn words_are_runs() {
        assert_eq!(words("foo bar. ba_z\n\n"), ["foo", " ", "bar", ".", " ", "ba_z", "\n\n"]);
        assert_eq!(words(""), Vec::<&str>::new());
    }

    proptest! {
        #[test]
        fn substrings_are_those_of_whole_characters(text in "[abé漢]{0,12}", other in "[abé漢]{0,5}") {
            let automaton = of_text(&text).unwrap();
            prop_assert_eq!(accepts(&automaton, &other), text.contains(&other));
            prop_assert!(automaton.states().len() <= 6 * text.len() + 1);
        }

        #[test]
        fn pieces_are_taken_as_wholes(
            pieces in proptest::collection::vec("[ab]{0,3}", 0..6),
            others in proptest::collection::vec("[ab]{0,6}", 8),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let mut expected: HashSet<String> = HashSet::from([String::new()]);
            for from in 0..pieces.len() {
                expected.extend((from..pieces.len()).map(|to| pieces[from..=to].concat()));
            }
            let automaton = of_pieces(&pieces, &Limits::default()).unwrap();
            for text in others.iter().chain(&expected) {
                prop_assert_eq!(accepts(&automaton, text), expected.contains(text), "{}", text);
            }
        }
    }
}
