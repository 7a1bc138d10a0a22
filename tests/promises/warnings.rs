//! Warnings about random grammars are true: their texts can follow, and cost what is said.

use proptest::prelude::*;

use super::generate::{case, config};
use domino::Lookahead;

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn warnings_are_true(case in case(1)) {
        let world = case.build();
        let Some(compiled) = world.compile(Lookahead::Unbounded) else { return Ok(()) };
        for warning in compiled.warnings() {
            let mut text = warning.before.clone();
            text.extend(warning.repeated.repeat(3));
            prop_assert!(world.oracle.viable(&text), "{:?}: {}", case.rules, warning);
            // Sessions on a grammar of their own, so that nothing is known yet.
            let fresh = world.compile(Lookahead::Unbounded).unwrap();
            let mut constraint = fresh.constraint();
            constraint.advance_bytes(&warning.before).unwrap();
            let mut costs = vec![constraint.state_sizes()];
            for _ in 0..64 {
                prop_assert_eq!(constraint.advance_bytes(&warning.repeated).unwrap(), warning.repeated.len());
                costs.push(constraint.state_sizes());
            }
            if warning.kind.is_grave() {
                let work = |from: usize, to: usize| costs[to].work - costs[from].work;
                let threads = costs[64].threads > costs[32].threads;
                prop_assert!(work(48, 64) > work(16, 32) || threads, "{:?}: {}", case.rules, warning);
            } else {
                let most = costs.iter().map(|sizes| sizes.threads).max();
                prop_assert!(most >= Some(2) && most >= Some(warning.threads), "{:?}: {}", case.rules, warning);
            }
        }
    }
}
