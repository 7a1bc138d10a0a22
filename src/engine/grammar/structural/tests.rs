//! Tests of the messages about mistakes in structural tags.

use crate::{
    Grammar, GrammarError, Limits, Syntax,
    grammar::{GrammarErrorKind, GrammarWarningKind, mistakes},
};

fn read(text: &str) -> Result<Grammar, GrammarError> {
    Grammar::parse(Syntax::StructuralTag, text, &Limits::default())
}

/// Golden file `mistakes.txt`: tags with a mistake, and the message of each.
#[test]
fn mistakes_are_shown_where_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/structural/mistakes.txt");
    let found = mistakes::check(include_str!("mistakes.txt"), path, read);
    assert!(found.len() >= 30, "{}", found.len());
    for found in &found {
        assert!(found.contains("-->"), "no place: {found}");
    }
}

fn of_format(format: &str) -> Result<Grammar, GrammarError> {
    read(&format!(r#"{{"type": "structural_tag", "format": {format}}}"#))
}

#[test]
fn mistakes_have_their_kinds() {
    use GrammarErrorKind as Kind;
    let kind = |format: &str| of_format(format).expect_err(format).kind().clone();
    for format in [r#"{"type": "token", "token": 3}"#, r#"{"type": "any_text", "max_tokens": 3}"#] {
        assert_eq!(kind(format), Kind::Unsupported, "{format}");
    }
    assert_eq!(kind(r#"{"type": "anytext"}"#), Kind::Syntax);
    assert_eq!(kind(r#"{"type": "regex", "pattern": "("}"#), Kind::Syntax);
    let nothing =
        r#"{"type": "json_schema", "json_schema": {"allOf": [{"type": "string"}, {"type": "null"}]}}"#;
    assert!(!of_format(nothing).unwrap_err().places().is_empty());
}

/// XGrammar's styles for arguments that are not read.
#[test]
fn other_styles_are_refused_by_name() {
    for style in ["minimax_m3_xml", "deepseek_v4_1_xml", "cohere_xml", "kimi_k3_xml"] {
        let format = format!(r#"{{"type": "json_schema", "style": "{style}", "json_schema": true}}"#);
        let error = of_format(&format).unwrap_err();
        assert_eq!(*error.kind(), GrammarErrorKind::Unsupported);
        assert!(error.message().contains(style), "{error}");
    }
}

/// Keys at their defaults change nothing, and other values are followed or refused by name.
#[test]
fn keys_that_others_write_are_read() {
    let schema = |more: &str| {
        let object =
            r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}"#;
        of_format(&format!(r#"{{"type": "json_schema", "json_schema": {object}{more}}}"#))
    };
    // Texts of other lengths have other spans.
    let shown = |grammar: &Grammar| {
        let text = format!("{grammar:?}");
        let mut parts = text.split("Span {");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('}').unwrap().1)
    };
    let plain = shown(&schema("").unwrap());
    for defaults in [
        r#", "style": "json", "any_order": false, "max_whitespace_cnt": null, "excludes": []"#,
        r#", "any_order": false"#,
    ] {
        assert_eq!(shown(&schema(defaults).unwrap()), plain);
    }
    for more in [r#", "any_order": true"#, r#", "max_whitespace_cnt": 2"#] {
        assert_ne!(shown(&schema(more).unwrap()), plain, "{more}");
    }
    let name = |found: Result<Grammar, GrammarError>| found.unwrap_err().message().to_owned();
    assert!(name(schema(r#", "excludes": ["x"]"#)).contains("`excludes`"));
    assert!(name(schema(r#", "max_whitespace_cnt": 256"#)).contains("`max_whitespace_cnt`"));
    assert!(of_format(r#"{"type": "any_text", "max_tokens": null, "max_chars": null}"#).is_ok());
    assert!(name(of_format(r#"{"type": "any_text", "max_tokens": 3}"#)).contains("`max_tokens`"));
}

#[test]
fn members_that_may_come_twice_are_warned_of() {
    let open = r#"{"type": "json_schema", "json_schema": {"type": "object", "additionalProperties": true}}"#;
    let kinds: Vec<_> = of_format(open).unwrap().warnings().iter().map(|warning| warning.kind()).collect();
    assert_eq!(kinds, [GrammarWarningKind::DuplicateKeys]);
    assert!(of_format(&open.replace("true", "false")).unwrap().warnings().is_empty());
}

#[test]
fn equal_schemas_of_one_format_share_their_common_terminals() {
    let schema = r#"{"type": "json_schema", "json_schema": {"properties": {"a": {"type": "string"}}}}"#;
    let many = vec![schema; 40].join(", ");
    let (one, many) = (of_format(schema), of_format(&format!(r#"{{"type": "or", "elements": [{many}]}}"#)));
    assert_eq!(many.unwrap().common(), one.unwrap().common());
}

/// Formats nested as deep as JSON may be are read with the small stack of a test's thread.
#[test]
fn deep_formats_need_no_deep_stack() {
    let nested = |levels: usize| {
        let open = r#"{"type": "sequence", "elements": ["#.repeat(levels);
        format!("{open}{{\"type\": \"any_text\"}}{}", "]}".repeat(levels))
    };
    assert!(of_format(&nested(250)).is_ok());
    assert_eq!(*of_format(&nested(300)).unwrap_err().kind(), GrammarErrorKind::Syntax);
    let tags = |levels: usize| {
        let open = r#"{"type": "tag", "begin": "<", "end": ">", "content": "#.repeat(levels);
        format!("{open}{{\"type\": \"any_text\"}}{}", "}".repeat(levels))
    };
    assert!(of_format(&tags(500)).is_ok());
}

#[test]
fn long_free_text_is_counted() {
    assert!(of_format(r#"{"type": "any_text", "max_chars": 100000}"#).is_ok());
}

#[test]
fn arguments_are_refused_where_a_schema_says_more() {
    let of = |schema: &str| {
        of_format(&format!(r#"{{"type": "json_schema", "style": "qwen_xml", "json_schema": {schema}}}"#))
    };
    for schema in [
        r#"{"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}"#,
        "true",
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {}}}"##,
        r#"{"properties": {}, "additionalProperties": true}"#,
        r#"{"properties": {"a": {"type": "string", "pattern": "y"}}}"#,
    ] {
        assert!(of(schema).is_ok(), "{schema}");
    }
    for schema in [
        r#"{"type": "array"}"#,
        r#"{"properties": {"a": {}}, "minProperties": 1}"#,
        r#"{"properties": {"a": {}}, "additionalProperties": {"type": "string"}, "maxProperties": 3}"#,
    ] {
        assert_eq!(*of(schema).expect_err(schema).kind(), GrammarErrorKind::Unsupported, "{schema}");
    }
    for schema in [
        r#"{"properties": {"a": {"enum": ["x"], "pattern": "y"}}, "required": ["a"]}"#,
        r#"{"properties": {}, "required": ["a"], "additionalProperties": false}"#,
    ] {
        assert_eq!(*of(schema).expect_err(schema).kind(), GrammarErrorKind::Syntax, "{schema}");
    }
}

/// Many tags behind one trigger are read; many strings that begin within each other would cost too much and
/// are refused.
#[test]
fn many_tags_are_read_and_many_overlapping_stops_refused() {
    let tag = |number: usize| {
        format!(r#"{{"begin": "<f{number}>", "content": {{"type": "any_text"}}, "end": "</f{number}>"}}"#)
    };
    let tags = |count: usize| (0..count).map(tag).collect::<Vec<_>>().join(",");
    let of = |count: usize, triggers: &str| {
        of_format(&format!(
            r#"{{"type": "triggered_tags", "triggers": [{triggers}], "tags": [{}]}}"#,
            tags(count)
        ))
    };
    assert!(of(200, r#""<f""#).is_ok());
    let meeting: Vec<String> = (0..100).map(|number| format!(r#""{}b""#, "a".repeat(number + 1))).collect();
    let rules: Vec<String> =
        meeting.iter().map(|text| format!(r#"[{text}, {{"type": "const_string", "value": "x"}}]"#)).collect();
    let error = of_format(&format!(r#"{{"type": "dispatch", "rules": [{}]}}"#, rules.join(","))).unwrap_err();
    assert_eq!(*error.kind(), GrammarErrorKind::Unsupported);
}
