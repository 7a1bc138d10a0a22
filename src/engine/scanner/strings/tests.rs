//! Counts of the strings that are left in a state, beside a count by length.

use super::*;
use crate::{Limits, scanner};

#[test]
fn remaining_strings_of_a_state_are_counted() {
    let strings = |pattern: &str, text: &str| {
        let hir = regex_syntax::parse(pattern).unwrap();
        let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
        let state = text.bytes().fold(0, |state, byte| dfa.step(state, byte).unwrap());
        dfa.strings()[as_index(state)]
    };
    for (pattern, text, plain, others) in [
        ("[a-z]*\"", "", Strings::ENDLESS, false),
        ("[a-z]*\"", "ab", Strings::ENDLESS, false),
        ("[a-z]*\"", "ab\"", 0, true),
        ("[a-z]{3}\"", "a", 26 * 26, false),
        ("[a-z]{9}\"", "", Strings::ENDLESS - 1, false),
        // What is behind the quote does not count, what is behind the terminal is not known.
        ("a(\"a)+", "a", 1, false),
        ("a(\"a)*", "a", 1, true),
        ("ab\"|ac*\"", "a", Strings::ENDLESS, false),
        ("ab\"|ac*\"", "ab", 1, false),
        ("(foo|bar(s|\\\\n)?|é)\"", "", 4, true),
        ("(foo|bar(s|\\\\n)?|é)\"", "bar", 2, true),
        ("(foo|bar(s|\\\\n)?|é)\"", "f", 1, false),
        // A letter that may stand for itself need not be escaped.
        ("(a|\\\\u0061)\"", "", 1, false),
        ("(a|\\\\u001[0-9a-f])\"", "", 1, true),
    ] {
        assert_eq!(strings(pattern, text), Strings { plain, others }, "{pattern} after {text}");
    }
}

#[test]
fn terminals_with_few_strings_may_run_out() {
    for (pattern, may_run_out) in [
        ("\"[a-z]*\"", false),
        ("\"([^\"\\\\]|\\\\([nu\"]|u[0-9]{4}))*\"", false),
        // A half of a character that needs two escapes is no beginning of few.
        ("\"([a-z]|\\\\ud83d\\\\ude0[0-9])*\"", false),
        ("\"(a|b[a-z]*)\"", true),
        ("\"(\\\\n(a|b)|x[a-z]*)\"", true),
        ("\"a\"", true),
        ("-?[0-9]+", false),
    ] {
        let hir = regex_syntax::parse(pattern).unwrap();
        let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
        assert_eq!(StringCounts::new(&dfa).may_run_out(), may_run_out, "{pattern}");
    }
}

/// Compares with a count of the strings of each length.
#[test]
fn counts_after_a_choice_agree_with_those_by_length() {
    for (pattern, to_choice, farthest) in [
        ("\"[a-z]*\"", 0, Some(0)),
        ("\"[^\"\\\\\\x00-\\x1f]*\"", 0, Some(3)),
        ("\"x[a-z_]*\"", 1, Some(1)),
        ("\"(xy[0-9]*|z)\"", 2, Some(NONE)),
        ("\"a*\"", NONE, Some(NONE)),
        ("\"([a-z]\\.)*\"", NONE, Some(NONE)),
        // Only behind its first two may a string end.
        ("\"[a-z]{2}[a-z]*\"", 2, Some(2)),
    ] {
        let hir = regex_syntax::parse(pattern).unwrap();
        let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
        let (counts, start) = (StringCounts::new(&dfa), dfa.step(0, b'"').unwrap());
        let Choices(to_choices, most) = counts.choices(&dfa);
        assert_eq!((to_choices[as_index(start)], *most), (to_choice, farthest), "{pattern}");
        // Two ways at least by each character past these.
        let mut ways = std::collections::BTreeMap::from([(start, 1_u64)]);
        for characters in 0..12_u32 {
            let ends = ways.iter().filter(|(state, _)| dfa.step(**state, b'"').is_some());
            let strings = ends.fold(0, |sum: u64, (_, &ways)| sum.saturating_add(ways));
            if to_choice != NONE && characters >= to_choice {
                assert!(strings >= 1 << (characters - to_choice), "{pattern}: {characters}");
            }
            let mut next = std::collections::BTreeMap::new();
            for (state, ways) in ways {
                for byte in (b' '..0x7F).filter(|byte| !matches!(byte, b'"' | b'\\')) {
                    if let Some(to) = dfa.step(state, byte) {
                        let sum: &mut u64 = next.entry(to).or_default();
                        *sum = sum.saturating_add(ways);
                    }
                }
            }
            ways = next;
        }
        let needed = to_choice.saturating_add(MANY_CHARACTERS);
        assert!(!counts.are_many_within(&dfa, start, needed - 1), "{pattern}");
        assert_eq!(counts.are_many_within(&dfa, start, needed), to_choice != NONE, "{pattern}");
    }
}

#[test]
fn longest_distances_are_those_of_the_longest_texts() {
    for (pattern, longest) in
        [("a", Some(1)), ("[a-zé]", Some(2)), ("\\PC", Some(4)), ("ab{0,3}|c", Some(4)), ("ab*", None)]
    {
        let hir = regex_syntax::parse(pattern).unwrap();
        let dfa = scanner::build(&hir, 1_000, &Limits::default()).unwrap().unwrap();
        assert_eq!((0..20).find(|&bytes| dfa.is_within(bytes)), longest, "{pattern}");
    }
}
