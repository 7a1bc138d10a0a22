//! Rows of length-bounded terminals, held against walks.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::{
    Limits,
    grammar::{
        Automaton, Expr, PatternKind,
        json_schema::{Escapes, SchemaOptions},
        spelled::Unfolded,
    },
    scanner::TerminalDfa,
    subterminal::shortcuts::reference_rows_tests::{dfa, inner, trie},
};

const PATTERNS: [&str; 8] = [
    "^[ab]+(-[ab]+)*$",
    r"^(\\S+ ){0,3}\\S+$",
    "^(aa)*b?$",
    "a.*b",
    "^[^a]{3,}$",
    "^é(,|ab)*$",
    "^[^-]*$",
    "",
];

/// Returns the automaton of the strings of a pattern.
fn automaton(pattern: &str) -> Automaton {
    let schema = format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#);
    let options = SchemaOptions::default().with_escapes(Escapes::All);
    let grammar = options.parse(&schema, &Limits::default()).unwrap().grammar;
    let leaf = |expr: &Expr| match expr {
        Expr::Pattern(pattern) => match pattern.kind() {
            PatternKind::Automaton(automaton) => Some(automaton.clone()),
            _ => None,
        },
        _ => None,
    };
    grammar.exprs().find_map(|(_, expr)| leaf(expr)).unwrap()
}

fn dfa_of(automaton: &Automaton) -> Arc<TerminalDfa> {
    Arc::new(TerminalDfa::from_minimal(automaton).unwrap())
}

/// Returns tables with and without that of the unbounded strings, the latter, and their automata; beside
/// any string or not.
fn tables(
    pattern: &str,
    (min, max): (u32, u32),
    beside: bool,
) -> Option<(TerminalTable, TerminalTable, Arc<TerminalTable>, LengthBounded)> {
    let bounded = LengthBounded::new(&automaton(pattern), min, max)?;
    let dfa = Arc::new(TerminalDfa::of_bounded(&bounded));
    let (_, unbounded) = dfa.bounded()?;
    let common = || Arc::new(TerminalTable::new(dfa_of(&automaton("")), None));
    let unbounded = Arc::new(TerminalTable::new(Arc::clone(unbounded), beside.then(common)));
    let alone = TerminalTable::new(Arc::clone(&dfa), None);
    Some((TerminalTable::bounded(dfa, Arc::clone(&unbounded)), alone, unbounded, bounded))
}

proptest! {
    #[test]
    fn bounded_rows_are_those_of_walks(
        tokens in prop::collection::vec(
            r#"[ab"\\n, -]{1,6}|[ab]{1,3}"[, ]{1,3}|[abé]{8,60}|-{9,20}|\\u00(61|e9)|"[ab]{0,20}"#,
            1..60,
        ),
        pattern in prop::sample::select(&PATTERNS[..]),
        min in 0..12_u32,
        more in 0..60_u32,
        backwards: bool,
        beside: bool,
    ) {
        let Some((table, alone, _, bounded)) = tables(pattern, (min, min + more), beside) else {
            return Ok(());
        };
        let (trie, work) = (trie(&tokens), &mut Work::unlimited());
        let comma = Arc::new(TerminalTable::new(dfa("[ ]*,[ ]*"), None));
        let mut states = bounded.reached(100_000).unwrap();
        if backwards {
            states.reverse();
        }
        for state in states {
            let rows = [&table, &alone].map(|table| table.row(&trie, state, work).unwrap());
            let place = bounded.place(state);
            prop_assert!(rows[0].tokens().iter().eq(rows[1].tokens().iter()), "tokens at {:?}", place);
            prop_assert_eq!(inner(&trie, &rows[0]), inner(&trie, &rows[1]), "exits at {:?}", place);
            let crossed =
                [&table, &alone].map(|table| table.crossing(&trie, state, &comma, work).unwrap());
            prop_assert!(crossed[0].tokens().iter().eq(crossed[1].tokens().iter()), "into {:?}", place);
            prop_assert_eq!(inner(&trie, &crossed[0]), inner(&trie, &crossed[1]));
        }
    }
}

/// Far from the bound, rows are those of the unbounded strings, also where some tokens are long.
#[test]
fn rows_far_from_the_bound_are_shared() {
    let mut tokens: Vec<String> = ["a", "b", "-", "ab", "a-b", "b\"", "\",", "\""].map(String::from).into();
    for long in [None, Some(80)] {
        tokens.extend(long.map(|length| "ab".repeat(length / 2)));
        let longest = u32::try_from(tokens.iter().map(String::len).max().unwrap()).unwrap();
        let trie = trie(&tokens);
        let (table, _, unbounded, bounded) = tables("^[ab]+(-[ab]+)*$", (1, 200), false).unwrap();
        let work = &mut Work::unlimited();
        let (mut shared, mut others) = (0, HashSet::new());
        for state in bounded.reached(100_000).unwrap() {
            let (of, count) = bounded.place(state);
            let row = table.row(&trie, state, work).unwrap();
            let theirs = unbounded.row(&trie, of, work).unwrap();
            // After a dash a letter has to come.
            if count >= 1 && count + longest.max(LONG_TOKEN) < 200 {
                assert!(Arc::ptr_eq(&row, &theirs), "{of} after {count} characters");
                shared += 1;
            } else if count >= 1 && count + LONG_TOKEN <= 180 && !Arc::ptr_eq(&row, &theirs) {
                others.insert(Arc::as_ptr(&row).addr());
            }
        }
        assert!(shared > 400, "{shared} rows are shared");
        // Without the long token, behind a letter and behind a dash.
        assert!(others.len() <= 2 && others.is_empty() == long.is_none(), "{} others", others.len());
    }
}
