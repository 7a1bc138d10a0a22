//! Compiles automata over characters to automata over the bytes of UTF-8, each character as it is.

use std::collections::HashMap;

use regex_syntax::utf8::{Utf8Range, Utf8Sequences};

use crate::{
    grammar::{
        automaton::{Automaton, Edge, State},
        json_schema::{
            dfa::{CharDfa, char_at},
            leaf::LeafError,
        },
    },
    ids::{Numbered, as_index},
};

/// Limit on the byte states of one automaton. The engine's own limit for a terminal is 20,000.
const MAX_STATES: usize = 16_000;

/// The things that [`MAX_STATES`] bounds, in words.
const STATES: &str = "states of the automaton of a text between tags";

/// The byte ranges that spell some characters, and the state that they lead to.
type Utf8Target = (Vec<Utf8Range>, u32);

/// The automaton over bytes of a non-empty language. Linear in the edges of `dfa`.
///
/// # Errors
/// If it would have more than [`MAX_STATES`] states.
pub(super) fn plain(dfa: &CharDfa) -> Result<Automaton, LeafError> {
    let made = Numbered::of(vec![State::default(); dfa.len()], STATES)?;
    let mut states = Utf8States { made, known: HashMap::new() };
    for at in dfa.states() {
        let ways: Vec<Utf8Target> = dfa.edges(at).into_iter().flat_map(ways).collect();
        let ways: Vec<(&[Utf8Range], u32)> = ways.iter().map(|(bytes, to)| (&bytes[..], *to)).collect();
        let edges = states.edges(&ways)?;
        states.made[as_index(at)] = State { accepts: dfa.accepts(at), edges };
        if states.made.len() > MAX_STATES {
            return Err(too_many());
        }
    }
    // States of `dfa` differ already, and equal states inside of characters are shared.
    Automaton::trimmed(states.made.into_iter().collect()).map_err(|_| too_many())
}

fn too_many() -> LeafError {
    LeafError::Budget { what: STATES, limit: MAX_STATES }
}

/// The bytes of the characters of an edge, in order.
fn ways((first, last, to): (u32, u32, u32)) -> impl Iterator<Item = Utf8Target> {
    let sequences = Utf8Sequences::new(char_at(first), char_at(last));
    sequences.map(move |sequence| (sequence.as_slice().to_vec(), to))
}

struct Utf8States {
    made: Numbered<State>,
    /// The states inside of characters, by their edges.
    known: HashMap<Vec<Edge>, u32>,
}

impl Utf8States {
    /// The edges of some ways, which differ in their first byte ranges or share them.
    fn edges(&mut self, ways: &[(&[Utf8Range], u32)]) -> Result<Vec<Edge>, LeafError> {
        let mut edges: Vec<Edge> = Vec::new();
        for group in ways.chunk_by(|one, other| one.0.first() == other.0.first()) {
            let Some((&(bytes, target), range)) = group.first().and_then(|way| Some((way, way.0.first()?)))
            else {
                continue;
            };
            let to = if bytes.len() == 1 { target } else { self.inside(group)? };
            match edges.last_mut() {
                Some(last) if last.to == to && last.last.checked_add(1) == Some(range.start) => {
                    last.last = range.end;
                }
                _ => edges.push(Edge { first: range.start, last: range.end, to }),
            }
        }
        Ok(edges)
    }

    /// The state behind the first byte of some ways. Recurses as deep as a character has bytes.
    fn inside(&mut self, ways: &[(&[Utf8Range], u32)]) -> Result<u32, LeafError> {
        let rest: Vec<_> = ways.iter().map(|(bytes, to)| (&bytes[1..], *to)).collect();
        let edges = self.edges(&rest)?;
        if let Some(&known) = self.known.get(&edges) {
            return Ok(known);
        }
        let fresh = self.made.push(State { accepts: false, edges: edges.clone() }, STATES)?;
        self.known.insert(edges, fresh);
        Ok(fresh)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::json_schema::StringSet;

    const PATTERNS: [&str; 6] =
        ["^[^<]*$", "^[a\u{e9}-\u{20ac}\u{1f600}]*$", "b\\s", "^.{1,2}$", "", "\u{e9}|\n"];

    const TEXT: &str = "[ab<\n\u{7f}\u{80}\u{e8}-\u{ea}\u{7ff}-\u{801}\u{d7ff}\u{e000}\u{20ab}-\u{20ad}\
                        \u{ffff}-\u{10001}\u{1f600}\u{10ffff}]{0,4}";

    fn accepts(automaton: &Automaton, text: &str) -> bool {
        let states = automaton.states();
        let step = |state: u32, byte: u8| {
            let edges = &states[state as usize].edges;
            edges.iter().find(|edge| (edge.first..=edge.last).contains(&byte)).map(|edge| edge.to)
        };
        text.bytes().try_fold(0, step).is_some_and(|state| states[state as usize].accepts)
    }

    proptest! {
        #[test]
        fn plain_automata_accept_the_strings_of_the_set(
            pattern in prop::sample::select(&PATTERNS[..]),
            texts in prop::collection::vec(TEXT, 1..30),
        ) {
            let set = StringSet::from_pattern(pattern).unwrap();
            for (_, _, dfa) in set.windows() {
                let automaton = plain(dfa).unwrap();
                for text in &texts {
                    let is_in = set.contains(text);
                    prop_assert_eq!(accepts(&automaton, text), is_in, "{:?} {:?}", pattern, text);
                }
            }
        }
    }
}
