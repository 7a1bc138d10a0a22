//! Grammars inside of JSON strings: a text is one of them escaped if and only if it is one of them plain.

use domino::{Grammar, GrammarError, Limits, Syntax};
use proptest::prelude::*;
use serde_json::json;

use crate::support::decider::{Decider, Engine};

/// The structural tag of a grammar, plain or escaped.
fn tag(syntax: &str, text: &str, is_escaped: bool) -> Result<Grammar, GrammarError> {
    let style = is_escaped.then_some("json_string");
    let format = json!({ "type": "grammar", "grammar": text, "syntax": syntax, "style": style });
    let tag = json!({ "type": "structural_tag", "format": format });
    Grammar::parse(Syntax::StructuralTag, &tag.to_string(), &Limits::default())
}

/// A text as JSON has it between quotes.
fn inside(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Expressions over characters that JSON escapes and others.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "\\\"",
        "\\\\",
        "\\n",
        "\\x01",
        "[^a]",
        "[\\x00-\\x22]",
        "(?s:.)",
        "\\w",
        "[\\\\\\]\\^]",
        "é",
        "(?i:k)",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner, prop::sample::select(vec!["?", "*", "{0,2}"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

proptest! {
    #[test]
    fn escaped_texts_are_those_of_the_grammar(
        expression in expressions(),
        texts in prop::collection::vec(prop::collection::vec(
            prop::sample::select("a\"\\\n\u{1}é\u{212a}k]\u{7f}".chars().collect::<Vec<_>>()), 0..4), 1..12),
    ) {
        let engine = |is_escaped| Engine::of(&tag("regex", &expression, is_escaped).unwrap());
        let (mut plain, mut escaped) = (engine(false), engine(true));
        for text in texts {
            let text: String = text.into_iter().collect();
            let is_one = plain.accepts(text.as_bytes());
            prop_assert_eq!(escaped.accepts(inside(&text).as_bytes()), is_one, "{} {:?}", expression, text);
        }
    }
}

#[test]
fn a_grammar_of_lark_is_escaped_as_a_whole() {
    let lark = "start: NAME \" = \\\"\" /[^\"\\n]{1,4}/ \"\\\"\" \"\\n\"\nNAME: /[a-z]+/";
    let mut escaped = Engine::of(&tag("lark", lark, true).unwrap());
    for (text, is_one) in
        [("a = \"b\\c\"\n", true), ("a = \"\t\"\n", true), ("a = b\n", false), ("a = \"b\"", false)]
    {
        assert_eq!(escaped.accepts(inside(text).as_bytes()), is_one, "{text}");
        assert!(!escaped.accepts(text.as_bytes()) || inside(text) == text, "{text}");
    }
    // Each character is written in one way.
    for other in [r#"\u0061 = \"b\"\n"#, r#"a = \u0022b\"\n"#, r#"a = \"\/\"\u000a"#] {
        assert!(!escaped.accepts(other.as_bytes()), "{other}");
    }
}

#[test]
fn what_cannot_be_escaped_is_refused_by_name() {
    let message = |syntax, text, escaped| tag(syntax, text, escaped).unwrap_err().message().to_owned();
    assert!(message("lark", "start: A\nA: /a/ & /[ab]/", true).contains("cannot be escaped"));
    assert!(tag("lark", "start: A\nA: /a/ & /[ab]/", false).is_ok());
    assert!(message("klingon", "a", false).contains("notation"));
}
