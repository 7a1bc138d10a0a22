//! Lazy trees, trees grown ahead and trees from a file make the same masks, and growing twice makes the same
//! bytes. Damaged trees and trees of another grammar are refused, without harm.

use domino::{
    CompiledGrammar, Compiler, Constraint, Grammar, Limits, Lookahead, Syntax, TokenId, Vocabulary,
    store::{CacheFolder, StoreErrorKind},
};
use proptest::prelude::*;

use crate::promises::generate::{Case, World, case, config};

/// Compiles the grammar with trees from every source.
fn every_way(world: &World, lookahead: Lookahead, tree_bytes: usize) -> Option<Vec<CompiledGrammar>> {
    let mut limits = Limits::default();
    limits.tree_bytes = tree_bytes;
    let compiler = Compiler::new(world.vocabulary.clone()).lookahead(lookahead).limits(limits);
    let lazy = compiler.compile(&world.grammar).ok()?;
    let compile = |compiler: &Compiler| compiler.compile(&world.grammar).unwrap();
    let grown = compile(&compiler);
    grown.grow_trees();
    let read = compile(&compiler);
    let artefact = grown.artefact();
    read.load_artefact(&artefact).unwrap();
    assert!(!lazy.has_trees() && grown.has_trees() && read.has_trees());
    assert!(read.artefact() == artefact, "what is read is not what was written");
    // Nothing in common with the others, and as much from a cache as there can be.
    let folder = tempfile::tempdir().unwrap();
    let cached = || compiler.clone().cache(CacheFolder::new(folder.path()));
    let first = compile(&cached());
    first.grow_trees();
    // Trees are equal if there is room for all of them. Otherwise the order in which states are grown decides
    // which are made.
    let all = tree_bytes == Limits::default().tree_bytes;
    if all {
        assert!(first.artefact() == artefact, "growing twice is not the same");
    }
    let second = compile(&cached());
    assert!(second.has_trees(), "trees are not in the cache");
    for file in CacheFolder::new(folder.path()).files().unwrap().iter().filter(|file| file.kind == "trees") {
        std::fs::remove_file(folder.path().join(&file.name)).unwrap();
    }
    let from_tables = compile(&cached());
    assert!(!from_tables.has_trees());
    from_tables.grow_trees();
    if all {
        assert!(second.artefact() == from_tables.artefact(), "tables from the cache make other trees");
    }
    Some(vec![lazy, grown, read, second, from_tables])
}

fn walk(case: &Case, lookahead: Lookahead, tree_bytes: usize) {
    let world = case.build();
    let Some(ways) = every_way(&world, lookahead, tree_bytes) else { return };
    let mut constraints: Vec<Constraint> = ways.iter().map(CompiledGrammar::constraint).collect();
    let mut text = Vec::new();
    for &choice in &case.choices {
        let mask = constraints[0].mask().unwrap().clone();
        if lookahead == Lookahead::Unbounded {
            assert_eq!(mask, world.oracle.mask(&text, &world.vocabulary));
        }
        for (way, constraint) in constraints.iter_mut().enumerate() {
            assert_eq!(constraint.mask().unwrap(), &mask, "way {way}");
        }
        let Some(token) = world.choose(&mask, choice) else { return };
        for constraint in &mut constraints {
            constraint.advance(token).unwrap();
        }
        let Some(bytes) = world.vocabulary.bytes(token) else { return };
        text.extend_from_slice(bytes);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn lazy_grown_and_loaded_trees_make_the_same_masks(
        case in case(8),
        lookahead in prop_oneof![
            3 => Just(Lookahead::Unbounded),
            1 => (0..3_u32).prop_map(Lookahead::Terminals),
        ],
        // All of them, none, or a few: then the rest is made up for.
        tree_bytes in prop_oneof![2 => Just(Limits::default().tree_bytes), 1 => Just(0), 1 => 1..2000_usize],
    ) {
        walk(&case, lookahead, tree_bytes);
    }

    /// A file with any bit flipped or cut anywhere is refused, and masks are as without it.
    #[test]
    fn damaged_trees_are_refused(
        case in case(1),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u32,
        cut in any::<bool>(),
    ) {
        let world = case.build();
        let Some(grown) = world.compile(Lookahead::Unbounded) else { return Ok(()) };
        let mut artefact = grown.artefact();
        let at = at.index(artefact.len());
        if cut { artefact.truncate(at) } else { artefact[at] ^= 1 << bit }
        let other = world.compile(Lookahead::Unbounded).unwrap();
        prop_assert!(other.load_artefact(&artefact).is_err());
        prop_assert!(!other.has_trees());
        let exact = world.oracle.mask(b"", &world.vocabulary);
        prop_assert_eq!(other.constraint().mask().unwrap().clone(), exact);
    }

    /// Trees of one grammar are refused for another, unless both are equal after lowering.
    #[test]
    fn foreign_trees_are_refused(one in case(1), two in case(1)) {
        let (one, two) = (one.build(), two.build());
        let compile = |world: &World| world.compile(Lookahead::Unbounded);
        let (Some(first), Some(second)) = (compile(&one), compile(&two)) else { return Ok(()) };
        match second.load_artefact(&first.artefact()) {
            Err(error) => prop_assert_eq!(error.kind(), &StoreErrorKind::Key),
            Ok(()) => {
                let exact = two.oracle.mask(b"", &two.vocabulary);
                prop_assert_eq!(second.constraint().mask().unwrap().clone(), exact);
            }
        }
    }
}

/// One cache folder for two vocabularies with the same strings under other ids: neither gets the other's
/// trees, nor trees made of the other's tables.
#[test]
fn trees_and_tables_of_another_vocabulary_are_not_taken() {
    let words = ["a", "b", "c", "ab", "(", ")", "((", "a)", "))", "(b"];
    let vocabulary = |words: &mut dyn Iterator<Item = &&str>| {
        let ids = (1..).map(TokenId::new);
        let builder = Vocabulary::builder().end_of_text(TokenId::new(0));
        words.zip(ids).fold(builder, |builder, (word, id)| builder.token(id, *word)).build().unwrap()
    };
    let [one, other] = [vocabulary(&mut words.iter()), vocabulary(&mut words.iter().rev())];
    let text = r#"root ::= "(" root* ")" | [abc]+"#;
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
    for without in [None, Some("trees"), Some("terminal-tables")] {
        let folder = tempfile::tempdir().unwrap();
        let cache = CacheFolder::new(folder.path());
        let cached = |vocabulary: &Vocabulary| {
            let compiled = Compiler::new(vocabulary.clone()).cache(cache.clone()).compile(&grammar).unwrap();
            compiled.grow_trees();
            compiled
        };
        cached(&one);
        let kinds: Vec<_> = cache.files().unwrap().into_iter().map(|file| file.kind).collect();
        assert!(["trees", "terminal-tables"].iter().all(|kind| kinds.iter().any(|found| found == kind)));
        for file in cache.files().unwrap().iter().filter(|file| Some(&*file.kind) == without) {
            std::fs::remove_file(folder.path().join(&file.name)).unwrap();
        }
        for vocabulary in [&other, &one] {
            let mut found = cached(vocabulary).constraint();
            let mut plain = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint();
            for byte in b"((ab)(c))" {
                assert_eq!(found.mask().unwrap(), plain.mask().unwrap(), "without {without:?}");
                assert_eq!(found.advance_bytes(&[*byte]).unwrap(), plain.advance_bytes(&[*byte]).unwrap());
            }
        }
    }
}
