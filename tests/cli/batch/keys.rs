//! Keys of rows: unknown ones are refused with a suggestion, and `meta` and kept columns are copied.

use serde_json::json;

use super::{answers, batch, check, parsed};
use crate::support::{program::domino, random_model::write_model};

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    for (key, near) in [
        ("promt", "did you mean `prompt`?"),
        ("temprature", "did you mean `temperature`?"),
        ("max-tokens", "did you mean `max_tokens`?"),
        ("Seed", "did you mean `seed`?"),
        ("scema", "did you mean `schema`?"),
        ("white_space", "did you mean `whitespace`?"),
        ("tool_choise", "did you mean `tool_choice`?"),
        ("colour", "--keep-fields"),
    ] {
        let (run, answers) = check(&["-r", "a"], &[json!({"text": "a", key: 1}), json!({"text": "a"})]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let error = answers[0]["error"].as_str().unwrap();
        assert!(error.starts_with("line 1: ") && error.contains(key) && error.contains(near), "{error}");
        assert_eq!((&answers[0]["accepted"], &answers[1]["accepted"]), (&json!(null), &json!(true)));
    }
}

#[test]
fn wrong_values_are_refused_with_their_key() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    for (row, says) in [
        (r#"{"temperature": "hot"}"#, "`temperature`: invalid type: string \"hot\", expected a number"),
        (r#"{"seed": -1}"#, "`seed`: invalid value: integer `-1`, expected a whole number"),
        (r#"{"n": 0}"#, "`n`: "),
        (r#"{"prompt": ["a"]}"#, "`prompt`: invalid type: sequence"),
        (r#"{"finish": "stop"}"#, "`finish`: "),
        (r#"{"order": "random"}"#, "`order`: unknown variant `random`"),
        (r#"{"whitespace": "loose"}"#, "`whitespace`: it is flexible"),
        (r#"{"seed": 1, "seed": 2}"#, "`seed` stands twice"),
        (r#"{"regex": "a", "schema": {}}"#, "`regex` and `schema`"),
        (r#"{"syntax": "gbnf"}"#, "`syntax`"),
        (r#"{"grammar": {"type": "object"}}"#, "`schema` takes an object"),
        (r#"{"schema": 7}"#, "`schema` is 7"),
        (r#"{"closed": true}"#, "`closed` is for a schema, and there is none"),
        (r#"{"regex": "a", "closed": true}"#, "`closed` is for a JSON Schema"),
        (r#"{"regex": "a", "tool_choice": "none"}"#, "no `tools`"),
        (r#"{"tokens": 3}"#, "`tokens` is a column that generate writes itself"),
        ("[1]", "not an object"),
        ("{\"a\"", "not JSON"),
    ] {
        let run = batch(folder.path(), &[], row);
        assert_eq!(run.code, Some(1), "{row}: {}", run.stderr);
        let error = answers(&run)["1"]["error"].as_str().unwrap().to_owned();
        assert!(error.contains(says), "{row}: {error}");
    }
}

/// `meta` and kept columns are copied as they were written, whatever they are.
#[test]
fn meta_and_kept_columns_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let columns =
        r#""meta":{"price": 1.10, "n": 12345678901234567890123},"tag":[null, "\u00e9"],"split":"dev""#;
    let row = format!("{{\"regex\": \"x\", \"prompt\": \"\", \"id\": \"a\", {columns}}}");
    let run = batch(folder.path(), &["--keep-fields"], &row);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let head = format!("{{\"id\":\"a\",{columns},\"text\":\"x\",");
    assert!(run.stdout.starts_with(&head), "{}", run.stdout);
    // Whoever has columns of their own has not said which of them is asked.
    let run = batch(folder.path(), &["--keep-fields"], r#"{"regex": "x", "question": "Why?"}"#);
    let answer = &answers(&run)["1"];
    assert!(answer["error"].as_str().unwrap().contains("no prompt beside `question`"), "{answer}");
    // An error carries them too, and without the flag only `meta` may be there.
    let run = batch(folder.path(), &[], &row);
    let answer = &answers(&run)["\"a\""];
    assert!(answer["error"].as_str().unwrap().contains("unknown key `tag`"), "{answer}");
    assert_eq!(answer["meta"]["price"], json!(1.1));
    for meta in ["null", "7", "\"text\"", "[]", "{\"a\": {\"b\": []}}", "false"] {
        let run = batch(folder.path(), &[], &format!("{{\"regex\": \"x\", \"meta\": {meta}}}"));
        let expected: serde_json::Value = serde_json::from_str(meta).unwrap();
        assert_eq!(answers(&run)["1"]["meta"], expected, "{meta}");
    }
    let checked = domino(&["check", "--batch", "-r", "x", "--keep-fields"], run.stdout.as_bytes());
    assert_eq!(parsed(&checked.stdout)[0]["accepted"], json!(null), "it has no text");
    let rows = [json!({"id": 1, "text": "x", "source": {"a": 1}, "meta": [2]})];
    let (_, answers) = check(&["-r", "x", "--keep-fields"], &rows);
    assert_eq!((&answers[0]["source"], &answers[0]["meta"]), (&json!({"a": 1}), &json!([2])));
    // A column that the command writes cannot be one of those that are kept.
    let (run, answers) = check(&["-r", "x", "--keep-fields"], &[json!({"text": "x", "expected": 1})]);
    assert_eq!(run.code, Some(1));
    assert!(answers[0]["error"].as_str().unwrap().contains("`expected` is a column that check writes"));
}

/// Keys of other commands are ignored, so that one file serves all.
#[test]
fn one_file_serves_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let row = json!({"id": 1, "prompt": "p", "regex": "[ab]{3}", "seed": 2, "text": "aba", "prefix": false});
    let run = batch(folder.path(), &[], &row.to_string());
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let (run, answers) = check(&[], &[row]);
    assert_eq!((run.code, &answers[0]["accepted"]), (Some(0), &json!(true)));
}
