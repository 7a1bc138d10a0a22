//! `--batch` of `generate`, `check` and `trace`: rows in, a line for each of them out.

mod checked;
mod files;
mod keys;
mod killed;
mod memory;
mod requests;
mod schemas;
mod texts;

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::support::program::{Run, domino};

/// Runs `domino generate --batch` on these lines.
fn batch(folder: &Path, arguments: &[&str], lines: &str) -> Run {
    let model = folder.to_str().unwrap();
    domino(&[&["generate", "--model", model, "--batch", "-"], arguments].concat(), lines.as_bytes())
}

/// The lines as JSON.
fn parsed(lines: &str) -> Vec<Value> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The answers by id, and index if they have one.
fn by_id(lines: &str) -> BTreeMap<String, Value> {
    let name = |answer: &Value| match answer.get("index") {
        Some(index) => format!("{}#{index}", answer["id"]),
        None => answer["id"].to_string(),
    };
    let all = parsed(lines);
    let count = all.len();
    let answers: BTreeMap<String, Value> = all.into_iter().map(|answer| (name(&answer), answer)).collect();
    assert_eq!(answers.len(), count, "{lines}");
    answers
}

/// The answers of a run.
fn answers(run: &Run) -> BTreeMap<String, Value> {
    by_id(&run.stdout)
}

/// Runs `domino check --batch` on these rows; also returns its answers in order.
fn check(arguments: &[&str], rows: &[Value]) -> (Run, Vec<Value>) {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let run = domino(&[&["check", "--batch"], arguments].concat(), lines.as_bytes());
    let answers = parsed(&run.stdout);
    (run, answers)
}
