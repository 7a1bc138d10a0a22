//! JSON Schemas on the command line.

use crate::cli::{domino, last_line};

#[test]
fn schemas_take_options_per_row() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}}}"#;
    let row = |text: &str, options: &[(&str, serde_json::Value)]| {
        let mut row =
            serde_json::json!({ "id": 1, "syntax": "json_schema", "grammar": schema, "text": text });
        for (key, value) in options {
            row[*key] = value.clone();
        }
        row.to_string()
    };
    let unique = r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#;
    let lenient = serde_json::json!({
        "id": 2, "syntax": "json_schema", "grammar": unique, "text": "[\"a\", \"a\"]", "lenient": true,
    });
    let lines = [
        row(r#"{"b": "x", "a": 1}"#, &[]),
        row(r#"{"b": "x", "a": 1}"#, &[("order", "schema".into())]),
        row(" {} ", &[]),
        row(" {} ", &[("whitespace", "compact".into())]),
        row(r#"{"a": 1, "c": 2}"#, &[("closed", true.into())]),
        row("{}", &[("whitespace", "loose".into())]),
        lenient.to_string(),
    ];
    let run = domino(&["check", "--batch"], lines.join("\n").as_bytes());
    let answers: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let accepted: Vec<_> = answers.iter().map(|answer| answer["accepted"].as_bool()).collect();
    assert_eq!(
        accepted,
        [Some(true), Some(false), Some(true), Some(false), Some(false), None, Some(true)],
        "{answers:?}"
    );
    assert_eq!(answers[6]["relaxed"][0]["keyword"], "uniqueItems");
}

#[test]
fn files_of_schemas_are_known_by_their_ending() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("person.schema.json");
    std::fs::write(&path, r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#).unwrap();
    let path = path.to_str().unwrap();
    let good = domino(&["check", "--grammar", path, "-"], br#" {"age": 3, "name": "x"} "#);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    let bad = domino(&["check", "--json", "--grammar", path, "--order", "schema", "-"], br#"{"name": 3}"#);
    assert_eq!(bad.code, Some(1), "{}", bad.stderr);
    let flag = domino(&["check", "--grammar", "json", "--closed", "-"], b"{}");
    assert_eq!(flag.code, Some(2), "{}", flag.stderr);
    std::fs::write(folder.path().join("wrong.json"), r#"{"type": "text"}"#).unwrap();
    let wrong = folder.path().join("wrong.json");
    let wrong = domino(&["check", "--grammar", wrong.to_str().unwrap(), "-"], b"{}");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("#: `type`"), "{}", wrong.stderr);
}

/// Of a schema without a prior the template is guessed, by default, and that changes no token.
#[cfg(feature = "candle")]
#[test]
fn templates_are_drafted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("person.schema.json");
    let schema = r#"{"type": "object", "required": ["kind of person", "age"], "additionalProperties": false,
        "properties": {"kind of person": {"const": "a person of the town"}, "age": {"type": "integer"}}}"#;
    std::fs::write(&path, schema).unwrap();
    let generate = |more: &[&str]| {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/domino-small");
        let flags = ["generate", "--json", "-m", model, "-p", "A person: ", "-n", "40", "--seed", "3"];
        let grammar = ["-g", path.to_str().unwrap(), "--escapes", "minimal", "--whitespace", "compact"];
        last_line(&domino(&[&flags, &grammar[..], more].concat(), b""))
    };
    let (plain, found) = (generate(&["--speculate", "off"]), generate(&[]));
    assert!(plain["drafted"].is_null() && plain["tokens"].as_u64() > Some(10), "{plain}");
    assert_eq!(found["token_ids"], plain["token_ids"]);
    let count = |key: &str| found[key].as_u64().unwrap();
    assert!(count("drafted") > 0 && count("accepted") <= count("drafted"), "{found}");
    assert!(found["prior"].is_null(), "{found}");
    // All but the digits.
    let text = found["text"].as_str().unwrap();
    let digits = text.bytes().filter(|byte| byte.is_ascii_digit() || *byte == b'-').count() as u64;
    assert!(count("forced_bytes") + digits + 3 >= text.len() as u64, "{found}");
    assert!((0.5..=1.0).contains(&found["forced_share"].as_f64().unwrap()), "{found}");
    assert_eq!(found["forced_bytes"], plain["forced_bytes"]);
}
