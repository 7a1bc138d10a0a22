//! Tests of the grammars of Lark texts, and of the messages about mistakes.

use proptest::prelude::*;

use crate::{
    Grammar, GrammarError, Limits, Syntax,
    grammar::{GrammarErrorKind, GrammarWarningKind, mistakes},
};

fn read(text: &str) -> Result<Grammar, GrammarError> {
    Grammar::parse(Syntax::Lark, text, &Limits::default())
}

/// Golden file `mistakes.txt`: Lark grammars with a mistake, and the message of each.
#[test]
fn mistakes_are_shown_where_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/lark/mistakes.txt");
    let found = mistakes::check(include_str!("mistakes.txt"), path, read);
    assert!(found.len() >= 40, "{}", found.len());
    for found in &found {
        assert!(found.contains("-->"), "no place: {found}");
    }
}

#[test]
fn mistakes_have_their_kinds() {
    use GrammarErrorKind as Kind;
    let kind = |text: &str| read(text).expect_err(text).kind().clone();
    assert_eq!(kind("start: a B a"), Kind::Undefined(vec!["a".into(), "B".into()]));
    assert_eq!(kind(""), Kind::NoRoot);
    assert_eq!(kind("A: \"a\""), Kind::NoRoot);
    assert_eq!(kind("a: \"a\""), Kind::NoRoot);
    assert_eq!(kind("start: \"a\"\nstart: \"b\""), Kind::Duplicate("start".into()));
    assert_eq!(kind("%import common.INT\nINT: \"a\"\nstart: INT"), Kind::Duplicate("INT".into()));
    for text in [
        "start: @other",
        "%declare A\nstart: A",
        "%override start: \"a\"",
        "%import python.NAME\nstart: NAME",
        "%import .other.NAME\nstart: NAME",
        "start[max_tokens=3]: /a/",
        "start: a::0\na::_: \"a\"",
        "start: \"a\" & \"b\"",
        "start: /(?=a)/",
        "start: /a/l",
    ] {
        assert_eq!(kind(text), Kind::Unsupported, "{text}");
    }
    for text in ["start: \"a\"{1,100001}", "start: \"a\"~99999999999", "A{x}: x"] {
        assert!(matches!(kind(text), Kind::Limit(_) | Kind::Unsupported), "{text}");
    }
}

#[test]
fn warnings_tell_what_has_no_effect() {
    let grammar = read(concat!(
        "start[stop_capture=\"x\"]: A %json {\"type\": \"object\"}\n",
        "A.2: /a[b[c]]/\nb[temperature=0.7]: \"b\"\n",
    ))
    .unwrap();
    let found: Vec<_> = grammar
        .warnings()
        .iter()
        .map(|warning| (warning.kind(), warning.place().position().to_string()))
        .collect();
    for (kind, place) in [
        (GrammarWarningKind::WithoutEffect, "1:7"),
        (GrammarWarningKind::DuplicateKeys, "1:34"),
        (GrammarWarningKind::Priority, "2:3"),
        (GrammarWarningKind::NestedClass, "2:10"),
        (GrammarWarningKind::WithoutEffect, "3:3"),
    ] {
        assert!(found.contains(&(kind, place.to_owned())), "{kind:?} {place} is not in {found:?}");
    }
    assert_eq!(found.len(), 5, "{found:?}");
}

/// A schema that is the whole grammar keeps the rules that apply to whole texts only.
#[test]
fn a_schema_alone_has_distinct_keys() {
    let alone = read("start: %json {\"type\": \"object\"}").unwrap();
    assert!(alone.distinct_keys().is_some() && alone.warnings().is_empty());
    let closed = read("start: \"a\" %json {\"type\": \"object\", \"additionalProperties\": false}").unwrap();
    assert!(closed.distinct_keys().is_none() && closed.warnings().is_empty());
}

#[test]
fn errors_inside_of_parts_are_placed_in_the_whole() {
    for (text, place) in [
        ("start: A\nA: /a(?=b)/i", "2:6"),
        ("start: %json {\n  \"type\": \"obj\" }", "2:11"),
        ("start: %json {\n  \"type\": \n}", "3:1"),
        ("start: %lark {\n  start: a\n}", "2:10"),
    ] {
        let error = read(text).expect_err(text);
        assert_eq!(error.places()[0].position().to_string(), place, "{error}");
    }
}

#[test]
fn budgets_end_in_errors() {
    let is_limit = |text: &str, limits: &Limits| {
        let error = Grammar::parse(Syntax::Lark, text, limits).expect_err(text);
        matches!(error.kind(), GrammarErrorKind::Limit(_))
    };
    let default = Limits::default();
    assert!(is_limit("start: \"abc\"", &Limits { grammar_bytes: 5, ..default.clone() }));
    assert!(is_limit("start: \"a\" \"b\"", &Limits { expressions: 2, ..default.clone() }));
    assert!(is_limit(&format!("start: {}", "(".repeat(1000)), &default));
    assert!(is_limit("start: A\nA: ~/[ab]*a[ab]{20}/", &default));
    assert!(is_limit("start: a{\"x\"}\na{x}: a{_b{x, x}}\n_b{x, y}: x y", &default));
    let chain: String = (0..1000).map(|n| format!("A{n}: A{} & /a/\n", n + 1)).collect();
    assert!(is_limit(&format!("start: A0\n{chain}A1000: /a/"), &default));
    let deep = format!("start: {}\"a\"{}", "(".repeat(240), ")".repeat(240));
    assert!(read(&deep).is_ok());
    let nested = format!("{}start: \"a\"{}", "start: %lark {\n".repeat(240), "\n}".repeat(240));
    assert!(read(&nested).is_ok());
}

proptest! {
    #[test]
    fn no_text_of_random_characters_panics(text in ".*") {
        let _ = read(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn no_text_of_marks_panics(marks in prop::collection::vec(prop::sample::select(vec![
        "start: ", "\n", "a", "A", "B: ", "b{x}: ", "b{A}", "\"a\"", "\"", "/a|b/", "/", "(", ")", "[", "]",
        "{", "}", "|", "&", "~", "*", "+", "?", "{1,2}", "~2..3", "..", ".", "-> c", "%ignore ", "%json {}",
        "%import common.INT", "%regex {\"substring_chars\": \"aba\"}", "%lark {", "%llguidance {}", "<a>",
        "@a", "[lazy]: ", "suffix=\"a\"", "//", "#", "::", ",", "\\", "\u{e9}", "\0", " ",
    ]), 0..30)) {
        let text = marks.concat();
        if let Err(error) = read(&text) {
            prop_assert!(!error.to_string().is_empty());
            for place in error.places() {
                prop_assert!(text.get(place.span().range()).is_some(), "{:?} of {text:?}", place.span());
            }
        }
    }
}
