//! Masks by a walk over the trie equal those by trees, and a step in pieces equals one at once.

use domino::{Compiler, Constraint, Limits, Patience, StepError, TokenSet};
use proptest::prelude::*;

use crate::promises::generate::{Case, World, case, config};

/// Budgets that are never exhausted, with pieces of `piece` units of work.
fn limits(piece: usize) -> Limits {
    let mut limits = Limits::default();
    (limits.step_work, limits.step_units, limits.text_units) = (piece, usize::MAX, usize::MAX);
    limits
}

/// Calls a step until it is done; also returns the number of pieces.
fn pieces<T>(mut step: impl FnMut() -> Result<T, StepError>) -> (T, usize) {
    for count in 1..1_000_000 {
        match step() {
            Ok(done) => return (done, count),
            Err(error) => assert!(error.can_go_on(), "{error}"),
        }
    }
    panic!("a step that never ends");
}

/// Walks along the case's choices and holds each mask against the oracle's.
fn walk(
    case: &Case,
    world: &World,
    mut constraint: Constraint,
    mut mask: impl FnMut(&mut Constraint) -> TokenSet,
) {
    let mut text = Vec::new();
    for &choice in &case.choices {
        let exact = world.oracle.mask(&text, &world.vocabulary);
        assert_eq!(mask(&mut constraint), exact);
        let Some(token) = world.choose(&exact, choice) else { break };
        pieces(|| constraint.advance(token));
        let Some(bytes) = world.vocabulary.bytes(token) else { break };
        text.extend_from_slice(bytes);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn walks_over_the_trie_are_exact(case in case(8)) {
        let world = case.build();
        let mut limits = limits(usize::MAX);
        limits.tree_work = 0;
        let compiler = Compiler::new(world.vocabulary.clone()).limits(limits);
        let Some(compiled) = world.compile_with(compiler) else { return Ok(()) };
        walk(&case, &world, compiled.constraint(), |constraint| constraint.mask().unwrap().clone());
    }

    /// A mask made in many small pieces. The work of each piece is kept, or this would never end.
    #[test]
    fn a_step_in_pieces_makes_the_mask_of_a_whole_step(
        case in case(6), piece in 2_000..6_000_usize, trees in any::<bool>(),
    ) {
        let world = case.build();
        let mut limits = limits(piece);
        limits.tree_work = if trees { 500 } else { 0 };
        let compiler = Compiler::new(world.vocabulary.clone()).limits(limits);
        let Some(compiled) = world.compile_with(compiler) else { return Ok(()) };
        walk(&case, &world, compiled.constraint(), |constraint| {
            pieces(|| constraint.mask().cloned()).0
        });
        // A patient session does the same by itself.
        let patient = compiled.constraint().patient(Patience::whole());
        walk(&case, &world, patient, |constraint| constraint.mask().unwrap().clone());
    }
}
