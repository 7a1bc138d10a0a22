//! Grammars that others published in Lark and in XGrammar's EBNF, with texts, as the engine and the oracle
//! decide them. Each says where it is from; grammars and texts are rewritten or shortened.
//!
//! Left out is what means something else here on purpose: token ids and special tokens, rules with a number
//! as their parameter, `max_tokens`, and that `1.0` is no integer of a schema.

use domino::{Grammar, Limits, Syntax};
use proptest::prelude::*;
use serde::Deserialize;

use crate::decider::{Decider, Engine};

/// A line of a corpus.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    source: String,
    grammar: String,
    accepted: Vec<String>,
    refused: Vec<String>,
}

fn cases(text: &str) -> Vec<Case> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

fn check<D: Decider>(syntax: Syntax, corpus: &str, least: usize) {
    let cases = cases(corpus);
    assert!(cases.len() >= least, "only {} grammars", cases.len());
    let mut wrong = Vec::new();
    for Case { source, grammar, accepted, refused } in &cases {
        let read = Grammar::parse(syntax, grammar, &Limits::default())
            .unwrap_or_else(|error| panic!("{source}:\n{grammar}\n{error}"));
        let mut decider = D::of(&read);
        for (texts, expected) in [(accepted, true), (refused, false)] {
            for text in texts.iter().filter(|text| decider.accepts(text.as_bytes()) != expected) {
                wrong.push(format!("{source}: {text:?} should be {expected} of\n{grammar}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

const LARK: &str = include_str!("fixtures/notations/lark.jsonl");

#[test]
fn the_engine_decides_lark_as_published() {
    check::<Engine>(Syntax::Lark, LARK, 150);
}

#[cfg(feature = "oracle")]
#[test]
fn the_oracle_decides_lark_as_published() {
    check::<domino::oracle::Oracle>(Syntax::Lark, LARK, 150);
}

const EBNF: &str = include_str!("fixtures/notations/ebnf.jsonl");

#[test]
fn the_engine_decides_ebnf_as_published() {
    check::<Engine>(Syntax::Ebnf, EBNF, 35);
}

#[cfg(feature = "oracle")]
#[test]
fn the_oracle_decides_ebnf_as_published() {
    check::<domino::oracle::Oracle>(Syntax::Ebnf, EBNF, 35);
}

/// Does `(head "x")* tail` match, as a lexer reads it that takes a head as soon as it is complete?
fn lexed(head: &regress::Regex, tail: &regress::Regex, text: &str) -> bool {
    let whole = |regex: &regress::Regex, text: &str| regex.find(text).is_some();
    match (0..=text.len()).find(|&end| whole(head, &text[..end])) {
        Some(end) => text[end..].strip_prefix('x').is_some_and(|rest| lexed(head, tail, rest)),
        None => whole(tail, text),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Lazy rules against a lexer, on all texts of up to five letters.
    #[test]
    fn lazy_rules_win_as_in_a_lexer(
        head in prop::sample::select(vec!["a", "[ab]*b", "ab|ba", "a+b?", "(?:a|x)*b", "b{2,3}", "[abx]"]),
        tail in prop::sample::select(vec!["[abx]*", "a*", "(?:ab)*", "[ax]*", "", "x?a?b?"]),
    ) {
        let rules = "start: (head \"x\")* tail\ntail: [TAIL]\n";
        let grammar = format!("{rules}head[lazy]: /{head}/\nTAIL: /(?:{tail})/");
        let read = Grammar::parse(Syntax::Lark, &grammar, &Limits::default())
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut engine = Engine::of(&read);
        // The tail may be left out, so the empty text is always one.
        let anchored = |regex: &str| regress::Regex::new(&format!("^(?:{regex})$")).unwrap();
        let (head, tail) = (anchored(head), anchored(&format!("(?:{tail})|")));
        let mut texts = vec![String::new()];
        let mut last = texts.clone();
        for _ in 0..5 {
            let longer = |text: &String| ["a", "b", "x"].map(|letter| format!("{text}{letter}"));
            last = last.iter().flat_map(longer).collect();
            texts.extend(last.iter().cloned());
        }
        for text in &texts {
            let accepted = engine.accepts(text.as_bytes());
            prop_assert_eq!(accepted, lexed(&head, &tail, text), "{:?} of {}", text, grammar);
        }
    }
}
