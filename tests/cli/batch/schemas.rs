//! Schemas in rows, as objects or texts; flags and further keys change how they are read.

use serde_json::{Value, json};

use super::{answers, batch, check};
use crate::support::{
    program::{domino, last_line},
    random_model::write_model,
};

/// A key with its value, which is also a flag, a schema, and a text that is in the language only with it.
fn cases() -> Vec<(&'static str, Value, Value, &'static str)> {
    let object =
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    vec![
        ("order", json!("any"), object.clone(), r#"{"b": 1, "a": 2}"#),
        ("whitespace", json!("any"), object, "{ \"a\"  \n\n\n   :          1 }"),
        ("numbers", json!("any"), json!({"type": "number"}), "1.50E0"),
        ("format", json!("annotate"), json!({"type": "string", "format": "date"}), "\"today\""),
        ("escapes", json!("all"), json!({"type": "string"}), r#""\u0061""#),
        ("duplicate_keys", json!("allow"), json!({"type": "object"}), r#"{"x": 1, "x": 2}"#),
    ]
}

/// Flags that contradict the cases.
const STRICT: [&str; 12] = [
    "--order",
    "schema",
    "--whitespace",
    "compact",
    "--numbers",
    "plain",
    "--format",
    "assert",
    "--escapes",
    "minimal",
    "--duplicate-keys",
    "refuse",
];

#[test]
fn schema_flags_and_keys_reach_rows_with_a_schema() {
    let mut strict = Vec::new();
    let mut loose = Vec::new();
    for (key, value, schema, text) in cases() {
        // Compact white space for all but the case about it.
        let text =
            if key == "whitespace" { text.to_owned() } else { text.replace(": ", ":").replace(", ", ",") };
        strict.push(json!({"id": key, "schema": schema, "text": text}));
        loose.push(json!({"id": key, "schema": schema, "text": text, key: value}));
    }
    let accepted = |flags: &[&str], rows: &[Value]| -> Vec<Value> {
        let (run, answers) = check(flags, rows);
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        answers.iter().map(|answer| answer["accepted"].clone()).collect()
    };
    assert_eq!(accepted(&STRICT, &strict), vec![json!(false); strict.len()]);
    assert_eq!(accepted(&STRICT, &loose), vec![json!(true); loose.len()]);
    for (row, (key, value, ..)) in strict.iter().zip(cases()) {
        let flag = format!("--{}", key.replace('_', "-"));
        let at = STRICT.iter().position(|known| *known == flag).unwrap();
        let mut flags = STRICT;
        flags[at + 1] = value.as_str().unwrap();
        assert_eq!(accepted(&flags, std::slice::from_ref(row)), [json!(true)], "{key}");
    }
    // Flags without a value, and those that narrow.
    let open = json!({"type": "object", "properties": {"a": {}}});
    let row = |more: Value| {
        let mut row = json!({"schema": open, "text": "{\"a\":[[1]],\"x\":1}"});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    assert_eq!(accepted(&[], &[row(json!({}))]), [json!(true)]);
    assert_eq!(accepted(&["--closed"], &[row(json!({})), row(json!({"closed": false}))]), [false, true]);
    assert_eq!(accepted(&[], &[row(json!({"closed": true})), row(json!({"max_depth": 1}))]), [false, false]);
    assert_eq!(
        accepted(&["--max-depth", "1"], &[row(json!({})), row(json!({"max_depth": 9}))]),
        [false, true]
    );
}

/// A row gets the text that it gets alone with the same flags.
#[test]
fn generate_reads_schemas_of_rows_as_flags_say() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let schema = json!({
        "type": "object", "required": ["b", "a"],
        "properties": {"b": {"type": "string", "maxLength": 9}, "a": {"type": "number"}},
    });
    let file = folder.path().join("s.json");
    std::fs::write(&file, schema.to_string()).unwrap();
    let alone = |flags: &[&str]| {
        let (model, file) = (folder.path().to_str().unwrap(), file.to_str().unwrap());
        let usual = ["generate", "-m", model, "--json", "-n", "60", "-g", file];
        last_line(&domino(&[&usual, flags].concat(), b""))["token_ids"].clone()
    };
    let mut seen = Vec::new();
    for (key, value) in [
        ("whitespace", "compact"),
        ("escapes", "minimal"),
        ("escapes", "all"),
        ("numbers", "any"),
        ("order", "any"),
        ("whitespace", "pretty:2"),
    ] {
        let flag = format!("--{key}");
        let expected = alone(&[&flag, value]);
        let row = json!({"id": 1, "schema": schema});
        let in_row = json!({"id": 1, "schema": schema, key: value});
        let text = json!({"id": 1, "schema": schema.to_string(), key: value});
        let named = json!({"id": 1, "grammar": file, key: value});
        let usual = json!({"id": 1, key: value});
        let own = ["-n", "60", "-g", file.to_str().unwrap()];
        for (row, flags) in [
            (row, &["-n", "60", &flag, value][..]),
            (in_row, &own[..2]),
            (text, &own[..2]),
            (named, &own[..2]),
            (usual, &own[..]),
        ] {
            let run = batch(folder.path(), flags, &row.to_string());
            let found = &answers(&run)["1"];
            assert_eq!(found["token_ids"], expected, "{row} {flags:?}: {found}");
        }
        seen.push(expected);
    }
    // The flags matter.
    assert!(seen.iter().any(|tokens| *tokens != seen[0]));
}

#[test]
fn a_schema_is_an_object_or_its_text_with_all_its_digits() {
    let number = "12345678901234567890123";
    for (schema, good, bad) in [
        (format!("{{\"const\": {number}}}"), number, "12345678901234567890124"),
        (Value::from(format!("{{\"const\": {number}}}")).to_string(), number, "1"),
        ("true".to_owned(), "[1]", "[1"),
        ("false".to_owned(), "", "1"),
        ("{\"enum\": [\"a\", null]}".to_owned(), "null", "\"b\""),
        (
            "{\"type\": \"object\", \"properties\": {\"b\": {}, \"a\": {}}, \"additionalProperties\": false}"
                .to_owned(),
            "{\"b\": 1, \"a\": 2}",
            "{\"c\": 1}",
        ),
    ] {
        let row = |text: &str| format!("{{\"schema\": {schema}, \"text\": {}}}\n", Value::from(text));
        let run = domino(&["check", "--batch"], format!("{}{}", row(good), row(bad)).as_bytes());
        let found: Vec<Value> =
            super::parsed(&run.stdout).iter().map(|row| row["accepted"].clone()).collect();
        // Nothing is in the language of `false`, which is refused as a grammar.
        let expected =
            if schema == "false" { [json!(null), json!(null)] } else { [json!(true), json!(false)] };
        assert_eq!(found, expected, "{schema}: {}", run.stdout);
    }
    // Structural tags as an object too.
    let tag =
        json!({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"const": 7}}});
    let rows = ["7", "8"].map(|text| json!({"syntax": "structural_tag", "grammar": tag, "text": text}));
    let (_, answers) = check(&[], &rows);
    assert_eq!([&answers[0]["accepted"], &answers[1]["accepted"]], [&json!(true), &json!(false)]);
}
