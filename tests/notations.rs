//! Grammars that others published in Lark and in XGrammar's EBNF, with texts, as the engine and the oracle
//! decide them. Each says where it is from; grammars and texts are rewritten or shortened.
//!
//! Left out is what means something else here on purpose: token ids and special tokens, rules with a number
//! as their parameter, `max_tokens`, and that `1.0` is no integer of a schema.

use domino::{Grammar, Limits, Syntax};
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
