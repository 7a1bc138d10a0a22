//! `domino inspect` as a shell sees it.

use std::path::Path;

use serde_json::Value;

use super::dot;
use crate::support::program::{Run, domino, last_line};

const BYTE_LEVEL: &str = concat!(env!("DOMINO_ROOT"), "/tests/fixtures/byte_level.json");

/// A grammar of all characters that need quoting somewhere.
const NASTY: &str = concat!(
    r#"root ::= "(" root ")" | [\x00-\x1F"\\]+ "\"" | "\\" [^\n]* "\\n" | "a\"b\\" | "#,
    r#""\n}{" root ";" | "é" root "->" "#
);

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
    let text = good(domino(&["inspect", "-g", "paper/json"], b"")).stdout;
    assert!(text.contains("7  rules") && text.contains("ms compiling"), "{text}");
    let answer = last_line(&good(domino(&["inspect", "-g", "paper/json", "--json"], b"")));
    assert_eq!(answer["sizes"]["rules"], 7);
    assert!(answer["times"]["compiling_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_summary_warns_by_name_and_place() {
    let grammar = "root ::= S\nS ::= x x x | x x | \"a\"\nx ::= S | \"(\" S \")\"\n";
    let text = good(inspect(grammar, &[])).stdout;
    assert!(text.contains("warnings: 1\n  slow: rule S (2:1): ") && text.contains("hint: "), "{text}");
    let answer = json(grammar, &[]);
    let warning = &answer["warnings"][0];
    assert_eq!((&warning["kind"], &warning["rule"]), (&"ambiguous".into(), &"S".into()));
    assert_eq!((&warning["grave"], &warning["repeated"]), (&true.into(), &"aa".into()));
    assert!(good(inspect("root ::= \"(\" root \")\" | \"x\"", &[])).stdout.contains("warnings: 0\n"));
}

/// One of anything is not several.
#[test]
fn counts_have_singular_and_plural() {
    let grammar = "root ::= \"(\" root \")\" | [a-z]+ \";\"\n";
    for (text, said) in [
        ("(", "(0 doubled), 2 terminals may begin; 2 parser sets with 2 items from"),
        ("a", "1 thread (0 doubled), 0 terminals may begin; 1 parser set with 1 item from"),
    ] {
        let sets = good(inspect(grammar, &["sets", "--text", text])).stdout;
        assert!(sets.contains(said), "{sets}");
    }
    for (arguments, all) in [
        (&["sets", "--text", "a"][..], "thread terminal set item"),
        (&["masks", "--text", "a", "--tokenizer", BYTE_LEVEL], "mask"),
        (&["trees", "--tokenizer", BYTE_LEVEL], "tree node token exit byte"),
        (&["dfas"], "state"),
    ] {
        let shown = good(inspect(grammar, arguments)).stdout;
        for word in all.split(' ') {
            let wrong = shown.lines().find(|line| {
                let words: Vec<&str> = line.split([' ', ':', ';', ',', '(', ')']).collect();
                words.windows(2).any(|pair| pair[0] == "1" && pair[1] == format!("{word}s"))
            });
            assert_eq!(wrong, None, "{shown}");
        }
    }
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
fn trees_are_listed_and_one_is_drawn() {
    let grammar = r#"root ::= "(" root ")" | [a-z]+"#;
    let answer = json(grammar, &["trees", "--tokenizer", BYTE_LEVEL]);
    let trees = answer["trees"].as_array().unwrap();
    assert_eq!(answer["totals"]["trees"], trees.len());
    let bytes: Vec<u64> = trees.iter().map(|tree| tree["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.is_sorted_by(|a, b| a >= b), "{bytes:?}");
    let number = trees[0]["terminal"].to_string();
    let state = trees[0]["state"].to_string();
    let one = ["trees", "--tokenizer", BYTE_LEVEL, "--terminal", &number, "--state", &state];
    let nodes = json(grammar, &one)["nodes"].as_array().unwrap().len();
    assert_eq!(nodes as u64, trees[0]["nodes"].as_u64().unwrap());
    let graph = dot::read(&good(inspect(grammar, &[&one[..], &["--dot"]].concat())).stdout);
    assert_eq!((graph.nodes.len(), graph.edges.len()), (nodes, nodes - 1));
    let text = good(inspect(grammar, &one)).stdout;
    assert!(text.contains("1 tree: ") && text.contains(" tokens, "), "{text}");
}

#[test]
fn parser_sets_are_those_after_the_text() {
    let grammar = r#"root ::= "(" root ")" | "[" root "]" | "x""#;
    let text = good(inspect(grammar, &["sets", "--text", "(["])).stdout;
    assert!(text.contains("root ::= \"[\" . root \"]\"") && text.contains("accepts \"x\""), "{text}");
    assert!(text.contains("root ::= \"(\" . root \")\""), "where it came from is shown: {text}");
    let answer = json(grammar, &["sets", "--text", "(["]);
    let boundary = answer["sets"].as_array().unwrap().iter().find(|set| set["boundary"] == true).unwrap();
    assert_eq!(boundary["accept_count"], 3);
    let graph = dot::read(&good(inspect(grammar, &["sets", "--dot", "--text", "([x"])).stdout);
    assert!(graph.edges.len() >= 3, "{graph:?}");
    let run = inspect(grammar, &["sets", "--text", "(]"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("at 1:2: ']' cannot follow"), "{}", run.stderr);
}

#[test]
fn growth_shows_along_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "a".repeat(200)).unwrap();
    let along = ["sets", "--along", text.to_str().unwrap()];
    let work = |grammar: &str| -> Vec<u64> {
        let answer = json(grammar, &along);
        assert_eq!(answer["bytes"], 200);
        assert!(answer["rows"].as_array().unwrap().len() <= 50);
        answer["parts"].as_array().unwrap().iter().map(|part| part["work"].as_u64().unwrap()).collect()
    };
    let flat = work(r#"root ::= (x | "(" root ")")+   x ::= "a" | "b""#);
    assert_eq!(flat[3], 0, "{flat:?}");
    // A list that is split in every way is one run.
    let run = work(r#"root ::= root root root | root root | "a" | "(" root ")""#);
    assert_eq!(run[3], 0, "{run:?}");
    let grows = work(r#"root ::= x x x | x x | "a"   x ::= root | "(" root ")""#);
    assert!(grows[0] < grows[1] && grows[1] < grows[2] && grows[2] < grows[3], "{grows:?}");
    let table = good(inspect(r#"root ::= "(" root ")" | [a-z]+"#, &along)).stdout;
    assert!(table.contains("by quarters of the text") && table.contains("of 200 bytes shown"), "{table}");
}

#[test]
fn graphs_are_valid_whatever_is_in_them() {
    for stage in ["rules", "dfas", "sets", "trees"] {
        let graph = dot::read(&good(inspect(NASTY, &[stage, "--dot"])).stdout);
        let least = if ["rules", "dfas"].contains(&stage) { 5 } else { 0 };
        assert!(graph.nodes.len() > least && graph.edges.len() >= least, "{stage}: {graph:?}");
        assert!(graph.nodes.iter().all(|(_, label)| !label.is_empty()));
        let few = dot::read(&good(inspect(NASTY, &[stage, "--dot", "--limit", "1"])).stdout);
        assert!(few.nodes.len() < graph.nodes.len() || graph.nodes.len() == 1, "{stage}");
    }
    let clusters = dot::read(&good(inspect(NASTY, &["dfas", "--dot"])).stdout).clusters;
    assert_eq!(clusters as u64, json(NASTY, &["dfas"])["total"].as_u64().unwrap());
}

#[test]
fn output_is_bounded_unless_all_is_asked_for() {
    let rules: String =
        (0..300).map(|n| format!("r{n} ::= \"(\" r{} \")\" | \"{n}\"\n", (n + 1) % 300)).collect();
    let grammar = format!("root ::= r0 {{0,90000}}\n{rules}");
    for stage in ["rules", "terminals", "dfas", "trees", "sets"] {
        let text = good(inspect(&grammar, &[stage, "--limit", "5"])).stdout;
        assert!(text.len() < 8_000, "{stage}: {} bytes", text.len());
        assert!(text.contains("(--limit 0 shows all)"), "{stage}: {text}");
        assert!(good(inspect(&grammar, &[stage, "--limit", "5", "--json"])).stdout.len() < 20_000);
    }
    assert!(good(inspect(&grammar, &["rules", "--limit", "0"])).stdout.contains("\nr299  ("));
}

#[test]
fn masks_along_a_text_are_listed_slowest_first() {
    let grammar = "root ::= word \"=\" [0-9]+\nword ::= [a-z]+\n";
    let answer = json(grammar, &["masks", "--text", "ab=1"]);
    let rows = answer["rows"].as_array().unwrap();
    // One row before each byte, and one at the end.
    assert_eq!((answer["masks"].as_u64(), rows.len()), (Some(5), 5));
    let slowest: Vec<f64> = rows.iter().map(|row| row["ms"].as_f64().unwrap()).collect();
    assert!(slowest.is_sorted_by(|a, b| a >= b), "{slowest:?}");
    let inside = rows.iter().find(|row| row["after"] == 1).unwrap();
    assert_eq!(inside["tokens"], 27, "letters and the mark");
    let text = good(inspect(grammar, &["masks", "--text", "ab=1", "-n", "2"])).stdout;
    assert!(text.contains("and 3 more") && text.contains("root"), "{text}");
    let whole = json(grammar, &["masks", "--text", "ab=1\n"]);
    assert_eq!(whole["masks"], 5, "the line break at the end is no part of the text");
    let run = inspect(grammar, &["masks", "--text", "ab1"]);
    assert!(run.code != Some(0) && run.stderr.contains("1:3"), "{}", run.stderr);
}

#[test]
fn masks_of_schemas_tell_the_keyword() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.schema.json");
    let schema =
        r#"{"type":"object","properties":{"id":{"type":"string","pattern":"^[a-f]{4}$"}},"required":["id"]}"#;
    std::fs::write(&file, schema).unwrap();
    let arguments = ["masks", "--json", "--text", r#"{"id":"ab"#];
    let answer = last_line(&good(on_file(&file, &arguments)));
    let end = answer["rows"].as_array().unwrap().iter().find(|row| row["after"] == 9).unwrap();
    assert_eq!(end["made_of"][0]["pointer"], "#/properties/id", "{answer}");
    assert_eq!(end["made_of"][0]["keywords"], serde_json::json!(["pattern"]));
}

#[test]
fn mistakes_end_with_2_and_a_hint() {
    for arguments in [
        &["rules", "--rule", "nobody"][..],
        &["terminals", "--terminal", "99"],
        &["terminals", "--dot"],
        &["--dot"],
        &["rules", "--text", "a"],
        &["sets", "--along", "no-such-file"],
        &["sets", "--state", "0"],
        &["trees", "--terminal", "0", "--state", "99"],
        &["sets", "--along", "-", "--text", "a"],
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

#[test]
fn written_terminals_are_listed() {
    let grammar = r#"root ::= "\"job\"" ws ":" ws string   string ::= "\"" [^"]* "\""   ws ::= " "*"#;
    let names = |arguments: &[&str]| {
        let object = json(grammar, &[&["terminals"], arguments].concat());
        let mut names: Vec<_> =
            object["terminals"].as_array().unwrap().iter().map(|row| row["name"].to_string()).collect();
        names.sort();
        (names, object["terminal_kind"].clone())
    };
    let written =
        [r#""\":\"""#, r#""\"\\\"job\\\"\"""#, r#""string""#, r#""ws""#].map(str::to_owned).to_vec();
    assert_eq!(names(&["--terminals", "written"]), (written, "written".into()));
    assert_eq!(names(&[]), (vec!["\"root\"".to_owned()], "folded".into()));
    let summary = good(inspect(grammar, &["--terminals", "written"])).stdout;
    assert!(summary.contains("terminals, written"), "{summary}");
}
