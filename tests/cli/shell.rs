//! The `domino` program as a shell sees it: output, exit codes, errors.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    program::{domino, domino_in, last_line, program},
    shared_data::shared,
};

const BYTE_LEVEL: &str = concat!(env!("DOMINO_ROOT"), "/tests/fixtures/byte_level.json");

fn batch(rows: &str) -> Vec<Value> {
    let run = domino(&["check", "--batch", "-"], rows.as_bytes());
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let unanswered = answers.iter().any(|answer| answer["accepted"].is_null());
    assert_eq!(run.code, Some(i32::from(unanswered)), "{}", run.stderr);
    answers
}

#[test]
fn the_help_of_each_command_has_usage_and_json() {
    for verb in
        [&["generate"][..], &["check"], &["mask"], &["inspect"], &["grammars"], &["cache"], &["trace"], &[]]
    {
        let run = domino(&[verb, &["--help"]].concat(), b"");
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("Usage: domino") && run.stdout.contains("--json"), "{}", run.stdout);
    }
    assert!(domino(&["--version"], b"").stdout.starts_with("domino "));
    assert!(domino(&["--help"], b"").stdout.contains("Exit codes:"));
}

#[test]
fn bad_flags_and_files_end_with_2_and_a_hint() {
    for arguments in [
        &["check", "x"][..],
        &["check", "--grammar", "no-such-grammar", "-"],
        &["check", "--grammar", "rfc8259", "--syntax", "klingon", "-"],
        &["check", "--grammar", "rfc8259", "--regex", "a", "-"],
        &["check", "--batch", "a", "b"],
        &["check", "--regex", "(", "-"],
        &["check", "--grammar", "rfc8259", "no-such-file"],
        &["mask", "--grammar", "json", "--tokenizer", "no-such-file"],
        &["generate", "--model", "no-such-folder"],
        &["generate", "--temperature", "-1"],
        &["generate", "--top-p", "0"],
        &["grammars", "klingon"],
        &[],
    ] {
        let run = domino(arguments, b"");
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{arguments:?}: {}", run.stdout);
    }
    let run = domino(&["check", "--grammar", "jsn", "-", "--json"], b"");
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains("\nhint: "), "{}", run.stderr);
    assert!(last_line(&run)["error"].as_str().unwrap().contains("jsn"));
}

#[test]
fn grammars_are_listed_and_printed() {
    assert!(domino(&["grammars"], b"").stdout.starts_with("json "));
    assert_eq!(last_line(&domino(&["grammars", "--json"], b""))["grammars"][0]["name"], "json");
    assert!(domino(&["grammars", "json"], b"").stdout.contains("root   ::="));
    // Every file is listed and can be used.
    let folder = Path::new(env!("DOMINO_ROOT")).join("grammars");
    let mut names: Vec<String> = Vec::new();
    for inside in ["", "paper/"] {
        let files = std::fs::read_dir(folder.join(inside)).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.extend(files.filter_map(|name| Some(format!("{inside}{}", name.strip_suffix(".gbnf")?))));
    }
    names.sort_unstable();
    let list = last_line(&domino(&["grammars", "--json"], b""));
    let mut listed: Vec<&str> =
        list["grammars"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    listed.sort_unstable();
    assert_eq!(listed, names);
}

#[test]
fn check_says_yes_or_where_the_text_leaves_the_language() {
    let run = domino(&["check", "--grammar", "rfc8259", "-"], b"{\"a\": [1, 2]}\n");
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "standard input: in the language\n"),
        "{}",
        run.stderr
    );

    let run = domino(&["check", "--grammar", "rfc8259", "-"], "{\n  \"é\": }".as_bytes());
    assert_eq!(run.code, Some(1));
    assert!(
        run.stdout.starts_with("standard input:2:8: not in the language: '}' cannot follow"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("could follow: ") && run.stdout.contains('['), "{}", run.stdout);

    let run = domino(&["check", "--grammar", "rfc8259", "--json", "-"], b"[1,\xff");
    assert_eq!(run.code, Some(1));
    let answer = last_line(&run);
    assert_eq!(answer["accepted"], false);
    assert_eq!((&answer["offset"], &answer["line"], &answer["column"]), (&json!(3), &json!(1), &json!(4)));

    let run = domino(&["check", "--grammar", "rfc8259", "--json", "-"], b"[1");
    assert_eq!(run.code, Some(1));
    let answer = last_line(&run);
    assert!(answer["error"].as_str().unwrap().contains("too early"), "{answer}");
    assert!(answer["expected"].as_array().unwrap().contains(&json!("']'")), "{answer}");
    assert_eq!(domino(&["check", "--grammar", "rfc8259", "--prefix", "-"], b"[1").code, Some(0));
    assert_eq!(domino(&["check", "--grammar", "rfc8259", "--prefix", "-"], b"[1}").code, Some(1));
}

