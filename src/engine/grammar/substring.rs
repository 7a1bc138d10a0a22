//! The automaton of a text's substrings: the suffix automaton (Blumer et al., 1985), built online in linear
//! time.
//!
//! Symbols are characters, or pieces of a text that may only be taken as wholes.

use std::cmp::Reverse;

use hashbrown::HashMap;
use regex_automata::nfa::thompson::{Builder, Transition};

use super::{
    automaton::{Automaton, Edge, State},
    pattern::Pattern,
    regular::{Fragment, Language, NoRoom},
};
use crate::{
    ids::{self, Numbered, as_index},
    limits::{AUTOMATON_STATES, Budget, LimitExceeded, Limits, SUBSTRING_BYTES},
};

/// A number that stands for no state and no edge.
const NONE: u32 = u32::MAX;

/// An edge of a state, as an element of a linked list.
#[derive(Debug, Clone, Copy)]
struct EdgeLink {
    symbol: u32,
    to: u32,
    next: u32,
}

/// A state of a [`SuffixAutomaton`].
#[derive(Debug, Clone, Copy)]
struct SubstringState {
    /// The length of its longest text.
    length: u32,
    /// The suffix link: the state of the longest suffix of its texts that occurs elsewhere too.
    suffix: u32,
    /// The first of its edges.
    first: u32,
}

/// The suffix automaton of a sequence of symbols: reads all of its substrings from state 0 on. It has at most
/// `2n` states and `3n` edges for `n` symbols.
#[derive(Debug)]
struct SuffixAutomaton {
    nodes: Numbered<SubstringState>,
    edges: Numbered<EdgeLink>,
    /// The edges of the start by their symbols: there may be as many as there are symbols.
    start: HashMap<u32, u32>,
}

impl SuffixAutomaton {
    /// Builds the automaton. Linear in the symbols, times the number of different symbols behind one text.
    ///
    /// # Errors
    /// If there are more states or edges than numbers.
    fn new(symbols: impl Iterator<Item = u32>) -> Result<Self, LimitExceeded> {
        let (nodes, edges) = (Numbered::default(), Numbered::default());
        let mut made = Self { nodes, edges, start: HashMap::new() };
        let mut last = made.state(SubstringState { length: 0, suffix: NONE, first: NONE })?;
        for symbol in symbols {
            last = made.extend(last, symbol)?;
        }
        Ok(made)
    }

    fn node(&self, state: u32) -> SubstringState {
        self.nodes[as_index(state)]
    }

    fn state(&mut self, node: SubstringState) -> Result<u32, LimitExceeded> {
        self.nodes.push(node, "states of an automaton of substrings")
    }

    /// The edge of a state by a symbol.
    fn edge(&self, state: u32, symbol: u32) -> Option<usize> {
        if state == 0 {
            return self.start.get(&symbol).map(|&at| at as usize);
        }
        let mut at = self.node(state).first;
        while at != NONE {
            let edge = &self.edges[as_index(at)];
            if edge.symbol == symbol {
                return Some(at as usize);
            }
            at = edge.next;
        }
        None
    }

    fn add(&mut self, state: u32, symbol: u32, to: u32) -> Result<(), LimitExceeded> {
        let link = EdgeLink { symbol, to, next: self.node(state).first };
        let at = self.edges.push(link, "edges of an automaton of substrings")?;
        self.nodes[as_index(state)].first = at;
        if state == 0 {
            self.start.insert(symbol, at);
        }
        Ok(())
    }

    /// Appends a symbol to the text of `last`; returns the state of the whole text.
    fn extend(&mut self, last: u32, symbol: u32) -> Result<u32, LimitExceeded> {
        let length = self.node(last).length + 1;
        let whole = self.state(SubstringState { length, suffix: 0, first: NONE })?;
        let mut at = last;
        let found = loop {
            if at == NONE {
                return Ok(whole);
            }
            if let Some(edge) = self.edge(at, symbol) {
                break edge;
            }
            self.add(at, symbol, whole)?;
            at = self.node(at).suffix;
        };
        let to = self.edges[found].to;
        let length = self.node(at).length + 1;
        if self.node(to).length == length {
            self.nodes[as_index(whole)].suffix = to;
            return Ok(whole);
        }
        // The texts of `to` that are suffixes of the whole get a state of their own, with the same edges (a
        // clone).
        let copy = self.state(SubstringState { length, suffix: self.node(to).suffix, first: NONE })?;
        let mut from = self.node(to).first;
        while from != NONE {
            let EdgeLink { symbol, to, next } = self.edges[as_index(from)];
            self.add(copy, symbol, to)?;
            from = next;
        }
        while at != NONE {
            match self.edge(at, symbol) {
                Some(edge) if self.edges[edge].to == to => self.edges[edge].to = copy,
                _ => break,
            }
            at = self.node(at).suffix;
        }
        self.nodes[as_index(to)].suffix = copy;
        self.nodes[as_index(whole)].suffix = copy;
        Ok(whole)
    }

