//! Promise 3, k-monotone: more lookahead allows more, from `k = 0` up to the exact mask, and a large `k`
//! allows the exact mask.

use domino::{Constraint, Lookahead, TokenSet};
use proptest::prelude::*;

use super::generate::{Case, World, case, config};

const LOOKAHEADS: [Lookahead; 7] = [
    Lookahead::Terminals(0),
    Lookahead::Terminals(1),
    Lookahead::Terminals(2),
    Lookahead::Terminals(3),
    Lookahead::Terminals(6),
    // No token of the random vocabularies has this many bytes, so none has this many terminals.
    Lookahead::Terminals(1_000),
    Lookahead::Unbounded,
];

fn constraints(world: &World) -> Option<Vec<Constraint>> {
    LOOKAHEADS.into_iter().map(|lookahead| Some(world.compile(lookahead)?.constraint())).collect()
}

fn walk(case: &Case) {
    let world = case.build();
    let Some(mut constraints) = constraints(&world) else { return };
    let mut text = Vec::new();
    for &choice in &case.choices {
        let masks: Vec<TokenSet> =
            constraints.iter_mut().map(|constraint| constraint.mask().unwrap().clone()).collect();
        for pair in masks.windows(2) {
            assert!(pair[0].is_subset(&pair[1]), "{:?} is not in {:?}", pair[0], pair[1]);
        }
        let exact = world.oracle.mask(&text, &world.vocabulary);
        assert_eq!(masks[masks.len() - 1], exact);
        assert_eq!(masks[masks.len() - 2], exact, "k = 1000 is not exact");
        // Along the least mask that allows anything; those that allow nothing have come to their end.
        let Some(at) = masks.iter().position(|mask| world.choose(mask, choice).is_some()) else { return };
        constraints.drain(..at.min(constraints.len() - 2));
        let Some(token) = world.choose(&masks[at], choice) else { return };
        for constraint in &mut constraints {
            constraint.advance(token).unwrap();
        }
        let Some(bytes) = world.vocabulary.bytes(token) else { return };
        text.extend_from_slice(bytes);
    }
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn more_lookahead_allows_more(case in case(10)) {
        walk(&case);
    }
}
