//! Parts in any order: the oracle is held against all permutations written out, and the engine against the
//! oracle.

use domino::{Lookahead, oracle::Oracle};
use proptest::{collection::vec, prelude::*};

use crate::promises::{
    generate::{Case, Node, Parts, Rules, case_of, config, node, text},
    minimal::walk,
    questions::completion,
};

/// A part that is not empty; rule 1 is the list's own, so lists nest.
fn part() -> impl Strategy<Value = Node> {
    let begun = |(text, rest): (String, Node)| Node::Sequence(vec![Node::Literal(text.into_bytes()), rest]);
    let literal = text(1..=3).prop_map(|text| Node::Literal(text.into_bytes()));
    let nested = text(1..=1).prop_map(|text| {
        let quote = || Node::Literal(text.clone().into_bytes());
        Node::Sequence(vec![quote(), Node::Rule(1), quote()])
    });
    prop_oneof![3 => literal, 3 => (text(1..=1), node(1)).prop_map(begun), 1 => nested]
}

/// Lists of up to six parts, each with a name of its own or `others` without; some parts share a name.
fn list(others: bool) -> impl Strategy<Value = Node> {
    let name = if others {
        prop::option::weighted(0.8, 0..6_u32).boxed()
    } else {
        (0..6_u32).prop_map(Some).boxed()
    };
    let marks = prop_oneof![3 => Just(0_u8), 1 => 0..4_u8];
    let parts = vec((part(), name, marks.clone()), 1..=6);
    let counts = (0..4_u64, prop::option::weighted(0.3, 0..6_u64));
    let required = vec(prop::bool::weighted(0.25), 6);
    (parts, part(), required, marks, counts).prop_map(|(parts, separator, required, marks, (min, max))| {
        // A name without parts can be required only where nothing is meant to be possible, which is rare.
        let required = (0..).zip(required).map(|(name, required)| {
            required && (parts.iter().any(|part| part.1 == Some(name)) || parts.len() == 3)
        });
        let required = required.collect();
        let min = if min > 2 { 0 } else { min };
        Node::AnyOrder(Box::new(Parts { parts, separator, required, marks, min, max }))
    })
}

/// Grammars with a list of parts in any order.
fn rules(others: bool) -> impl Strategy<Value = Rules> {
    (list(others), node(2), vec(node(2), 0..3), any::<bool>()).prop_map(|(list, beside, more, alone)| {
        let start = Node::Sequence(vec![Node::Rule(1), beside]);
        let mut rules = vec![if alone { Node::Rule(1) } else { start }, list];
        rules.extend(more);
        Rules(rules)
    })
}

/// All permutations of these parts, of up to as many parts as there are names.
fn permutations(list: &Parts) -> Node {
    let mut ways = Vec::new();
    let mut open: Vec<Vec<usize>> = vec![Vec::new()];
    while let Some(chosen) = open.pop() {
        let names: Vec<_> = chosen.iter().map(|&part| list.parts[part].1).collect();
        let marks = chosen.iter().fold(0, |marks, &part| marks | list.parts[part].2);
        let count = chosen.len() as u64;
        let complete = (0..).zip(&list.required).all(|(name, &must)| !must || names.contains(&Some(name)));
        let within = count >= list.min.max(1) && list.max.is_none_or(|max| count <= max);
        if complete && within && marks & list.marks == list.marks {
            let mut row = Vec::new();
            for &part in &chosen {
                row.extend((!row.is_empty()).then(|| list.separator.clone()));
                row.push(list.parts[part].0.clone());
            }
            ways.push(Node::Sequence(row));
        }
        let more = (0..list.parts.len()).filter(|&part| !names.contains(&list.parts[part].1));
        open.extend(more.map(|part| [&chosen[..], &[part]].concat()));
    }
    Node::Alternatives(ways)
}

fn written_out(rules: &Rules) -> Rules {
    let of = |node: &Node| match node {
        Node::AnyOrder(list) => permutations(list),
        other => other.clone(),
    };
    Rules(rules.0.iter().map(of).collect())
}

fn case(steps: usize) -> impl Strategy<Value = Case> {
    case_of(rules(true), steps)
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn parts_in_any_order_are_all_permutations(case in case_of(rules(false), 16)) {
        let world = case.build();
        let plain = Oracle::new(&written_out(&case.rules).build()).unwrap();
        prop_assert_eq!(world.oracle.has_sentence(), plain.has_sentence());
        let mut text = Vec::new();
        for &choice in &case.choices {
            let mask = world.oracle.mask(&text, &world.vocabulary);
            prop_assert_eq!(&mask, &plain.mask(&text, &world.vocabulary));
            let Some(token) = world.choose(&mask, choice).filter(|&token| !world.ends(token)) else { break };
            text.extend_from_slice(world.vocabulary.bytes(token).unwrap());
        }
    }

    #[test]
    fn masks_in_any_order_are_exact(case in case(16)) {
        walk(&case);
    }

    #[test]
    fn completions_in_any_order_are_shortest(case in case(6)) {
        let world = case.build();
        let Some(compiled) = world.compile(Lookahead::Unbounded) else { return Ok(()) };
        let mut constraint = compiled.constraint();
        let mut text = Vec::new();
        for &choice in &case.choices {
            completion::compare(&world, &mut constraint, &text);
            let mask = world.oracle.mask(&text, &world.vocabulary);
            let Some(token) = world.choose(&mask, choice).filter(|&token| !world.ends(token)) else { break };
            constraint.advance(token).unwrap();
            text.extend_from_slice(world.vocabulary.bytes(token).unwrap());
        }
    }
}
