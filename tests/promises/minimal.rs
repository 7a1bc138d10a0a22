//! Promise 2, minimally invasive: with unbounded lookahead the mask is the oracle's, bit for bit, and all
//! other questions have consistent answers.

use domino::{Compiler, Constraint, Lookahead, StepErrorKind, TokenId, TokenSet, oracle::Oracle};
use proptest::prelude::*;

use super::generate::{Case, Node, Rules, World, case, config, counted_case};

/// Asks the constraint all questions after `text`, and compares the answers with the oracle's `mask`.
fn compare(world: &World, constraint: &mut Constraint, text: &[u8], mask: &TokenSet) {
    // Each question goes to a clone, so that no answer relies on an earlier one.
    for number in 0..mask.size() {
        let token = TokenId::from_index(number).unwrap();
        assert_eq!(constraint.clone().allows(token).unwrap(), mask.contains(token), "allows({token})");
    }
    let forced = mask.iter().next().filter(|_| mask.len() == 1);
    assert_eq!(constraint.clone().forced().unwrap(), forced, "forced");
    assert_eq!(constraint.clone().mask().unwrap(), mask, "mask");
    assert_eq!(constraint.is_complete(), world.oracle.accepts(text), "is_complete");
    assert!(!constraint.is_ended());
    let next = (0..=255).filter(|&byte| world.oracle.viable(&[text, &[byte]].concat())).collect::<Vec<u8>>();
    assert_eq!(constraint.clone().next_bytes().unwrap(), next, "next_bytes");
    // The same questions go to the constraint itself, one after another.
    for token in mask.iter() {
        assert!(constraint.allows(token).unwrap(), "allows({token}) again");
    }
    assert_eq!(constraint.mask().unwrap(), mask, "mask again");
    assert_eq!(constraint.forced().unwrap(), forced, "forced again");
}

/// Walks along the oracle's masks, comparing at every step.
pub(super) fn walk(case: &Case) {
    let world = case.build();
    let Some(compiled) = world.compile(Lookahead::Unbounded) else { return };
    let mut constraint = compiled.constraint();
    let mut text = Vec::new();
    for &choice in &case.choices {
        let mask = world.oracle.mask(&text, &world.vocabulary);
        compare(&world, &mut constraint, &text, &mask);
        let Some(token) = world.choose(&mask, choice) else { return };
        constraint.advance(token).unwrap();
        if world.ends(token) {
            ended(&mut constraint);
            return;
        }
        text.extend_from_slice(world.vocabulary.bytes(token).unwrap());
    }
    // Caches that earlier steps filled change nothing.
    let mask = world.oracle.mask(&text, &world.vocabulary);
    let mut cold = world.compile(Lookahead::Unbounded).unwrap().constraint();
    for at in 0..text.len() {
        assert_eq!(cold.advance_bytes(&text[at..=at]).unwrap(), 1);
    }
    compare(&world, &mut cold, &text, &mask);
}

/// After end of text nothing may follow.
fn ended(constraint: &mut Constraint) {
    assert!(constraint.is_ended());
    assert!(constraint.mask().unwrap().is_empty());
    assert_eq!(constraint.forced().unwrap(), None);
    assert!(constraint.next_bytes().unwrap().is_empty());
    for number in 0..constraint.mask().unwrap().size() {
        let token = TokenId::from_index(number).unwrap();
        assert!(!constraint.allows(token).unwrap());
        let error = constraint.advance(token).unwrap_err();
        assert_eq!(error.kind(), &StepErrorKind::Refused(token));
    }
}

/// Number of bytes that `advance_bytes` takes, by the oracle.
fn bytes_that_follow(world: &World, text: &[u8], bytes: &[u8]) -> usize {
    (1..=bytes.len()).take_while(|&end| world.oracle.viable(&[text, &bytes[..end]].concat())).count()
}

