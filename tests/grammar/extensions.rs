//! Named languages in regular expressions and in GBNF: a corpus of texts, random texts held against obvious
//! matchers, the notations that have them, and messages about mistakes.

use domino::{Grammar, Limits, Syntax};
use proptest::prelude::*;
use serde::Deserialize;

use crate::support::decider::{Decider, Engine};

/// A line of the corpus.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    regex: String,
    /// An equivalent grammar in GBNF, where there is one.
    gbnf: Option<String>,
    accepted: Vec<String>,
    refused: Vec<String>,
}

const CORPUS: &str = include_str!("../fixtures/regex/extensions.jsonl");

fn read(syntax: Syntax, text: &str) -> Grammar {
    Grammar::parse(syntax, text, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn mistake(syntax: Syntax, text: &str) -> String {
    Grammar::parse(syntax, text, &Limits::default()).expect_err(text).to_string()
}

fn check<D: Decider>() {
    let mut wrong = Vec::new();
    for line in CORPUS.lines() {
        let case: Case = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(case.accepted.len() >= 12 && case.refused.len() >= 12, "{}", case.name);
        let gbnf = case.gbnf.map(|text| read(Syntax::Gbnf, &text));
        for grammar in [Some(read(Syntax::Regex, &case.regex)), gbnf].into_iter().flatten() {
            let mut decider = D::of(&grammar);
            for (texts, expected) in [(&case.accepted, true), (&case.refused, false)] {
                for text in texts.iter().filter(|text| decider.accepts(text.as_bytes()) != expected) {
                    wrong.push(format!("{}: {text:?} should be {expected}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_engine_decides_the_corpus() {
    check::<Engine>();
}

#[test]
fn the_oracle_decides_the_corpus() {
    check::<domino::oracle::Oracle>();
}

/// Deciders of a regular expression and of a GBNF that should mean the same.
fn both(regex: &str, gbnf: &str) -> [Engine; 2] {
    [Engine::of(&read(Syntax::Regex, regex)), Engine::of(&read(Syntax::Gbnf, &format!("root ::= {gbnf}")))]
}

/// Texts as arguments of an extension in GBNF.
fn literals(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text:?}, ")).collect()
}

/// All texts made of some elements in their order, at least one, with a delimiter between.
fn subsequences(elements: &[String], delimiter: &str) -> Vec<String> {
    (1..1_usize << elements.len())
        .map(|chosen| {
            let kept = elements.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
            kept.map(|(_, element)| element.as_str()).collect::<Vec<_>>().join(delimiter)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn quoted_texts_end_at_the_first_quote_without_a_backslash(
        text in r#"("|\\|a|é|\n){0,7}"#,
        quote: bool,
    ) {
        let text = if quote { format!("\"{text}\"") } else { text };
        let obvious = || {
            let mut inside = text.strip_prefix('"')?.chars();
            loop {
                match inside.next()? {
                    '"' => return Some(inside.as_str().is_empty()),
                    '\\' if inside.next()?.is_control() => return None,
                    c if c.is_control() => return None,
                    _ => {}
                }
            }
        };
        for mut engine in both("(?P<QUOTED_TEXT>)", "QUOTED_TEXT()") {
            prop_assert_eq!(engine.accepts(text.as_bytes()), obvious() == Some(true), "{:?}", text);
        }
    }

    #[test]
    fn substrings_are_contained(
        text in "[ab é]{1,12}",
        others in proptest::collection::vec("[ab éB]{0,4}", 1..12),
    ) {
        for mut engine in both(&format!("(?P<SUBSTRING_OF>{text})"), &format!("SUBSTRING_OF({text:?})")) {
            for other in &others {
                prop_assert_eq!(engine.accepts(other.as_bytes()), text.contains(other), "{:?}", other);
            }
        }
        let mut engine = Engine::of(&read(Syntax::Regex, &format!("(?i)(?P<SUBSTRING_OF>{text})")));
        for other in &others {
            let expected = text.to_lowercase().contains(&other.to_lowercase());
            prop_assert_eq!(engine.accepts(other.as_bytes()), expected, "{:?} in any case", other);
        }
    }

    #[test]
    fn texts_end_where_the_stop_is_first_found(
        stops in proptest::collection::vec("[ab]{1,3}", 1..3),
        texts in proptest::collection::vec("[abcé\n]{0,8}", 1..16),
    ) {
        let regex = format!("(?P<TEXT_UNTIL>{})", stops.join("|"));
        for mut engine in both(&regex, &format!("TEXT_UNTIL({})", literals(&stops))) {
            for text in texts.iter().flat_map(|text| [text.clone(), format!("{text}{}", stops[0])]) {
                let found = stops.iter().filter_map(|stop| Some(text.find(stop)? + stop.len())).min();
                prop_assert_eq!(engine.accepts(text.as_bytes()), found == Some(text.len()), "{:?}", text);
            }
        }
    }

    #[test]
    fn lists_are_split_into_elements(
        elements in proptest::collection::vec("[ab]{1,2}", 1..4),
        delimiter in "[,;]{1,2}",
        picks in proptest::collection::vec(0..4_usize, 1..5),
        others in proptest::collection::vec("[ab]{0,2}([,;]{1,2}[ab]{0,2}){0,3}", 1..12),
    ) {
        let regex = format!("(?P<DELIMITED_LIST>{}|(?P<DELIMITER>{delimiter}))", elements.join("|"));
        let gbnf = format!("DELIMITED_LIST({}delimiter={delimiter:?})", literals(&elements));
        let picked: Vec<&str> = picks.iter().map(|pick| elements[pick % elements.len()].as_str()).collect();
        let drawn = picked.join(&delimiter);
        for mut engine in both(&regex, &gbnf) {
            for text in others.iter().chain([&drawn]) {
                let expected =
                    text.split(&delimiter).all(|part| elements.iter().any(|element| element == part));
                prop_assert_eq!(engine.accepts(text.as_bytes()), expected, "{:?}", text);
            }
            prop_assert!(engine.accepts(drawn.as_bytes()));
        }
    }

    /// Delimited subsequences against a list of all; elements and delimiters may be parts of each other.
    #[test]
    fn subsequences_are_those_that_can_be_listed(
        elements in proptest::collection::vec("[ab]{0,2}", 1..6),
        delimiter in "[ab,]{0,2}",
        others in proptest::collection::vec("[ab,]{0,8}", 1..12),
    ) {
        let listed = elements.join("|");
        let regex = format!("(?P<DELIMITED_SUBSEQUENCE_OF>{listed}|(?P<DELIMITER>{delimiter}))");
        let gbnf = format!("DELIMITED_SUBSEQUENCE_OF({}delimiter={delimiter:?})", literals(&elements));
        let listed = subsequences(&elements, &delimiter);
        for mut engine in both(&regex, &gbnf) {
            for text in others.iter().chain(&listed) {
                prop_assert_eq!(engine.accepts(text.as_bytes()), listed.contains(text), "{:?}", text);
            }
        }
    }
}

#[test]
fn other_names_of_groups_change_no_language() {
    for name in
        ["name", "quoted_text", "Text_Until", "DELIMITER", "ELEMENT", "ELEMENT[0]", "QUOTED", "SUBJECT"]
    {
        let mut engine = Engine::of(&read(Syntax::Regex, &format!("(?P<{name}>a+)b")));
        assert!(engine.accepts(b"aab") && !engine.accepts(b"b"), "{name}");
    }
}

#[test]
fn notations_with_regular_expressions_have_named_languages() {
    let tag =
        r#"{"type": "structural_tag", "format": {"type": "regex", "pattern": "(?P<SUBSTRING_OF>abc)x"}}"#;
    for (syntax, text) in [
        (Syntax::Lark, "start: /(?P<SUBSTRING_OF>abc)/ \"x\""),
        (Syntax::Lark, "start: T \"x\"\nT: /(?P<SUBSTRING_OF>abcd)/ & /[^d]*/"),
        (Syntax::Lark, "start: /(?P<SUBSTRING_OF>ABC)/i \"x\""),
        (Syntax::Ebnf, r#"root ::= Regex("(?P<SUBSTRING_OF>abc)") "x""#),
        (Syntax::Ebnf, r#"root ::= SUBSTRING_OF("abc") "x""#),
        (Syntax::Gbnf, "root ::= part \"x\"\npart ::= SUBSTRING_OF(\n  \"abc\" # a text\n)"),
        (Syntax::StructuralTag, tag),
    ] {
        let mut engine = Engine::of(&read(syntax, text));
        for accepted in ["x", "ax", "bcx", "abcx"] {
            assert!(engine.accepts(accepted.as_bytes()), "{text}: {accepted}");
        }
        for refused in ["", "a", "acx", "dx", "abcdx"] {
            assert!(!engine.accepts(refused.as_bytes()), "{text}: {refused}");
        }
    }
}

#[test]
fn patterns_of_schemas_have_no_named_languages() {
    let mut engine = Engine::of(&read(
        Syntax::JsonSchema,
        r#"{"type": "string", "pattern": "^(?<TEXT_UNTIL>a)(?<QUOTED_TEXT>b)$"}"#,
    ));
    assert!(engine.accepts(br#""ab""#));
    assert!(!engine.accepts(br#""xab""#));
}

#[test]
fn rules_named_like_a_language_keep_their_meaning() {
    let mut engine = Engine::of(&read(
        Syntax::Gbnf,
        "root ::= TEXT_UNTIL(\"a\") IMAGE(\"b\")\nTEXT_UNTIL ::= \"t\"\nIMAGE\n::= \"i\"",
    ));
    assert!(engine.accepts(b"taib"));
    assert!(!engine.accepts(b"aib"));
}

#[test]
fn large_texts_end_in_an_error() {
    let text: String =
        (0..40_000_u32).map(|at| char::from(b'a' + u8::try_from(at * at % 23).unwrap())).collect();
    // A whole expression is an automaton as it is; as a part it is bounded by the states of a terminal.
    let alone = Engine::of(&read(Syntax::Regex, &format!("(?P<SUBSTRING_OF>{text})")));
    let marked = read(Syntax::Gbnf, &format!("root ::= \"<\" SUBSTRING_OF(\"{text}\") \">\""));
    for (mut engine, before, after) in [(alone, "", ""), (Engine::of(&marked), "<", ">")] {
        for (part, is_part) in [(&text[20_000..20_400], true), (&text[..1], true), ("", true), ("az", false)]
        {
            let whole = format!("{before}{part}{after}");
            assert_eq!(engine.accepts(whole.as_bytes()), is_part, "{part}");
        }
    }
    let message = mistake(Syntax::Regex, &format!("<(?P<SUBSTRING_OF>{text})>"));
    assert!(
        message.starts_with("the budget of 20000 DFA states of a terminal is used up\n --> 1:2\n"),
        "{message}"
    );
}
