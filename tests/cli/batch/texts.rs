//! Results of a row: several texts, values, calls of functions.

use serde_json::{Value, json};

use super::{answers, batch};
use crate::support::{
    program::{domino, last_line},
    random_model::write_model,
};

/// Seeds of several texts: text number i has the seed of the row plus i.
#[test]
fn samples_of_a_row_have_seeds_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let model = folder.path().to_str().unwrap();
    let alone = |seed: u64| {
        let flags =
            ["generate", "-m", model, "-r", "[a-z]{12}", "-p", "p", "--json", "-s", &seed.to_string()];
        last_line(&domino(&flags, b""))["text"].clone()
    };
    let rows = [
        json!({"id": "a", "prompt": "p", "n": 4, "seed": 5}),
        json!({"id": "b", "prompt": "p", "n": 1}),
        json!({"id": "c", "prompt": "p"}),
        json!({"id": "d", "prompt": "p", "n": 3, "temperature": 0}),
    ];
    let lines = rows.map(|row| row.to_string()).join("\n");
    for parallel in ["1", "3", "8"] {
        let run = batch(folder.path(), &["-r", "[a-z]{12}", "--parallel", parallel], &lines);
        assert!(run.code == Some(0) && run.stderr.contains("9 texts"), "{}", run.stderr);
        let answers = answers(&run);
        for index in 0..4 {
            let answer = &answers[&format!("\"a\"#{index}")];
            assert_eq!((&answer["text"], &answer["index"]), (&alone(5 + index), &json!(index)));
        }
        assert_eq!(answers["\"b\"#0"]["text"], answers["\"c\""]["text"]);
        assert!(answers["\"c\""].get("index").is_none());
        assert_eq!(answers["\"d\"#0"]["text"], answers["\"d\"#2"]["text"]);
        assert_ne!(answers["\"a\"#0"]["text"], answers["\"a\"#1"]["text"]);
    }
    // A row that is wrong is told once for each text that cannot be.
    let run = batch(folder.path(), &["-r", "a"], r#"{"id": 1, "n": 2, "regex": "a{2"}"#);
    assert!(run.code == Some(1) && answers(&run)["1#1"]["error"].is_string(), "{}", run.stdout);
}

#[test]
fn values_are_parsed_where_a_text_is_json() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let value = |row: Value, flags: &[&str]| {
        let run = batch(folder.path(), flags, &row.to_string());
        answers(&run)["1"].get("value").cloned()
    };
    for (row, expected) in [
        (
            json!({"schema": {"const": {"b": [1, null], "a": "x"}}, "whitespace": "compact"}),
            Some(json!({"b": [1, null], "a": "x"})),
        ),
        (json!({"schema": {"const": 7}}), Some(json!(7))),
        (json!({"schema": {"const": null}}), Some(json!(null))),
        (json!({"regex": r#"\{"a": \[1\.5\]\}"#}), Some(json!({"a": [1.5]}))),
        (json!({"regex": "7"}), None),
        (json!({"regex": "true"}), None),
        (json!({"regex": r"\[1"}), None),
        // A text that was cut is no value yet.
        (json!({"schema": {"const": "a long text"}, "max_tokens": 2}), None),
        (
            json!({"schema": {"const": "a long text"}, "max_tokens": 2, "finish": true}),
            Some(json!("a long text")),
        ),
    ] {
        assert_eq!(value(row.clone(), &["--escapes", "minimal"]), expected, "{row}");
    }
    // The same in the object of one text.
    let model = folder.path().to_str().unwrap();
    let one = last_line(&domino(&["generate", "-m", model, "-r", r"\[1,2\]", "--json"], b""));
    assert_eq!(one["value"], json!([1, 2]));
}

#[test]
fn tools_come_in_rows_and_calls_are_taken_apart() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let tools = json!([
        {"type": "function", "function": {"name": "add", "parameters": {
            "type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}}},
        {"type": "function", "function": {"name": "now"}},
    ]);
    let file = folder.path().join("tools.json");
    std::fs::write(&file, tools.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let hermes = ["--tool-spelling", "hermes"];
    let usual = [&hermes[..], &["--tools", file]].concat();
    let add = json!({"type": "function", "function": {"name": "add"}});
    for (row, flags, name) in [
        (json!({"tools": tools, "tool_choice": "add"}), &hermes[..], "add"),
        (json!({"tools": tools, "tool_choice": add}), &hermes, "add"),
        (json!({"tools": tools.to_string(), "tool_choice": "now", "tool_spelling": "hermes"}), &[], "now"),
        (json!({"tools": [tools[1]], "tool_choice": "required", "tool_spelling": "hermes"}), &[], "now"),
        (json!({"tool_choice": "now"}), &usual, "now"),
        (json!({"tools": tools}), &["--tool-spelling", "hermes", "--tool-choice", "add"], "add"),
    ] {
        let mut row = row;
        (row["one_tool_call"], row["finish"], row["max_tokens"]) = (json!(true), json!(true), json!(3));
        let run = batch(folder.path(), flags, &row.to_string());
        assert_eq!(run.code, Some(0), "{row}: {}{}", run.stdout, run.stderr);
        let answer = &answers(&run)["1"];
        let call = &answer["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["function"]["name"]),
            (&json!("function"), &json!(name)),
            "{answer}"
        );
        assert_eq!(call["id"], json!("call_0"));
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let expected = if name == "add" { json!({"a": 1}) } else { json!({}) };
        assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), expected, "{answer}");
        assert!(answer["content"].is_string() && answer.get("value").is_none(), "{answer}");
    }
    for (row, says) in [
        (json!({"tools": tools}), "how the model writes calls"),
        (json!({"tools": tools, "tool_spelling": "hermse"}), "hermse"),
        (json!({"tools": tools, "tool_spelling": "hermes", "tool_choice": "sub"}), "no function `sub`"),
        (json!({"tools": [{"name": ""}], "tool_spelling": "hermes"}), "tools: "),
        (json!({"tools": tools, "tool_spelling": "hermes", "reasoning": "much"}), "`reasoning`"),
        (json!({"tool_choice": "add"}), "no `tools`"),
    ] {
        let run = batch(folder.path(), &[], &row.to_string());
        let answer = answers(&run)["1"].clone();
        assert!(run.code == Some(1) && answer["error"].as_str().unwrap().contains(says), "{row}: {answer}");
    }
    // One text has them too.
    let model = folder.path().to_str().unwrap();
    let flags = ["generate", "-m", model, "--json", "-n", "3", "--finish", "--tool-choice", "now"];
    let one = last_line(&domino(&[&flags[..], &usual].concat(), b""));
    assert_eq!(one["tool_calls"][0]["function"]["name"], json!("now"), "{one}");
}
