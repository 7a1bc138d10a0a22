//! Comparisons, in every state, of strings counted beside their automaton with the product of the two.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{
    StringSet,
    counts::listed::{distances, index, step},
    spelling::{Style, quoted},
};
use crate::grammar::{
    Automaton, Expr, LengthBounded, PatternKind, Span,
    json_schema::{
        leaf::ValueSpelling,
        probe::{accepts, grammar},
    },
    spelled::Unfolded,
};

/// The automaton of a pattern, and the automaton of its strings within bounds.
fn automata(pattern: &str, (min, max): (u32, u32), style: Style) -> (Automaton, Automaton) {
    let set = StringSet::from_pattern(pattern).unwrap();
    let (.., dfa) = set.windows().last().unwrap();
    let within = dfa.within(u64::from(min), Some(u64::from(max))).unwrap();
    (quoted(dfa, style).unwrap(), quoted(&within, style).unwrap())
}

/// The bytes of a longest text of a finite language.
fn longest(automaton: &Automaton) -> usize {
    let (mut states, mut bytes) = (HashSet::from([0]), 0);
    loop {
        let edges = states.iter().flat_map(|&state: &u32| &automaton.states()[state as usize].edges);
        states = edges.map(|edge| edge.to).collect();
        if states.is_empty() {
            return bytes;
        }
        bytes += 1;
    }
}

const PATTERNS: [&str; 10] = [
    r"^$|(^(?:\S+\s+){0,3}\S+$)",
    r"^[a-z\d]+(?:-[a-z\d]+)*$",
    "^(aa)*$",
    "^(aaa|😀é)*[^a]?$",
    "^https?://[^/]+(/.*)?$",
    r"^[\u0000-\u001f]+$",
    "é.*é",
    "^[0-9a-f]{8}-[0-9a-f]{4}$",
    r"^(\\|/|\n)*$",
    "^.{3}(.{4})*$",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn bounded_strings_agree_with_the_product_automaton(
        pattern in prop::sample::select(&PATTERNS[..]),
        min in prop_oneof![0..3_u32, 0..24_u32],
        more in prop_oneof![0..4_u32, 0..24_u32],
        minimal: bool,
    ) {
        let (bounds, style) = ((min, min + more), if minimal { Style::Minimal } else { Style::All });
        let (automaton, product) = automata(pattern, bounds, style);
        let is_empty = product.states().len() == 1 && !product.states()[0].accepts;
        let Some(bounded) = LengthBounded::new(&automaton, bounds.0, bounds.1) else {
            // With few escapes, a state may be both between characters and inside of one.
            prop_assert!(is_empty || minimal, "{} has no strings", pattern);
            return Ok(());
        };
        prop_assert!(!is_empty);
        let listed = bounded.product(100_000).unwrap();
        let distances = distances(&product);
        // All triples of states that one text leads to.
        let (mut met, mut open) = (HashSet::from([(0, 0, 0)]), vec![(0, 0, 0)]);
        while let Some((one, other, third)) = open.pop() {
            prop_assert_eq!(bounded.accepts(one), product.states()[other as usize].accepts);
            prop_assert_eq!(bounded.accepts(one), listed.states()[third as usize].accepts);
            prop_assert_eq!(bounded.distance(one), distances[other as usize]);
            prop_assert!((one as usize) < bounded.bound());
            for byte in 0..=u8::MAX {
                let to = (bounded.step(one, byte), step(&product, other, byte), step(&listed, third, byte));
                let leads = (to.0.is_some(), to.0.is_some());
                prop_assert_eq!(leads, (to.1.is_some(), to.2.is_some()), "{:?}", bounded.place(one));
                if let (Some(one), Some(other), Some(third)) = to
                    && met.insert((one, other, third))
                {
                    open.push((one, other, third));
                }
            }
        }
        prop_assert_eq!(Some(bounded.shortest()), product.shortest());
        let longest = longest(&product);
        prop_assert!(bounded.is_within(longest) && !bounded.is_within(longest - 1));
    }

    /// The edges of a place with room are the edges that it has without bounds.
    #[test]
    fn places_with_room_have_the_edges_without_bounds(
        pattern in prop::sample::select(&PATTERNS[..]),
        min in 0..10_u32,
        more in 0..30_u32,
    ) {
        let (automaton, _) = automata(pattern, (0, 0), Style::All);
        let Some(bounded) = LengthBounded::new(&automaton, min, min + more) else { return Ok(()) };
        for start in bounded.reached(100_000).unwrap() {
            let Some(room) = bounded.room(start) else { continue };
            let (mut met, mut open) = (HashSet::from([start]), vec![start]);
            while let Some(state) = open.pop() {
                let (of, count) = bounded.place(state);
                if count - bounded.place(start).1 == room {
                    continue;
                }
                for edge in &automaton.states()[of as usize].edges {
                    let to = bounded.step(state, edge.first);
                    let places = (bounded.place(state), bounded.place(start));
                    prop_assert!(to.is_some(), "{:?} from {:?}", places.0, places.1);
                    open.extend(to.filter(|to| met.insert(*to)));
                }
            }
        }
    }
}

