//! `domino generate` with a model of random weights: texts are noise, but all else is as with any model.

use std::{fmt::Write, path::Path};

use serde_json::{Value, json};

use crate::support::{
    program::{Run, domino, domino_in, last_line, program},
    random_model::write_model,
};

fn generate(folder: &Path, arguments: &[&str]) -> Run {
    let model = folder.to_str().unwrap();
    domino(&[&["generate", "--model", model, "--prompt", "The answer: "], arguments].concat(), b"")
}

fn object(folder: &Path, arguments: &[&str]) -> Value {
    last_line(&generate(folder, &[arguments, &["--json"]].concat()))
}

/// The object that a run printed; the run must have ended with `code`.
fn object_of(run: &Run, code: i32) -> Value {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    last_line(run)
}

#[test]
fn a_text_stops_when_nothing_can_follow_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let run = generate(folder.path(), &["--regex", "yes|no", "--json", "--mask", "always"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let object = last_line(&run);
    assert!(object["text"] == "yes" || object["text"] == "no", "{object}");
    assert_eq!((&object["finish"], &object["complete"]), (&json!("stop"), &json!(true)));
    assert_eq!(object["tokens"].as_u64().unwrap(), object["token_ids"].as_array().unwrap().len() as u64);
    for number in ["tokens_per_second", "mask_seconds", "seconds"] {
        assert!(object[number].as_f64().unwrap() >= 0.0);
    }
    assert!(object["interventions"].as_u64().unwrap() > 0);
    let ahead = last_line(&generate(folder.path(), &["--regex", "yes|no", "--json"]));
    assert_eq!((&ahead["interventions"], &ahead["text"]), (&Value::Null, &object["text"]));
    // The text alone is on standard output, what it cost is not.
    let run = generate(folder.path(), &["--regex", "yes|no", "--opportunistic"]);
    assert_eq!(run.stdout, object["text"].as_str().unwrap());
    assert!(run.stderr.contains("tokens/s") && run.stderr.contains("interventions"), "{}", run.stderr);
}

#[test]
fn a_grammar_that_costs_more_and_more_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let grammar = folder.path().join("slow.gbnf");
    std::fs::write(&grammar, "root ::= S\nS ::= x x x | x x | \"a\"\nx ::= S | \"(\" S \")\"\n").unwrap();
    let slow = generate(folder.path(), &["--grammar", grammar.to_str().unwrap(), "--max-tokens", "2"]);
    assert!(slow.stderr.contains("warning: ") && slow.stderr.contains("rule S (2:1)"), "{}", slow.stderr);
    let good = generate(folder.path(), &["--grammar", "json", "--max-tokens", "2"]);
    assert!(!good.stderr.contains("warning: "), "{}", good.stderr);
}

#[test]
fn a_text_cut_at_the_limit_is_reported_as_cut() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let run = generate(folder.path(), &["--regex", "[ab]{9}", "--max-tokens", "5", "--json"]);
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let object = last_line(&run);
    assert_eq!((&object["finish"], &object["complete"]), (&json!("length"), &json!(false)));
    assert!(generate(folder.path(), &["--regex", "[ab]{9}", "-n", "5"]).stderr.contains("cut"));
    // Any text may come without a grammar.
    assert_eq!(generate(folder.path(), &["-n", "7", "--json"]).code, Some(3));
}

/// The healed end of the prompt is written again but not shown: the text shown is of the grammar.
#[test]
fn healed_prompts_are_not_shown_twice() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let regex = "(?:a|b| )[a-z ]{3}";
    for seed in 0..8_u32 {
        let seed = seed.to_string();
        let flags = ["--regex", regex, "--heal", "--seed", &seed];
        let object = object(folder.path(), &flags);
        let text = object["text"].as_str().unwrap();
        assert_eq!(domino(&["check", "--regex", regex, "-"], text.as_bytes()).code, Some(0), "{text:?}");
        assert_eq!(object["complete"], true);
        assert_eq!(generate(folder.path(), &flags).stdout.trim_end_matches('\n'), text);
    }
    // Any text may follow.
    assert_eq!(generate(folder.path(), &["--heal", "-n", "7", "--json"]).code, Some(3));
    let refused = generate(folder.path(), &["--regex", "a", "--heal", "--prior", "x"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--heal"), "{}", refused.stderr);
}

#[test]
fn draws_are_a_function_of_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let text = |arguments: &[&str]| {
        let object = object(folder.path(), &[&["-g", "rfc8259", "-n", "40"], arguments].concat());
        object["token_ids"].clone()
    };
    let plain = text(&["--seed", "1"]);
    assert_eq!(plain, text(&["--seed", "1"]));
    assert_ne!(plain, text(&["--seed", "2"]));
    assert_eq!(plain, text(&["--seed", "1", "--opportunistic"]));
    let cut = text(&["--seed", "1", "--top-k", "3", "--top-p", "0.9", "--min-p", "0.05"]);
    assert_eq!(
        cut,
        text(&["--seed", "1", "--top-k", "3", "--top-p", "0.9", "--min-p", "0.05", "--opportunistic"])
    );
    let greedy = text(&["--temperature", "0"]);
    assert_eq!(greedy, text(&["--temperature", "0", "--seed", "5", "--opportunistic"]));
}

