//! Captures on the command line: `--capture`, and the field `captures` of `check --json` and `generate
//! --json`.

use serde_json::{Value, json};

use crate::support::{
    program::{domino, last_line},
    random_model::write_model,
};

const PAIR: &str =
    "root ::= key \"=\" value\nkey ::= [a-z]+\nvalue ::= [0-9]+ | \"[\" value (\",\" value)* \"]\"\n";

fn capture(name: &str, start: usize, text: &str) -> Value {
    json!({ "name": name, "start": start, "end": start + text.len(), "text": text })
}

#[test]
fn check_lists_captures() {
    let file = tempfile::Builder::new().suffix(".gbnf").tempfile().unwrap();
    std::fs::write(file.path(), PAIR).unwrap();
    let check = |arguments: &[&str], text: &str| {
        let grammar = ["check", "--json", "--grammar", file.path().to_str().unwrap(), "-"];
        domino(&[&grammar, arguments].concat(), text.as_bytes())
    };
    let found = last_line(&check(&["--capture", "key", "--capture", "value"], "size=[3,[4]]"));
    let all = [
        capture("key", 0, "size"),
        capture("value", 5, "[3,[4]]"),
        capture("value", 6, "3"),
        capture("value", 8, "[4]"),
        capture("value", 9, "4"),
    ];
    assert_eq!(found["captures"], json!(all));
    // Nothing is captured unless it is asked for, nor of a text that is refused.
    assert_eq!(last_line(&check(&[], "size=3")).get("captures"), None);
    assert_eq!(last_line(&check(&["--capture", "key"], "size=")).get("captures"), None);
    let begun = last_line(&check(&["--capture", "value", "--prefix"], "size=[3,4"));
    assert_eq!(begun["captures"], json!([capture("value", 6, "3")]));
    let unknown = check(&["--capture", "vaule"], "size=3");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("no rule or group `vaule`"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("did you mean `value`?"), "{}", unknown.stderr);
    let plain = domino(&["check", "--regex", "a", "--capture", "root", "-"], b"a");
    assert_eq!(plain.code, Some(2));
    assert!(plain.stderr.contains("--capture needs --json"), "{}", plain.stderr);
}

#[test]
fn groups_and_special_tokens_are_captured() {
    let regex = "(?P<word>[a-z]+) (?<number>\\d+)";
    let found = last_line(&domino(&["check", "--json", "--regex", regex, "-"], "ab 12".as_bytes()));
    assert_eq!(found["captures"], json!([capture("word", 0, "ab"), capture("number", 3, "12")]));
    let file = tempfile::Builder::new().suffix(".lark").tempfile().unwrap();
    let lark = "start: \"é\" call \"b\"\ncall[capture=\"c\"]: <|call|> /[0-9]+/\n";
    std::fs::write(file.path(), lark).unwrap();
    let grammar = file.path().to_str().unwrap();
    let found = domino(&["check", "--json", "-g", grammar, "-"], "é<|call|>1b".as_bytes());
    assert_eq!(last_line(&found)["captures"], json!([capture("c", 2, "<|call|>1")]), "{}", found.stderr);
}

#[test]
fn generated_texts_have_captures() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let model = folder.path().to_str().unwrap();
    let regex = "(?P<a>x{3})-(?P<b>y{40})";
    let generate = |arguments: &[&str], input: &[u8]| {
        domino(&[&["generate", "--json", "--model", model], arguments].concat(), input)
    };
    let whole = last_line(&generate(&["--regex", regex], b""));
    assert_eq!(whole["captures"], json!([capture("a", 0, "xxx"), capture("b", 4, &"y".repeat(40))]));
    let cut = last_line(&generate(&["--regex", regex, "-n", "8"], b""));
    assert_eq!(cut["captures"], json!([capture("a", 0, "xxx")]), "{cut}");
    let row = json!({ "id": 1, "regex": "(?P<n>x)" }).to_string();
    let batch = last_line(&generate(&["--batch", "-", "--capture", "root"], row.as_bytes()));
    assert_eq!(batch["captures"], json!([capture("root", 0, "x"), capture("n", 0, "x")]), "{batch}");
    let none = generate(&["--capture", "root", "--prompt", "a"], b"");
    assert_eq!(none.code, Some(2), "{}", none.stderr);
}
