//! A leaf means the same as a regular expression and as an automaton of its language, to the oracle and to
//! the engine, although the engine folds expressions into larger terminals and leaves automata alone.

use domino::{
    Lookahead,
    grammar::{
        Automaton, Pattern,
        automaton::{Edge, State},
    },
    oracle::Oracle,
};
use proptest::prelude::*;
use regex_automata::{
    Anchored, MatchKind,
    dfa::{Automaton as _, StartKind, dense},
    nfa::thompson,
    util::start,
};
use regex_syntax::hir::Hir;

use super::leaves::with_leaves;
use crate::promises::generate::{World, case, config};

/// The automaton of an expression, state by state as the library makes it.
fn automaton(hir: &Hir) -> Automaton {
    let nfa =
        thompson::Compiler::new().configure(thompson::Config::new().utf8(false)).build_from_hir(hir).unwrap();
    let dfa = dense::Builder::new()
        .configure(dense::Config::new().match_kind(MatchKind::All).start_kind(StartKind::Anchored))
        .build_from_nfa(&nfa)
        .unwrap();
    let start = dfa.start_state(&start::Config::new().anchored(Anchored::Yes)).unwrap();
    let mut order = vec![start];
    let mut states = Vec::new();
    while let Some(&at) = order.get(states.len()) {
        let mut edges = Vec::new();
        for byte in 0..=u8::MAX {
            let to = dfa.next_state(at, byte);
            let number = order.iter().position(|&known| known == to).unwrap_or_else(|| {
                order.push(to);
                order.len() - 1
            });
            edges.push(Edge { first: byte, last: byte, to: u32::try_from(number).unwrap() });
        }
        states.push(State { accepts: dfa.is_match_state(dfa.next_eoi_state(at)), edges });
    }
    Automaton::new(states).unwrap()
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn automata_and_expressions_mean_the_same(case in case(12)) {
        let world = case.build();
        let grammar =
            with_leaves(&world.grammar, |_, leaf| Pattern::automaton(automaton(leaf.hir().unwrap())));
        let oracle = Oracle::new(&grammar).unwrap();
        let other = World { grammar, oracle, vocabulary: world.vocabulary.clone() };
        prop_assert_eq!(world.oracle.has_sentence(), other.oracle.has_sentence());
        let compiled = (world.compile(Lookahead::default()), other.compile(Lookahead::default()));
        let (Some(one), Some(two)) = compiled else {
            prop_assert!(compiled.0.is_none() && compiled.1.is_none());
            return Ok(());
        };
        let (mut one, mut two) = (one.constraint(), two.constraint());
        let mut text = Vec::new();
        for &choice in &case.choices {
            let mask = one.mask().unwrap().clone();
            prop_assert_eq!(&mask, two.mask().unwrap());
            prop_assert_eq!(&mask, &other.oracle.mask(&text, &world.vocabulary));
            let Some(token) = world.choose(&mask, choice).filter(|token| !world.ends(*token)) else { break };
            one.advance(token).unwrap();
            two.advance(token).unwrap();
            text.extend_from_slice(world.vocabulary.bytes(token).unwrap_or_default());
        }
    }
}
