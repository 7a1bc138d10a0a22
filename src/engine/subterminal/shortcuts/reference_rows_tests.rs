//! Rows and crossings of terminals that are compared with a common one, against those of the same terminals
//! alone.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::table::TerminalTable;
use crate::{
    Limits,
    ids::{TokenId, TrieNodeId},
    limits::Work,
    scanner::{self, TerminalDfa},
    subterminal::rows::TokenRow,
    vocab::ByteTrie,
};

pub(in crate::subterminal) fn dfa(pattern: &str) -> Arc<TerminalDfa> {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
    Arc::new(scanner::build(&hir, 10_000, &Limits::default()).unwrap().unwrap())
}

/// Builds the trie of these tokens, numbered in their order.
pub(in crate::subterminal) fn trie(tokens: &[String]) -> ByteTrie {
    let ids = tokens.iter().zip(0..).map(|(token, id)| (token.as_bytes(), TokenId::new(id)));
    ByteTrie::new(tokens.len(), ids)
}

/// Returns the exits with tokens below, which alone matter.
pub(in crate::subterminal) fn inner(trie: &ByteTrie, reach: &TokenRow) -> Vec<u32> {
    let nodes = reach.exits().iter().flatten();
    nodes.filter(|&node| trie.has_children(TrieNodeId::new(node))).collect()
}

/// Characters of strings, in which nearly every byte leads on, as is needed for a comparison with a common
/// terminal.
const CHAR: &str = r#"(?:[^"\\é]|é|\\[n"])"#;

/// Lists common patterns, each with patterns that resemble it: all but some, counted, and pieces.
fn patterns() -> Vec<(String, Vec<String>)> {
    let any = format!("\"{CHAR}*\"");
    let texts = [
        format!("\"{CHAR}{{2,4}}\""),
        format!("\"(?:[^\"\\\\aé]{CHAR}*|a[^\"\\\\bé]{CHAR}*|ab{CHAR}+)?\""),
        format!("\"{CHAR}*@{CHAR}*\""),
        "\"[^\"\\\\]*\"".to_owned(),
        "\"ab\"".to_owned(),
        any.clone(),
    ];
    let rest = (format!("{CHAR}*\""), vec![format!("{CHAR}{{0,3}}\""), format!("{CHAR}{{2,}}\"")]);
    let free = (format!("{CHAR}*"), vec![format!("{CHAR}{{4}}"), format!("{CHAR}+")]);
    // Of one kind with a byte at which the common one ends, and of another.
    let until = ("[^a@]*[a@]".to_owned(), vec!["[^abn@]*[a@]".to_owned()]);
    vec![(any, texts.to_vec()), rest, free, until]
}

/// A row costs a walk over the trie at most, besides a look at its automaton.
#[test]
fn rows_cost_no_more_than_a_walk() {
    let tokens: Vec<u8> = (b' '..=b'~').collect();
    let ids = tokens.chunks(1).zip(0..).map(|(token, id)| (token, TokenId::new(id)));
    let trie = ByteTrie::new(tokens.len(), ids);
    for (common, others) in patterns() {
        let automaton = dfa(&common);
        let common = Arc::new(TerminalTable::new(Arc::clone(&automaton), None));
        for state in (0..).take(automaton.len()) {
            common.row(&trie, state, &mut Work::unlimited()).unwrap();
        }
        for pattern in others {
            let automaton = dfa(&pattern);
            let table = TerminalTable::new(Arc::clone(&automaton), Some(Arc::clone(&common)));
            for state in (0..).take(automaton.len()) {
                let work = &mut Work::new(2 * (trie.len() + automaton.transitions().len()) + 100);
                assert!(table.row(&trie, state, work).is_ok(), "row {state} of {pattern}");
            }
        }
    }
}

proptest! {
    #[test]
    fn rows_by_comparison_are_those_of_the_terminal_alone(
        tokens in proptest::collection::vec(r#"[abcé"\\n@, ]{1,6}|[ab]{1,3}"[, ]{1,3}"#, 1..80),
    ) {
        let ids = tokens.iter().zip(0..).map(|(token, id)| (token.as_bytes(), TokenId::new(id)));
        let trie = ByteTrie::new(tokens.len(), ids);
        let work = &mut Work::unlimited();
        let comma = Arc::new(TerminalTable::new(dfa("[ ]*,[ ]*"), None));
        // A counted string, alone and beside any string.
        let rest = || dfa(&format!("{CHAR}{{1,2}}\""));
        let any = Arc::new(TerminalTable::new(dfa(&format!("{CHAR}*\"")), None));
        let counted = [None, Some(any)].map(|common| Arc::new(TerminalTable::new(rest(), common)));
        for (common, others) in patterns() {
            let common = Arc::new(TerminalTable::new(dfa(&common), None));
            for pattern in others {
                let automaton = dfa(&pattern);
                // Rows of states that do what one before does, beside rows by walks of their own.
                let together = TerminalTable::new(Arc::clone(&automaton), None);
                for state in (0..).take(automaton.len()) {
                    let alone = TerminalTable::new(Arc::clone(&automaton), None);
                    let beside = TerminalTable::new(Arc::clone(&automaton), Some(Arc::clone(&common)));
                    let rows = [&alone, &beside, &together]
                        .map(|table| table.row(&trie, state, work).unwrap().clone());
                    let same = |one: &TokenRow, other: &TokenRow| {
                        let inner = |reach: &TokenRow| -> Vec<u32> {
                            let nodes = reach.exits().iter().flatten();
                            nodes.filter(|&node| trie.has_children(TrieNodeId::new(node))).collect()
                        };
                        one.tokens().iter().eq(other.tokens().iter()) && inner(one) == inner(other)
                    };
                    prop_assert!(same(&rows[0], &rows[1]), "row {} of {}", state, pattern);
                    prop_assert!(same(&rows[0], &rows[2]), "row {} of {}, after others", state, pattern);
                    for (one, other) in [(&comma, &comma), (&counted[0], &counted[1])] {
                        let crossed = [(&alone, one), (&beside, other)]
                            .map(|(table, into)| table.crossing(&trie, state, into, work).unwrap());
                        let same = same(&crossed[0], &crossed[1]);
                        prop_assert!(same, "crossing from {} of {}", state, pattern);
                    }
                }
            }
        }
    }
}
