//! `domino inspect` as a shell sees it.

use std::path::Path;

use serde_json::Value;

use super::dot;
use crate::cli::{Run, domino, last_line};

const BYTE_LEVEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/byte_level.json");

/// Everything that quoting can go wrong on.
const NASTY: &str = r#"root ::= "(" root ")" | [\x00-\x1F"\\]+ "\"" | "\\" [^\n]* "\\n" | "a\"b\\" | "\n}{" root ";" | "é" root "->" "#;

/// Runs `domino inspect` on a grammar given as text.
fn inspect(grammar: &str, arguments: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.gbnf");
    std::fs::write(&file, grammar).unwrap();
    on_file(&file, arguments)
}

fn on_file(file: &Path, arguments: &[&str]) -> Run {
    domino(&[&["inspect", "--grammar", file.to_str().unwrap()], arguments].concat(), b"")
}

fn good(run: Run) -> Run {
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

fn json(grammar: &str, arguments: &[&str]) -> Value {
    last_line(&good(inspect(grammar, &[arguments, &["--json"]].concat())))
}

#[test]
fn the_summary_has_sizes_and_times() {
    let text = good(domino(&["inspect", "-g", "json"], b"")).stdout;
    assert!(text.contains("7  rules") && text.contains("ms compiling"), "{text}");
    let answer = last_line(&good(domino(&["inspect", "-g", "json", "--json"], b"")));
    assert_eq!(answer["sizes"]["rules"], 7);
    assert!(answer["times"]["compiling_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn rules_tell_their_productions() {
    let grammar = "root ::= \"(\" root \")\" | list\nlist ::= [a-z] \",\" list | \"x\"\n";
    let text = good(inspect(grammar, &["rules"])).stdout;
    assert!(
        text.contains("root  (1:1)  productions\n    root ::= \"(\" root \")\"\n           | list\n"),
        "{text}"
    );
    assert!(
        text.contains("list  (2:1)  terminal ") && text.contains("right recursion became repetition"),
        "{text}"
    );
    let answer = json(grammar, &["rules", "--rule", "list"]);
    assert_eq!(answer["rules"].as_array().unwrap().len(), 1);
    let list = &answer["rules"][0];
    assert_eq!((&list["name"], &list["became"]), (&"list".into(), &"terminal".into()));
    assert_eq!(list["right_recursion_became_repetition"], true);
    // The terminal of the rule leads back to it.
    let number = list["terminal"].to_string();
    let answer = json(grammar, &["rules", "--terminal", &number]);
    assert_eq!(answer["rules"].as_array().unwrap().len(), 1);
    assert_eq!(answer["rules"][0]["name"], "list");
}

#[test]
fn terminals_count_tokens_only_with_a_tokenizer() {
    let grammar = r#"root ::= "(" root ")" | [a-z]+"#;
    let find = |answer: &Value| -> Value {
        let rows = answer["terminals"].as_array().unwrap();
        rows.iter().find(|row| row["finite"] == false).unwrap().clone()
    };
    let without = find(&json(grammar, &["terminals"]));
    assert_eq!((&without["states"], &without["users"][0]), (&2.into(), &"root".into()));
    assert!(without["tokens_inside"].is_null());
    let with = find(&json(grammar, &["terminals", "--tokenizer", BYTE_LEVEL]));
    assert!(with["tokens_inside"].as_u64().unwrap() >= 26, "{with}");
    let text = good(inspect(grammar, &["terminals"])).stdout;
    assert!(text.contains("[a-z]+") && !text.contains("tokens inside"), "{text}");
}

#[test]
fn automata_are_ranges_of_bytes() {
    let grammar = r#"root ::= "(" root ")" | [a-z_] [a-z0-9]*"#;
    let text = good(inspect(grammar, &["dfas"])).stdout;
    assert!(text.contains("[_a-z] -> 1") && text.contains("1* [0-9a-z] -> 1"), "{text}");
    let answer = json(grammar, &["dfas", "--terminal", "0"]);
    assert_eq!(answer["dfas"][0]["states"][0]["transitions"][0]["bytes"][0][0], u32::from(b'('));
    assert_eq!(answer["total"], 1);
}

#[test]
fn graphs_are_valid_whatever_is_in_them() {
    for stage in ["rules", "dfas"] {
        let graph = dot::read(&good(inspect(NASTY, &[stage, "--dot"])).stdout);
        assert!(graph.nodes.len() > 5 && graph.edges.len() > 5, "{stage}: {graph:?}");
        assert!(graph.nodes.iter().all(|(_, label)| !label.is_empty()));
        let few = dot::read(&good(inspect(NASTY, &[stage, "--dot", "--limit", "1"])).stdout);
        assert!(few.nodes.len() < graph.nodes.len(), "{stage}");
    }
    let clusters = dot::read(&good(inspect(NASTY, &["dfas", "--dot"])).stdout).clusters;
    assert_eq!(clusters as u64, json(NASTY, &["dfas"])["total"].as_u64().unwrap());
}

#[test]
fn output_is_bounded_unless_all_is_asked_for() {
    let rules: String =
        (0..300).map(|n| format!("r{n} ::= \"(\" r{} \")\" | \"{n}\"\n", (n + 1) % 300)).collect();
    let grammar = format!("root ::= r0 {{0,90000}}\n{rules}");
    for stage in ["rules", "terminals", "dfas"] {
        let text = good(inspect(&grammar, &[stage, "--limit", "5"])).stdout;
        assert!(text.len() < 8_000, "{stage}: {} bytes", text.len());
        assert!(text.contains("(--limit 0 shows all)"), "{stage}: {text}");
        assert!(good(inspect(&grammar, &[stage, "--limit", "5", "--json"])).stdout.len() < 20_000);
    }
    assert!(good(inspect(&grammar, &["rules", "--limit", "0"])).stdout.contains("\nr299  ("));
}

#[test]
fn mistakes_end_with_2_and_a_hint() {
    for arguments in [
        &["rules", "--rule", "nobody"][..],
        &["terminals", "--terminal", "99"],
        &["terminals", "--dot"],
        &["--dot"],
        &["klingon"],
        &["rules", "--dot", "--json"],
        &["rules", "--tokenizer", "no-such-file"],
    ] {
        let run = inspect("root ::= \"a\"", arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty());
    }
    assert!(inspect("root ::= \"a\"", &["rules", "--rule", "x"]).stderr.contains("hint:"));
}