/// Bounds on the terminals that a token spans: with `k = 0` none crosses into the next, whatever the model
/// likes.
#[test]
fn lookahead_and_terminals_bound_what_a_token_spans() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let grammar = folder.path().join("pair.gbnf");
    std::fs::write(&grammar, "root ::= (\"{\" name \":\" name \"}\")+\nname ::= \"\\\"\" [a-b] \"\\\"\"\n")
        .unwrap();
    // `{"` and `":`: the ids of all other tokens that can come are bytes.
    let crossings = |arguments: &[&str]| {
        let mut crossings = 0;
        for seed in 0..6_u32 {
            let seed = seed.to_string();
            let flags = ["-g", grammar.to_str().unwrap(), "-n", "40", "-t", "3", "--seed", &seed];
            let object = object(folder.path(), &[&flags, arguments].concat());
            let ids = object["token_ids"].as_array().unwrap();
            crossings += ids.iter().filter(|id| id.as_u64().unwrap() > 255).count();
        }
        crossings
    };
    assert!(crossings(&[]) > 0);
    assert!(crossings(&["-k", "1", "--terminals", "written"]) > 0);
    assert_eq!(crossings(&["-k", "0", "--terminals", "written"]), 0);
    // Folded, a pair is one terminal.
    assert!(crossings(&["--lookahead", "0"]) > 0);
}

#[test]
fn generated_texts_are_in_the_language() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    for seed in 0..4_u32 {
        let seed = seed.to_string();
        let run = generate(folder.path(), &["-g", "arithmetic", "-s", &seed, "-n", "60"]);
        let prefix: &[&str] = if run.code == Some(0) { &[] } else { &["--prefix"] };
        assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
        let check = domino(&[&["check", "-g", "arithmetic", "-"], prefix].concat(), run.stdout.as_bytes());
        assert_eq!(check.code, Some(0), "{:?}: {}", run.stdout, check.stdout);
    }
}

#[test]
fn stop_strings_cut_the_text() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    // All texts have "-": without a grammar's say the text is what comes before it.
    let cut = ["--regex", "[ab]{3,9}-[ab]{2}", "--stop", "-", "--stop", "nothing"];
    let run = generate(folder.path(), &[&cut[..], &["--json"]].concat());
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    let object = last_line(&run);
    assert_eq!((&object["finish"], &object["complete"]), (&json!("stop_string"), &json!(false)));
    let text = object["text"].as_str().unwrap();
    assert!(text.len() >= 3 && text.chars().all(|c| "ab".contains(c)), "{text}");
    let run = generate(folder.path(), &cut);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), text));
    let well = ["--regex", "[ab]{3,9}(-[ab]{2})?", "--stop", "-", "--json"];
    let object = object_of(&generate(folder.path(), &well), 0);
    assert_eq!(object["complete"], true);
    assert_eq!(generate(folder.path(), &["--stop", ""]).code, Some(2));
}

#[test]
fn a_cut_text_is_finished_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let cut = ["--regex", "[ab]{9}-(cc|d)", "-n", "5", "--finish"];
    let object = object_of(&generate(folder.path(), &[&cut[..], &["--json"]].concat()), 0);
    assert_eq!((&object["finish"], &object["finished_by"]), (&json!("length"), &json!("completion")));
    let (text, appended) = (object["text"].as_str().unwrap(), object["appended"].as_str().unwrap());
    assert_eq!((text.len(), &object["complete"]), (11, &json!(true)));
    assert!(text.ends_with(appended) && appended.ends_with("-d"), "{object}");
    assert_eq!(object["appended_bytes"], appended.len());
    assert!(object["appended_token_ids"].as_array().is_some_and(|ids| !ids.is_empty()));
    assert_eq!(object["token_ids"].as_array().unwrap().len(), 5);
    let run = generate(folder.path(), &cut);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), text));
    assert!(run.stderr.contains("more bytes"), "{}", run.stderr);
    // A stop string cuts too. A text that ends by itself is left alone.
    let stop = ["--regex", "[ab]{3,9}-[ab]{2}", "--stop", "-", "--finish", "--json"];
    let object = object_of(&generate(folder.path(), &stop), 0);
    assert_eq!((&object["finish"], &object["appended_bytes"]), (&json!("stop_string"), &json!(3)));
    let object = object_of(&generate(folder.path(), &["--regex", "yes|no", "--finish", "--json"]), 0);
    assert_eq!((&object["finished_by"], object.get("appended")), (&json!("model"), None));
    assert_eq!(generate(folder.path(), &["--finish"]).code, Some(2));
}

