//! Tests of ends in the program: `--trailing-space`, its key in rows, and the field `finish`.

use std::path::Path;

use serde_json::Value;

use crate::support::{
    program::{Run, domino, domino_in, last_line},
    random_model::write_model,
};

/// A list with optional white space at its end, which a model of random weights likes to write.
const LIST: [&str; 2] = ["--regex", r"\[[0-9](, [0-9]){3}\][ \n]{0,200}"];

fn run(model: &Path, verb: &str, arguments: &[&str]) -> Run {
    domino(&[&[verb, "--model", model.to_str().unwrap(), "--prompt", "List: "], arguments].concat(), b"")
}

fn object(model: &Path, verb: &str, arguments: &[&str]) -> Value {
    let run = run(model, verb, &[&LIST[..], &["--json"], arguments].concat());
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    last_line(&run)
}

#[test]
fn a_text_ends_with_its_last_character_unless_space_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    for verb in ["generate", "explain"] {
        let stopped = object(folder.path(), verb, &[]);
        assert_eq!(
            (&stopped["finish"], &stopped["complete"]),
            (&"only_space".into(), &true.into()),
            "{stopped}"
        );
        let text = stopped["text"].as_str().unwrap();
        assert!(text.trim_end().ends_with(']'), "{text:?}");
        let kept = object(folder.path(), verb, &["--trailing-space", "keep"]);
        assert!(kept["finish"] == "stop" || kept["finish"] == "length", "{kept}");
        assert!(kept["text"].as_str().unwrap().starts_with(text), "{kept}");
    }
    let run = run(folder.path(), "generate", &LIST);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("only white space could follow"), "{}", run.stderr);
    let stopped = object(folder.path(), "generate", &[]);
    assert_eq!(stopped["finished_by"], "model");
}

#[test]
fn all_ways_to_write_a_text_heed_trailing_space() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    for arguments in [
        &["--tokenization", "canonical"][..],
        &["--mask", "always"],
        &["--speculate", "4"],
        &["--speculate", "off"],
        &["--temperature", "0"],
        &["--top-k", "5"],
        &["--finish"],
    ] {
        let stopped = object(folder.path(), "generate", arguments);
        assert_eq!(stopped["finish"], "only_space", "{arguments:?} {stopped}");
        let kept = object(folder.path(), "generate", &[arguments, &["--trailing-space", "keep"]].concat());
        assert_ne!(kept["finish"], "only_space", "{arguments:?} {kept}");
    }
}

#[test]
fn rows_choose_their_own_trailing_space() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let rows = r#"
{"id": "flags", "prompt": "List: "}
{"id": "keep", "prompt": "List: ", "trailing_space": "keep"}
{"id": "stop", "prompt": "List: ", "trailing_space": "stop"}
{"id": "wrong", "prompt": "List: ", "trailing_space": "cut"}
"#;
    std::fs::write(folder.path().join("rows.jsonl"), rows.trim_start()).unwrap();
    let model = folder.path().to_str().unwrap();
    let written = |flags: &[&str]| {
        let arguments = ["generate", "--model", model, "--batch", "rows.jsonl"];
        let run = domino_in(folder.path(), &[&arguments, &LIST[..], flags].concat(), b"");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let lines = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .map(|line: Value| (line["id"].as_str().unwrap().to_owned(), line))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    for (flags, is_kept) in [(&[][..], false), (&["--trailing-space", "keep"], true)] {
        let rows = written(flags);
        assert_eq!(rows["flags"]["finish"] != "only_space", is_kept, "{rows:?}");
        assert_ne!(rows["keep"]["finish"], "only_space");
        assert_eq!(rows["stop"]["finish"], "only_space");
        assert!(rows["wrong"]["error"].as_str().unwrap().contains("trailing_space"), "{rows:?}");
        assert!(rows["keep"]["text"].as_str().unwrap().starts_with(rows["stop"]["text"].as_str().unwrap()));
    }
}

#[test]
fn learnt_texts_end_before_trailing_space() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let out = folder.path().join("list.prior");
    let learnt = |arguments: &[&str]| {
        let all = [&LIST[..], &["--json", "--runs", "2", "--out", out.to_str().unwrap()], arguments].concat();
        let run = run(folder.path(), "learn", &all);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        last_line(&run)["observed"].as_u64().unwrap()
    };
    assert!(learnt(&[]) < learnt(&["--trailing-space", "keep"]));
}

/// A long list of few words, for which there is no prior.
const WORDS: [&str; 2] = ["--regex", r"(?:alpha|beta|gamma)(?:, (?:alpha|beta|gamma)){40}"];

#[test]
fn speculation_learns_from_the_first_text_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let written = |arguments: &[&str]| {
        let run = run(folder.path(), "generate", &[&WORDS[..], &["--json", "-n", "200"], arguments].concat());
        assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
        last_line(&run)
    };
    for temperature in ["0", "1"] {
        let with = |more: &[&str]| written(&[&["--temperature", temperature], more].concat());
        let plain = with(&["--speculate", "off"]);
        assert_eq!(plain["drafted"], Value::Null);
        let drafted = with(&["--speculate", "6"]);
        assert_eq!(drafted["token_ids"], plain["token_ids"]);
        // After its first letters, much of a word is known.
        let count = |key: &str| drafted[key].as_u64().unwrap();
        assert!(count("accepted") > 20 && count("passes") < plain["passes"].as_u64().unwrap(), "{drafted}");
        assert_eq!(drafted["prior"], Value::Null);
        // Whether drafts pay depends on the machine.
        let usual = with(&[]);
        assert_eq!(usual["token_ids"], plain["token_ids"]);
        assert!(usual["drafted"].is_u64(), "{usual}");
    }
}

#[test]
fn texts_of_a_batch_learn_from_those_before_them() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    std::fs::write(folder.path().join("rows.jsonl"), "{\"prompt\": \"List: \", \"n\": 6}\n").unwrap();
    let model = folder.path().to_str().unwrap();
    let written = |how: &str, texts_at_once: &str| {
        let arguments =
            ["generate", "--model", model, "--batch", "rows.jsonl", "-n", "150", "--speculate", how];
        let all = [&arguments[..], &["--parallel", texts_at_once], &WORDS].concat();
        let run = domino_in(folder.path(), &all, b"");
        let mut lines: Vec<Value> =
            run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.sort_by_key(|line| line["index"].as_u64());
        assert_eq!(lines.len(), 6, "{}", run.stderr);
        lines
    };
    let plain = written("off", "2");
    for texts_at_once in ["1", "3"] {
        let drafted = written("4", texts_at_once);
        for (drafted, plain) in drafted.iter().zip(&plain) {
            assert_eq!(drafted["token_ids"], plain["token_ids"]);
        }
        let accepted: Vec<u64> = drafted.iter().map(|line| line["accepted"].as_u64().unwrap_or(0)).collect();
        assert!(accepted.iter().all(|&accepted| accepted > 0), "{accepted:?}");
    }
}
