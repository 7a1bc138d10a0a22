//! Compares the parser that drops dominated items with one that keeps all, on counted repeats inside each
//! other.

use hashbrown::HashSet;
use proptest::prelude::*;

use super::Parser;
use crate::{
    Grammar, Limits, Syntax, Terminals,
    ids::{SetId, TerminalId},
    limits::Work,
    lower::{Cfg, Lowered, lower},
};

/// Number of terminals of the texts tried.
const LENGTH: usize = 7;
/// Number of pairs of sets compared for one grammar.
const PAIRS: usize = 400;

fn lowered(text: &str) -> Option<Lowered> {
    let limits = Limits::default();
    let grammar = Grammar::parse(Syntax::Gbnf, text, &limits).unwrap();
    lower(&grammar, Terminals::Folded, &limits).ok()
}

/// Returns the terminals after `set`, each with the set after it.
fn shifts(parser: &mut Parser, cfg: &Cfg, set: SetId, work: &mut Work) -> Vec<(u32, SetId)> {
    let accepts = parser.accepts(set).to_vec();
    let shift =
        |terminal: TerminalId| Some((terminal.raw(), parser.shift(cfg, set, terminal, work).unwrap()?));
    accepts.into_iter().filter_map(shift).collect()
}

/// Compares both parsers after all short texts.
fn compare(text: &str) {
    // No text at all may be of the language.
    let (Some(ranked), Some(whole)) = (lowered(text), lowered(text)) else { return };
    let (ranked, whole) = (ranked.cfg, whole.cfg.without_ranks());
    let work = &mut Work::new(usize::MAX);
    let limits = Limits::default();
    let mut one = Parser::new(&ranked, &limits, work).unwrap();
    let mut other = Parser::new(&whole, &limits, work).unwrap();
    let mut seen = HashSet::new();
    let mut open = vec![(one.start(), other.start(), 0)];
    while let Some((here, there, length)) = open.pop() {
        if seen.len() >= PAIRS || !seen.insert((here, there)) {
            continue;
        }
        assert_eq!(one.is_complete(here), other.is_complete(there), "{text}");
        assert_eq!(one.accepts(here), other.accepts(there), "{text}");
        if length < LENGTH {
            let these = shifts(&mut one, &ranked, here, work);
            let those = shifts(&mut other, &whole, there, work);
            // Merged with what it came from: both parsers continue as either does.
            for (&(_, here_after), &(_, there_after)) in these.iter().zip(&those) {
                open.push((here_after, there_after, length + 1));
                let here = one.merge(&ranked, &[here, here_after], work).unwrap();
                let there = other.merge(&whole, &[there, there_after], work).unwrap();
                open.push((here, there, length + 1));
            }
        }
    }
}

/// Generates one part of a counted repeat.
fn part() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(&[
        r#""*" all "*""#,
        r#""**" all "**""#,
        r#""_" all "_""#,
        r#""*" x "*""#,
        r#""[" x all"#,
        r#"x y"#,
        r#"x"#,
        r#"y"#,
        r#"[ab]"#,
        r#"[ab]*"#,
        r#""a""#,
        r#""*"?"#,
    ]);
    leaf.prop_map(str::to_owned)
}

fn repeat() -> impl Strategy<Value = String> {
    let counts = (0..4_u32, 0..6_u32, 0..8_u32).prop_map(|(min, more, kind)| match kind {
        0 => format!("{{{min},}}"),
        _ => format!("{{{min},{}}}", min + more),
    });
    let parts = proptest::collection::vec(part(), 1..5);
    (parts, counts).prop_map(|(parts, counts)| format!("({}){counts}", parts.join(" | ")))
}

fn grammar() -> impl Strategy<Value = String> {
    let repeats = || proptest::collection::vec(repeat(), 1..3).prop_map(|repeats| repeats.join(" "));
    (repeats(), repeat(), repeats()).prop_map(|(all, x, y)| {
        format!("root ::= all \"!\"? all\nall ::= {all}\nx ::= {x}\ny ::= {y} | \"b\"\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dropping_dominated_items_changes_nothing(text in grammar()) {
        compare(&text);
    }
}

/// Counts the items of the sets along a text of stars.
fn items(cfg: &Cfg, stars: usize) -> usize {
    let work = &mut Work::new(usize::MAX);
    let mut parser = Parser::new(cfg, &Limits::default(), work).unwrap();
    let star = parser.accepts(parser.start())[0];
    let mut set = parser.start();
    let along = (0..stars).map(|_| {
        set = parser.shift(cfg, set, star, work).unwrap().unwrap();
        parser.kernel_len(set)
    });
    along.sum()
}

/// Among the many ways to count the parts of a text, only the lowest count at each level is kept.
#[test]
fn only_the_lowest_counts_of_a_level_are_kept() {
    let cfg = |counts: &str| lowered(&format!("root ::= (\"*\" root? \"*\"){counts}\n")).unwrap().cfg;
    for (short, long) in [("{0,40}", "{0,60}"), ("{1,40}", "{1,60}"), ("{3,40}", "{3,60}")] {
        let (few, all) = (items(&cfg(short), 40), items(&cfg(short).without_ranks(), 40));
        assert!(few * 2 < all, "{short}: {few} of {all} items");
        // More parts that may come make no more items.
        assert_eq!(few, items(&cfg(long), 40), "{short}, {long}");
    }
}
