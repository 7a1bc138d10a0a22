//! Flags in place of others: models for tokenizers, a variable for a model, files for standard output.

use serde_json::Value;

use super::{folder, refused, run};
use crate::support::program::{program, run as run_program};

#[test]
fn commands_that_only_need_tokens_take_a_model_too() {
    let folder = folder();
    let folder = folder.path();
    let mask = |flags: &[&str]| run(folder, &[&["mask", "-r", "yes|no", "--json"], flags].concat());
    let of_model = mask(&["--model", "model"]);
    assert_eq!(of_model.code, Some(0), "{}", of_model.stderr);
    for flags in [&["-m", "model"][..], &["--tokenizer", "model"], &["-t", "model/tokenizer.json"]] {
        assert_eq!(mask(flags).stdout, of_model.stdout, "{flags:?}");
    }
    refused(folder, &["mask", "-r", "a", "-m", "model", "-t", "model"], &["cannot be used with"]);
    refused(folder, &["mask", "-r", "a", "-m", "nosuch"], &["there is no nosuch"]);

    let inspect = |flags: &[&str]| run(folder, &[&["inspect", "terminals", "-r", "[a-z]+"], flags].concat());
    let with_tokens = inspect(&["--model", "model"]).stdout;
    assert!(with_tokens.contains("tokens inside"), "{with_tokens}");
    assert_eq!(inspect(&["--tokenizer", "model"]).stdout, with_tokens);
    assert!(!inspect(&[]).stdout.contains("tokens inside"));

    let trees = |flags: &[&str], to| run(folder, &[&["compile", "-r", "yes|no", "-o", to], flags].concat());
    assert_eq!(trees(&["--model", "model"], "a").code, Some(0));
    assert_eq!(trees(&["--tokenizer", "model"], "b").code, Some(0));
    assert_eq!(std::fs::read(folder.join("a")).unwrap(), std::fs::read(folder.join("b")).unwrap());

    let written = run(folder, &["generate", "-m", "model", "-r", "yes|no", "--json"]);
    let written: Value = serde_json::from_str(&written.stdout).unwrap();
    let (text, tokens) = (&written["text"], &written["token_ids"]);
    let traces = format!(
        r#"{{"grammar": "g", "vocab": "v", "eos": 278, "traces": [{{"text": {text}, "tokens": {tokens}}}]}}"#
    );
    std::fs::write(folder.join("traces.json"), traces).unwrap();
    let masks = |flags: &[&str]| {
        let trace =
            run(folder, &[&["trace", "-r", "yes|no", "traces.json", "--json", "-n", "1"], flags].concat());
        assert_eq!(trace.code, Some(0), "{flags:?}: {}", trace.stderr);
        serde_json::from_str::<Value>(&trace.stdout).unwrap()["masks"].clone()
    };
    assert_eq!(masks(&["--model", "model"]), masks(&["--tokenizer", "model"]));
}

#[test]
fn a_variable_names_a_model_where_no_flag_does() {
    let folder = folder();
    let folder = folder.path();
    let with = |model: &str, arguments: &[&str]| {
        run_program(program().args(arguments).current_dir(folder).env("DOMINO_MODEL", model), b"")
    };
    let generate = ["generate", "-r", "yes|no", "--seed", "1"];
    let named = run(folder, &[&generate[..], &["-m", "model"]].concat());
    assert_eq!(named.code, Some(0), "{}", named.stderr);
    assert_eq!(with("model", &generate).stdout, named.stdout);
    // The flag goes before the variable.
    assert_eq!(with("nosuch", &[&generate[..], &["-m", "model"]].concat()).stdout, named.stdout);
    let wrong = with("nosuch", &generate);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("DOMINO_MODEL: there is no nosuch"),
        "{}",
        wrong.stderr
    );
    let mask = ["mask", "-r", "yes|no"];
    let of_model = run(folder, &[&mask[..], &["-m", "model"]].concat()).stdout;
    assert_eq!(with("model", &mask).stdout, of_model);
    // A tokenizer that is named is not another one's, and inspect shows bytes unless it is told otherwise.
    assert_eq!(with("nosuch", &[&mask[..], &["-t", "model"]].concat()).stdout, of_model);
    let inspect = ["inspect", "terminals", "-r", "a+"];
    assert_eq!(with("model", &inspect).stdout, run(folder, &inspect).stdout);
    // A variable that is set to nothing is not set.
    let unset = with("", &["generate", "-r", "a", "-m", "model"]);
    assert_eq!(unset.code, Some(0), "{}", unset.stderr);
}

