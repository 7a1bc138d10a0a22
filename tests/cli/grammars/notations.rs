//! Lark and EBNF on the command line: by the ending of a file, by `--syntax`, and in batches.

use crate::support::program::domino;

const LARK: &str = "start: NAME \"=\" INT\nNAME: /[a-z]+/ & ~\"if\"\n%import common (INT, WS)\n%ignore WS\n";
const EBNF: &str = "root ::= [a-z]{1,8} \"=\" num (= \"x\")\nnum ::= \"\\x30\" | [1-9] [0-9]*\n";

fn file_of(grammar: &str, ending: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
    std::fs::write(file.path(), grammar).unwrap();
    file
}

#[test]
fn batches_name_the_notation() {
    let row = |syntax: &str, grammar: &str, text: &str| {
        serde_json::json!({ "id": text, "syntax": syntax, "grammar": grammar, "text": text }).to_string()
    };
    let lines = [
        row("lark", LARK, "a = 1"),
        row("lark", LARK, "if = 1"),
        row("ebnf", EBNF, "a=0"),
        row("ebnf", EBNF, "a=01"),
        row("lark_greedy", LARK, "a = 1"),
        row("lark_greedy", "start: A A\nA: /a+/\n%ignore \" \"", "aa"),
        row("lark_greedy", "start: A A\nA: /a+/\n%ignore \" \"", "a a"),
        row("lark", "start: x", ""),
        row("ebnf", "root ::= .", ""),
    ];
    let run = domino(&["check", "--batch"], lines.join("\n").as_bytes());
    let answers: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let accepted: Vec<_> = answers.iter().map(|answer| answer["accepted"].as_bool()).collect();
    let greedy = [Some(true), Some(false), Some(true)];
    let wanted = [&[Some(true), Some(false), Some(true), Some(false)][..], &greedy, &[None, None]].concat();
    assert_eq!(accepted, wanted, "{answers:?}");
    assert!(answers[7]["error"].as_str().unwrap().contains("1:8"), "{}", answers[7]);
}

/// The exit codes of the table on the page about batches.
#[test]
fn rows_that_are_checked_end_in_documented_codes() {
    let row = |grammar: &str, text: &str| {
        serde_json::json!({ "syntax": "regex", "grammar": grammar, "text": text }).to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("bad.gbnf"), "root ::= (").unwrap();
    std::fs::write(path("empty.gbnf"), "root ::= root").unwrap();
    std::fs::write(path("bad.json"), r#"{"type": "text"}"#).unwrap();
    for (flags, rows, code) in [
        (&[][..], vec![row("a+", "aa"), row("a+", "b")], 0),
        (&[], vec![], 0),
        (&[], vec![row("a+", "aa"), row("a(", "b")], 1),
        (&[], vec!["{".to_owned(), row("a+", "aa")], 1),
        (&["-g", "json"], vec![r#"{"text": "[1]"}"#.to_owned(), row("a", "a")], 0),
        (&["-g", &path("bad.gbnf")], vec![row("a", "a")], 2),
        (&["-g", &path("empty.gbnf")], vec![row("a", "a")], 2),
        (&["-g", &path("bad.json")], vec![row("a", "a")], 2),
        (&["-g", &path("no such file")], vec![row("a", "a")], 2),
        (&["-r", "a("], vec![row("a", "a")], 2),
        (&["--no-such-flag"], vec![row("a", "a")], 2),
        (&["--max-bytes", "10"], vec![row("a", "a")], 2),
        (&[&path("no such file")], vec![], 2),
        (&[&path(".")], vec![], 2),
    ] {
        let run = domino(&[&["check", "--batch"], flags].concat(), rows.join("\n").as_bytes());
        assert_eq!(run.code, Some(code), "{flags:?} {rows:?}: {} {}", run.stdout, run.stderr);
        let answers = run.stdout.lines().count();
        assert_eq!(answers, if code == 2 { 0 } else { rows.len() }, "{flags:?}: {}", run.stdout);
    }
}

/// Every command that takes a grammar takes these notations.
#[test]
fn all_commands_take_lark_and_ebnf() {
    let model = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (grammar, ending, more) in [
        (LARK, ".lark", &[][..]),
        (LARK, ".txt", &["--syntax", "lark"]),
        (LARK, ".txt", &["--syntax", "lark_greedy"]),
        (EBNF, ".ebnf", &[]),
        (EBNF, ".txt", &["--syntax", "ebnf"]),
    ] {
        let file = file_of(grammar, ending);
        let run = |arguments: &[&str], input: &str| {
            let grammar = ["--grammar", file.path().to_str().unwrap()];
            domino(&[&arguments[..1], &grammar, more, &arguments[1..]].concat(), input.as_bytes())
        };
        let good = |arguments: &[&str], input: &str| {
            let run = run(arguments, input);
            assert_eq!(run.code, Some(0), "{arguments:?} {ending}: {} {}", run.stdout, run.stderr);
            run
        };
        let check = good(&["check", "-"], "ab=12");
        assert_eq!(check.stderr.contains("lookahead assertion"), grammar == EBNF, "{}", check.stderr);
        assert_eq!(run(&["check", "-"], "ab=x").code, Some(1));
        let mask = good(&["mask", "--json", "--tokenizer", model, "--text", "ab="], "");
        assert!(crate::support::program::last_line(&mask)["count"].as_u64() > Some(0), "{}", mask.stdout);
        good(&["inspect", "rules"], "");
        good(&["compile", "--tokenizer", model, "--out", &path("trees")], "");
        // The model is slow, so it runs once for each notation.
        if more.is_empty() {
            let asked = ["-m", model, "-p", "x", "-n", "12", "--finish", "--json"];
            let text =
                crate::support::program::last_line(&good(&[&["generate"][..], &asked].concat(), ""))["text"]
                    .clone();
            good(&["check", "-"], text.as_str().unwrap());
            let learn = ["-m", model, "-p", "x", "-n", "8", "--runs", "1", "--out", &path("prior")];
            good(&[&["learn"][..], &learn].concat(), "");
        }
    }
    let wrong = file_of("start: /(/", ".lark");
    let wrong = domino(&["check", "--grammar", wrong.path().to_str().unwrap(), "-"], b"");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("--> 1:9"), "{}", wrong.stderr);
}
