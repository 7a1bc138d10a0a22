//! Automata of terminals, held against dense automata of `regex-automata`.

use proptest::prelude::*;
use regex_automata::{
    Anchored,
    dfa::{Automaton, dense},
};

use super::*;
use crate::{automata::minimize::DfaTable, ids::as_index, scanner::NONE};

fn hir(pattern: &str) -> Hir {
    regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).unwrap()
}

fn dfa(pattern: &str) -> TerminalDfa {
    build(&hir(pattern), 100_000, &Limits::default()).unwrap().unwrap()
}

fn accepts(dfa: &TerminalDfa, text: &[u8]) -> bool {
    let mut state = 0_u32;
    for &byte in text {
        let class = usize::from(dfa.classes()[usize::from(byte)]);
        state = dfa.transitions()[as_index(state) * dfa.class_count() + class];
        if state == NONE {
            return false;
        }
    }
    dfa.accepting()[as_index(state)]
}

#[test]
fn automata_have_the_minimal_number_of_states() {
    for (pattern, states) in
        [("a", 2), ("abc", 4), ("[ab]*", 1), ("a+", 2), ("(a|b)(a|b)", 3), ("a{3,5}", 6), ("aa|ab|ba|bb", 3)]
    {
        assert_eq!(dfa(pattern).len(), states, "{pattern}");
    }
}

#[test]
fn patterns_of_equal_languages_have_equal_automata() {
    assert_eq!(dfa("aa*"), dfa("a+"));
    assert_eq!(dfa("abc"), dfa("ab(c|c)"));
    assert_eq!(dfa("a*").without_empty().unwrap(), dfa("a+"));
    assert_eq!(dfa("(ab)?c?").without_empty().unwrap(), dfa("abc?|c"));
    assert_ne!(dfa("a"), dfa("b"));
}

#[test]
fn empty_parts_leave_the_rest_of_a_language() {
    for (pattern, expected) in
        [("[a&&b]", None), ("a[a&&b]", None), ("[a&&b]|a", Some("a")), ("[a&&b]*", Some(""))]
    {
        let found = build(&hir(pattern), 100, &Limits::default()).unwrap();
        assert_eq!(found, expected.map(dfa), "{pattern}");
    }
}

#[test]
fn alternations_of_literals_are_recognised() {
    let found = |pattern: &str| literals(&hir(pattern)).map(|literals| literals.len());
    for (pattern, expected) in
        [("false|true", Some(2)), ("null|false|true", Some(3)), ("[a&&b]", Some(0)), ("a|b*", None)]
    {
        assert_eq!(found(pattern), expected, "{pattern}");
    }
    let budget = |states| build(&hir("false|true"), states, &Limits::default());
    assert!(budget(9).is_err() && budget(10).is_ok());
}

#[test]
fn long_chains_have_one_state_per_byte() {
    let dfa = dfa("[ab]{1,20000}");
    assert_eq!(dfa.len(), 20_001);
}

#[test]
fn budgets_end_in_errors() {
    let error = build(&hir("(a|b)*a(a|b){20}"), 1000, &Limits::default()).unwrap_err();
    assert_eq!(error.what(), "DFA states of a terminal");
    let limits = Limits { nfa_bytes: 1000, ..Limits::default() };
    assert!(build(&hir("[a-z]{1000}"), 100_000, &limits).is_err());
}

proptest! {
    /// Compares with the way that all other automata are made.
    #[test]
    fn automata_of_literals_are_chains(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..40),
            proptest::collection::vec(0..4_u8, 1..12),
            Just((0..=u8::MAX).collect::<Vec<u8>>()),
            Just((1..=u8::MAX).rev().collect::<Vec<u8>>()),
        ],
    ) {
        let mut transitions = vec![NONE; (bytes.len() + 1) * 256];
        for (state, &byte) in bytes.iter().enumerate() {
            transitions[state * 256 + usize::from(byte)] = u32::try_from(state + 1).unwrap();
        }
        let mut classes = Box::new([0_u8; 256]);
        classes.iter_mut().zip(0..=u8::MAX).for_each(|(class, byte)| *class = byte);
        let mut accepting = vec![false; bytes.len()];
        accepting.push(true);
        let table = DfaTable { width: 256, transitions, accepting };
        let chain = TerminalDfa::from_raw(RawDfa { classes, table });
        prop_assert_eq!(TerminalDfa::literal(&bytes), chain);
    }

    /// Compares alternations of literals with the way of all expressions.
    #[test]
    fn automata_of_several_literals_are_those_by_the_nfa(
        literals in proptest::collection::vec("[abc]{0,5}|é", 1..6),
    ) {
        let hir = hir(&literals.join("|"));
        let limits = Limits::default();
        prop_assert_eq!(build(&hir, 100, &limits).unwrap(), by_nfa(&hir, 100, &limits).unwrap());
    }

    /// An automaton is refused exactly if it has more states than allowed, before it is minimised.
    #[test]
    fn budgets_count_states(length in 1..300_usize, max_states in 1..300_usize, wide in any::<bool>()) {
        let class = if wide { r"[a-cé\u{0}-\u{7f}]" } else { "[ab]" };
        let pattern = format!("{class}{{{length}}}");
        let states = dfa(&pattern).len();
        let made = build(&hir(&pattern), max_states, &Limits::default());
        // A match is known a byte late, which is a state more.
        prop_assert_eq!(made.is_ok(), max_states > states, "{}", states);
    }

    /// Compares with the library's own matcher, on whole texts.
    #[test]
    fn automata_accept_what_the_crate_regex_automata_matches(
        pattern in r"([ab](\*|\+|\?|\{1,2\})?|\(a\|bc?\)(\*|\+)?|[é\.]){1,6}",
        texts in proptest::collection::vec("[abcé]{0,8}", 1..20),
    ) {
        let dfa = dfa(&pattern);
        let reference = dense::DFA::builder()
            .syntax(regex_automata::util::syntax::Config::new())
            .build(&format!("(?s)^(?:{pattern})$")).unwrap();
        for text in texts {
            let input = regex_automata::Input::new(&text).anchored(Anchored::Yes);
            let expected = reference.try_search_fwd(&input).unwrap().is_some();
            prop_assert_eq!(accepts(&dfa, text.as_bytes()), expected, "{} on {:?}", pattern, text);
        }
    }
}
