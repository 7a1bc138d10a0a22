//! Published grammars in Lark and in XGrammar's EBNF, with texts, as the engine and the oracle decide them.
//! Each names its source; grammars and texts are rewritten or shortened. Structural tags of all kinds, with
//! texts and single mutations of these, as XGrammar decides them.
//!
//! Deliberate differences are left out: token ids and special tokens, rules with a number as their parameter,
//! `max_tokens`, and that `1.0` is no integer of a schema.

use domino::{
    AutomataCache, Grammar, Limits, Syntax,
    grammar::json_schema::{Escapes, SchemaOptions, WhiteSpace},
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::decider::{Decider, Engine};

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
        // Others take all escapes, and white space before commas and colons.
        let schemas = SchemaOptions::default().with_escapes(Escapes::All).with_white_space(WhiteSpace::Wide);
        let (limits, automata) = (Limits::default(), AutomataCache::new());
        let read = Grammar::parse_by(syntax, grammar, &schemas, &limits, &automata)
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

const LARK: &str = include_str!("../fixtures/notations/lark.jsonl");

#[test]
fn the_engine_decides_lark_as_published() {
    check::<Engine>(Syntax::Lark, LARK, 150);
}

#[test]
fn the_oracle_decides_lark_as_published() {
    check::<domino::oracle::Oracle>(Syntax::Lark, LARK, 150);
}

const EBNF: &str = include_str!("../fixtures/notations/ebnf.jsonl");

#[test]
fn the_engine_decides_ebnf_as_published() {
    check::<Engine>(Syntax::Ebnf, EBNF, 35);
}

#[test]
fn the_oracle_decides_ebnf_as_published() {
    check::<domino::oracle::Oracle>(Syntax::Ebnf, EBNF, 35);
}

const STRUCTURAL: &str = include_str!("../fixtures/notations/structural.jsonl");

#[test]
fn the_engine_decides_structural_tags_as_xgrammar() {
    check::<Engine>(Syntax::StructuralTag, STRUCTURAL, 45);
}

#[test]
fn the_oracle_decides_structural_tags_as_xgrammar() {
    check::<domino::oracle::Oracle>(Syntax::StructuralTag, STRUCTURAL, 45);
}

const BUILT: &str = include_str!("../fixtures/notations/structural_built.jsonl");

/// The tags of XGrammar's builder, as it writes them, but for those with styles that are refused.
#[test]
fn the_engine_decides_built_tags_as_xgrammar() {
    check::<Engine>(Syntax::StructuralTag, BUILT, 49);
}

#[test]
fn the_oracle_decides_built_tags_as_xgrammar() {
    check::<domino::oracle::Oracle>(Syntax::StructuralTag, BUILT, 49);
}

/// True if `(head "x")* tail` matches, as a lexer reads it that takes a head as soon as it is complete.
fn lexed(head: &regress::Regex, tail: &regress::Regex, text: &str) -> bool {
    let whole = |regex: &regress::Regex, text: &str| regex.find(text).is_some();
    match (0..=text.len()).find(|&end| whole(head, &text[..end])) {
        Some(end) => text[end..].strip_prefix('x').is_some_and(|rest| lexed(head, tail, rest)),
        None => whole(tail, text),
    }
}

/// All texts of up to five of these letters.
fn short_texts(letters: [&str; 3]) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut last = texts.clone();
    for _ in 0..5 {
        let longer = |text: &String| letters.map(|letter| format!("{text}{letter}"));
        last = last.iter().flat_map(longer).collect();
        texts.extend(last.iter().cloned());
    }
    texts
}

/// Finds the first of `stops` in `text` that is complete, of several the last; returns the rest and its
/// index.
fn first<'t>(text: &'t str, stops: &[&str]) -> Option<(usize, &'t str)> {
    (1..=text.len()).filter(|&end| text.is_char_boundary(end)).find_map(|end| {
        let stop = stops.iter().rposition(|stop| text[..end].ends_with(stop))?;
        Some((stop, &text[end..]))
    })
}