    /// The edges of a state.
    fn links(&self, state: usize) -> impl Iterator<Item = EdgeLink> + '_ {
        let mut at = self.nodes[state].first;
        std::iter::from_fn(move || {
            let link = *self.edges.get(at as usize)?;
            at = link.next;
            Some(link)
        })
    }
}

/// Length of a text, in bytes, above which the automaton of its substrings is made lazily.
const AT_ONCE: usize = if cfg!(test) { 64 } else { 1 << 10 };

/// The substrings of a text, in whole characters, the empty one included.
///
/// # Errors
/// If the text has more than [`SUBSTRING_BYTES`].
pub(super) fn pattern(text: &str) -> Result<Pattern, LimitExceeded> {
    if text.len() <= AT_ONCE {
        return of_text(text).map(Pattern::automaton);
    }
    if text.len() > SUBSTRING_BYTES {
        let what = "bytes of a text whose substrings are wanted";
        return Err(LimitExceeded::new(Budget::DfaStates, what, SUBSTRING_BYTES));
    }
    Ok(Pattern::substrings(text))
}

/// The minimal automaton of the substrings of a text, in whole characters, the empty one included.
///
/// # Errors
/// If the automaton would have more than [`AUTOMATON_STATES`].
pub(super) fn of_text(text: &str) -> Result<Automaton, LimitExceeded> {
    of_symbols(text.chars().map(u32::from), text.len(), char::from_u32)
}

/// The automaton of the substrings without regard to the case of letters. `cases` are the characters that
/// differ from one only by case, itself included.
///
/// # Errors
/// As [`of_text`].
pub(super) fn of_text_in_any_case(
    text: &str,
    cases: impl Fn(char) -> Vec<char>,
) -> Result<Automaton, LimitExceeded> {
    // Characters that are the same get one number.
    let mut numbers: HashMap<char, u32> = HashMap::new();
    let mut spellings: Vec<Vec<char>> = Vec::new();
    for c in text.chars() {
        if !numbers.contains_key(&c) {
            let number = ids::number(spellings.len(), "characters of a text")?;
            let same = cases(c);
            numbers.extend(same.iter().map(|&c| (c, number)));
            spellings.push(same);
        }
    }
    let spelling = |symbol: u32| spellings.get(symbol as usize).into_iter().flatten().copied();
    // Every character of the text has a number.
    of_symbols(text.chars().filter_map(|c| numbers.get(&c).copied()), text.len(), spelling)
}

/// The substrings of a text of symbols and of `length` bytes. Each symbol is spelled by one of the characters
/// of `spellings`; no character spells two symbols.
fn of_symbols<S: IntoIterator<Item = char>>(
    symbols: impl Iterator<Item = u32>,
    length: usize,
    spellings: impl Fn(u32) -> S,
) -> Result<Automaton, LimitExceeded> {
    let too_many =
        || LimitExceeded::new(Budget::DfaStates, "states of an automaton of substrings", AUTOMATON_STATES);
    if length > AUTOMATON_STATES {
        return Err(too_many());
    }
    let suffixes = SuffixAutomaton::new(symbols)?;
    let mut made = Merged::default();
    let mut renamed = vec![NONE; suffixes.nodes.len()];
    // Edges lead to longer texts, so the targets of a state are made before it.
    let mut order: Vec<u32> = suffixes.nodes.numbers().collect();
    order.sort_unstable_by_key(|&state| Reverse(suffixes.node(state).length));
    let mut edges: Vec<([u8; 4], usize, u32)> = Vec::new();
    for state in order {
        edges.clear();
        for EdgeLink { symbol, to, .. } in suffixes.links(state as usize) {
            edges.extend(spellings(symbol).into_iter().map(|c| {
                let mut bytes = [0; 4];
                let length = c.encode_utf8(&mut bytes).len();
                (bytes, length, renamed[as_index(to)])
            }));
        }
        edges.sort_unstable();
        renamed[as_index(state)] = made.state(true, &edges, 0)?;
    }
    Automaton::minimal(made.last_first()).map_err(|_| too_many())
}

