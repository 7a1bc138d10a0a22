//! `domino-mistralrs generate`.

use serde_json::Value;

use crate::program::{Run, domino, last_line};

use super::engine::model;

fn run(arguments: &[&str]) -> Run {
    let model = model().display().to_string();
    let job = ["generate", "--model", &model, "--prompt", "A JSON file describing a person: "];
    domino(&[&job[..], arguments].concat(), b"")
}

fn generate(arguments: &[&str]) -> Value {
    let run = run(&[&["--json", "-n", "24"], arguments].concat());
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    last_line(&run)
}

#[test]
fn drafts_in_mistralrs_change_no_token() {
    let job = ["--grammar", "json", "--seed", "2"];
    let own = generate(&[&job[..], &["--engine", "domino", "--speculate", "off"]].concat());
    // In the numbers that ours are computed with.
    let job = [&job[..], &["--dtype", "f32"]].concat();
    let masks = generate(&[&job[..], &["--speculate", "off"]].concat());
    assert_eq!(masks["drafted"], Value::Null);
    let drafts = generate(&[&job[..], &["--speculate", "5"]].concat());
    assert_eq!(drafts["token_ids"], masks["token_ids"]);
    let count = |found: &Value, key: &str| found[key].as_u64().unwrap();
    assert!(
        count(&drafts, "accepted") > 0 && count(&drafts, "passes") < count(&drafts, "tokens"),
        "{drafts}"
    );
    // The draws are the same; the numbers they are drawn from only nearly.
    for key in ["prompt_tokens", "finish", "tokens"] {
        assert_eq!(masks[key], own[key], "{key}: {masks} {own}");
    }
    let common = |found: &Value| {
        let ids = |found: &Value| found["token_ids"].as_array().unwrap().clone();
        ids(found).iter().zip(ids(&own)).take_while(|(one, other)| **one == *other).count()
    };
    assert!(common(&masks) >= 4, "{masks} {own}");
}

#[test]
fn the_engine_heeds_stop_strings_and_writes_free_texts() {
    let cut = generate(&["--regex", "[a-z]{3} [0-9]+ [a-z]+", "--stop", " "]);
    assert_eq!(cut["finish"], "stop_string");
    assert!(!cut["text"].as_str().unwrap().contains(' '), "{cut}");
    let free = generate(&["-t", "0", "--dtype", "f32"]);
    assert_eq!(free["text"], generate(&["--engine", "domino", "-t", "0"])["text"]);
}

#[test]
fn flags_that_the_engine_lacks_are_refused() {
    for (flags, said) in [
        (&["--finish", "--grammar", "json"][..], "--finish: not with --engine mistralrs"),
        (&["--repeat-penalty", "1.1"], "penalties: not with"),
        (&["--regex", "a", "--heal"], "--heal: not with"),
        (&["--regex", "a", "--tokenization", "canonical"], "--tokenization canonical: not with"),
        (&["--kv", "f16"], "--engine domino"),
        (&["--threads", "2"], "--engine domino"),
        (&["--isq", "q99"], "--isq takes bits"),
        (&["--engine", "domino", "--dtype", "f32"], "--engine mistralrs"),
    ] {
        let run = run(flags);
        assert_eq!(run.code, Some(2), "{flags:?}");
        assert!(run.stderr.contains(said), "{flags:?}: {}", run.stderr);
    }
    let model = model().display().to_string();
    for (job, said) in [
        (&["generate", "--batch", "-", "--model", &model][..], "--batch: not with"),
        (&["explain", "--json", "--regex", "a", "--model", &model], "not rows of logits"),
    ] {
        let run = domino(job, b"");
        assert_eq!(run.code, Some(2), "{job:?}");
        assert!(run.stderr.contains(said), "{job:?}: {}", run.stderr);
    }
}
