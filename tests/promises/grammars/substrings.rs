//! Substrings of a text mean the same with states in a table (suffix automaton), with states made on demand,
//! and by searching: to the oracle and to the engine.

use std::collections::BTreeSet;

use domino::{
    Budget, Constraint, Grammar, Lookahead, StepErrorKind,
    grammar::{
        Automaton, Pattern,
        automaton::{Edge, State},
    },
    oracle::Oracle,
};
use proptest::prelude::*;

use super::leaves::with_leaves;
use crate::promises::generate::{ALPHABET, World, case, config};

/// The automaton of a text's substrings by definition: states are sets of positions.
fn automaton(text: &str) -> Automaton {
    let start: BTreeSet<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
    let (mut order, mut states) = (vec![start], Vec::new());
    while let Some(places) = order.get(states.len()).cloned() {
        let mut state =
            State { accepts: places.iter().all(|&at| text.is_char_boundary(at)), edges: Vec::new() };
        for byte in 0..=u8::MAX {
            let follows = places.iter().filter(|&&at| text.as_bytes().get(at) == Some(&byte));
            let next: BTreeSet<usize> = follows.map(|at| at + 1).collect();
            if next.is_empty() {
                continue;
            }
            let number = order.iter().position(|known| *known == next).unwrap_or_else(|| {
                order.push(next);
                order.len() - 1
            });
            state.edges.push(Edge { first: byte, last: byte, to: u32::try_from(number).unwrap() });
        }
        states.push(state);
    }
    Automaton::new(states).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(ALPHABET.to_vec()), 1..20).prop_map(String::from_iter)
}

/// Bytes of the shortest completion; `None` if its search exhausts the budget.
fn bytes_to_the_end(session: &mut Constraint) -> Option<usize> {
    match session.shortest_completion() {
        Ok(completion) => Some(completion.bytes.len()),
        Err(error) => {
            let StepErrorKind::Limit(limit) = error.kind() else { panic!("{error}") };
            assert_eq!(limit.budget(), Budget::CompletionVisits);
            None
        }
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn substrings_mean_the_same_however_they_are_made(
        case in case(12),
        texts in prop::collection::vec(text(), 3),
        every in 1..4_usize,
        lookahead in prop::option::of(0..3_u32),
        grown: bool,
    ) {
        let world = case.build();
        let with = |made: &dyn Fn(&str) -> Pattern| {
            with_leaves(&world.grammar, |number, leaf| match number.is_multiple_of(every) {
                true => made(&texts[number % texts.len()]),
                false => leaf.clone(),
            })
        };
        let grammar = with(&Pattern::substrings);
        let table = with(&|text| Pattern::automaton(automaton(text)));
        let world = |grammar: Grammar| World {
            oracle: Oracle::new(&grammar).unwrap(), grammar, vocabulary: world.vocabulary.clone(),
        };
        let (one, other) = (world(grammar), world(table));
        prop_assert_eq!(one.oracle.has_sentence(), other.oracle.has_sentence());
        let lookahead = lookahead.map_or(Lookahead::Unbounded, Lookahead::Terminals);
        let (Some(compiled), Some(table)) = (one.compile(lookahead), other.compile(lookahead)) else {
            prop_assert!(!one.oracle.has_sentence());
            return Ok(());
        };
        if grown {
            compiled.grow_trees();
        }
        let (mut session, mut beside) = (compiled.constraint(), table.constraint());
        let mut text = Vec::new();
        for &choice in &case.choices {
            let mask = session.mask().unwrap().clone();
            prop_assert_eq!(&mask, beside.mask().unwrap());
            if lookahead == Lookahead::Unbounded {
                prop_assert_eq!(&mask, &one.oracle.mask(&text, &one.vocabulary));
            }
            prop_assert_eq!(session.is_complete(), beside.is_complete());
            if let [Some(one), Some(other)] = [&mut session, &mut beside].map(bytes_to_the_end) {
                prop_assert_eq!(one, other);
            }
            let Some(token) = one.choose(&mask, choice).filter(|token| !one.ends(*token)) else { break };
            session.advance(token).unwrap();
            beside.advance(token).unwrap();
            text.extend_from_slice(one.vocabulary.bytes(token).unwrap_or_default());
        }
        // Keys of contexts do not depend on history, so those of a fresh session are equal.
        let Some(fresh) = one.compile(lookahead) else { unreachable!("it compiled before") };
        let mut fresh = fresh.constraint();
        prop_assert_eq!(fresh.advance_bytes(&text).unwrap(), text.len());
        prop_assert_eq!(fresh.context(), session.context());
    }
}