/// Without a greatest length, all numbers of characters from the least on are one state.
#[test]
fn strings_of_a_least_length_agree_with_the_product_automaton() {
    for (pattern, min) in PATTERNS.iter().flat_map(|pattern| [0, 1, 4, 30].map(|min| (pattern, min))) {
        let (automaton, _) = automata(pattern, (0, 0), Style::All);
        let set = StringSet::from_pattern(pattern).unwrap();
        let within = set.windows().last().unwrap().2.within(min.into(), None).unwrap();
        let product = quoted(&within, Style::All).unwrap();
        let Some(bounded) = LengthBounded::at_least(&automaton, min) else {
            assert!(within.is_empty(), "{pattern} {min}");
            continue;
        };
        let distances = distances(&product);
        let (mut met, mut open) = (HashSet::from([(0, 0)]), vec![(0, 0)]);
        while let Some((one, other)) = open.pop() {
            assert_eq!(bounded.accepts(one), product.states()[index(other)].accepts, "{pattern} {min}");
            assert_eq!(bounded.distance(one), distances[index(other)], "{pattern} {min}");
            assert!(index(one) < bounded.bound());
            for byte in 0..=u8::MAX {
                let to = (bounded.step(one, byte), step(&product, other, byte));
                assert_eq!(to.0.is_some(), to.1.is_some(), "{pattern} {min}: {:?}", bounded.place(one));
                open.extend(to.0.zip(to.1).filter(|pair| met.insert(*pair)));
            }
        }
        assert_eq!(Some(bounded.shortest()), product.shortest());
    }
}

/// A bound of thousands takes no states of its own.
#[test]
fn long_addresses_are_bounded_without_states_for_it() {
    let uri = StringSet::from_format("uri").unwrap().unwrap();
    let set = uri.with_length(0, Some(2_083)).unwrap();
    let grammar = grammar(|builder| set.emit(builder, ValueSpelling::default(), Span::default()).unwrap());
    assert!(grammar.exprs().any(|(_, expr)| {
        matches!(expr, Expr::Pattern(pattern) if matches!(pattern.kind(), PatternKind::LengthBounded(_)))
    }));
    for (length, expected) in [(2_083, true), (2_084, false)] {
        let text = format!("\"https://a.bc/?{}\"", "x".repeat(length - 14));
        assert_eq!(accepts(&grammar, text.as_bytes()), expected, "{length}");
    }
}

#[test]
fn impossible_bounds_and_automata_are_refused() {
    let (automaton, _) = automata("^a*$", (0, 0), Style::All);
    assert!(LengthBounded::new(&automaton, 3, 2).is_none());
    assert!(LengthBounded::new(&automaton, 0, u32::MAX).is_none());
    assert!(LengthBounded::new(&automaton, 0, 0).is_some());
    // Without a quote it is no string.
    let bare = crate::grammar::automaton::State { accepts: true, edges: Vec::new() };
    assert!(LengthBounded::new(&Automaton::new(vec![bare]).unwrap(), 0, 9).is_none());
}