#[test]
fn texts_and_objects_go_to_a_file() {
    let folder = folder();
    let folder = folder.path();
    let generate = |flags: &[&str]| {
        let run = run(folder, &[&["generate", "-m", "model", "-r", "(yes|no)\n"], flags].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    };
    let text = generate(&[]);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for (name, flags) in [
        ("a", &["-o", "a"][..]),
        ("b", &["--out", "b", "-q"]),
        ("c", &["-o", "c", "--tokenization", "canonical"]),
    ] {
        assert_eq!(generate(flags), "", "{flags:?}");
        assert_eq!(read(name), if name == "c" { generate(&flags[2..]) } else { text.clone() }, "{flags:?}");
    }
    assert_eq!(generate(&["-o", "d", "--json"]), "");
    let object: Value = serde_json::from_str(&read("d")).unwrap();
    assert_eq!(object["text"], Value::from(text));
    refused(folder, &["generate", "-m", "model", "-r", "a", "-o", "no/such"], &["cannot write no/such"]);
}

#[test]
fn quiet_leaves_errors_alone() {
    let folder = folder();
    let folder = folder.path();
    let generate = |flags: &[&str]| {
        run(
            folder,
            &[&["generate", "-m", "model", "-r", "yes|no", "-t", "0", "--top-k", "2"], flags].concat(),
        )
    };
    let loud = generate(&[]);
    assert!(loud.stderr.contains("tokens/s") && loud.stderr.contains("warning:"), "{}", loud.stderr);
    for flag in ["-q", "--quiet"] {
        let quiet = generate(&[flag]);
        assert_eq!((quiet.stdout, &*quiet.stderr), (loud.stdout.clone(), ""), "{flag}");
    }
    // Warnings of grammars too, and the table of a trace; an error stays.
    std::fs::write(folder.join("s.json"), "{\"minItem\": 1}").unwrap();
    std::fs::write(folder.join("t"), "[]").unwrap();
    assert!(run(folder, &["check", "-g", "s.json", "t"]).stderr.contains("did you mean `minItems`?"));
    assert_eq!(run(folder, &["-q", "check", "-g", "s.json", "t"]).stderr, "");
    refused(folder, &["-q", "check", "-g", "nosuch.gbnf", "t"], &["error: ", "hint: "]);
}

/// Costs after a text: a line about drafts only where drafts were asked for, and singular for one.
#[test]
fn the_cost_line_mentions_only_what_the_run_did() {
    let folder = folder();
    let folder = folder.path();
    let told = |flags: &[&str]| {
        let run = run(folder, &[&["generate", "-m", "model"], flags].concat());
        assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
        run.stderr
    };
    let plain = told(&["-r", "yes|no"]);
    assert!(!plain.contains("draft") && plain.lines().count() == 1, "{plain}");
    assert!(!told(&["-r", "yes|no", "--speculate", "off"]).contains("draft"));
    for flags in [&["--speculate", "4"][..], &["--speculate", "auto"], &["--proposer", "paper"]] {
        assert!(told(&[&["-r", "yes|no"], flags].concat()).contains("accepted"), "{flags:?}");
    }
    let one = told(&["-r", "[a-z]+", "-n", "1", "--mask", "always"]);
    // With the blank before it, since a rate may be 2925.1 tokens/s.
    assert!(one.contains("; 1 token, ") && !one.contains(" 1 tokens"), "{one}");
    let two = told(&["-r", "[a-z]{9}", "-n", "2"]);
    assert!(two.contains("; 2 tokens, "), "{two}");
    let finished = told(&["-r", "[a-z]{2}", "-n", "1", "--finish", "--seed", "3"]);
    assert!(!finished.contains("1 more bytes"), "{finished}");
}
