//! Promise 1, sound: at any lookahead, each generated text is a prefix of a sentence, and a sentence when it
//! ends by end of text. Tokens outside of the mask are refused by all other calls.

use domino::{Lookahead, StepErrorKind, TokenId};
use proptest::prelude::*;

use super::generate::{Case, case, config};

/// Walks along the engine's own masks.
fn walk(case: &Case, lookahead: Lookahead) {
    let world = case.build();
    let Some(compiled) = world.compile(lookahead) else { return };
    let mut constraint = compiled.constraint();
    let mut session = world.oracle.session();
    let mut text: Vec<u8> = Vec::new();
    for &choice in &case.choices {
        // `allows` is asked of one that has no mask to look at.
        let mut asked = constraint.clone();
        let mask = constraint.mask().unwrap().clone();
        assert_eq!(constraint.is_complete(), session.is_complete());
        for number in 0..mask.size() {
            let token = TokenId::from_index(number).unwrap();
            assert_eq!(asked.allows(token).unwrap(), mask.contains(token), "allows({token})");
            if mask.contains(token) {
                let viable = match world.vocabulary.bytes(token) {
                    Some(bytes) => world.oracle.viable(&[&text[..], bytes].concat()),
                    None => world.ends(token) && session.is_complete(),
                };
                assert!(viable, "{token} cannot follow {:?}", text.escape_ascii().to_string());
            }
        }
        let refused = TokenId::from_index(usize::from(choice) % (mask.size() + 3)).unwrap();
        // Tokens that only a larger lookahead allows can be advanced by all the same.
        if !mask.contains(refused) && !world.oracle.mask(&text, &world.vocabulary).contains(refused) {
            let error = constraint.advance(refused).unwrap_err();
            assert_eq!(error.kind(), &StepErrorKind::Refused(refused));
            assert_eq!(constraint.mask().unwrap(), &mask, "an error has moved the constraint");
        }
        let Some(token) = world.choose(&mask, choice) else { return };
        constraint.advance(token).unwrap();
        if world.ends(token) {
            assert!(world.oracle.accepts(&text), "{:?} ended", text.escape_ascii().to_string());
            assert!(constraint.is_ended() && constraint.mask().unwrap().is_empty());
            return;
        }
        let bytes = world.vocabulary.bytes(token).unwrap();
        assert!(session.push_all(bytes));
        text.extend_from_slice(bytes);
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn generated_texts_are_prefixes_of_sentences(
        case in case(16),
        lookahead in prop_oneof![(0..4_u32).prop_map(Lookahead::Terminals), Just(Lookahead::Unbounded)],
    ) {
        walk(&case, lookahead);
    }
}
