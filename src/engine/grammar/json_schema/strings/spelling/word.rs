//! The JSON spellings of one string.
//!
//! The keys of a schema are thousands of ASCII words, for which [automata over characters](super)
//! are a detour: their automata are chains, with a branch over the escape of each character.

use super::{MAX_SPELLED, Style, hex_bytes};
use crate::{
    grammar::{
        automaton::{Automaton, Edge, State},
        json_schema::leaf::ValueSpelling,
    },
    ids::Numbered,
};

/// The number of states of an escape, and the one between characters.
const STATES_OF_A_CHARACTER: usize = 6;

/// Greatest number of edges of a state: a character and a backslash, a letter and `u`, a digit in either
/// case.
const WAYS: usize = 2;

/// The JSON strings that mean `string`, with quotes, as [`StringSet::one`](super::super::StringSet::one)
/// emits them. `None` if it has other characters than printable ASCII, or is too long for one automaton.
pub(in crate::grammar::json_schema) fn word(string: &str, spelling: ValueSpelling) -> Option<Automaton> {
    let plain = string.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !plain || (string.len() + 1) * STATES_OF_A_CHARACTER > MAX_SPELLED {
        return None;
    }
    let style = Style::of(spelling);
    let mut states = Chain(Numbered::with_capacity((string.len() + 1) * STATES_OF_A_CHARACTER));
    let (start, mut from) = (states.add(1)?, states.add(WAYS)?);
    states.lead(start, b'"', from);
    for byte in string.bytes() {
        let to = states.add(WAYS)?;
        if byte != b'"' && byte != b'\\' {
            states.lead(from, byte, to);
        }
        let code = u32::from(byte);
        let short = style.short().iter().find(|(_, meant)| *meant == code).map(|(letter, _)| *letter);
        let escaped = style.escapes(code);
        if short.is_some() || escaped {
            let escape = states.add(WAYS)?;
            states.lead(from, b'\\', escape);
            if let Some(letter) = short {
                states.lead(escape, letter, to);
            }
            if escaped {
                states.unit(escape, byte, to)?;
            }
        }
        from = to;
    }
    let end = states.add(0)?;
    states.lead(from, b'"', end);
    states.0[end as usize].accepts = true;
    Automaton::trimmed(states.0.into_iter().collect()).ok()
}

/// An automaton under construction.
struct Chain(Numbered<State>);

impl Chain {
    /// Adds a state with room for `ways` edges. Returns its number, if it has one.
    fn add(&mut self, ways: usize) -> Option<u32> {
        let state = State { accepts: false, edges: Vec::with_capacity(ways) };
        self.0.push(state, "states of the automaton of a JSON string").ok()
    }

    fn lead(&mut self, from: u32, byte: u8, to: u32) {
        self.0[from as usize].edges.push(Edge { first: byte, last: byte, to });
    }

    /// Adds the states of `u` and four hex digits.
    fn unit(&mut self, mut from: u32, byte: u8, to: u32) -> Option<()> {
        for (at, digit) in [b'u', b'0', b'0', b'0' + (byte >> 4)].into_iter().enumerate() {
            // The last digit may be a letter in either case.
            let next = self.add(if at == 3 { WAYS } else { 1 })?;
            self.lead(from, digit, next);
            from = next;
        }
        for digit in hex_bytes(u32::from(byte & 0xf)) {
            self.lead(from, digit, to);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::{
        Expr, GrammarBuilder, Pattern, PatternKind, Span,
        json_schema::{leaf::Escapes, strings::StringSet},
    };

    proptest! {
        /// The result agrees with that of sets of strings in general.
        #[test]
        fn spellings_of_a_word_are_those_of_the_one_string_set(
            string in prop_oneof!["[ -~]{0,12}", r#"[a/"\\]{0,6}"#, "[a-cé\t]{0,3}"], all in any::<bool>(),
        ) {
            let escapes = if all { Escapes::All } else { Escapes::Minimal };
            let spelling = ValueSpelling { escapes, ..ValueSpelling::default() };
            let plain = string.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            let found = word(&string, spelling);
            prop_assert_eq!(found.is_some(), plain);
            let mut builder = GrammarBuilder::new(&crate::Limits::default());
            let set = StringSet::one(&string).unwrap().emit(&mut builder, spelling, Span::default()).unwrap();
            if let (Some(found), Expr::Pattern(pattern)) = (found, builder.expr(set)) {
                prop_assert!(found.is_minimal());
                prop_assert_eq!(Pattern::automaton(found), pattern.clone());
                prop_assert!(matches!(pattern.kind(), PatternKind::Automaton(known) if known.is_minimal()));
            }
        }
    }

    #[test]
    fn words_past_the_size_limit_are_left_to_sets() {
        assert!(word(&"a".repeat(3_000), ValueSpelling::default()).is_none());
        assert!(word(&"a".repeat(2_000), ValueSpelling::default()).is_some());
    }
}
