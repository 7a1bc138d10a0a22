//! Requests of a batch: each is answered as if it were alone, and an error of one is its answer.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{answers, batch};
use crate::support::{
    program::{domino, last_line},
    random_model::write_model,
};

/// Facts that do not depend on time.
fn facts(answer: &Value) -> Vec<Value> {
    let names =
        ["text", "token_ids", "finish", "finished_by", "complete", "appended", "interventions", "masks"];
    names.map(|name| answer[name].clone()).to_vec()
}

/// Requests, and equivalent flags.
fn requests() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (json!({"prompt": "One: "}), vec!["-p", "One: "]),
        (
            json!({"prompt": "A somewhat longer prompt: ", "seed": 7}),
            vec!["-p", "A somewhat longer prompt: ", "-s", "7"],
        ),
        (
            json!({"grammar": "json", "max_tokens": 9, "finish": true}),
            vec!["-g", "json", "-n", "9", "--finish"],
        ),
        (
            json!({"grammar": "root ::= [a-z]+ \"!\"", "syntax": "gbnf", "stop": ["a"], "temperature": 0.5}),
            vec!["-r", "[a-z]+!", "--stop", "a", "-t", "0.5"],
        ),
        (
            json!({"regex": "[a-z]{30}", "top_k": 5, "top_p": 0.9, "min_p": 0.01, "repeat_penalty": 1.2}),
            "-r [a-z]{30} --top-k 5 --top-p 0.9 --min-p 0.01 --repeat-penalty 1.2".split(' ').collect(),
        ),
        (
            json!({"presence_penalty": 2, "frequency_penalty": 1, "repeat_last_n": 8}),
            vec!["--presence-penalty", "2", "--frequency-penalty", "1", "--repeat-last-n", "8"],
        ),
    ]
}

#[test]
fn each_request_is_answered_as_if_it_were_alone() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let requests = requests();
    let mut lines = String::new();
    for (number, (request, _)) in requests.iter().enumerate() {
        let mut request = request.clone();
        request["id"] = json!(format!("r{number}"));
        writeln!(lines, "{request}\n").unwrap();
    }
    let model = folder.path().to_str().unwrap();
    let alone = |(_, flags): &(Value, Vec<&str>)| {
        let usual = ["generate", "--model", model, "--json", "--opportunistic"];
        let own = flags.iter().any(|flag| ["-g", "-r"].contains(flag));
        let grammar: &[&str] = if own { &[] } else { &["--regex", "[ -~]{20,40}"] };
        let most: &[&str] = if flags.contains(&"-n") { &[] } else { &["-n", "25"] };
        last_line(&domino(&[&usual, grammar, most, flags].concat(), b""))
    };
    let alone: Vec<Value> = requests.iter().map(alone).collect();
    for (parallel, speculate) in [("1", "off"), ("2", "auto"), ("5", "off"), ("3", "2"), ("1", "4")] {
        let usual = ["--parallel", parallel, "--opportunistic", "--regex", "[ -~]{20,40}", "-n", "25"];
        let run = batch(folder.path(), &[&usual[..], &["--speculate", speculate]].concat(), &lines);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stderr.contains("6 texts"), "{}", run.stderr);
        let answers = answers(&run);
        for (number, expected) in alone.iter().enumerate() {
            let answer = &answers[&format!("\"r{number}\"")];
            assert_eq!(facts(answer), facts(expected), "{number}, {parallel} at once");
        }
    }
}

#[test]
fn an_error_of_a_request_is_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let long = "x".repeat(5000);
    let lines = [
        "no json".to_owned(),
        json!({"regex": "ab"}).to_string(),
        json!({"id": 5, "regex": "a{2"}).to_string(),
        json!({"id": 6, "regex": "a", "grammar": "json"}).to_string(),
        json!({"id": 7, "grammar": "nosuch"}).to_string(),
        json!({"id": 8, "temperature": -1}).to_string(),
        json!({"id": 9, "promt": "x"}).to_string(),
        json!({"id": 10, "prompt": long}).to_string(),
        json!({"id": 11, "stop": [""]}).to_string(),
        json!({"id": "last", "regex": "cd", "logprobs": 1}).to_string(),
    ];
    let run = batch(folder.path(), &["--parallel", "2"], &lines.join("\n"));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("2 texts, 8 failed") && run.stderr.lines().count() == 1, "{}", run.stderr);
    let answers = answers(&run);
    assert_eq!(answers.len(), lines.len());
    for (id, answer) in &answers {
        match id.as_str() {
            "2" => assert_eq!(answer["text"], "ab"),
            "\"last\"" => {
                assert_eq!(answer["text"], "cd");
                assert!(!answer["logprobs"].as_array().unwrap().is_empty());
            }
            _ => assert!(answer["error"].is_string(), "{answer}"),
        }
    }
    let error = answers["9"]["error"].as_str().unwrap();
    assert!(error.contains("line 7") && error.contains("promt") && error.contains("did you mean `prompt`?"));
    // A file that is not there, and flags that do not go together.
    let model = folder.path().to_str().unwrap();
    for flags in [&["--batch", "nosuch.jsonl"][..], &["--batch", "-", "-p", "x"], &["--parallel", "2"]] {
        assert_eq!(
            domino(&[&["generate", "--model", model], flags].concat(), b"").code,
            Some(2),
            "{flags:?}"
        );
    }
    assert_eq!(batch(folder.path(), &["--parallel", "0"], "").code, Some(2));
    assert_eq!(batch(folder.path(), &[], "").code, Some(0));
}
