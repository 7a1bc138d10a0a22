//! `domino generate --sampling conditional` and `--tokenization canonical` with a model of random weights.

use serde_json::{Value, json};

use crate::support::{
    program::{Run, domino, last_line},
    random_model::write_model,
};

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    folder
}

fn generate(folder: &tempfile::TempDir, arguments: &[&str]) -> Run {
    let model = folder.path().to_str().unwrap();
    domino(&[&["generate", "--model", model, "--prompt", "The answer: "], arguments].concat(), b"")
}

const REGEX: [&str; 2] = ["--regex", "(yes|no|perhaps)( [a-z]{2})?"];

#[test]
fn particles_write_a_text_and_report_their_estimates() {
    let folder = folder();
    let conditional = |more: &[&str]| {
        let run = generate(&folder, &[&REGEX[..], &["--sampling", "conditional", "--json"], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        last_line(&run)
    };
    let found = conditional(&["--particles", "6", "--seed", "3"]);
    assert_eq!((&found["particles"], &found["complete"]), (&json!(6), &json!(true)));
    assert_eq!(found["finished_by"], "model");
    assert!(found["log_kept"].as_f64().unwrap() < 0.0 && found["log_language"].as_f64().unwrap() < 0.0);
    assert!((1.0..=6.0001).contains(&found["effective"].as_f64().unwrap()), "{found}");
    let fed = found["fed"].as_u64().unwrap();
    assert!(fed >= 6 * found["prompt_tokens"].as_u64().unwrap(), "{found}");
    let again = conditional(&["--particles", "6", "--seed", "3"]);
    assert_eq!((&again["token_ids"], &again["log_language"]), (&found["token_ids"], &found["log_language"]));
    assert_eq!(conditional(&[])["particles"], 8);
    // One particle is masks.
    let one = conditional(&["--particles", "1", "--seed", "3"]);
    let masked = last_line(&generate(&folder, &[&REGEX[..], &["--seed", "3", "--json"]].concat()));
    assert_eq!(one["token_ids"], masked["token_ids"]);
    assert_eq!(one["log_kept"], one["log_language"]);
    // Nothing finishes in so few tokens.
    let cut = generate(&folder, &[&REGEX[..], &["--sampling", "conditional", "-n", "1", "--json"]].concat());
    assert_eq!(cut.code, Some(3), "{}", cut.stderr);
    assert_eq!(last_line(&cut)["log_language"], Value::Null);
    // The text alone is on standard output.
    let run = generate(&folder, &[&REGEX[..], &["--sampling", "conditional", "--seed", "3"]].concat());
    assert!(run.stderr.contains("8 particles") && !run.stdout.contains("particles"), "{}", run.stderr);
}

#[test]
fn flags_that_rule_out_conditional_sampling_are_refused() {
    let folder = folder();
    for (arguments, said) in [
        (&["--sampling", "conditional"][..], "needs a grammar"),
        (&["--regex", "a|b", "--particles", "3"], "--sampling"),
        (&["--regex", "a|b", "--sampling", "masked", "--particles", "3"], "--sampling conditional"),
        (&["--regex", "a|b", "--sampling", "conditional", "-t", "0"], "temperature 0"),
        (&["--regex", "a|b", "--sampling", "conditional", "--top-k", "5"], "top-k"),
        (&["--regex", "a|b", "--sampling", "conditional", "--stop", "x"], "stop strings"),
        (&["--regex", "a|b", "--sampling", "conditional", "--speculate", "4"], "speculation: not with"),
        (&["--regex", "a|b", "--sampling", "conditional", "--mask", "always"], "--mask: not with"),
        (&["--regex", "a|b", "--sampling", "conditional", "--particles", "0"], "--particles"),
        (
            &["--regex", "a|b", "--sampling", "conditional", "--tokenization", "canonical"],
            "--tokenization canonical: not with",
        ),
    ] {
        let run = generate(&folder, arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{arguments:?}: {}", run.stderr);
    }
    let run = generate(&folder, &["--regex", "a|b", "--sampling", "masked", "--speculate", "off"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn canonical_texts_are_split_as_the_tokenizer_does() {
    let folder = folder();
    let mut redraws = 0;
    for seed in 0..8 {
        let seed = seed.to_string();
        let arguments = ["--regex", "(true|null|perhaps)( true| null){2}", "--seed", &seed, "--json"];
        let tokenizer = domino::vocab::Tokenizer::from_tokenizer_file(folder.path()).unwrap();
        let own = |found: &Value| {
            let tokens = tokenizer.encode(found["text"].as_str().unwrap(), false).unwrap();
            tokens.iter().map(|token| token.raw()).collect::<Vec<u32>>()
        };
        let run = generate(&folder, &[&arguments[..], &["--tokenization", "canonical"]].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let found = last_line(&run);
        assert_eq!((&found["canonical"], &found["complete"]), (&json!(true), &json!(true)), "{found}");
        assert_eq!(found["token_ids"], json!(own(&found)));
        redraws += found["redraws"].as_u64().unwrap();
        let free = last_line(&generate(&folder, &[&arguments[..], &["--tokenization", "free"]].concat()));
        assert!(free.get("canonical").is_none() && free["complete"] == true, "{free}");
    }
    assert!(redraws > 0);
    // The text alone is on standard output.
    let run = generate(&folder, &["--regex", "true|null", "--tokenization", "canonical"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        ["true", "null"].contains(&&*run.stdout) && run.stderr.contains("canonical tokens"),
        "{} {}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn flags_that_rule_out_canonical_tokens_are_refused() {
    let folder = folder();
    for (arguments, said) in [
        (&[][..], "needs a grammar"),
        (&["--regex", "a|b", "--speculate", "4"], "speculation: not with --tokenization canonical"),
        (&["--regex", "a|b", "--mask", "always"], "--mask: not with"),
        (&["--regex", "a|b", "--heal"], "--heal: not with"),
        (&["--regex", "a|b", "--top-p", "0.5"], "do not go with top-k, top-p or min-p"),
        (&["--regex", "a|b", "--repeat-penalty", "2"], "penalties"),
        (&["--regex", "a|b", "--stop", "x"], "stop strings"),
        (&["--regex", "a|b", "--finish"], "completion"),
        (&["--regex", "a|b", "--logprobs", "1", "--json"], "log-probabilities"),
    ] {
        let run = generate(&folder, &[&["--tokenization", "canonical"], arguments].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(said) && run.stderr.contains("hint"), "{arguments:?}: {}", run.stderr);
    }
    let model = folder.path().to_str().unwrap();
    let run = domino(&["generate", "--model", model, "--batch", "-", "--tokenization", "canonical"], b"");
    assert!(run.code == Some(2) && run.stderr.contains("--batch: not with"), "{}", run.stderr);
}