#[test]
fn check_takes_several_files_and_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("yes", b"ab\n");
    write("no", b"ab");
    write("g.gbnf", b"root ::= \"ab\\n\"\n");
    write("g.regex", b"a.\n");
    let run = domino_in(folder.path(), &["check", "--json", "-g", "g.gbnf", "yes", "no", "yes"], b"");
    let accepted: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["accepted"].clone())
        .collect();
    assert_eq!(accepted, [json!(true), json!(false), json!(true)]);
    assert_eq!(run.code, Some(1));
    let run = domino_in(folder.path(), &["check", "-g", "g.gbnf", "missing", "yes"], b"");
    assert_eq!(run.code, Some(2));
    assert!(run.stdout.contains("yes: in the language"), "{}", run.stdout);
    // The line feed that ends the file is not a part of the expression.
    assert_eq!(domino_in(folder.path(), &["check", "-g", "g.regex", "no"], b"").code, Some(0));
    assert_eq!(domino_in(folder.path(), &["check", "-g", "g.regex", "yes"], b"").code, Some(1));
    assert_eq!(domino(&["check", "--regex", "(?s-u:.)*", "-"], b"\xff\x00").code, Some(0));
    assert_eq!(domino(&["check", "--regex", "(?s:.)*", "-"], b"\xff\x00").code, Some(1));
}

#[test]
fn batch_answers_every_line() {
    let rows = [
        r#"{"id": 1, "syntax": "gbnf", "grammar": "root ::= \"a\" root?", "text": "aaa"}"#,
        r#"{"id": 2, "syntax": "gbnf", "grammar": "root ::= \"a\" root?", "text": "aab"}"#,
        r#"{"id": "three", "syntax": "gbnf", "grammar": "root ::= \"ab\"", "text": "a"}"#,
        r#"{"id": 4, "syntax": "gbnf", "grammar": "root ::= \"ab\"", "text": "a", "prefix": true}"#,
        r#"{"id": 5, "syntax": "regex", "grammar": "[a-z]{2,3}", "text": "éa"}"#,
        r#"{"id": 6, "syntax": "gbnf", "grammar": "root ::= nothing", "text": ""}"#,
        r#"{"id": 7, "syntax": "klingon", "grammar": "", "text": ""}"#,
        "not json",
        r#"{"id": 9, "syntax": "gbnf", "grammar": "root ::= \"a\""}"#,
        r#"{"id": 10, "syntax": "gbnf", "grammar": "root ::= \"a\"", "text": 7}"#,
        "",
        r#"{"id": {"a": [null]}, "syntax": "regex", "grammar": "a*", "text": ""}"#,
        r#"{"id": 12, "syntax": "gbnf", "grammar": "root ::= root", "text": ""}"#,
        r#"{"id": 13, "syntax": "regex", "grammar": "a", "text": "\ud800"}"#,
    ];
    let answers = batch(&rows.join("\n"));
    let short: Vec<(String, Value)> =
        answers.iter().map(|answer| (answer["id"].to_string(), answer["accepted"].clone())).collect();
    let expected = [
        ("1", json!(true)),
        ("2", json!(false)),
        ("\"three\"", json!(false)),
        ("4", json!(true)),
        ("5", json!(false)),
        ("6", json!(null)),
        ("7", json!(null)),
        ("8", json!(null)),
        ("9", json!(null)),
        ("10", json!(null)),
        ("{\"a\":[null]}", json!(true)),
        ("12", json!(null)),
        ("13", json!(null)),
    ];
    assert_eq!(short, expected.map(|(id, accepted)| (id.to_owned(), accepted)));
    for answer in &answers {
        assert_eq!(answer["accepted"].is_null(), answer["error"].is_string(), "{answer}");
        let refused = answer["accepted"] == false;
        assert_eq!(answer.as_object().unwrap().len() > 3, refused, "{answer}");
    }
    assert!(answers[5]["error"].as_str().unwrap().contains("nothing"));
}