/// A minimal acyclic automaton: equal states are made once (Revuz, 1992). A suffix automaton has equivalent
/// states, since it tells texts apart by where they end even if the same continuations follow.
#[derive(Debug, Default)]
struct Merged {
    states: Numbered<State>,
    known: HashMap<State, u32>,
}

impl Merged {
    /// The state with these edges, which ascend by their bytes from `depth` on. Recurses at most four levels.
    fn state(
        &mut self,
        accepts: bool,
        edges: &[([u8; 4], usize, u32)],
        depth: usize,
    ) -> Result<u32, LimitExceeded> {
        let mut state = State { accepts, edges: Vec::new() };
        for same in edges.chunk_by(|one, other| one.0[depth] == other.0[depth]) {
            let (bytes, length, to) = same[0];
            let byte = bytes[depth];
            let to = if length == depth + 1 { to } else { self.state(false, same, depth + 1)? };
            state.edges.push(Edge { first: byte, last: byte, to });
        }
        if let Some(&known) = self.known.get(&state) {
            return Ok(known);
        }
        let fresh = self.states.push(state.clone(), "states of an automaton of substrings")?;
        self.known.insert(state, fresh);
        Ok(fresh)
    }

    /// The states in reverse order, so that the last one, the start, becomes the first.
    fn last_first(self) -> Vec<State> {
        let last = self.states.numbers().end.saturating_sub(1);
        let mut states: Vec<State> = self.states.into_iter().rev().collect();
        let edges = states.iter_mut().flat_map(|state| &mut state.edges);
        edges.for_each(|edge| edge.to = last - edge.to);
        states
    }
}

/// The texts of runs of neighbouring pieces, of any length from any piece on.
///
/// # Errors
/// If automata would be larger than the limits allow.
pub(super) fn of_pieces(pieces: &[&str], limits: &Limits) -> Result<Automaton, LimitExceeded> {
    let mut names: HashMap<&str, u32> = HashMap::new();
    let mut known: Vec<&str> = Vec::new();
    let mut symbols: Vec<u32> = Vec::with_capacity(pieces.len());
    for &piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let fresh = ids::number(known.len(), "pieces of a text")?;
        symbols.push(*names.entry(piece).or_insert_with(|| {
            known.push(piece);
            fresh
        }));
    }
    let suffixes = SuffixAutomaton::new(symbols.into_iter())?;
    Language::by_nfa(limits, |builder| states(builder, &suffixes, &known))?.automaton(limits)
}

/// Adds the automaton's states to an NFA, with a chain of bytes for each edge.
fn states(builder: &mut Builder, suffixes: &SuffixAutomaton, pieces: &[&str]) -> Result<Fragment, NoRoom> {
    let end = builder.add_empty()?;
    let mut made = Vec::with_capacity(suffixes.nodes.len());
    for _ in 0..suffixes.nodes.len() {
        made.push(builder.add_union(vec![end])?);
    }
    for (state, &at) in made.iter().enumerate() {
        for EdgeLink { symbol: piece, to, .. } in suffixes.links(state) {
            let mut next = made[as_index(to)];
            for &byte in pieces[as_index(piece)].as_bytes().iter().rev() {
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
    fn a_text_is_split_into_runs_of_one_kind() {
        assert_eq!(words("foo bar. ba_z\n\n"), ["foo", " ", "bar", ".", " ", "ba_z", "\n\n"]);
        assert_eq!(words(""), Vec::<&str>::new());
    }

    proptest! {
        #[test]
        fn substrings_are_those_of_whole_characters(text in "[abé漢]{0,12}", other in "[abé漢]{0,5}") {
            let automaton = of_text(&text).unwrap();
            prop_assert_eq!(accepts(&automaton, &other), text.contains(&other));
            prop_assert!(automaton.states().len() <= 6 * text.len() + 1);
            let limits = Limits::default();
            let least = Language::of_automaton(&automaton).automaton(&limits).unwrap();
            prop_assert!(automaton.is_minimal());
            prop_assert_eq!(automaton.states().len(), least.states().len());
        }

        #[test]
        fn pieces_of_a_text_are_taken_as_wholes(
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
