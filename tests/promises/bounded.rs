//! Promise 6, bounded: with budgets of any size, every call ends in its answer or in the error of a budget;
//! an error leaves the session where it was; and budgets that are only for speed never end in an error.
//!
//! Grammars and texts made to hurt are in `tests/hostile`.

use domino::{CompileErrorKind, Compiler, Constraint, Limits, Lookahead, StepErrorKind};
use proptest::prelude::*;

use super::generate::{Case, World, case, config};

/// Budgets of all kinds, each of which may be tiny.
fn tiny_limits() -> impl Strategy<Value = Limits> {
    let size = || prop_oneof![3 => Just(None), 1 => (0..60_usize).prop_map(Some)];
    prop::array::uniform8(size()).prop_map(|sizes| {
        let mut limits = Limits::default();
        // Budgets, each with the unit of its tiny values.
        let all = [
            (&mut limits.dfa_states, 1),
            (&mut limits.nfa_bytes, 1),
            (&mut limits.symbols, 1),
            (&mut limits.parser_bytes, 100),
            (&mut limits.state_bytes, 100),
            (&mut limits.step_work, 4),
            (&mut limits.tree_bytes, 1),
            (&mut limits.mask_bytes, 100),
        ];
        for ((limit, unit), size) in all.into_iter().zip(sizes) {
            *limit = size.map_or(*limit, |size| size * unit);
        }
        limits
    })
}

/// Budgets that are only for speed.
fn fast_or_slow() -> impl Strategy<Value = Limits> {
    let size = || prop_oneof![Just(0), Just(1), 2..40_usize];
    (size(), size(), size()).prop_map(|(fold_states, tree_bytes, masks)| {
        let mut limits = Limits::default();
        limits.fold_states = fold_states;
        limits.tree_bytes = tree_bytes;
        limits.mask_bytes = masks * 100;
        limits
    })
}

/// The answer of a call, or `None` if a budget was exhausted.
fn within<T>(answer: Result<T, domino::StepError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => {
            assert!(matches!(error.kind(), StepErrorKind::Limit(_)), "{error}");
            None
        }
    }
}

/// Walks along the oracle's masks, back one step where a budget is exhausted.
fn walk(case: &Case, world: &World, mut constraint: Constraint) {
    let mut steps: Vec<Vec<u8>> = Vec::new();
    for &choice in &case.choices {
        let text = steps.concat();
        let mask = world.oracle.mask(&text, &world.vocabulary);
        assert_eq!(constraint.is_complete(), world.oracle.accepts(&text));
        if let Some(answer) = within(constraint.mask().cloned()) {
            assert_eq!(answer, mask);
        }
        let Some(token) = world.choose(&mask, choice | 1) else { return };
        if let Some(answer) = within(constraint.allows(token)) {
            assert!(answer);
        }
        let Some(bytes) = world.vocabulary.bytes(token) else { return };
        match within(constraint.advance(token)) {
            Some(()) => steps.push(bytes.to_vec()),
            None if steps.is_empty() => return,
            None => match constraint.rollback(1) {
                Ok(()) => drop(steps.pop()),
                // There was no memory for the way back when the session had to move.
                Err(error) => {
                    assert_eq!(error.kind(), &StepErrorKind::HistoryForgotten(0));
                    return;
                }
            },
        }
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn tiny_budgets_end_in_answers_or_errors(case in case(12), limits in tiny_limits()) {
        let world = case.build();
        match Compiler::new(world.vocabulary.clone()).limits(limits).compile(&world.grammar) {
            Ok(compiled) => walk(&case, &world, compiled.constraint()),
            Err(error) => match error.kind() {
                CompileErrorKind::EmptyLanguage => prop_assert!(!world.oracle.has_sentence()),
                kind => prop_assert!(matches!(kind, CompileErrorKind::Limit(_)), "{}", error),
            },
        }
    }

    #[test]
    fn budgets_for_speed_change_nothing(case in case(10), limits in fast_or_slow()) {
        let world = case.build();
        // It compiles if the default budgets let it.
        if world.compile(Lookahead::Unbounded).is_none() {
            return Ok(());
        }
        let compiled =
            Compiler::new(world.vocabulary.clone()).limits(limits).compile(&world.grammar).unwrap();
        let (mut constraint, mut text) = (compiled.constraint(), Vec::new());
        for &choice in &case.choices {
            let mask = world.oracle.mask(&text, &world.vocabulary);
            prop_assert_eq!(constraint.mask().unwrap(), &mask);
            let Some(token) = world.choose(&mask, choice | 1) else { return Ok(()) };
            constraint.advance(token).unwrap();
            let Some(bytes) = world.vocabulary.bytes(token) else { return Ok(()) };
            text.extend_from_slice(bytes);
        }
    }
}
