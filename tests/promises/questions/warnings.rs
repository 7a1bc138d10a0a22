//! Warnings about random grammars are true: their texts can follow, and cost as claimed.

use std::iter;

use proptest::prelude::*;

use crate::promises::generate::{World, case, config};
use domino::{
    Compiler, Limits, Lookahead, StepErrorKind,
    inspect::{StateSizes, Warning},
};

/// Sizes of states along 64 repetitions; `None` if one of them exhausts a budget, as a bad grammar may.
fn costs(world: &World, warning: &Warning) -> Option<Vec<StateSizes>> {
    let mut limits = Limits::default();
    limits.step_work = 50_000;
    let compiler = Compiler::new(world.vocabulary.clone()).limits(limits);
    let mut constraint = world.compile_with(compiler).unwrap().constraint();
    let mut go = |text: &[u8]| match constraint.advance_bytes(text) {
        Ok(taken) => {
            assert_eq!(taken, text.len());
            Some(constraint.state_sizes())
        }
        Err(error) => {
            assert!(matches!(error.kind(), StepErrorKind::Limit(_)), "{error}");
            None
        }
    };
    let first = go(&warning.before);
    iter::once(first).chain(iter::repeat_with(|| go(&warning.repeated)).take(64)).collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn warnings_about_random_grammars_are_true(case in case(1)) {
        let world = case.build();
        let Some(compiled) = world.compile(Lookahead::Unbounded) else { return Ok(()) };
        for warning in compiled.warnings() {
            let mut text = warning.before.clone();
            text.extend(warning.repeated.repeat(3));
            prop_assert!(world.oracle.viable(&text), "{:?}: {}", case.rules, warning);
            // Sessions on a grammar of their own, so that nothing is known yet.
            let Some(costs) = costs(&world, &warning) else { continue };
            if warning.kind.is_grave() {
                let work = |from: usize, to: usize| costs[to].work - costs[from].work;
                let threads = costs[64].threads > costs[32].threads;
                prop_assert!(work(48, 64) > work(16, 32) || threads, "{:?}: {}", case.rules, warning);
            } else {
                let most = costs.iter().map(|sizes| sizes.threads).max();
                prop_assert!(
                    most >= Some(2) && most >= Some(warning.threads),
                    "{:?}: {}", case.rules, warning
                );
            }
        }
    }
}
