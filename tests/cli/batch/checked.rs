//! `check --batch` and `trace --batch` read what `generate --batch` wrote.

use std::fs;

use serde_json::{Value, json};

use super::{batch, check, parsed};
use crate::support::{
    program::{domino, last_line},
    random_model::write_model,
};

const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "string", "maxLength": 5},
    "b": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["a", "b"]}"#;

#[test]
fn check_reads_what_generate_wrote() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let schema = folder.path().join("s.json");
    fs::write(&schema, SCHEMA).unwrap();
    let schema = schema.to_str().unwrap();
    let rows = [
        json!({"id": "two", "n": 2, "meta": {"k": 1}, "finish": true, "logprobs": 1}),
        json!({"id": "cut", "max_tokens": 4}),
        json!({"id": "bad", "regex": "("}),
        json!({"id": "drafted", "finish": true, "seed": 9}),
    ];
    let lines = rows.map(|row| row.to_string()).join("\n");
    let flags = ["-g", schema, "--escapes", "minimal", "-n", "40", "--speculate", "2"];
    let written = batch(folder.path(), &flags, &lines);
    assert_eq!(written.code, Some(1), "{}", written.stderr);
    let checked = |flags: &[&str]| {
        let run = domino(&[&["check", "--batch", "-g", schema], flags].concat(), written.stdout.as_bytes());
        assert_eq!(run.code, Some(1), "a row has no text: {}", run.stderr);
        let answers = parsed(&run.stdout);
        for (answer, wrote) in answers.iter().zip(parsed(&written.stdout)) {
            let same = |key: &str| answer.get(key) == wrote.get(key);
            assert!(same("id") && same("index") && same("meta"), "{answer}");
            match wrote["id"].as_str() {
                Some("bad") => {
                    let error = answer["error"].as_str().unwrap();
                    assert!(
                        error.contains("there is no text") && error.contains("unclosed group"),
                        "{error}"
                    );
                }
                Some("cut") => {
                    assert_eq!(answer["accepted"], json!(flags.contains(&"--prefix")), "{answer}");
                }
                _ => assert_eq!(answer["accepted"], wrote["complete"], "{answer}"),
            }
        }
        answers.len()
    };
    assert_eq!(checked(&[]), 5);
    assert_eq!(checked(&["--prefix"]), 5);
    // Held against another grammar they are refused, which shows that the texts are looked at.
    let run = domino(&["check", "--batch", "-r", "x"], written.stdout.as_bytes());
    assert_eq!(parsed(&run.stdout).iter().filter(|answer| answer["accepted"] == false).count(), 4);
    assert!(run.stderr.contains("[done; 0 in the language, 4 not, 1 without an answer]"), "{}", run.stderr);
}

/// Keys that `generate` writes, with all flags that add keys, are known to `check`.
#[test]
fn no_key_that_generate_writes_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let tool = json!([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"const": 1}}}}]);
    let rows = [
        json!({"regex": "(?P<x>[ab]{9})", "logprobs": 2, "finish": true, "max_tokens": 3}),
        json!({"grammar": "json", "max_tokens": 20, "finish": true}),
        json!({
            "tools": tool, "tool_spelling": "hermes", "reasoning": "optional", "max_tokens": 20,
            "finish": true,
        }),
        json!({"regex": "[ab]{2}", "reasoning": "required", "reasoning_tokens": 3, "finish": true}),
        json!({
            "schema": {"type": "array", "uniqueItems": true, "items": {"type": "object"}}, "lenient": true,
            "max_tokens": 20,
        }),
        json!({"regex": "a++", "max_tokens": 2}),
        json!({"regex": "("}),
        json!({"n": 2, "max_tokens": 3}),
    ];
    let lines = rows.map(|row| row.to_string()).join("\n");
    for flags in [&["--speculate", "3"][..], &["--speculate", "off"], &["--opportunistic"]] {
        let written = batch(folder.path(), flags, &lines);
        let run = domino(&["check", "--batch", "-r", "(?s:.)*"], written.stdout.as_bytes());
        for answer in parsed(&run.stdout) {
            let error = answer["error"].as_str().unwrap_or_default();
            assert!(answer["accepted"] == true || error.contains("there is no text"), "{answer}");
        }
    }
}

#[test]
fn rows_of_check_have_grammars_of_their_own_or_that_of_the_flags() {
    let rows = [
        json!({"id": 1, "text": "7"}),
        json!({"id": 2, "text": "x", "regex": "x"}),
        json!({"id": 3, "text": "[]", "grammar": "rfc8259"}),
        json!({"id": 4, "text": "ab", "grammar": "root ::= \"ab\"", "syntax": "gbnf"}),
        json!({"id": 5, "text": "1.0", "schema": {"type": "integer"}}),
        json!({"id": 6, "text": "7", "prefix": true}),
        json!({"id": 7, "text": "", "prefix": true}),
    ];
    let accepted = |answers: &[Value]| -> Vec<Value> {
        answers.iter().map(|answer| answer["accepted"].clone()).collect()
    };
    let (run, answers) = check(&["-r", "7"], &rows);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(accepted(&answers), [true; 7]);
    let (_, answers) = check(&["-r", "77", "--prefix", "--numbers", "plain"], &rows);
    assert_eq!(accepted(&answers), [true, true, true, true, false, true, true]);
    let (run, answers) = check(&[], &rows[..2]);
    assert_eq!(run.code, Some(1));
    assert!(answers[0]["error"].as_str().unwrap().contains("there is no grammar"), "{}", answers[0]);
    assert_eq!(answers[1]["accepted"], true);
    let (_, answers) = check(&["--report"], &[json!({"text": "1", "schema": {"minimum": 0, "title": "t"}})]);
    assert_eq!(answers[0]["schema_report"]["counts"]["annotation"], 1, "{}", answers[0]);
}

#[test]
fn trace_reads_rows() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let model = folder.path().to_str().unwrap();
    let written = batch(folder.path(), &["-r", "[a-z]{4,9}"], "{\"n\": 3}\n{\"id\": \"b\", \"seed\": 8}\n");
    let trace = |flags: &[&str], rows: &str| {
        let usual = ["trace", "--batch", "-t", model, "--passes", "2", "--json", "-"];
        domino(&[&usual, flags].concat(), rows.as_bytes())
    };
    let run = trace(&["-r", "[a-z]{4,9}"], &written.stdout);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(last_line(&run)["traces"], json!(4), "{}", run.stdout);
    // Texts without tokens, and columns that are not known.
    let run = trace(&["-r", "[a-z]{4,9}"], "{\"text\": \"abcdef\", \"source\": 1}\n");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (rows, says) in [
        (
            "{\"text\": \"abcd\"}\n{\"text\": \"abcd\", \"regex\": \"a\"}\n",
            "line 2: the row has a grammar of its own",
        ),
        ("{\"id\": 1}\n", "line 1: there is no text"),
        ("{\"id\": 1, \"error\": \"cut off\"}\n", "line 1: there is no text: cut off"),
        ("{\"text\": 7}\n", "line 1: `text`: invalid type"),
        ("nothing\n", "line 1: not JSON"),
        ("", "there is no trace"),
    ] {
        let run = trace(&["-r", "[a-z]{4,9}"], rows);
        assert!(run.code == Some(2) && run.stderr.contains(says), "{rows}: {}", run.stderr);
    }
}
