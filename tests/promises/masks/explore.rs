//! Masks made ahead equal those made on demand; making them keeps to its budgets, and is deterministic.

use domino::{
    CompiledGrammar, Compiler, Exploration, Grammar, Limits, Lookahead, Syntax, TokenId, Vocabulary,
};
use proptest::prelude::*;

use crate::promises::generate::{Case, World, case, config};

fn explored(world: &World, lookahead: Lookahead, limits: &Limits) -> Option<(CompiledGrammar, Exploration)> {
    let compiler = Compiler::new(world.vocabulary.clone()).lookahead(lookahead).limits(limits.clone());
    let compiled = world.compile_with(compiler)?;
    let exploration = compiled.explore();
    Some((compiled, exploration))
}

/// Walks two sessions, the second of which finds the caches of the first.
fn walk(case: &Case, world: &World, compiled: &CompiledGrammar, exact: impl Fn(&[u8]) -> domino::TokenSet) {
    for _ in 0..2 {
        let (mut constraint, mut text) = (compiled.constraint(), Vec::new());
        for &choice in &case.choices {
            let mask = exact(&text);
            assert_eq!(constraint.mask().unwrap(), &mask);
            let Some(token) = world.choose(&mask, choice) else { break };
            constraint.advance(token).unwrap();
            let Some(bytes) = world.vocabulary.bytes(token) else { break };
            text.extend_from_slice(bytes);
        }
    }
}

/// Budgets for all work and memory, for none, and for some.
fn some_limits() -> impl Strategy<Value = Limits> {
    let work = prop_oneof![Just(1_000_000_usize), Just(0), 1..3_000_usize];
    let masks = prop_oneof![2 => Just(1_000_000_usize), 1 => 0..5_000_usize];
    (work, masks).prop_map(|(work, masks)| {
        let mut limits = Limits::default();
        limits.step_work *= 100;
        (limits.exploration, limits.mask_bytes) = (work, masks);
        limits
    })
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn masks_made_ahead_are_exact(case in case(10), limits in some_limits()) {
        let world = case.build();
        let Some((compiled, _)) = explored(&world, Lookahead::Unbounded, &limits) else { return Ok(()) };
        walk(&case, &world, &compiled, |text| world.oracle.mask(text, &world.vocabulary));
        // The second exploration is of a machine that has met texts.
        compiled.explore();
        walk(&case, &world, &compiled, |text| world.oracle.mask(text, &world.vocabulary));
    }

    #[test]
    fn masks_after_a_rehearsal_are_exact(
        case in case(10),
        work in prop_oneof![Just(1_000_000), 1..3_000_usize],
    ) {
        let world = case.build();
        let mut limits = Limits::default();
        (limits.rehearsal, limits.rehearsal_size) = (work, 0);
        limits.step_work *= 100;
        let compiler = Compiler::new(world.vocabulary.clone()).limits(limits);
        let Some(compiled) = world.compile_with(compiler) else { return Ok(()) };
        walk(&case, &world, &compiled, |text| world.oracle.mask(text, &world.vocabulary));
    }

    #[test]
    fn masks_made_ahead_are_those_of_the_lookahead(case in case(8), k in 0..3_u32) {
        let world = case.build();
        let lookahead = Lookahead::Terminals(k);
        let mut limits = Limits::default();
        limits.step_work *= 100;
        let Some((compiled, _)) = explored(&world, lookahead, &limits) else { return Ok(()) };
        let plain = world.compile(lookahead).unwrap();
        walk(&case, &world, &compiled, |text| {
            let mut constraint = plain.constraint();
            assert_eq!(constraint.advance_bytes(text).unwrap(), text.len());
            constraint.mask().unwrap().clone()
        });
    }

    #[test]
    fn exploring_keeps_to_its_budgets_and_is_the_same_each_time(
        case in case(1),
        mut limits in some_limits(),
    ) {
        let world = case.build();
        // A row that another core has made ahead costs exploring no work, so that it comes a little farther.
        limits.ahead = 0;
        let Some((one, first)) = explored(&world, Lookahead::Unbounded, &limits) else { return Ok(()) };
        let (other, second) = explored(&world, Lookahead::Unbounded, &limits).unwrap();
        // Tables of terminals are shared with other grammars of the vocabulary.
        let kept = |of: &CompiledGrammar| (of.memory().own(), states_and_masks(of));
        prop_assert_eq!((first, kept(&one)), (second, kept(&other)));
        // A state is 20 units at least. Beside the masks there is a number for each state, less than the
        // state takes.
        prop_assert!(first.states <= limits.exploration / 20);
        prop_assert!(one.memory().masks <= limits.mask_bytes / 2 + one.memory().states);
        if limits.mask_bytes == 0 || limits.exploration == 0 {
            prop_assert_eq!(first.states, 0);
        }
    }
}

fn compiled(grammar: &str, limits: Limits) -> CompiledGrammar {
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary).limits(limits).compile(&grammar).unwrap()
}

/// Sizes of the caches that texts change.
fn states_and_masks(compiled: &CompiledGrammar) -> (usize, usize, usize) {
    let memory = compiled.memory();
    (memory.parser_sets, memory.states, memory.masks)
}

#[test]
fn a_grammar_that_does_not_nest_is_explored_as_a_whole() {
    let compiled = compiled(r#"root ::= "name: " [a-z]+ (", age: " [0-9]+)? ";""#, Limits::default());
    assert!(compiled.explore().complete);
    let before = states_and_masks(&compiled);
    for text in ["name: anna, age: 31;", "name: b;"] {
        let mut constraint = compiled.constraint();
        for byte in text.bytes() {
            constraint.mask().unwrap();
            constraint.advance(TokenId::new(byte.into())).unwrap();
        }
        constraint.mask().unwrap();
    }
    assert_eq!(states_and_masks(&compiled), before, "a text has met something new");
}

#[test]
fn a_grammar_that_nests_is_explored_from_the_outside() {
    let mut limits = Limits::default();
    limits.exploration = 20_000;
    let compiled = compiled(r#"root ::= v   v ::= "(" v ")" | "[" v "]" | [a-z]+"#, limits);
    let explored = compiled.explore();
    assert!(!explored.complete && explored.states > 20, "{explored:?}");
    let meets_anything_new = |text: &str| {
        let before = states_and_masks(&compiled);
        let mut constraint = compiled.constraint();
        for byte in text.bytes() {
            constraint.mask().unwrap();
            constraint.advance(TokenId::new(byte.into())).unwrap();
        }
        states_and_masks(&compiled) != before
    };
    // Long, but flat.
    assert!(!meets_anything_new("([abcdefghijklmnopqrstuvwxyz])"), "an outer place was not explored");
    assert!(meets_anything_new(&"([".repeat(30)), "there is no end to what was explored");
}

#[test]
fn texts_go_on_where_exploring_has_filled_memory() {
    let mut limits = Limits::default();
    (limits.exploration, limits.state_bytes, limits.parser_bytes) = (usize::MAX, 40_000, 40_000);
    let compiled = compiled(r#"root ::= v   v ::= "(" v ")" | "[" v "]" | [a-z]+"#, limits.clone());
    assert!(!compiled.explore().complete);
    let memory = compiled.memory();
    // A quarter, and a state with what follows it.
    assert!(
        memory.states < limits.state_bytes / 2 && memory.parser_sets < limits.parser_bytes / 2,
        "{memory:?}"
    );
    let mut constraint = compiled.constraint();
    let text = "([".repeat(20) + "abc" + &"])".repeat(20);
    assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
    assert!(constraint.is_complete());
}