/// Repetitions with larger counts than those of [`rules`](super::generate::rules), perhaps nested, and the
/// length of a text to try. Large ones are not nested, so that there is one way to count.
fn large_counts() -> impl Strategy<Value = (Rules, usize)> {
    let text = |text: &str| Node::Literal(text.into());
    let repeat = |node, (min, more): (u32, Option<u32>)| {
        Node::Repeat(Box::new(node), min, more.map(|more| min + more))
    };
    // Rule 1 is not regular.
    let simple = prop_oneof![Just(text("a")), Just(text("aa")), Just(Node::Rule(1))];
    let edge = prop_oneof![Just(0_u32), 0..20_u32, 250..260_u32, 505..520_u32, 0..600_u32];
    let large = (simple.clone(), (edge.clone(), prop::option::of(edge)))
        .prop_map(move |(node, counts)| repeat(node, counts));
    let large = (large, 0..1_200_usize);
    let ambiguous = prop_oneof![
        simple,
        Just(Node::Alternatives(vec![text("a"), text("aa")])),
        Just(Node::Alternatives(vec![text("aaa"), text("")])),
    ];
    let counts = |largest: u32| (0..largest, prop::option::of(0..largest));
    let twice =
        (ambiguous, counts(5), counts(25), any::<bool>()).prop_map(move |(node, small, larger, swap)| {
            let (inner, outer) = if swap { (larger, small) } else { (small, larger) };
            repeat(repeat(node, inner), outer)
        });
    prop_oneof![large, (twice, 0..250_usize)].prop_map(move |(node, length)| {
        let nested = Node::Sequence(vec![text("("), Node::This, text(")")]);
        let nested = Node::Alternatives(vec![text("a"), nested]);
        (Rules(vec![Node::Sequence(vec![node, text("b")]), nested]), length)
    })
}

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn steps_through_large_counts_are_exact((rules, length) in large_counts()) {
        let grammar = rules.build();
        let oracle = Oracle::new(&grammar).unwrap();
        let mut constraint =
            Compiler::new(crate::support::decider::byte_vocabulary()).compile(&grammar).unwrap().constraint();
        let mut session = oracle.session();
        for at in 0..=length {
            // `b` may follow where the count may end.
            for byte in *b"ab" {
                let expected = session.push(byte);
                if expected {
                    session.pop();
                }
                let token = TokenId::new(u32::from(byte));
                prop_assert_eq!(constraint.allows(token).unwrap(), expected, "{} after {}", token, at);
            }
            let more = session.push(b'a');
            prop_assert_eq!(constraint.advance_bytes(b"a").unwrap(), usize::from(more));
            if !more {
                break;
            }
        }
    }
}

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn masks_are_exact(case in case(12)) {
        walk(&case);
    }

    #[test]
    fn masks_of_counted_parts_are_exact(case in counted_case(12)) {
        walk(&case);
    }

    #[test]
    fn strings_of_bytes_are_read_as_far_as_the_oracle_allows(case in case(8)) {
        let world = case.build();
        let Some(compiled) = world.compile(Lookahead::Unbounded) else { return Ok(()) };
        let mut constraint = compiled.constraint();
        let mut text = Vec::new();
        for &choice in &case.choices {
            // Several tokens at once, the last of them a random one.
            let mask = world.oracle.mask(&text, &world.vocabulary);
            let mut bytes = Vec::new();
            if let Some(token) = world.choose(&mask, choice | 1) {
                bytes.extend_from_slice(world.vocabulary.bytes(token).unwrap_or_default());
            }
            let random = TokenId::from_index(usize::from(choice) % world.vocabulary.size()).unwrap();
            bytes.extend_from_slice(world.vocabulary.bytes(random).unwrap_or_default());
            let expected = bytes_that_follow(&world, &text, &bytes);
            prop_assert_eq!(constraint.advance_bytes(&bytes).unwrap(), expected);
            if expected == bytes.len() {
                text.extend_from_slice(&bytes);
            }
            let mask = world.oracle.mask(&text, &world.vocabulary);
            prop_assert_eq!(constraint.mask().unwrap(), &mask, "after {:?}", text.escape_ascii().to_string());
        }
    }
}
