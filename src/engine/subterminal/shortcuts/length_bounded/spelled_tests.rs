//! Rows of spelled terminals, held against walks.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::reference_rows_tests::{dfa, inner, trie};
use super::*;
use crate::grammar::{Automaton, json_schema::pattern_as_spelled, spelled::Unfolded};
use crate::scanner::TerminalDfa;

fn table(spelled: &Spelled) -> TerminalTable {
    let dfa = Arc::new(TerminalDfa::of_spelled(spelled));
    let unbounded = dfa.spelled().and_then(|(_, unbounded)| unbounded.cloned());
    let unbounded = unbounded.map(|dfa| Arc::new(TerminalTable::spelled(dfa, None)));
    TerminalTable::spelled(dfa, unbounded)
}

const PATTERNS: [(&str, (u64, Option<u64>)); 10] = [
    ("^x[^\\n]{0,2000}$", (0, None)),
    ("^[ab]{1,900}-[^a]{1,900}$", (0, None)),
    ("^\\S.{0,1500}\\S$", (0, None)),
    ("^(?:[^,]{1,64},){0,29}$", (0, None)),
    ("^[a-z-]+:[ab]{0,1000}$", (0, Some(1_800))),
    ("^[a-z-]+:[ab]{0,1000}$", (99, None)),
    ("^[a-z-]*[ab]{700,1000}$", (710, Some(790))),
    ("^(?!--)[^x]{1,900}$", (0, None)),
    // As bounds behind look-ahead are taken out of a pattern.
    ("^(?!--)[^x]*$", (1, Some(1_200))),
    ("^(?:x[ab]{1,900})+$", (700, None)),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Compares with walks of the whole vocabulary, at places that texts of some letters come to.
    #[test]
    fn rows_of_counted_strings_are_those_of_walks(
        tokens in prop::collection::vec(
            r#"[ab"\\n, :-]{1,6}|[ab]{1,3}"[, ]{1,3}|[abé]{8,60}|-{9,20}|\\u00(61|e9)|"[xab]{0,20}"#,
            1..40,
        ),
        (pattern, bounds) in prop::sample::select(&PATTERNS[..]),
        texts in prop::collection::vec(("[xab]", 0..2000_usize, r#"[,:-]?[ab,\\é-]{0,4}"#), 1..12),
    ) {
        let spelled = pattern_as_spelled(pattern, bounds);
        let (shared, alone, trie) = (table(&spelled), table(&spelled), trie(&tokens));
        let work = &mut Work::unlimited();
        let comma = Arc::new(TerminalTable::new(dfa("[ ]*,[ ]*"), None));
        for (letter, count, rest) in texts {
            let text = format!("\"{}{rest}", letter.repeat(count));
            let (mut at, mut on_the_way) = ((Some(0), Some(0)), Vec::new());
            for byte in text.bytes() {
                let (Some(one), Some(other)) = at else { break };
                on_the_way.push((one, other));
                at = (shared.dfa().step(one, byte), alone.dfa().step(other, byte));
                prop_assert_eq!(at.0.is_some(), at.1.is_some());
            }
            let places = on_the_way.len();
            let last = on_the_way.iter().skip(places.saturating_sub(5));
            for &(one, other) in last.chain(on_the_way.first()) {
                let rows = (shared.row(&trie, one, work).unwrap(), alone.walk(&trie, other).reach);
                let same = rows.0.tokens().iter().eq(rows.1.tokens().iter());
                prop_assert!(same, "tokens after {:?}", text);
                prop_assert_eq!(inner(&trie, &rows.0), inner(&trie, &rows.1), "exits after {:?}", text);
                let crossed = shared.crossing(&trie, one, &comma, work).unwrap();
                let entrances = crate::subterminal::terminal_entry::TerminalEntry::new(
                    &trie, rows.1.exits(), comma.begins(), work).unwrap();
                let walked = entrances.cross(&trie, &comma, work).unwrap();
                prop_assert!(crossed.tokens().iter().eq(walked.tokens().iter()), "into {:?}", text);
            }
        }
    }
}

/// Far from the ends of counts, all places share one row.
#[test]
fn places_far_from_the_ends_of_counts_share_one_row() {
    let tokens = ["a", "b", "ab", "a-b", "b\"", "\"", "x"].map(String::from);
    let trie = trie(&tokens);
    for (pattern, bounds, most) in [
        ("^x[^\\n]{0,9000}$", (0, None), 8),
        ("^[ab]+-[^a]{1,4000}$", (0, Some(7_000)), 8),
        ("^(?:[ab]{2})*-[^a]{1,2000}$", (0, Some(20_971_520)), 8),
        ("^(?:x[ab]{1,2000})+$", (500, None), 16),
        ("^(?!--)[^x]*$", (700, Some(90_000)), 16),
    ] {
        let table = table(&pattern_as_spelled(pattern, bounds));
        let work = &mut Work::unlimited();
        let (mut rows, mut state) = (HashSet::new(), 0);
        for byte in std::iter::once(b'"').chain(*b"x").chain(std::iter::repeat_n(b'a', 3_000)) {
            let Some(to) = table.dfa().step(state, byte) else { continue };
            state = to;
            rows.insert(Arc::as_ptr(&table.row(&trie, state, work).unwrap()).addr());
        }
        assert!(rows.len() <= most, "{pattern}: {} rows", rows.len());
    }
}

/// Numbers of the automata of a grammar are those of its tables.
#[test]
fn equal_counted_strings_have_equal_automata() {
    let spelled = pattern_as_spelled("^x[^a]{0,3000}$", (0, None));
    let (one, other) = (TerminalDfa::of_spelled(&spelled), TerminalDfa::of_spelled(&spelled));
    assert!(one == other && one.bytes() > 3_000);
    let automaton: Automaton = spelled.product(1 << 18).unwrap();
    assert!(automaton.states().len() > 3_000);
}