/// True for free text with `(trigger digit)*` in it, decided by searching.
fn searched(text: &str, triggers: &[&str], excluded: &str) -> bool {
    let stops: Vec<&str> = triggers.iter().copied().chain([excluded]).collect();
    match first(text, &stops) {
        None => true,
        Some((stop, _)) if stop == triggers.len() => false,
        Some((_, rest)) => rest.strip_prefix('1').is_some_and(|rest| searched(rest, triggers, excluded)),
    }
}

/// True if `text` is a content and an end of a tag, decided by searching. The content is free text with
/// `(trigger "1")*` in it. It ends where an end is first complete, and what stands in front of that end holds
/// no excluded string and no trigger.
fn closed(text: &str, ends: &[&str], triggers: &[&str], excluded: &[&str]) -> bool {
    let holds_none = |content: &str| !triggers.iter().chain(excluded).any(|part| content.contains(part));
    let is_ended = first(text, ends).is_some_and(|(_, rest)| rest.is_empty())
        && ends.iter().any(|end| text.strip_suffix(end).is_some_and(holds_none));
    let stops: Vec<&str> = [triggers, excluded, ends].concat();
    // Of strings that are complete at one place the last of the list counts, so triggers come first there.
    is_ended
        || first(text, &stops).is_some_and(|(stop, rest)| {
            stop < triggers.len()
                && rest.strip_prefix('1').is_some_and(|rest| closed(rest, ends, triggers, excluded))
        })
}

fn strs(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

fn strings(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set("[ab]{1,3}", 0..=most).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Excluded strings and triggers do not reach into the end of a tag, on all texts of up to five letters.
    #[test]
    fn excluded_strings_do_not_reach_into_ends(
        ends in strings(2).prop_filter("a tag has an end", |ends| !ends.is_empty()),
        triggers in strings(1),
        excluded in strings(2),
    ) {
        prop_assume!(!triggers.iter().any(|trigger| excluded.contains(trigger)));
        let rule = |text: &String| json!([text, {"type": "const_string", "value": "1"}]);
        let rules: Vec<Value> = triggers.iter().map(rule).collect();
        let content = match rules.is_empty() {
            true => json!({"type": "any_text", "excludes": excluded}),
            false => json!({"type": "dispatch", "rules": rules, "excludes": excluded}),
        };
        let tag = json!({"type": "tag", "begin": "", "content": content, "end": ends});
        let tags = json!({"format": tag}).to_string();
        let (ends, triggers, excluded) = (strs(&ends), strs(&triggers), strs(&excluded));
        let texts = short_texts(["a", "b", "1"]);
        let expected = texts.iter().map(|text| closed(text, &ends, &triggers, &excluded));
        // An end that is excluded too has an empty content in front of it, so there is always a text.
        let read = Grammar::parse(Syntax::StructuralTag, &tags, &Limits::default())
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut engine = Engine::of(&read);
        for (text, expected) in texts.iter().zip(expected) {
            prop_assert_eq!(engine.accepts(text.as_bytes()), expected, "{:?} of {}", text, tags);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Triggers that may overlap, against a search, on all texts of up to five letters.
    #[test]
    fn triggers_are_found_where_they_are_first_complete(
        triggers in prop::collection::btree_set("[ab]{1,3}", 1..3),
        excluded in "[ab]{1,3}",
    ) {
        prop_assume!(!triggers.contains(&excluded));
        let rule = |text: &String| json!([text, {"type": "const_string", "value": "1"}]);
        let rules: Vec<Value> = triggers.iter().map(rule).collect();
        let format = json!({"type": "dispatch", "rules": rules, "excludes": [excluded]});
        let tags = json!({"type": "structural_tag", "format": format}).to_string();
        let read = Grammar::parse(Syntax::StructuralTag, &tags, &Limits::default())
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut engine = Engine::of(&read);
        let triggers: Vec<&str> = triggers.iter().map(String::as_str).collect();
        for text in &short_texts(["a", "b", "1"]) {
            let accepted = engine.accepts(text.as_bytes());
            prop_assert_eq!(accepted, searched(text, &triggers, &excluded), "{:?} of {}", text, tags);
        }
    }

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
        for text in &short_texts(["a", "b", "x"]) {
            let accepted = engine.accepts(text.as_bytes());
            prop_assert_eq!(accepted, lexed(&head, &tail, text), "{:?} of {}", text, grammar);
        }
    }
}
