//! The oracle on grammars small enough to see the answer. Random grammars are in `tests/promises/oracle.rs`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::*;
use crate::{
    grammar::{GrammarBuilder, Pattern, Span},
    limits::Limits,
};

/// Builds `seq` of `|`-separated alternatives; upper-case letters are rules, others bytes.
fn grammar(rules: &[(&str, &str)]) -> Grammar {
    let mut builder = GrammarBuilder::new(&Limits::default());
    let at = Span::default();
    for (name, body) in rules {
        let mut alternatives = Vec::new();
        for alternative in body.split('|') {
            let mut parts = Vec::new();
            for letter in alternative.chars() {
                let text = letter.to_string();
                parts.push(if letter.is_ascii_uppercase() {
                    builder.rule_ref(&text, at).unwrap()
                } else {
                    builder.pattern(Pattern::literal(text.as_bytes()), at).unwrap()
                });
            }
            alternatives.push(builder.sequence(parts, at).unwrap());
        }
        let body = builder.alternatives(alternatives, at).unwrap();
        builder.define(name, body, at).unwrap();
    }
    builder.finish(rules[0].0).unwrap()
}

fn oracle(rules: &[(&str, &str)]) -> Oracle {
    Oracle::new(&grammar(rules)).unwrap()
}

/// Lists the words over `ab` of up to `length` letters that satisfy `test`.
fn words(length: usize, test: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let mut all: Vec<Vec<u8>> = vec![Vec::new()];
    let mut first = 0;
    for _ in 0..length {
        let last = all.len();
        for index in first..last {
            for byte in *b"ab" {
                all.push([&all[index][..], &[byte]].concat());
            }
        }
        first = last;
    }
    all.into_iter().filter(|word| test(word)).map(|word| String::from_utf8(word).unwrap()).collect()
}

#[test]
fn recursion_on_every_side_is_decided() {
    for rules in [
        &[("S", "Sa|b")][..],               // left
        &[("S", "bR"), ("R", "|aR")],       // right
        &[("S", "NSa|b"), ("N", "|NN")],    // hidden left, and a cycle through the empty string
        &[("S", "T|Sa"), ("T", "S|b")],     // a cycle of unit rules
        &[("S", "SR|b"), ("R", "a|aR|aa")], // ambiguous
    ] {
        let oracle = oracle(rules);
        let sentence = |word: &[u8]| word.first() == Some(&b'b') && word[1..].iter().all(|&b| b == b'a');
        assert_eq!(words(6, |word| oracle.accepts(word)), words(6, sentence), "{rules:?}");
        assert_eq!(
            words(6, |word| oracle.viable(word)),
            words(6, |word| word.is_empty() || sentence(word)),
            "{rules:?}"
        );
    }
}

#[test]
fn nested_pairs_are_balanced() {
    let oracle = oracle(&[("S", "aSb|")]);
    let shape = |word: &[u8]| {
        let depth = word.iter().take_while(|&&b| b == b'a').count();
        (depth, word.len() - depth, word[depth..].iter().all(|&b| b == b'b'))
    };
    let sentence = |word: &[u8]| matches!(shape(word), (up, down, true) if up == down);
    let prefix = |word: &[u8]| matches!(shape(word), (up, down, true) if up >= down);
    assert_eq!(words(8, |word| oracle.accepts(word)), words(8, sentence));
    assert_eq!(words(8, |word| oracle.viable(word)), words(8, prefix));
}

#[test]
fn symbols_that_derive_nothing_are_not_viable() {
    let dead_end = oracle(&[("S", "aB|b"), ("B", "aB")]);
    assert!(dead_end.has_sentence() && dead_end.accepts(b"b"));
    assert!(!dead_end.viable(b"a"));
    for rules in [&[("S", "S")][..], &[("S", "aT"), ("T", "S|aT")]] {
        let empty = oracle(rules);
        assert!(!empty.has_sentence());
        assert!(!empty.viable(b"") && !empty.accepts(b"") && !empty.viable(b"a"));
    }
    let only_empty = oracle(&[("S", "|S|SS")]);
    assert!(only_empty.accepts(b"") && only_empty.viable(b"") && !only_empty.viable(b"a"));
}