#[test]
fn penalties_change_the_text_and_logprobs_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let regex = ["--regex", "[a-z]{12}", "-t", "0", "--json"];
    let text = |arguments: &[&str]| {
        let object = object_of(&generate(folder.path(), &[&regex, arguments].concat()), 0);
        object["text"].as_str().unwrap().to_owned()
    };
    let distinct = |text: &str| text.chars().collect::<std::collections::BTreeSet<_>>().len();
    let plain = text(&[]);
    let penalised = text(&["--presence-penalty", "100"]);
    assert!(distinct(&penalised) > distinct(&plain), "{plain} {penalised}");
    assert_eq!(text(&["--presence-penalty", "100", "--repeat-last-n", "0"]), plain);
    assert_eq!(text(&["--repeat-penalty", "1"]), plain);
    assert_ne!(text(&["--frequency-penalty", "-5", "--repeat-penalty", "1.3"]), penalised);
    for bad in [["--repeat-penalty", "0"], ["--presence-penalty", "1e9"], ["--frequency-penalty", "nan"]] {
        assert_eq!(generate(folder.path(), &[&regex[..], &bad].concat()).code, Some(2), "{bad:?}");
    }
    let object = object_of(&generate(folder.path(), &[&regex[..], &["--logprobs", "3"]].concat()), 0);
    let list = object["logprobs"].as_array().unwrap();
    assert_eq!(list.len(), object["token_ids"].as_array().unwrap().len());
    for (entry, id) in list.iter().zip(object["token_ids"].as_array().unwrap()) {
        assert_eq!(entry["token_id"], *id);
        let (model, constrained) = (&entry["logprob"], &entry["constrained_logprob"]);
        assert!(model.as_f64().unwrap() < constrained.as_f64().unwrap());
        assert_eq!((entry["top"].as_array().unwrap().len(), &entry["top_allowed"][0]["token_id"]), (3, id));
    }
    assert!(object_of(&generate(folder.path(), &regex), 0).get("logprobs").is_none());
}

#[test]
fn prompts_come_by_flag_file_or_pipe_to_the_default_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("models/domino-small");
    std::fs::create_dir_all(&model).unwrap();
    write_model(&model);
    std::fs::write(folder.path().join("prompt.txt"), "The answer: ").unwrap();
    let arguments = ["generate", "--regex", "[0-9]{3}", "--json"];
    let run = |more: &[&str], stdin: &str| {
        let run = domino_in(folder.path(), &[&arguments, more].concat(), stdin.as_bytes());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let object = last_line(&run);
        (object["text"].clone(), object["prompt_tokens"].clone())
    };
    let given = run(&["--prompt", "The answer: "], "");
    assert_eq!(given, run(&["--prompt-file", "prompt.txt"], ""));
    assert_eq!(given, run(&["--prompt-file", "-"], "The answer: "));
    assert_eq!(run(&[], "").1, 1, "a model needs a token to go on from");
}

