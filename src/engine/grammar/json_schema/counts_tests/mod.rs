//! Patterns and formats with large counts and lengths, look-ahead beside them, and the drafts' metaschemas,
//! run in the engine.

mod places;

use super::{Escapes, SchemaError, SchemaErrorKind, SchemaOptions};
use crate::{CompiledGrammar, Compiler, Limits, TokenId, Vocabulary};

fn compiled(schema: &str) -> CompiledGrammar {
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
    let options = SchemaOptions::default().with_escapes(Escapes::All);
    let grammar = options.parse(schema, &Limits::default()).unwrap().grammar;
    Compiler::new(vocabulary).compile(&grammar).unwrap()
}

fn accepts(grammar: &CompiledGrammar, text: &str) -> bool {
    let mut constraint = grammar.constraint();
    constraint.advance_bytes(text.as_bytes()).unwrap() == text.len() && constraint.is_complete()
}

fn refused(schema: &str) -> SchemaError {
    SchemaOptions::default().parse(schema, &Limits::default()).unwrap_err()
}

/// A pattern, further keywords beside it, strings that are valid, and strings that are not.
type Case = (&'static str, &'static str, Vec<String>, Vec<String>);

fn repeated(before: &str, part: &str, count: usize, after: &str) -> String {
    format!("{before}{}{after}", part.repeat(count))
}

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

