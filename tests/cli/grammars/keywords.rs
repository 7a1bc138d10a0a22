//! Schema keywords on the command line: ignored ones are warned of once, and reports list all.

use std::fs;

use serde_json::{Value, json};

use crate::support::program::{Run, domino, domino_in, last_line};

const TYPO: &str = r#"{"type": "array", "minItem": 2, "items": {"enum": [1], "minItem": 3}}"#;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn is_warned_once(run: &Run, what: &str) {
    let said = &run.stderr;
    assert_eq!(said.matches("`minItem`").count(), 1, "{what}: {said}{}", run.stdout);
    assert!(said.contains("warning:") && said.contains("did you mean `minItems`?"), "{what}: {said}");
}

/// Every command that reads a schema warns of an unknown keyword once.
#[test]
fn an_unknown_keyword_is_warned_of_once_by_every_command() {
    let model = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
    let folder = folder(&[("a.json", TYPO), ("text.json", "[1]")]);
    for arguments in [
        &["check", "-g", "a.json", "text.json", "text.json"][..],
        &["check", "-g", "a.json", "--json", "text.json"],
        &["check", "-g", "a.json", "--report", "text.json"],
        &["generate", "-g", "a.json", "-m", model, "-n", "4", "--finish"],
        &["generate", "-g", "a.json", "-m", model, "-n", "4", "--finish", "--json"],
        &["generate", "-g", "a.json", "-m", model, "-n", "4", "--tokenization", "canonical"],
        &["compile", "-g", "a.json", "-t", model, "-o", "a.trees"],
        &["mask", "-g", "a.json", "-t", model, "--text", "["],
        &["inspect", "-g", "a.json"],
        &["inspect", "-g", "a.json", "--json"],
        &["inspect", "terminals", "-g", "a.json"],
        &["inspect", "masks", "-g", "a.json", "--along", "text.json", "-t", model],
        &["inspect", "schema", "-g", "a.json"],
        &["learn", "-g", "a.json", "-m", model, "--text", "text.json", "--out", "a.prior"],
        &["explain", "-g", "a.json", "-m", model, "-n", "4", "-o", "a.html"],
    ] {
        let run = domino_in(folder.path(), arguments, b"");
        is_warned_once(&run, &arguments.join(" "));
    }
}

#[test]
fn batches_tools_tags_and_lark_tell_unknown_keywords() {
    let row = json!({ "id": 1, "syntax": "json_schema", "grammar": TYPO, "text": "[]" });
    let run = domino(&["check", "--batch"], format!("{row}\n{row}\n").as_bytes());
    for line in run.stdout.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        let warnings = answer["grammar_warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{answer}");
        assert_eq!(warnings[0]["kind"], "unknown keyword");
        assert_eq!(warnings[0]["hint"], "did you mean `minItems`?");
        assert_eq!((&warnings[0]["line"], &warnings[0]["column"]), (&json!(1), &json!(19)));
    }
    assert_eq!(run.stderr, "");

    let function = |name: &str| {
        json!({ "type": "function", "function": { "name": name, "parameters": {
        "type": "object", "properties": { "a": { "type": "array", "minItem": 1 } } } } })
    };
    let tools = serde_json::to_string_pretty(&json!([function("first"), function("second")])).unwrap();
    let line = tools.lines().position(|line| line.contains("minItem")).unwrap() + 1;
    let folder = folder(&[
        ("tools.json", &tools),
        (
            "a.tags.json",
            &json!({ "type": "structural_tag", "format": { "type": "json_schema",
            "json_schema": { "type": "array", "minItem": 1 } } })
            .to_string(),
        ),
        ("a.lark", "start: \"a\" %json {\"type\": \"array\",\n \"minItem\": 1}\n"),
    ]);
    for spelling in ["hermes", "qwen3-coder", "llama3", "harmony"] {
        let flags = ["check", "--tools", "tools.json", "--tool-spelling", spelling, "-"];
        let run = domino_in(folder.path(), &flags, b"text");
        is_warned_once(&run, spelling);
        assert!(run.stderr.contains("function `first`"), "{}", run.stderr);
        assert!(run.stderr.contains(&format!("--> {line}:")), "{line}: {}", run.stderr);
    }
    is_warned_once(&domino_in(folder.path(), &["check", "-g", "a.tags.json", "-"], b"[]"), "tags");
    let run = domino_in(folder.path(), &["check", "-g", "a.lark", "-"], b"a[]");
    is_warned_once(&run, "lark");
    assert!(run.stderr.contains("--> 2:2"), "{}", run.stderr);
}