/// The error without a model says where to get one.
#[test]
fn without_a_model_the_error_says_where_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    // The default model is also looked for beside the program and above it.
    let deep = folder.path().join("a/b/c/d");
    std::fs::create_dir_all(&deep).unwrap();
    let copy = deep.join("domino");
    let program = env!("CARGO_BIN_EXE_domino");
    if std::fs::hard_link(program, &copy).is_err() {
        std::fs::copy(program, &copy).unwrap();
    }
    let mut command = std::process::Command::new(copy);
    command.env_remove("CARGO_MANIFEST_DIR").current_dir(folder.path());
    let run =
        crate::support::program::run(command.args(["generate", "--grammar", "json", "--prompt", "x"]), b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    for words in ["no model given", "--model", "OWNER/NAME", "models/domino-small"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

#[test]
fn bad_models_end_with_2() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let mut listing = String::new();
    for (file, text) in
        [("config.json", "{}"), ("config.json", "{"), ("tokenizer.json", "{}"), ("model.safetensors", "x")]
    {
        let good = std::fs::read(folder.path().join(file)).unwrap();
        std::fs::write(folder.path().join(file), text).unwrap();
        let run = generate(folder.path(), &["--json"]);
        assert_eq!(run.code, Some(2), "{file} {text}: {}", run.stderr);
        assert!(last_line(&run)["error"].is_string());
        writeln!(listing, "{}", run.stderr).unwrap();
        std::fs::write(folder.path().join(file), good).unwrap();
    }
    assert_eq!(listing.matches("error: ").count(), 4, "{listing}");
    assert_eq!(generate(folder.path(), &["--regex", "a{2"]).code, Some(2));
    let long = "a".repeat(5000);
    let model = folder.path().to_str().unwrap();
    let run = domino(&["generate", "--model", model, "--prompt-file", "-"], long.as_bytes());
    assert_eq!(run.code, Some(2), "{}", run.stderr);
}

/// The first Ctrl-C ends the text, and what was written so far is reported.
#[cfg(unix)]
#[test]
fn an_interrupted_text_is_reported_as_far_as_it_is() {
    use std::{
        io::Read,
        process::{Command, Stdio},
    };

    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let mut child = program()
        .args(["generate", "--regex", "a{100000}", "-n", "100000", "--finish", "--model"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0_u8; 3];
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"aaa");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(stderr.contains("interrupted") && stderr.contains("tokens/s"), "{stderr}");
    // The text is completed nevertheless, because of --finish.
    assert_eq!((first.len() + rest.len(), stderr.contains("more bytes")), (100_000, true), "{stderr}");
}

#[test]
fn engines_of_other_programs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    for (engine, said) in [
        ("mistralrs", "another program, domino-mistralrs"),
        ("llama.cpp", "another program, domino-llama-cpp"),
        ("other", "the engines of this program: domino"),
    ] {
        let run = generate(folder.path(), &["--engine", engine, "--regex", "a"]);
        assert_eq!(run.code, Some(2), "{engine}");
        assert!(run.stderr.contains(said), "{engine}: {}", run.stderr);
    }
}

#[test]
fn thoughts_come_before_the_text_and_are_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let answer = ["--regex", "yes|no", "--reasoning", "required", "--finish"];
    let made = object(folder.path(), &[&answer[..], &["--reasoning-tokens", "4"]].concat());
    assert!(made["text"] == "yes" || made["text"] == "no", "{made}");
    assert_eq!((&made["complete"], made["reasoning_content"].is_string()), (&json!(true), true), "{made}");
    assert!(made["thought_tokens"].as_u64().unwrap() >= 4, "{made}");
    // The text alone is on standard output.
    let run = generate(folder.path(), &[&answer[..], &["--reasoning-tokens", "4"]].concat());
    assert_eq!(run.stdout, made["text"].as_str().unwrap(), "{}", run.stderr);
    // Drafts change nothing.
    let drafts = ["--reasoning-tokens", "4", "--speculate", "4"];
    let drafted = object(folder.path(), &[&answer[..], &drafts].concat());
    assert_eq!(drafted["token_ids"], made["token_ids"]);
    // One that is cut has no answer, unless it is closed.
    let cut =
        generate(folder.path(), &["--regex", "yes|no", "--reasoning", "open", "--max-tokens", "3", "--json"]);
    let cut = object_of(&cut, 3);
    assert_eq!(
        (&cut["finish"], &cut["text"], &cut["complete"]),
        (&json!("thought"), &json!(""), &json!(false))
    );
    let closed =
        object(folder.path(), &["--regex", "yes|no", "--reasoning", "open", "--max-tokens", "3", "--finish"]);
    assert_eq!((&closed["finish"], &closed["text"]), (&json!("thought"), &json!("no")), "{closed}");
    // Other marks; and other commands take the flags, too.
    let marks = ["--thought-marks", "(", ")", "--reasoning", "required"];
    let other = object(folder.path(), &[&["--regex", "[ab]{2}", "--finish"][..], &marks].concat());
    assert_eq!(other["text"].as_str().unwrap().len(), 2, "{other}");
    let check = [&["check", "--regex", "[ab]{2}"][..], &marks, &["--quiet", "-"]].concat();
    assert_eq!(domino(&check, b"(why)ab").code, Some(0));
    assert_eq!(domino(&check, b"ab").code, Some(1));
    let heal = generate(folder.path(), &[&answer[..], &["--heal"]].concat());
    assert!(heal.code == Some(2) && heal.stderr.contains("--heal"), "{}", heal.stderr);
}
