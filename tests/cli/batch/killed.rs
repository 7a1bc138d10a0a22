//! Runs that are interrupted by Ctrl-C or killed. A run that goes on writes the answers of one undisturbed
//! run.
#![cfg(unix)]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::by_id;
use crate::support::{
    program::{program, run},
    random_model::write_model,
};

/// Tokens of a text, enough to interrupt it.
const TOKENS: &str = "120";
/// Number of rows of a batch.
const ROWS: usize = 14;

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// The command `domino generate` on these rows into this file.
fn writer(rows: &Path, out: &Path, model: &Path) -> Command {
    let mut command = program();
    command.args([
        "generate",
        "--parallel",
        "3",
        "-r",
        "[a-z]{100,200}",
        "-n",
        TOKENS,
        "--finish",
        "--batch",
    ]);
    command.arg(rows).arg("--out").arg(out).arg("--model").arg(model);
    command
}

/// The texts of a file. An incomplete last line is ignored.
fn texts(out: &Path) -> BTreeMap<String, Value> {
    let content = fs::read_to_string(out).unwrap_or_default();
    let whole = content.rfind('\n').map_or("", |end| &content[..=end]);
    by_id(whole).into_iter().map(|(id, answer)| (id, answer["text"].clone())).collect()
}

/// Runs a command, and ends it by a signal once the file has `some` lines and one of this run. Returns its
/// exit code and its messages.
fn ended(mut command: Command, out: &Path, some: usize, by: &str) -> (Option<i32>, String) {
    let (before, some) = (Instant::now(), some.max(texts(out).len() + 1));
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while texts(out).len() < some {
        assert!(before.elapsed() < Duration::from_secs(120), "{some} lines were not written");
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&child, by);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_run_that_was_ended_goes_on_to_the_same_texts() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let [rows, whole, out] = ["rows.jsonl", "whole.jsonl", "out.jsonl"].map(|name| folder.path().join(name));
    let row = |number: usize| match number % 5 {
        0 => json!({"id": format!("row {number}"), "seed": number, "n": 2}),
        _ => json!({"id": number, "seed": number, "prompt": "p".repeat(number)}),
    };
    let lines: String = (0..ROWS).map(|number| format!("{}\n", row(number))).collect();
    fs::write(&rows, &lines).unwrap();
    let undisturbed = run(&mut writer(&rows, &whole, folder.path()), b"");
    assert_eq!(undisturbed.code, Some(0), "{}", undisturbed.stderr);
    let expected = texts(&whole);
    assert_eq!(expected.len(), ROWS + 3);
    for by in ["-KILL", "-INT"] {
        let _ = fs::remove_file(&out);
        for some in [1, 4, 9] {
            let (code, said) = ended(writer(&rows, &out, folder.path()), &out, some, by);
            assert_eq!(code, (by == "-INT").then_some(130), "{said}");
            let there = texts(&out);
            assert!((some..expected.len()).contains(&there.len()), "{by}: {} of {some}", there.len());
            assert!(there.iter().all(|(id, text)| expected[id] == *text), "{by} after {some}: {there:?}");
            // After Ctrl-C the program says what was dropped, and that it can go on.
            assert_eq!(said.contains("the same command goes on"), by == "-INT", "{said}");
            if by == "-INT" {
                assert!(fs::read_to_string(&out).unwrap().ends_with('\n'));
            }
        }
        let last = run(&mut writer(&rows, &out, folder.path()), b"");
        assert_eq!(last.code, Some(0), "{}", last.stderr);
        assert_eq!(texts(&out), expected, "{by}");
    }
}

/// Without a file, Ctrl-C reports texts that have begun as far as they are, completed if that was asked, and
/// nothing of the others.
#[test]
fn an_interrupted_batch_reports_texts_that_have_begun() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let mut child = program()
        .args(["generate", "--batch", "-", "--parallel", "3", "-n", "100000", "--finish", "--model"])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let name = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    for request in [
        json!({"id": "finished", "regex": "a{100000}"}),
        json!({"id": "cut", "regex": "a{100000}", "finish": false}),
        json!({"id": "short", "regex": "aaa"}),
        json!({"id": "long", "regex": "b{100000}"}),
        // These wait for a place, which never comes.
        json!({"id": "waits", "schema": name}),
        json!({"id": "waits too", "regex": "c"}),
        json!({"id": "is not read", "regex": "c"}),
    ] {
        writeln!(stdin, "{request}").unwrap();
    }
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        || -> Option<Value> { lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap()) };
    // The others have begun then; the one in its place may have.
    assert_eq!(next().unwrap()["id"], "short");
    signal(&child, "-INT");
    let [finished, cut] = [next().unwrap(), next().unwrap()];
    assert_eq!((&finished["id"], &finished["finish"]), (&json!("finished"), &json!("interrupted")));
    assert_eq!((&finished["finished_by"], &finished["complete"]), (&json!("completion"), &json!(true)));
    assert_eq!(finished["text"].as_str().unwrap().len(), 100_000);
    assert_eq!(
        (&cut["id"], &cut["finish"], &cut["complete"]),
        (&json!("cut"), &json!("interrupted"), &json!(false))
    );
    assert!(cut.get("appended").is_none() && cut["text"].as_str().unwrap().len() < 100_000);
    if let Some(long) = next() {
        assert!(long["id"] == "long" && !long["token_ids"].as_array().unwrap().is_empty(), "{long}");
    }
    assert!(next().is_none());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
