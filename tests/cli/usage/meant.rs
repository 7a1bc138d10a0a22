//! Suggestions ("did you mean") for missing names, and for files of another kind.

use super::{folder, refused};
use crate::support::program::{domino, domino_in};

#[test]
fn a_mistyped_grammar_name_gets_the_nearest_one() {
    let folder = folder();
    let folder = folder.path();
    for (name, meant) in [
        ("jsn", "json"),
        ("JSON", "json"),
        ("rfc8295", "rfc8259"),
        ("xml-person", "xml_person"),
        ("gms8k", "gsm8k"),
        ("sql_selct", "sql_select"),
        ("e-mail", "email"),
    ] {
        let meant = format!("did you mean `{meant}`?");
        refused(folder, &["grammars", name], &[name, &meant]);
        refused(folder, &["check", "-g", name, "-"], &[name, &meant]);
        refused(folder, &["generate", "-m", "model", "-g", name], &[name, &meant]);
        refused(folder, &["inspect", "-g", name], &[name, &meant]);
    }
    refused(folder, &["check", "-g", "nothing.gbnf", "-"], &["no file named", "rfc8259"]);
    for word in ["xml", "person"] {
        refused(folder, &["check", "-g", word, "-"], &["no file named", "did you mean `xml_person`?"]);
    }
    refused(folder, &["generate", "--tools", "x", "--tool-spelling", "hermess"], &["did you mean `hermes`?"]);
    let row = br#"{"syntax": "json-schemas", "grammar": "{}", "text": "1"}"#;
    let answer = domino(&["check", "--batch"], row).stdout;
    assert!(answer.contains("unknown syntax"), "{answer}");
}

#[test]
fn files_of_functions_are_known_as_such() {
    let folder = folder();
    let folder = folder.path();
    let one = r#"{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}"#;
    for (file, text) in [
        ("list.json", format!("[{one}]")),
        ("list.txt", format!("[{one}]")),
        ("tools", format!("{{\"tools\": [{one}]}}")),
        ("responses.json", r#"[{"type": "function", "name": "f", "parameters": {}}]"#.to_owned()),
        ("one.json", one.to_owned()),
        ("bare.json", r#"{"name": "f", "parameters": {"type": "object"}}"#.to_owned()),
        ("anthropic.json", r#"{"name": "f", "input_schema": {"type": "object"}}"#.to_owned()),
        ("mcp.json", r#"{"result": {"tools": [{"name": "f", "inputSchema": {}}]}}"#.to_owned()),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
        refused(folder, &["check", "-g", file, "-"], &[file, "looks like", "functions", "--tools FILE"]);
        refused(folder, &["check", "--schema", file, "-"], &[file, "looks like", "--tools FILE"]);
    }
}

#[test]
fn schemas_are_known_by_more_endings_and_in_any_file() {
    let folder = folder();
    let folder = folder.path();
    let schema = "{\"type\": \"integer\"}";
    let check = |arguments: &[&str]| domino_in(folder, &[&["check"], arguments, &["-"]].concat(), b"7");
    for file in ["s.json", "s.schema", "s.jsonschema", "s.SCHEMA"] {
        std::fs::write(folder.join(file), schema).unwrap();
        assert_eq!(check(&["-g", file]).code, Some(0), "{file}");
    }
    for file in ["s.txt", "s", "s.json5", "s.lark", "s.regex"] {
        std::fs::write(folder.join(file), schema).unwrap();
        assert_eq!(check(&["--schema", file]).code, Some(0), "{file}");
        refused(folder, &["check", "-g", file, "-"], &["looks like a JSON Schema", "--schema FILE"]);
    }
    for file in ["s.yaml", "s.yml"] {
        std::fs::write(folder.join(file), "type: integer\n").unwrap();
        refused(folder, &["check", "-g", file, "-"], &["YAML is not read", "as JSON"]);
        refused(folder, &["check", "--schema", file, "-"], &["YAML is not read", "as JSON"]);
    }
    refused(folder, &["check", "--schema", "none.json", "-"], &["cannot read none.json"]);
    refused(folder, &["check", "--schema", "s.json", "-g", "json", "-"], &["cannot be used with"]);
}

#[test]
fn flags_that_must_not_be_zero_say_at_least_1() {
    let folder = folder();
    let folder = folder.path();
    refused(folder, &["generate", "--threads", "0"], &["'--threads <N>'", "at least 1", "leave it out"]);
    refused(folder, &["explain", "-o", "a.html", "--threads", "0"], &["at least 1"]);
    refused(folder, &["generate", "--batch", "-", "--parallel", "0"], &["'--parallel <N>'", "at least 1"]);
    refused(folder, &["generate", "--sampling", "conditional", "--particles", "0"], &["at least 1"]);
    refused(folder, &["bench-model", "--threads", "0"], &["at least 1"]);
    refused(folder, &["retokenize", "--text", "a", "--threads", "00"], &["at least 1"]);
    refused(folder, &["generate", "--threads", "x"], &["invalid value 'x'"]);
}
