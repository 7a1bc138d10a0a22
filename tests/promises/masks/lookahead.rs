//! Meaning of a finite lookahead: a token is in the mask for `k` if and only if it begins at most `k`
//! terminals past the first one it touches, in the reading with the fewest. With unbounded `k`, the choice of
//! terminals changes nothing.

use domino::{
    CompiledGrammar, Compiler, Constraint, Grammar, Limits, Lookahead, Syntax, Terminals, TokenId, TokenSet,
    Vocabulary, oracle::lookahead::FurtherTerminals,
};
use proptest::prelude::*;

use crate::promises::generate::{Case, World, case, config, counted_case};

const MOST: u32 = 3;

fn compile(world: &World, lookahead: Lookahead, terminals: Terminals) -> Option<CompiledGrammar> {
    world.compile_with(world.compiler().lookahead(lookahead).terminals(terminals))
}

/// Compares masks and single tokens with the count, at every `k` up to [`MOST`].
fn walk(case: &Case, terminals: Terminals) {
    let world = case.build();
    let Some(unbounded) = compile(&world, Lookahead::Unbounded, terminals) else { return };
    let counter = FurtherTerminals::new(&unbounded).unwrap();
    let mut counted = counter.session();
    let mut constraints: Vec<Constraint> = (0..=MOST)
        .map(|k| compile(&world, Lookahead::Terminals(k), terminals).unwrap().constraint())
        .collect();
    let mut text = Vec::new();
    for &choice in &case.choices {
        let exact = world.oracle.mask(&text, &world.vocabulary);
        let mut masks = vec![TokenSet::empty(exact.size()); constraints.len()];
        for token in (0..exact.size()).map(|token| TokenId::from_index(token).unwrap()) {
            let bytes = world.vocabulary.bytes(token).filter(|bytes| !bytes.is_empty());
            // The end of a text takes no terminal.
            let further = match bytes {
                Some(bytes) => counted.further(bytes),
                None => exact.contains(token).then_some(0),
            };
            assert_eq!(further.is_some(), exact.contains(token), "{token}");
            let Some(further) = further else { continue };
            masks.iter_mut().zip(0..).filter(|(_, k)| further <= *k).for_each(|(mask, _)| mask.insert(token));
        }
        for ((constraint, mask), k) in constraints.iter_mut().zip(&masks).zip(0..) {
            // A clone without a mask answers `allows` by itself.
            let mut asked = constraint.clone();
            for token in (0..exact.size() + 2).map(|token| TokenId::from_index(token).unwrap()) {
                let allows = asked.allows(token).unwrap();
                assert_eq!(
                    allows,
                    mask.contains(token),
                    "{token} at k = {k} after {:?}",
                    text.escape_ascii().to_string()
                );
            }
            assert_eq!(
                constraint.mask().unwrap(),
                mask,
                "k = {k} after {:?}",
                text.escape_ascii().to_string()
            );
        }
        let Some(token) = world.choose(&exact, choice) else { return };
        let Some(bytes) = world.vocabulary.bytes(token) else { return };
        constraints.iter_mut().for_each(|constraint| constraint.advance(token).unwrap());
        assert!(counted.push(bytes));
        text.extend_from_slice(bytes);
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn finite_lookahead_counts_further_terminals(case in case(6), written: bool) {
        walk(&case, if written { Terminals::Written } else { Terminals::Folded });
    }

    #[test]
    fn finite_lookahead_counts_further_terminals_of_counted_parts(case in counted_case(6), written: bool) {
        walk(&case, if written { Terminals::Written } else { Terminals::Folded });
    }

    #[test]
    fn unbounded_masks_are_the_same_over_all_terminals(case in case(10)) {
        let world = case.build();
        let (Some(folded), Some(written)) = (
            compile(&world, Lookahead::Unbounded, Terminals::Folded),
            compile(&world, Lookahead::Unbounded, Terminals::Written),
        ) else { return Ok(()) };
        let (mut folded, mut written) = (folded.constraint(), written.constraint());
        let mut text = Vec::new();
        for &choice in &case.choices {
            let mask = world.oracle.mask(&text, &world.vocabulary);
            prop_assert_eq!(folded.mask().unwrap(), &mask);
            prop_assert_eq!(written.mask().unwrap(), &mask, "after {:?}", text.escape_ascii().to_string());
            prop_assert_eq!(folded.is_complete(), written.is_complete());
            let Some(token) = world.choose(&mask, choice) else { return Ok(()) };
            folded.advance(token).unwrap();
            written.advance(token).unwrap();
            let Some(bytes) = world.vocabulary.bytes(token) else { return Ok(()) };
            text.extend_from_slice(bytes);
        }
    }
}

/// The least `k` at which a token may follow a text; `None` if there is none up to 6.
fn least(grammar: &Grammar, terminals: Terminals, text: &str, token: &str) -> Option<u32> {
    let vocabulary = Vocabulary::builder()
        .all_bytes()
        .end_of_text(TokenId::new(256))
        .token(TokenId::new(257), token)
        .build()
        .unwrap();
    (0..7).find(|&k| {
        let compiler =
            Compiler::new(vocabulary.clone()).lookahead(Lookahead::Terminals(k)).terminals(terminals);
        let mut constraint = compiler.compile(grammar).unwrap().constraint();
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
        let allows = constraint.clone().allows(TokenId::new(257)).unwrap();
        assert_eq!(constraint.mask().unwrap().contains(TokenId::new(257)), allows);
        allows
    })
}

/// Counts of the paper (3.4), in its listing 7 and in a small grammar, and the counts that are left where
/// regular parts are folded.
#[test]
fn terminals_ahead_are_counted_as_in_the_paper() {
    let rpg = crate::grammar::corpus::grammar("paper/rpg");
    let inside = r#"{"id":1,"description":"A nimble fighter","name"#;
    for (token, written, folded) in [
        // Inside the literal, at its end, and into the next two.
        ("\"", Some(0), Some(0)),
        ("\":", Some(1), Some(0)),
        ("\":\"", Some(2), Some(0)),
        ("\": \"", Some(3), Some(0)),
        ("\" : \"", Some(4), Some(0)),
        ("\":\"a", Some(2), Some(0)),
        ("x", None, None),
    ] {
        assert_eq!(least(&rpg, Terminals::Written, inside, token), written, "{token}");
        assert_eq!(least(&rpg, Terminals::Folded, inside, token), folded, "{token}");
    }
    // After a terminal that is over, the next one is the first that a token touches.
    let text = r#"root ::= "(" name ")" root?   name ::= [a-z]+"#;
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
    for (text, token, k) in [
        ("", "(", 0),
        ("", "(a", 1),
        ("(a", "b", 0),
        ("(a", ")", 0),
        ("(a", "b)", 1),
        ("(a", ")(", 1),
        ("(a", "b)(c", 3),
    ] {
        assert_eq!(least(&grammar, Terminals::Written, text, token), Some(k), "{token} after {text}");
    }
}
