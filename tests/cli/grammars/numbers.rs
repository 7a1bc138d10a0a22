//! Numbers, order and closed objects on the command line: schemas as grammars, and as parts of them.

use serde_json::{Value, json};

use crate::support::program::domino;

/// Writes a file with this ending.
fn file_of(text: &str, ending: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// True if `check` accepts the text, with these flags.
fn takes(file: &tempfile::NamedTempFile, flag: &str, flags: &[&str], text: &str) -> bool {
    let run =
        domino(&[&["check", flag, file.path().to_str().unwrap(), "-"], flags].concat(), text.as_bytes());
    assert!(matches!(run.code, Some(0 | 1)), "{flags:?} {text}: {}", run.stderr);
    run.code == Some(0)
}

fn tags(schema: &Value) -> String {
    let content = json!({ "type": "json_schema", "json_schema": schema });
    let tag = json!({ "type": "tag", "begin": "<", "content": content, "end": ">" });
    json!({ "type": "structural_tag", "format": tag }).to_string()
}

fn tools(parameters: &Value) -> String {
    json!([{ "type": "function", "function": { "name": "f", "parameters": parameters } }]).to_string()
}

const HERMES: [&str; 2] = ["--tool-spelling", "hermes"];

fn call(arguments: &str) -> String {
    format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>")
}

/// The grammar of the program refuses a repeated key; a copy of its text and other grammars of JSON do not.
#[test]
fn the_shipped_json_refuses_a_repeated_key() {
    let copy = file_of(include_str!("../../../grammars/json.gbnf"), ".gbnf");
    let copy = copy.path().to_str().unwrap();
    for (text, is_new) in [
        (r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}"#, true),
        (r#"{"a": 1, "a": 2}"#, false),
        (r#"{"a": 1, "\u0061": 2}"#, false),
        (r#"{"x": {"a": 1, "b": 2, "a": 3}}"#, false),
    ] {
        for (grammar, taken) in [("json", is_new), (copy, true), ("rfc8259", true), ("paper/json", true)] {
            let run = domino(&["check", "--grammar", grammar, "-"], text.as_bytes());
            assert_eq!(run.code == Some(0), taken, "{grammar} {text}: {} {}", run.stdout, run.stderr);
        }
    }
}

#[test]
fn check_takes_all_spellings_of_numbers_by_default() {
    let schema =
        json!({ "type": "object", "properties": { "age": { "type": "integer" } }, "required": ["age"] });
    let plain = ["--numbers", "plain"];
    let (alone, part) = (file_of(&schema.to_string(), ".json"), file_of(&tags(&schema), ".tags.json"));
    let listed = file_of(&tools(&schema), ".json");
    let lark = file_of(&format!("start: %json {schema}"), ".lark");
    for (text, is_plain) in [("33", true), ("33.0", false), ("3.3e1", false), ("-0", false)] {
        let text = format!("{{\"age\": {text}}}");
        for file in [&alone, &lark] {
            assert!(
                takes(file, "--grammar", &[], &text)
                    && takes(file, "--grammar", &["--numbers", "any"], &text)
            );
            assert_eq!(takes(file, "--grammar", &plain, &text), is_plain, "{text}");
        }
        let tagged = format!("<{text}>");
        assert!(takes(&part, "--grammar", &[], &tagged), "{tagged}");
        assert_eq!(takes(&part, "--grammar", &plain, &tagged), is_plain, "{tagged}");
        assert!(takes(&listed, "--tools", &HERMES, &call(&text)), "{text}");
        assert_eq!(takes(&listed, "--tools", &[HERMES, plain].concat(), &call(&text)), is_plain, "{text}");
    }
}

#[test]
fn tags_and_tools_take_members_in_any_order() {
    let schema = json!({ "type": "object", "required": ["city"],
        "properties": { "city": { "type": "string" }, "unit": { "type": "string" } } });
    let (part, listed) = (file_of(&tags(&schema), ".tags.json"), file_of(&tools(&schema), ".json"));
    let turned = r#"{"unit":"c","city":"B"}"#;
    for (order, taken) in [(&[][..], true), (&["--order", "any"], true), (&["--order", "schema"], false)] {
        assert_eq!(takes(&part, "--grammar", order, &format!("<{turned}>")), taken, "{order:?}");
        assert_eq!(takes(&listed, "--tools", &[&HERMES, order].concat(), &call(turned)), taken, "{order:?}");
    }
    // Commands that write keep the order of the schema by default.
    let tokenizer = concat!(env!("DOMINO_ROOT"), "/models/domino-small/tokenizer.json");
    if std::path::Path::new(tokenizer).exists() {
        for (order, count) in [(&[][..], 0), (&["--order", "any"], 1)] {
            let path = part.path().to_str().unwrap();
            let mask =
                ["mask", "--json", "--all", "--grammar", path, "--tokenizer", tokenizer, "--text", "<{\"u"];
            let run = domino(&[&mask, order].concat(), b"");
            assert_eq!(run.code == Some(0), count == 1, "{order:?}: {} {}", run.stdout, run.stderr);
        }
    }
}

#[test]
fn flags_that_a_grammar_does_not_take_are_refused_by_name() {
    let schema = json!({ "type": "object", "properties": {} });
    let (part, lark) = (file_of(&tags(&schema), ".tags.json"), file_of("start: %json {}", ".lark"));
    let gbnf = file_of("root ::= \"a\"", ".gbnf");
    for (file, flags, said) in [
        (&part, &["--draft", "7"][..], "--draft"),
        (&part, &["--order", "any", "--lenient"], "--lenient"),
        (&lark, &["--order", "any"], "--order"),
        (&gbnf, &["--numbers", "any"], "a flag for JSON Schemas"),
    ] {
        let path = file.path().to_str().unwrap();
        let run = domino(&[&["check", "--grammar", path, "-"], flags].concat(), b"");
        assert_eq!(run.code, Some(2), "{flags:?}");
        assert!(run.stderr.contains(said), "{flags:?}: {}", run.stderr);
    }
}

#[test]
fn rows_of_a_batch_choose_for_themselves() {
    let integer = json!({ "type": "integer" });
    let row = |syntax: &str, grammar: &str, text: &str, more: Value| {
        let mut row = json!({ "id": 1, "syntax": syntax, "grammar": grammar, "text": text });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row.to_string()
    };
    let (schema, tags) = (integer.to_string(), tags(&integer));
    let lines = [
        row("json_schema", &schema, "2.0", json!({})),
        row("json_schema", &schema, "2.0", json!({ "numbers": "plain" })),
        row("json_schema", &schema, "2", json!({ "numbers": "plain" })),
        row("structural_tag", &tags, "<2.0>", json!({})),
        row("structural_tag", &tags, "<2.0>", json!({ "numbers": "plain" })),
        row("json_schema", &schema, "2", json!({ "numbers": "short" })),
    ];
    let run = domino(&["check", "--batch"], lines.join("\n").as_bytes());
    let accepted: Vec<Option<bool>> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["accepted"].as_bool())
        .collect();
    assert_eq!(
        accepted,
        [Some(true), Some(false), Some(true), Some(true), Some(false), None],
        "{}",
        run.stdout
    );
}

/// What formats bound is taken by `check`, unless it is asked for.
#[test]
fn check_takes_formats_without_bounds() {
    let integer = json!({ "type": "integer", "format": "int32" });
    let mail = json!({ "type": "string", "format": "email" });
    let (past, long) = ("2147483648", format!("\"{}@b.c\"", "a".repeat(65)));
    for (schema, text) in [(&integer, past), (&mail, &*long)] {
        let file = file_of(&schema.to_string(), ".json");
        assert!(takes(&file, "--grammar", &[], text), "{text}");
        assert!(!takes(&file, "--grammar", &["--format", "bounded"], text), "{text}");
        let part = file_of(&tags(schema), ".tags.json");
        assert!(takes(&part, "--grammar", &[], &format!("<{text}>")), "{text}");
        assert!(!takes(&part, "--grammar", &["--format", "bounded"], &format!("<{text}>")), "{text}");
    }
}

#[test]
fn empty_properties_are_closed() {
    for (schema, open) in [
        (json!({ "type": "object", "properties": {} }), false),
        (json!({ "type": ["object", "null"], "properties": {} }), false),
        (json!({ "type": "object", "properties": {}, "required": [] }), false),
        (json!({ "type": "object", "properties": {}, "additionalProperties": false }), false),
        (json!({ "allOf": [{ "type": "object", "properties": {} }] }), false),
        (json!({ "type": "object", "properties": {}, "additionalProperties": true }), true),
        (json!({ "type": "object", "properties": {}, "additionalProperties": {} }), true),
        (json!({ "type": "object", "properties": {}, "additionalProperties": { "type": "integer" } }), true),
        (json!({ "type": "object", "properties": {}, "patternProperties": { "^x": true } }), true),
        (json!({ "type": "object" }), true),
    ] {
        let (alone, part) = (file_of(&schema.to_string(), ".json"), file_of(&tags(&schema), ".tags.json"));
        let listed = file_of(&tools(&schema), ".json");
        for (text, taken) in [("{}", true), ("{\"x\":1}", open)] {
            assert_eq!(takes(&alone, "--grammar", &["--closed"], text), taken, "{text} under {schema}");
            assert!(takes(&alone, "--grammar", &[], text) || !taken, "{text} under {schema}");
            assert_eq!(takes(&part, "--grammar", &[], &format!("<{text}>")), taken, "{text} under {schema}");
            assert_eq!(takes(&listed, "--tools", &HERMES, &call(text)), taken, "{text} under {schema}");
            // Whoever wants other keys says so.
            let flags = [&HERMES[..], &["--closed=false"]].concat();
            let wanted = text == "{}" || schema["additionalProperties"] != false;
            assert_eq!(takes(&listed, "--tools", &flags, &call(text)), wanted, "{text} under {schema}");
            let tagged = format!("<{text}>");
            assert_eq!(
                takes(&part, "--grammar", &["--closed=false"], &tagged),
                wanted,
                "{text} under {schema}"
            );
        }
    }
}