/// Many texts of one grammar, which is compiled once, so this is quick.
#[test]
fn batch_decides_the_json_test_suite() {
    let Some(file) = shared("data/json/jsontestsuite.jsonl") else { return };
    let grammar = std::fs::read_to_string(concat!(env!("DOMINO_ROOT"), "/grammars/rfc8259.gbnf")).unwrap();
    let mut rows = String::new();
    let mut expected = Vec::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (Some(text), "accept" | "reject") = (case["text"].as_str(), case["expect"].as_str().unwrap())
        else {
            continue;
        };
        let row = json!({ "id": case["name"], "syntax": "gbnf", "grammar": grammar, "text": text });
        rows += &format!("{row}\n");
        expected.push((case["name"].clone(), json!(case["expect"] == "accept")));
    }
    assert!(expected.len() > 200);
    let answers = batch(&rows);
    let found: Vec<_> =
        answers.iter().map(|answer| (answer["id"].clone(), answer["accepted"].clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn deep_grammars_and_texts_get_answers_in_a_batch() {
    let deep = format!("root ::= {}\"a\"{}", "(".repeat(100_000), ")".repeat(100_000));
    let long = "[".repeat(100_000);
    let regex = "(".repeat(100_000);
    let rows = [
        json!({ "id": 1, "syntax": "gbnf", "grammar": deep, "text": "a" }),
        json!({ "id": 2, "syntax": "gbnf", "grammar": "root ::= \"[\" root \"]\" | \"\"", "text": long,
            "prefix": true }),
        json!({ "id": 3, "syntax": "regex", "grammar": regex, "text": "a" }),
        json!({ "id": 4, "syntax": "regex", "grammar": "a", "text": "a" }),
    ];
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    let answers = batch(&rows.join("\n"));
    assert_eq!(answers.len(), 4);
    assert_ne!(answers[0]["accepted"], false);
    assert_ne!(answers[1]["accepted"], false);
    assert!(answers[2]["accepted"].is_null());
    assert_eq!(answers[3]["accepted"], true);
}

#[test]
fn mask_shows_tokens_and_threads() {
    let arguments = ["mask", "--grammar", "rfc8259", "--tokenizer", BYTE_LEVEL, "--text"];
    let run = domino(&[&arguments[..], &["{\"a\":t", "--json"]].concat(), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mask = last_line(&run);
    // Only `r` goes on; there is no token `rue` or `ru`.
    assert_eq!((&mask["count"], &mask["allowed"]), (&json!(1), &json!([u32::from(b'r')])));
    assert_eq!((&mask["complete"], &mask["eos"]), (&json!(false), &json!(false)));
    assert!(!mask["threads"].as_array().unwrap().is_empty());

    let mask = last_line(&domino(&[&arguments[..], &["1", "--json"]].concat(), b""));
    assert_eq!((&mask["complete"], &mask["eos"]), (&json!(true), &json!(true)));
    assert!(mask["allowed"].as_array().unwrap().contains(&json!(278)));

    let run = domino(&[&arguments[..], &["{\"a\":", "-k", "0"]].concat(), b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("tokens may follow") && run.stdout.contains("threads"), "{}", run.stdout);
    // A note says once which terminals count, unless flags do.
    assert_eq!(run.stderr.matches("folded terminals").count(), 1, "{}", run.stderr);
    for more in [
        &["-k", "0", "--terminals", "folded"][..],
        &["-k", "1", "--terminals", "written"],
        &["-k", "infinite"],
        &["--lookahead", "infinity"],
        &["-k", "inf", "--json"],
    ] {
        let run = domino(&[&arguments[..], &["{\"a\":"], more].concat(), b"");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{more:?}");
    }
    let unbounded = domino(&[&arguments[..], &["{\"a\":", "--json"]].concat(), b"");
    let infinite = domino(&[&arguments[..], &["{\"a\":", "--json", "-k", "infinite"]].concat(), b"");
    assert_eq!(last_line(&unbounded)["allowed"], last_line(&infinite)["allowed"]);
    let run = domino(&[&arguments[..], &["{", "-k", "many"]].concat(), b"");
    assert!(run.code == Some(2) && run.stderr.contains("or infinite"), "{}", run.stderr);

    let run = domino(&[&arguments[..], &["{]", "--json"]].concat(), b"");
    assert_eq!(run.code, Some(1));
    assert_eq!(last_line(&run)["offset"], 1);
}

/// Lines are answered as they come, and Ctrl-C ends the wait for more.
#[cfg(unix)]
#[test]
fn batch_answers_at_once_and_can_be_interrupted() {
    use std::{
        io::{BufRead, BufReader},
        os::unix::process::ExitStatusExt,
    };

    let mut child =
        program().args(["check", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    for text in ["a", "b"] {
        let row = json!({ "id": text, "syntax": "regex", "grammar": "a", "text": text });
        pipe.write_all(format!("{row}\n").as_bytes()).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["id"], &answer["accepted"]), (&json!(text), &json!(text == "a")));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
}
