//! Unlisted keys of objects are unique: masks against the oracle, which reads the whole text each time.

use domino::{
    Compiler, Constraint, Grammar, Limits, TokenId, TokenSet, Vocabulary,
    grammar::json_schema::{Escapes, Order, SchemaOptions, WhiteSpace},
    oracle::{Oracle, Session},
};
use proptest::{collection::vec, prelude::*};

use crate::promises::generate::config;

const SCHEMAS: [&str; 13] = [
    r#"{"type": "object", "additionalProperties": {"type": "boolean"}}"#,
    r#"{"type": "object"}"#,
    r#"{"type": "object", "properties": {"b": true}, "required": ["b"], "minProperties": 2}"#,
    r#"{"type": "object", "properties": {"b": {"type": "object"}}, "maxProperties": 3}"#,
    r#"{"type": "object", "patternProperties": {"^a*$": {"enum": [1, "a"]}}, "additionalProperties": false}"#,
    r#"{"type": "object", "propertyNames": {"enum": ["a", "b", "ab"]}, "minProperties": 2}"#,
    // The sets of keys below may run out.
    r#"{"type": "object", "propertyNames": {"pattern": "^(a|é|ab|ba|b{2,})$"}}"#,
    r#"{"type": "object", "propertyNames": {"pattern": "^([abé]|bb+a)$"}, "properties": {"a": true}}"#,
    r#"{"type": "object", "propertyNames": {"maxLength": 2, "pattern": "^a*(b\")?$"}}"#,
    // Beside others that may not.
    r#"{"type": "object", "patternProperties": {"^(a|bb+|é)$": {"type": "object"}},
        "additionalProperties": false}"#,
    r#"{"additionalProperties": {"propertyNames": {"pattern": "^(a(b|é)|b+)$"}}}"#,
    r#"{"patternProperties": {"^ab": {"propertyNames": {"pattern": "^(é|ab*|b\\n)$"}}},
        "properties": {"a": true, "b": {"enum": [1]}}}"#,
    r#"{"anyOf": [{"properties": {"a": true, "ab": true}, "additionalProperties": false},
        {"propertyNames": {"pattern": "^(a|ab|é|bb+)$"}}]}"#,
];

/// Tokens beside single bytes.
const WORDS: [&str; 28] = [
    "{\"",
    "\":",
    "\":1",
    ",\"",
    "\"a\"",
    "\"a\":true,",
    "\"a\":1,\"a\"",
    "a\"",
    "ab",
    "b\":1}",
    "\\u00",
    "61",
    "\",\"b\":\"",
    "\"b\":\"",
    "\"\"",
    "\":{\"a\":",
    "é",
    "é\":",
    "a\":[{\"a\":",
    "true,\"a",
    "\\u0061\":1",
    "\":\"a\",\"a\":",
    "}}",
    "\\\"\":",
    "\"é\":1,\"é",
    "é\":1,\"é",
    "\",\"é\":1,\"é",
    "{},\"a",
];

/// Tokens that a random walk prefers, since they lead further: all words, and these bytes.
#[derive(Clone, Copy)]
pub(super) struct Likes {
    pub(super) bytes: &'static [u8],
    /// One choice in this many is of all tokens.
    pub(super) one_in: u16,
}

/// Walks through texts by random tokens, then back by rollback, and compares each mask with the oracle's.
/// Returns the number of masks.
pub(super) fn walk(grammar: &Grammar, words: &[&str], likes: Likes, choices: &[u16]) -> usize {
    let (oracle, vocabulary) = (Oracle::new(grammar).unwrap(), vocabulary(words));
    let compiled = Compiler::new(vocabulary.clone()).compile(grammar).unwrap();
    // The second text comes to places that the first has left something of.
    let texts = [choices, &choices[choices.len().min(1)..]];
    let walks =
        texts.map(|choices| walk_text(&oracle, compiled.constraint(), (&vocabulary, &likes), choices));
    walks.into_iter().sum()
}

/// Walks along one text.
fn walk_text(
    oracle: &Oracle,
    mut constraint: Constraint,
    (vocabulary, likes): (&Vocabulary, &Likes),
    choices: &[u16],
) -> usize {
    let mut text = Vec::new();
    let mut masks = Vec::new();
    for &choice in choices {
        let mask = compare(oracle, &mut constraint, vocabulary, &text);
        assert!(!mask.is_empty());
        let is_liked =
            |token: &TokenId| u8::try_from(token.raw()).map_or(true, |byte| likes.bytes.contains(&byte));
        let liked: Vec<TokenId> = mask.iter().filter(is_liked).collect();
        let all: Vec<TokenId> = mask.iter().collect();
        let tokens = if liked.is_empty() || choice % likes.one_in == 0 { all } else { liked };
        let token = tokens[usize::from(choice / likes.one_in) % tokens.len()];
        masks.push(mask);
        constraint.advance(token).unwrap();
        let Some(bytes) = vocabulary.bytes(token).filter(|_| !constraint.is_ended()) else { break };
        text.extend_from_slice(bytes);
    }
    // Rollback restores what was known of keys.
    for mask in masks.iter().rev() {
        constraint.rollback(1).unwrap();
        assert_eq!(constraint.mask().unwrap(), mask);
    }
    masks.len()
}

/// A vocabulary of all bytes, then these words, then the end of the text.
fn vocabulary(words: &[&str]) -> Vocabulary {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let words = words.iter().map(|word| word.as_bytes().to_vec());
    let mut builder = Vocabulary::builder();
    let mut count = 0;
    for (number, token) in (0..).zip(bytes.chain(words)) {
        builder = builder.token(TokenId::new(number), token);
        count = number;
    }
    builder.end_of_text(TokenId::new(count + 1)).build().unwrap()
}