#[test]
fn draft_3_is_refused_by_name() {
    let schema = r#"{"$schema":"http://json-schema.org/draft-03/schema#","type":"object",
        "properties":{"a":{"type":"string","required":true},"b":{"divisibleBy":5,"disallow":"string"}}}"#;
    let folder = folder(&[("a.json", schema)]);
    let run = domino_in(folder.path(), &["check", "-g", "a.json", "-"], br#"{"b":"x"}"#);
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    assert!(run.stderr.contains("`$schema`: drafts 3 and before are not supported"), "{}", run.stderr);
    assert!(
        run.stderr.contains("hint:") && run.stderr.contains("`multipleOf` for `divisibleBy`"),
        "{}",
        run.stderr
    );
}

#[test]
fn reports_list_every_keyword() {
    let schema =
        r#"{"title": "t", "type": "object", "properties": {"a/b": {"type": "integer", "minimun": 1}}}"#;
    let folder = folder(&[
        ("a.json", schema),
        ("text.json", "{}"),
        ("b.json", r#"{"pattern": "(a)\\1b", "title": "t"}"#),
    ]);
    let run = domino_in(folder.path(), &["check", "-g", "a.json", "--report", "text.json"], b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for line in [
        "a.json: 3 enforced, 1 annotation, 1 unknown",
        "  annotation  #/title",
        "  enforced    #/properties/a~1b/type",
        "  unknown     #/properties/a~1b/minimun  (did you mean `minimum`?)",
        "text.json: in the language",
    ] {
        assert!(run.stdout.lines().any(|told| told == line), "{line}: {}", run.stdout);
    }
    for arguments in [
        &["check", "-g", "a.json", "--report", "--json"][..],
        &["inspect", "schema", "-g", "a.json", "--json"],
    ] {
        let run = domino_in(folder.path(), arguments, b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let told = last_line(&run);
        let keywords = told["keywords"].as_array().unwrap();
        let pointers: Vec<&str> = keywords.iter().map(|one| one["pointer"].as_str().unwrap()).collect();
        let want =
            ["#/title", "#/type", "#/properties", "#/properties/a~1b/type", "#/properties/a~1b/minimun"];
        assert_eq!(pointers, want);
        let unknown = json!({ "pointer": want[4], "keyword": "minimun", "status": "unknown",
            "note": "did you mean `minimum`?" });
        assert_eq!(
            (&keywords[4], &told["error"], &told["counts"]["enforced"]),
            (&unknown, &Value::Null, &json!(3))
        );
    }
    // One that is refused has a report all the same, and then the error.
    for arguments in [&["check", "-g", "b.json", "--report"][..], &["inspect", "schema", "-g", "b.json"]] {
        let run = domino_in(folder.path(), arguments, b"");
        assert_eq!(run.code, Some(2), "{}", run.stdout);
        assert!(run.stdout.contains("refused     #/pattern  ("), "{}", run.stdout);
        assert!(run.stderr.contains("error:"), "{}", run.stderr);
    }
    let relaxed = domino_in(folder.path(), &["check", "-g", "b.json", "--report", "--lenient"], b"");
    assert!(
        relaxed.code == Some(0) && relaxed.stdout.contains("relaxed     #/pattern  ("),
        "{}",
        relaxed.stdout
    );
    let other = domino(&["check", "-g", "json", "--report"], b"");
    assert!(other.code == Some(2) && other.stderr.contains("only schemas have keywords"), "{}", other.stderr);
    let nothing = domino(&["check", "-g", "json"], b"");
    assert_eq!(nothing.code, Some(2), "{}", nothing.stdout);
}

#[test]
fn reports_name_the_function_or_the_row() {
    let tools = r#"[{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
        "properties": {"a": {"type": "string", "maxlen": 3}}}}},
        {"type": "function", "function": {"name": "g"}}]"#;
    let folder = folder(&[("tools.json", tools)]);
    let flags = ["check", "--tools", "tools.json", "--tool-spelling", "hermes", "--report"];
    let run = domino_in(folder.path(), &flags, b"");
    assert!(
        run.stdout.contains("tools.json: function f: 3 enforced, 1 unknown"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let run = domino_in(folder.path(), &[&flags[..], &["--json"]].concat(), b"");
    let told = last_line(&run);
    assert_eq!(told["functions"][0]["function"], "f");
    assert_eq!(told["functions"][0]["keywords"][3]["pointer"], "#/properties/a/maxlen");

    let row =
        |report: Value| json!({ "syntax": "json_schema", "grammar": TYPO, "text": "[]", "report": report });
    let rows = format!("{}\n{}\n", row(json!(true)), row(json!(false)));
    let run = domino(&["check", "--batch"], rows.as_bytes());
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["schema_report"]["counts"]["unknown"], 2, "{}", answers[0]);
    assert!(answers[1].get("schema_report").is_none(), "{}", answers[1]);
}
