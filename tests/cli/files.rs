//! Files as editors and shells of Windows save them, and files of another kind than they were given as.

use std::{fs, path::PathBuf};

use crate::support::program::{domino, domino_in, last_line};

const MARK: &str = "\u{FEFF}";

/// A file in a folder of its own.
fn file(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// Exit code and message of `check` with a grammar in such a file.
fn check(name: &str, content: &str, text: &str) -> (Option<i32>, String) {
    let (_folder, path) = file(name, content);
    let run = domino(&["check", "-g", path.to_str().unwrap(), "-"], text.as_bytes());
    (run.code, run.stdout + &run.stderr)
}

/// Files in each notation with Windows line ends, and texts in and outside of their languages.
#[test]
fn line_ends_and_marks_of_windows_change_no_language() {
    for (name, content, good, bad) in [
        ("a.regex", "[a-z]+\n", "abc", "abc\r"),
        ("b.re", "(?x) a  # one\n b\n", "ab", "a\nb"),
        ("c.regex", "a\nb\n", "a\nb", "a\r\nb"),
        ("d.gbnf", "# words\nroot ::= word (\n  \",\" word)*\nword ::= [a-z]+ # a word\n", "a,b", "a,\r\nb"),
        ("e.gbnf", "root ::= \"a\nb\"\n", "a\nb", "a\r\nb"),
        ("f.ebnf", "root ::= word\nword ::= [a-z]+\n", "abc", "abc\n"),
        ("g.lark", "start: word (\",\" word)*\nword: /[a-z]+/\n  | \"1\"\n%ignore \" \"\n", "a, b", "a\r\nb"),
        ("h.json", "{\n\"type\": \"array\",\n\"items\": {\"enum\": [1, 2]}\n}\n", "[1, 2]", "[3]"),
        (
            "i.tags.json",
            "{\n\"type\": \"structural_tag\",\n\"format\": {\n\"type\": \"regex\", \"pattern\": \"a\"}}\n",
            "a",
            "b",
        ),
    ] {
        let of_windows = content.replace('\n', "\r\n");
        for written in [
            content.to_owned(),
            format!("{MARK}{content}"),
            of_windows.clone(),
            format!("{MARK}{of_windows}"),
        ] {
            let (code, said) = check(name, &written, good);
            assert_eq!(code, Some(0), "{name} {written:?}: {said}");
            let (code, said) = check(name, &written, bad);
            assert_eq!(code, Some(1), "{name} {written:?}: {said}");
        }
    }
}

#[test]
fn a_mark_moves_no_position() {
    for (name, content) in [
        ("a.json", "{\"type\": \"text\"}"),
        ("b.json", "{\n\"type\": 1"),
        ("c.gbnf", "root ::= \"a"),
        ("d.lark", "start: (\"a\""),
        ("e.ebnf", "root ::= [a"),
        ("f.regex", "a(b"),
        ("g.tags.json", "{\"type\": \"structural_tag\"}"),
    ] {
        let said = |content: &str| {
            let (code, said) = check(name, content, "");
            assert_eq!(code, Some(2), "{said}");
            let end = said.find(name).unwrap();
            said[end..].replace("\r\n", "\n")
        };
        let plain = said(content);
        assert!(plain.contains("--> "), "{plain}");
        assert_eq!(said(&format!("{MARK}{content}")), plain);
        assert_eq!(said(&content.replace('\n', "\r\n")), plain);
    }
}

/// Expressions and texts on the command line are taken as they are, and so is a text in a file that is
/// judged.
#[test]
fn texts_and_expressions_of_the_command_line_are_taken_as_they_are() {
    let run = domino(&["check", "--regex", "a\r\n", "-"], b"a\r\n");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let run = domino(&["check", "--regex", "a", "-"], b"a\r\n");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let run = domino(&["check", "--regex", "a", "-"], "\u{FEFF}a".as_bytes());
    assert_eq!(run.code, Some(1), "{}", run.stdout);
}

#[test]
fn tools_rows_and_documents_of_windows_are_read() {
    let tool = r#"[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]"#;
    let (_folder, tools) = file("tools.json", format!("{MARK}{tool}\r\n"));
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
    let arguments = ["check", "--tools", tools.to_str().unwrap(), "--tool-spelling", "hermes", "-"];
    let run = domino(&arguments, call.as_bytes());
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    let row = r#"{"id": 1, "syntax": "regex", "grammar": "a+", "text": "aa"}"#;
    let run = domino(&["check", "--batch", "-"], format!("{MARK}{row}\r\n{row}\r\n").as_bytes());
    assert_eq!(run.stdout.matches("\"accepted\":true").count(), 2, "{}", run.stdout);

    let (folder, _) = file("other.json", format!("{MARK}{{\r\n\"type\": \"integer\"}}\r\n"));
    fs::write(folder.path().join("own.json"), r#"{"$ref": "other.json"}"#).unwrap();
    let run = domino_in(folder.path(), &["check", "-g", "own.json", "--documents", ".", "-"], b"1");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);

    let utf_16: Vec<u8> = [0xFF, 0xFE].into_iter().chain(tool.bytes().flat_map(|byte| [byte, 0])).collect();
    for (name, flag) in [("a.json", "-g"), ("b.regex", "-g"), ("c.gbnf", "-g"), ("tools.json", "--tools")] {
        let (_folder, path) = file(name, &utf_16);
        let spelling: &[&str] = if flag == "--tools" { &["--tool-spelling", "hermes"] } else { &[] };
        let run = domino(&[&["check", flag, path.to_str().unwrap()], spelling, &["-"]].concat(), b"");
        assert!(run.code == Some(2) && run.stderr.contains("UTF-16"), "{name}: {}", run.stderr);
    }
}

#[test]
fn files_of_another_kind_are_recognised() {
    let schema = "{\n  \"type\": \"array\"\n}\n";
    let tools = r#"[{"type": "function", "function": {"name": "f", "parameters": {}}}]"#;
    let gbnf = "root ::= \"{\" [a-z]+ \"}\"\n";
    let lark = "start: WORD\nWORD: /[a-z]+/\n";
    for (name, content, looks, hint) in [
        ("noext-json", schema, "a JSON Schema", "`--syntax json_schema`"),
        ("person.grammar", schema, "a JSON Schema", "`--schema FILE`"),
        ("person.txt", schema, "a JSON Schema", "`--syntax json_schema`"),
        (
            "person.JSON5",
            "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"}",
            "a JSON Schema",
            "json_schema",
        ),
        ("marked", "\u{FEFF}{\"properties\": {\"a\": {}}}\r\n", "a JSON Schema", "json_schema"),
        ("comma", "{\"type\": \"object\", \"properties\": {\"a\": {},}}", "a JSON Schema", "json_schema"),
        ("schema.lark", schema, "a JSON Schema", "json_schema"),
        ("schema.ebnf", "{\"anyOf\": [{\"type\": \"null\"}]}", "a JSON Schema", "json_schema"),
        ("schema.tags.json", schema, "a JSON Schema", "json_schema"),
        ("tools.json", tools, "a list of functions", "`--tools FILE`"),
        ("tools", tools, "a list of functions", "`--tools FILE`"),
        (
            "mcp.json",
            "{\"tools\": [{\"name\": \"f\", \"inputSchema\": {}}]}",
            "a list of functions",
            "--tools",
        ),
        ("tag.json", "{\"type\": \"structural_tag\", \"format\": {}}", "structural tags", "structural_tag"),
        (
            "format.json",
            "{\"type\": \"json_schema\", \"json_schema\": {\"schema\": {}}}",
            "a `response_format`",
            "schema",
        ),
        ("gbnf.json", gbnf, "GBNF", "`--syntax gbnf`"),
        ("gbnf.lark", gbnf, "GBNF", "`--syntax gbnf`"),
        ("lark.gbnf", lark, "Lark", "`--syntax lark`"),
        ("lark", lark, "Lark", "`--syntax lark`"),
        ("lark.json", lark, "Lark", "`--syntax lark`"),
        ("tokenizer.json", include_str!("../fixtures/byte_level.json"), "a tokenizer", "`--tokenizer FILE`"),
        (
            "api.json",
            "{\"openapi\": \"3.1.0\", \"info\": {}, \"paths\": {}}",
            "a description of an API",
            "--documents",
        ),
    ] {
        let (_folder, path) = file(name, content);
        let run = domino(&["check", "--json", "-g", path.to_str().unwrap(), "-"], b"[]");
        assert_eq!(run.code, Some(2), "{name}: {}", run.stdout);
        let told = last_line(&run);
        let (error, advice) = (told["error"].as_str().unwrap(), told["hint"].as_str().unwrap());
        assert!(error.contains(&format!("looks like {looks}")) && advice.contains(hint), "{name}: {told}");
    }
    // A file in its own notation has that notation's error, or none if it is right.
    let (code, said) = check("a.gbnf", "root ::= \"a", "");
    assert!(code == Some(2) && !said.contains("looks like"), "{said}");
    let (code, said) = check("a.json", "{\"type\": \"text\"}", "");
    assert!(code == Some(2) && !said.contains("looks like"), "{said}");
    assert_eq!(check("a.json", "{\"name\": \"n\", \"tools\": 1}", "1").0, Some(0));
    let (_folder, path) = file("noext-json", schema);
    let run = domino(&["check", "-g", path.to_str().unwrap(), "--syntax", "json_schema", "-"], b"[]");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