/// True if the key that the text is in can become a new one. The oracle knows which keys have come, but not
/// whether one is left, so all continuations of a few characters are tried.
fn can_go_on(session: &mut Session<'_>, left: u32) -> bool {
    let alphabet = "ab\"é\\u0612".bytes();
    for byte in alphabet {
        if !session.push(byte) {
            continue;
        }
        // A colon follows a key that is whole.
        let whole = byte == b'"' && session.push(b':');
        if whole {
            session.pop();
        }
        let found = whole || left > 0 && can_go_on(session, left - 1);
        session.pop();
        if found {
            return true;
        }
    }
    false
}

/// Compares the mask with the oracle's, without tokens after which no key is left.
fn compare(oracle: &Oracle, constraint: &mut Constraint, vocabulary: &Vocabulary, text: &[u8]) -> TokenSet {
    let expected = oracle.mask(text, vocabulary);
    let mask = constraint.mask().unwrap().clone();
    let shown = || String::from_utf8_lossy(text).into_owned();
    assert!(mask.is_subset(&expected), "after {}", shown());
    for token in expected.iter().filter(|&token| !mask.contains(token)) {
        let mut session = oracle.session();
        let bytes = vocabulary.bytes(token).unwrap();
        assert!(session.push_all(&[text, bytes].concat()));
        let found = can_go_on(&mut session, 7);
        assert!(!found, "{} after {}", String::from_utf8_lossy(bytes), shown());
    }
    for token in (0..u32::try_from(vocabulary.size()).unwrap()).map(TokenId::new) {
        assert_eq!(
            constraint.clone().allows(token).unwrap(),
            mask.contains(token),
            "{token} after {}",
            shown()
        );
        // The bytes of a refused token go as far one by one as at once.
        let Some(bytes) = vocabulary.bytes(token).filter(|_| !mask.contains(token)) else { continue };
        let mut one_by_one = constraint.clone();
        let singly =
            bytes.iter().take_while(|byte| one_by_one.advance_bytes(&[**byte]).unwrap() == 1).count();
        assert_eq!(constraint.clone().advance_bytes(bytes).unwrap(), singly, "{token} after {}", shown());
    }
    let bytes: Vec<u8> = mask
        .iter()
        .filter(|token| token.raw() < 256)
        .map(|token| u8::try_from(token.raw()).unwrap())
        .collect();
    assert_eq!(constraint.next_bytes().unwrap(), bytes);
    mask
}

/// Two keys share a prefix, so a byte may go on in known keys and lead to no new one.
#[test]
fn a_comma_needs_a_key_that_is_not_known_yet() {
    let schema = r#"{"type": "object", "propertyNames": {"pattern": "^a[bc]$"}}"#;
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Compact);
    let options = options.with_escapes(Escapes::Minimal);
    let grammar = options.parse(schema, &Limits::default()).unwrap().grammar;
    let compiled = Compiler::new(vocabulary(&WORDS)).compile(&grammar).unwrap();
    for (text, has_more) in [(r#"{"ab":1"#, true), (r#"{"ab":1,"ac":1"#, false)] {
        let mut constraint = compiled.constraint();
        assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
        assert_eq!(constraint.next_bytes().unwrap().contains(&b','), has_more, "{text}");
        assert_eq!(constraint.mask().unwrap().contains(TokenId::new(u32::from(b','))), has_more, "{text}");
    }
}

/// Rollback restores keys as far as the history goes, also where it is short.
#[test]
fn rollback_restores_keys_as_far_as_the_history() {
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Compact);
    let grammar = options.parse(r#"{"type": "object"}"#, &Limits::default()).unwrap().grammar;
    let vocabulary = vocabulary(&WORDS);
    let mut limits = Limits::default();
    limits.history = 3;
    let compiled = Compiler::new(vocabulary).limits(limits).compile(&grammar).unwrap();
    let text = br#"{"ab":{"a":1},"b":"ab","a":[]}"#;
    // The second time all moves are known.
    for _ in 0..2 {
        let mut constraint = compiled.constraint();
        for end in 0..text.len() {
            for back in 1..=end.min(3) {
                let mut other = constraint.clone();
                other.rollback(back).unwrap();
                let mut straight = compiled.constraint();
                let before = &text[..end - back];
                assert_eq!(straight.advance_bytes(before).unwrap(), before.len());
                assert_eq!(other.mask().unwrap(), straight.mask().unwrap(), "{back} before {end}");
            }
            assert!(constraint.clone().rollback(4).is_err());
            constraint.mask().unwrap();
            constraint.advance(TokenId::new(u32::from(text[end]))).unwrap();
        }
        assert!(constraint.is_complete());
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn no_key_of_an_object_comes_twice(
        schema in 0..SCHEMAS.len(),
        any_order in any::<bool>(),
        escapes in any::<bool>(),
        choices in vec(any::<u16>(), 1..24),
    ) {
        let options = SchemaOptions::default()
            .with_white_space(WhiteSpace::Compact)
            .with_order(if any_order { Order::Any } else { Order::Schema })
            .with_escapes(if escapes { Escapes::All } else { Escapes::Minimal });
        let grammar = options.parse(SCHEMAS[schema], &Limits::default()).unwrap().grammar;
        // Letters that make keys alike.
        walk(&grammar, &WORDS, Likes { bytes: b"ab\",:}", one_in: 16 }, &choices);
    }
}