/// Returns the counts of `a` up to 12 that the grammar `"a"{min,max}` accepts, and the largest viable one.
fn counts(min: u32, max: Option<u32>) -> (Vec<usize>, usize) {
    let mut builder = GrammarBuilder::new(&Limits::default());
    let at = Span::default();
    let part = builder.pattern(Pattern::literal(b"a"), at).unwrap();
    let body = builder.repeat(part, min, max, at).unwrap();
    builder.define("S", body, at).unwrap();
    let oracle = Oracle::new(&builder.finish("S").unwrap()).unwrap();
    let text = [b'a'; 12];
    let sentences = (0..=12).filter(|&n| oracle.accepts(&text[..n])).collect();
    (sentences, (0..=12).filter(|&n| oracle.viable(&text[..n])).max().unwrap())
}

#[test]
fn repetitions_have_the_counts_they_name() {
    assert_eq!(counts(0, Some(0)), (vec![0], 0));
    assert_eq!(counts(0, Some(2)), (vec![0, 1, 2], 2));
    assert_eq!(counts(3, Some(3)), (vec![3], 3));
    assert_eq!(counts(2, Some(5)), (vec![2, 3, 4, 5], 5));
    assert_eq!(counts(10, None), (vec![10, 11, 12], 12));
    assert_eq!(counts(0, None).0.len(), 13);
    assert_eq!(counts(50_000, Some(100_000)), (vec![], 12));
}

#[test]
fn classes_are_utf8() {
    let mut builder = GrammarBuilder::new(&Limits::default());
    let at = Span::default();
    let class = ClassUnicode::new([ClassUnicodeRange::new('é', 'é'), ClassUnicodeRange::new('漢', '😀')]);
    let body = builder.pattern(Pattern::class(class), at).unwrap();
    builder.define("S", body, at).unwrap();
    let oracle = Oracle::new(&builder.finish("S").unwrap()).unwrap();
    for (text, accepted) in [("é", true), ("漢", true), ("😀", true), ("e", false), ("😁", false)] {
        assert_eq!(oracle.accepts(text.as_bytes()), accepted, "{text}");
        for end in 1..text.len() {
            assert!(!oracle.accepts(&text.as_bytes()[..end]));
            assert!(oracle.viable(&text.as_bytes()[..end]), "{text} up to {end}");
        }
    }
    // Surrogates are not characters: ED A0 80 would be U+D800.
    assert!(oracle.viable(b"\xED\x9F\xBF") && !oracle.viable(b"\xED\xA0"));
    assert!(!oracle.viable(b"\xC3\xA8") && !oracle.viable(b"\xA9") && !oracle.viable(b"\xF5"));
}

fn of_regex(regex: &str) -> Oracle {
    let mut builder = GrammarBuilder::new(&Limits::default());
    let at = Span::default();
    let hir = regex_syntax::parse(regex).unwrap();
    let body = builder.pattern(Pattern::from_hir(hir).unwrap(), at).unwrap();
    builder.define("S", body, at).unwrap();
    Oracle::new(&builder.finish("S").unwrap()).unwrap()
}

#[test]
fn regular_expressions_are_decided_as_listed() {
    let oracle = of_regex("(?:ab|a{2,3}|(b)*)?b+");
    let accepted = ["b", "bb", "aab", "abb", "bbb"];
    assert_eq!(words(3, |word| oracle.accepts(word)), accepted);
    let viable = ["", "a", "b", "aa", "ab", "bb", "aaa", "aab", "abb", "bbb"];
    assert_eq!(words(3, |word| oracle.viable(word)), viable);
    let oracle = of_regex("a*|b|(?:ba)+");
    assert_eq!(words(3, |word| oracle.accepts(word)), ["", "a", "b", "aa", "ba", "aaa"]);
}

#[test]
fn sessions_take_back_bytes() {
    let oracle = oracle(&[("S", "aSb|")]);
    let mut session = oracle.session();
    assert!(session.is_complete() && session.is_empty() && !session.pop());
    assert!(session.push(b'a') && session.push(b'a') && session.push(b'b'));
    assert!(!session.push(b'a') && session.len() == 3);
    assert!(session.push(b'b') && session.is_complete() && !session.push(b'b'));
    assert!(session.pop() && !session.is_complete() && session.pop());
    assert!(session.push(b'a') && session.push_all(b"bbb") && session.is_complete());
    assert!(!session.push_all(b"a") && session.len() == 6);
}