fn check(cases: Vec<Case>) {
    for (pattern, beside, inside, outside) in cases {
        let pattern = serde_json::to_string(pattern).unwrap();
        let grammar = compiled(&format!(r#"{{"type": "string", "pattern": {pattern}{beside}}}"#));
        for (texts, expected) in [(inside, true), (outside, false)] {
            for text in texts {
                let quoted = serde_json::to_string(&text).unwrap();
                let shown: String = quoted.chars().take(40).collect();
                assert_eq!(accepts(&grammar, &quoted), expected, "{pattern}{beside}: {shown}");
            }
        }
    }
}

/// Patterns with one count, and with several in a row.
#[test]
fn counts_in_patterns_are_exact() {
    let long = |before, part, count, after| vec![repeated(before, part, count, after)];
    check(vec![
        (r"^x[^\n]{0,1000}$", "", long("x", "é", 1_000, ""), long("x", "é", 1_001, "")),
        (r"^x[^\n]{0,10000}$", "", long("x", "y", 10_000, ""), long("x", "y", 10_001, "")),
        (r"^\p{L}{1,10} \p{L}{1,50}$", "", strings(["a b", "é ß"]), strings(["a", "1 a", "abcdefghijk b"])),
        (r"^[A-Za-z_]{1,64}=[^\n]{0,1024}$", "", long("A=", "b", 1_024, ""), long("A=", "b", 1_025, "")),
        (r"^\S.{0,500}\S$", "", long("x", " ", 500, "x"), long("x", " ", 501, "x")),
        (
            "^[a-z]{1,10000}-[a-z]{1,10000}$",
            "",
            long("", "a", 10_000, "-b"),
            [long("", "a", 10_001, "-b"), strings(["-b", "ab"])].concat(),
        ),
        (r"^\d{1,9999}(\.\d{1,9999})?$", "", strings(["1", "1.2"]), strings([".", "1."])),
        ("^a{1,50}a{1,50}b{200}$", "", long("aa", "b", 200, ""), long("a", "b", 200, "")),
        (
            r"^arn:aws[a-zA-Z-]*:[a-z0-9-]+:[a-z0-9-]*:\d{12}:[a-zA-Z0-9/_+=.@-]{1,1024}$",
            r#", "maxLength": 2048"#,
            long("arn:aws:iam::123456789012:role/", "x", 1_019, ""),
            long("arn:aws:iam::123456789012:role/", "x", 1_020, ""),
        ),
        (
            "^[a-z]+:[a-z]{1,1024}$",
            r#", "minLength": 100, "maxLength": 4000"#,
            long("", "a", 3_998, ":b"),
            [long("", "a", 97, ":b"), long("", "a", 3_999, ":b")].concat(),
        ),
    ]);
}

/// Patterns with counts of counts.
#[test]
fn counts_of_counts_are_exact() {
    let long = |before, part, count, after| vec![repeated(before, part, count, after)];
    check(vec![
        ("^(?:[^,]{1,64},){0,49}$", "", long("", "a,", 49, ""), long("", "a,", 50, "")),
        ("^(?:[^,]{1,64},){0,1000}$", "", long("", "a,", 1_000, ""), long("", "a,", 1_001, "")),
        (r"^(?:.{1,64}\n){1,10}$", "", strings(["a\n"]), strings(["a", "\n"])),
        ("^(a{1,100}){1,100}$", "", long("", "a", 10_000, ""), long("", "a", 10_001, "")),
        (r"^(\d{1,3},){0,3000}\d{1,3}$", "", strings(["1,2"]), strings([",", "1234"])),
        ("^(?:(?:[a-z]{1,20}-){1,20}/){1,20}$", "", long("", "a-/", 20, ""), long("", "a-/", 21, "")),
        (r"^#.{0,200}\n(.{0,200}\n){0,100}$", "", long("#\n", "\n", 100, ""), long("#\n", "\n", 101, "")),
    ]);
}

#[test]
fn look_ahead_beside_counts_is_exact() {
    let long = |before, part, count, after| vec![repeated(before, part, count, after)];
    const HOST: &str = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$";
    let host = |look: &str| -> &'static str { Box::leak(format!("^{look}{HOST}").into_boxed_str()) };
    check(vec![
        (
            r#"^(?!__.*__$)[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}"\\./[\]]{1,200}$"#,
            "",
            strings(["abc", "__x"]),
            [strings(["", "__x__", "a.b"]), long("", "a", 201, "")].concat(),
        ),
        (r"^(?!__)[^\p{Cc}\p{Cf}]{1,200}$", "", long("", "b", 200, ""), strings(["__b", "\t"])),
        (host("(?=.{1,253}$)"), "", long("", "a.", 125, "bcd"), long("", "a.", 126, "bc")),
        (host("(?!.{254,}$)"), "", long("", "a.", 125, "bc"), long("", "a.", 127, "bc")),
        (
            r"^(?=.*[A-Z])(?=.*\d)(?=.*[^\w]).{8,128}$",
            "",
            [strings(["Abcdef1!"]), long("A1!", "x", 125, "")].concat(),
            [strings(["abcdef1!", "Ab1!"]), long("A1!", "x", 126, "")].concat(),
        ),
        (
            r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?=.*\W).{8,4000}$",
            "",
            long("A1!", "x", 3_997, ""),
            long("A1!", "x", 3_998, ""),
        ),
        ("^(?=.{3,200}$)(?!.*--)[a-z-]{1,500}$", "", strings(["abc"]), strings(["ab", "a--b"])),
        (
            "^[a-z](?:[a-z]|-(?=[a-z])){0,38}$",
            "",
            [strings(["a", "a-b"]), long("a", "b", 38, "")].concat(),
            [strings(["a-", "a--b", "-a"]), long("a", "b", 39, "")].concat(),
        ),
    ]);
    let error = refused(r#"{"pattern": "^([a-z])\\1{0,38}$"}"#);
    assert_eq!((error.kind(), error.keyword()), (&SchemaErrorKind::Unsupported, Some("pattern")));
}

/// A `maxLength` of any size works beside every format of strings of any length.
#[test]
fn formats_take_a_max_length_of_any_size() {
    for (format, text) in [
        ("uri", "https://a.org/x.png"),
        ("uri-reference", "/x"),
        ("iri", "http://ƒøø.ßår"),
        ("iri-reference", "/ä"),
        ("email", "a@b.cd"),
        ("idn-email", "ä@b.cd"),
        ("idn-hostname", "ä.b"),
        ("uri-template", "/a/{b}"),
        ("json-pointer", "/a/b"),
        ("relative-json-pointer", "1/a"),
        ("date-time", "2024-02-29T00:00:00.5Z"),
        ("time", "00:00:00.5Z"),
        ("duration", "P10D"),
        ("regex", "^[a-z]+$"),
    ] {
        let characters = text.chars().count();
        for max in [300, 4_096, 100_000, 20_971_520, 2_147_483_647] {
            let schema = format!(r#"{{"type": "string", "format": "{format}", "maxLength": {max}}}"#);
            let grammar = compiled(&schema);
            assert!(accepts(&grammar, &format!("\"{text}\"")), "{schema}");
            assert!(!accepts(&grammar, "\"\\u0000 ((\""), "{schema}");
        }
        for (max, fits) in [(characters, true), (characters - 1, false)] {
            let schema = format!(r#"{{"type": "string", "format": "{format}", "maxLength": {max}}}"#);
            if format != "regex" || fits {
                assert_eq!(accepts(&compiled(&schema), &format!("\"{text}\"")), fits, "{schema}");
            }
        }
    }
    let grammar = compiled(r#"{"type": "string", "format": "uri", "maxLength": 150000}"#);
    for (length, fits) in [(150_000, true), (150_001, false)] {
        let text = repeated("\"data:image/png;base64,", "A", length - 22, "\"");
        assert_eq!(accepts(&grammar, &text), fits, "{length}");
    }
}

#[test]
fn refused_counts_name_the_keyword_and_the_place() {
    for pattern in [
        r"^\\w{1,5000}[a-z]{1,5000}$",
        r"x[^\\n]{0,1000}y",
        r"^(.{0,5000}a.{0,5000}){0,10000}$",
        r"^((ab{1,100}){1,100}){1,100}$",
        r"^(?:[^,]{1,64},){0,10000}$",
    ] {
        let error =
            refused(&format!(r#"{{"properties": {{"a": {{"type": "string", "pattern": "{pattern}"}}}}}}"#));
        assert_eq!(error.kind(), &SchemaErrorKind::Limit, "{pattern}");
        assert_eq!((error.pointer(), error.keyword()), ("#/properties/a", Some("pattern")), "{pattern}");
    }
    let both = r#"{"items": {"type": "string", "minLength": 8000, "maxLength": 20000,
        "pattern": "^[a-z]+:[a-z]{1,9000}$"}}"#;
    let error = refused(both);
    assert_eq!((error.pointer(), error.keyword()), ("#/items", Some("pattern")));
    assert!(error.message().contains("together with `maxLength` and `minLength`"), "{error}");
    let several = r#"{"items": {"type": "string", "allOf": [
        {"pattern": "^(?:[ab]*c){1,300}[ab]*$"}, {"pattern": "^(?:[bc]*a){1,300}[bc]*$"}]}}"#;
    assert_eq!(refused(several).pointer(), "#/items");
}

#[test]
fn references_to_metaschemas_are_resolved() {
    for draft in ["draft-04/", "draft-06/", "draft-07/", "draft/2019-09/", "draft/2020-12/"] {
        for scheme in ["http", "https"] {
            for end in ["", "#"] {
                let schema =
                    format!(r#"{{"items": {{"$ref": "{scheme}://json-schema.org/{draft}schema{end}"}}}}"#);
                let grammar = compiled(&schema);
                for (text, fits) in [
                    (r#"[{"type": "string"}]"#, true),
                    (r#"[{"properties": {"a": {"type": ["null", "array"]}}}]"#, true),
                    (r#"[{"type": "text"}]"#, false),
                    (r#"[{"properties": {"a": {"minLength": -1}}}]"#, false),
                    ("[1]", false),
                ] {
                    assert_eq!(accepts(&grammar, text), fits, "{schema}: {text}");
                }
                let is_later = draft != "draft-04/";
                assert_eq!(accepts(&grammar, "[true]"), is_later, "{schema}");
            }
        }
    }
    let within = compiled(r#"{"$ref": "http://json-schema.org/draft-07/schema#/definitions/simpleTypes"}"#);
    assert!(accepts(&within, r#""null""#) && !accepts(&within, r#""text""#));
    let error = refused(r#"{"$ref": "https://example.org/draft-07/schema#"}"#);
    assert_eq!(error.kind(), &SchemaErrorKind::Reference);
}
