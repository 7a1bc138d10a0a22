//! Manners of the program at a shell: exit codes, pipes, disks, numbers, and its input.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    program::{Run, domino, domino_in, last_line, program, run},
    random_model::write_model,
};

const BYTE_LEVEL: &str = concat!(env!("DOMINO_ROOT"), "/tests/fixtures/byte_level.json");
/// A grammar so ambiguous that a budget runs out on any text.
const COSTLY: &str = "root ::= x x x | x x | \"a\"\nx ::= root | \"(\" root \")\"\n";
/// A time budget that runs out soon.
const SHORT: [&str; 2] = ["--max-step-seconds", "0.05"];
/// A memory budget that runs out soon, on every machine at the same place.
const SMALL: [&str; 2] = ["--max-memory", "4"];

fn costly(folder: &Path) -> &'static str {
    std::fs::write(folder.join("costly.gbnf"), COSTLY).unwrap();
    "costly.gbnf"
}

#[test]
fn an_answer_of_no_and_no_answer_have_different_codes() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = costly(folder.path());
    std::fs::write(folder.path().join("long"), "a".repeat(20_000)).unwrap();
    std::fs::write(folder.path().join("no"), "b").unwrap();
    std::fs::write(folder.path().join("yes"), "a").unwrap();
    let check = |files: &[&str]| {
        domino_in(folder.path(), &[&["check", "-g", grammar], &SHORT[..], files].concat(), b"")
    };
    assert_eq!(check(&["yes"]).code, Some(0));
    assert_eq!(check(&["yes", "no"]).code, Some(1));
    let run = check(&["no", "long", "yes"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stdout.contains("yes: in the language"), "the others are still checked: {}", run.stdout);
    assert_eq!(check(&["no", "long", "nosuch"]).code, Some(2));
    assert!(domino(&["--help"], b"").stdout.contains("  4    no answer"));
    assert!(domino(&["check", "--help"], b"").stdout.contains("--max-bytes"));
}

#[test]
fn an_exhausted_budget_is_one_sentence_with_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = costly(folder.path());
    let text = "a".repeat(20_000);
    let one = |run: &Run, flag: &str| {
        assert_eq!(run.code, Some(4), "{}", run.stderr);
        let errors: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(matches!(errors[..], [error] if error.matches("budget").count() == 1), "{}", run.stderr);
        assert!(errors[0].contains("no answer at 1:"), "{}", errors[0]);
        assert!(errors[0].ends_with(" is used up, in rules `root`, `x`"), "{}", errors[0]);
        let last = run.stderr.lines().last().unwrap();
        assert!(last.starts_with("hint: ") && last.contains(flag), "{}", run.stderr);
        assert!(!run.stderr.contains("Limits") && !run.stderr.contains("interrupted"), "{}", run.stderr);
    };
    for budget in [SHORT, SMALL] {
        let check = [&["check", "-g", grammar, "-"], &budget[..]].concat();
        one(&domino_in(folder.path(), &check, text.as_bytes()), budget[0]);
        let mask = [&["mask", "-g", grammar, "-t", BYTE_LEVEL, "--text", &text], &budget[..]].concat();
        one(&domino_in(folder.path(), &mask, b""), budget[0]);
    }
    let check = [&["check", "-g", grammar, "--json", "-"], &SMALL[..]].concat();
    let answer = last_line(&domino_in(folder.path(), &check, text.as_bytes()));
    assert!(answer["accepted"].is_null() && answer["column"].as_u64().unwrap() > 1, "{answer}");
    assert_eq!(answer["rules"], json!(["root", "x"]), "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.matches("budget").count() == 1 && !error.contains("hint"), "{error}");
    let row = json!({ "id": 1, "syntax": "gbnf", "grammar": COSTLY, "text": text });
    let run = domino(&[&["check", "--batch"], &SMALL[..]].concat(), row.to_string().as_bytes());
    let error = last_line(&run)["error"].as_str().unwrap().to_owned();
    assert!(error.matches("budget").count() == 1 && !error.contains("Limits"), "{error}");
    // A budget of grammars.
    let run = domino(&["check", "-r", "a{200000}", "-"], b"a");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.matches("budget").count() == 1 && !run.stderr.contains("Limits"), "{}", run.stderr);
}

#[test]
fn negative_numbers_are_read_as_values_of_flags() {
    let wrong = [
        &["generate", "--repeat-last-n", "-1"][..],
        &["generate", "--top-k", "-1"],
        &["generate", "--max-tokens", "-1"],
        &["generate", "-n", "-1"],
        &["generate", "--seed", "-1"],
        &["generate", "--logprobs", "-2"],
        &["generate", "--lookahead", "-3"],
        &["generate", "--batch", "x", "--parallel", "-1"],
        &["mask", "-k", "-1"],
        &["check", "--max-bytes", "-1", "-r", "a", "-"],
        &["inspect", "--limit", "-1", "-g", "json"],
        &["bench-model", "--context", "-1"],
        &["check", "--max-memory", "-1", "-r", "a", "-"],
    ];
    for arguments in wrong {
        let run = domino(arguments, b"");
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains("it must not be below zero"), "{arguments:?}: {}", run.stderr);
    }
    for (arguments, wanted) in [
        (["--max-step-seconds", "-1"], "a number of seconds above 0 is wanted"),
        (["--max-step-seconds", "0"], "a number of seconds above 0 is wanted"),
        (["--max-memory", "0"], "at least 4 MiB are needed"),
    ] {
        let run = domino(&[&["check", "-r", "a", "-"], &arguments[..]].concat(), b"a");
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        let error = format!("error: {} {}: {wanted}\n", arguments[0], arguments[1]);
        assert_eq!(run.stderr, error);
    }
    for arguments in [
        &["generate", "--temperature", "-1"][..],
        &["generate", "--top-p", "-0.5"],
        &["generate", "--min-p", "-1"],
        &["generate", "--repeat-penalty", "-1"],
    ] {
        let run = domino(arguments, b"");
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(!run.stderr.contains("unexpected argument"), "{arguments:?}: {}", run.stderr);
    }
}

/// Reads one line of the program's output, then closes the pipe.
fn head(arguments: &[&str], stdin: Stdio) -> (Option<i32>, String) {
    let mut child =
        program().args(arguments).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::with_capacity(1, child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (child.wait().unwrap().code(), errors)
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    for arguments in [
        &["grammars"][..],
        &["grammars", "c"],
        &["inspect", "-g", "c"],
        &["inspect", "-g", "c", "rules"],
        &["mask", "-g", "json", "-t", BYTE_LEVEL, "--all"],
    ] {
        let (code, errors) = head(arguments, Stdio::null());
        // It may be done before anyone goes away.
        assert!(matches!(code, Some(0 | 141)), "{arguments:?}: {code:?}");
        assert_eq!(errors, "", "{arguments:?}");
    }
    // The pipe is closed before a word was written.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = program().arg("grammars").stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((out.status.code(), out.stderr.len()), (Some(141), 0));
    // Standard error closed as well.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status =
        program().args(["check", "-r", "(", "-"]).stderr(writer).stdin(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    use std::os::unix::fs::{FileTypeExt, symlink};

    if !Path::new("/dev/full").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("full.trees");
    symlink("/dev/full", &link).unwrap();
    let link = link.to_str().unwrap();
    for out in ["/dev/full", link] {
        let run = domino(&["compile", "-g", "gsm8k", "-t", BYTE_LEVEL, "--out", out], b"");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(run.stderr.contains(&format!("cannot write {out}: ")), "{}", run.stderr);
    }
    // No file has taken the place of the device.
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    assert!(std::fs::symlink_metadata(link).unwrap().file_type().is_symlink());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out = program().arg("grammars").stdout(full).output().unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(errors.contains("cannot write to standard output: "), "{errors}");
    // Exit code 1 would say that the text is not in the language.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let check = ["check", "-r", "", "-"];
    assert_eq!(program().args(check).stdin(Stdio::null()).stdout(full).status().unwrap().code(), Some(4));
    // A link to a file stays a link, and the file is replaced.
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "old").unwrap();
    symlink("file", &link).unwrap();
    let run = domino(&["compile", "-g", "gsm8k", "-t", BYTE_LEVEL, "-o", link.to_str().unwrap()], b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(link.is_symlink() && std::fs::read(&file).unwrap().len() > 100);
}

/// Starts the program and returns its answer while its standard input stays open.
fn answer_to(arguments: &[&str], text: &[u8]) -> (Child, String) {
    let mut child = program().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(text).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

#[test]
fn an_answer_comes_before_the_end_of_the_text() {
    let (mut child, line) = answer_to(&["check", "-r", "[a-z]+", "-"], b"y\ny\ny\n");
    assert!(line.contains("1:2: not in the language: '\\n' cannot follow"), "{line}");
    // It has ended by itself: standard input is still open.
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(child.stdin.take());
}

#[test]
fn input_past_the_byte_limit_is_an_error() {
    let begun = Instant::now();
    let mut child = program()
        .args(["check", "-r", "[a-z]+", "--max-bytes", "100000", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Input goes on until nobody reads any more.
    while begun.elapsed() < Duration::from_secs(60) && stdin.write_all(&[b'y'; 4096]).is_ok() {}
    drop(stdin);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert!(errors.contains("longer than 100000 bytes") && errors.contains("--max-bytes"), "{errors}");
    // The bound itself is still answered.
    let check = |most: &str| domino(&["check", "-r", "a*", "--max-bytes", most, "-"], b"aaaaa").code;
    assert_eq!((check("5"), check("4"), check("0")), (Some(0), Some(4), Some(4)));
    let run = domino(&["check", "--batch", "--max-bytes", "50"], &[b'x'; 51]);
    assert_eq!(run.code, Some(2), "{}", run.stdout);
    assert!(run.stderr.contains("--max-bytes"), "{}", run.stderr);
}

#[test]
fn a_model_is_a_folder_or_a_gguf_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.txt"), "hello").unwrap();
    for arguments in [&["generate", "-m", "g.txt"][..], &["bench-model", "-m", "g.txt"]] {
        let run = domino_in(folder.path(), arguments, b"");
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.contains("g.txt is neither a folder nor a GGUF file"), "{}", run.stderr);
    }
}

#[test]
fn a_home_that_is_no_absolute_path_has_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let mut plain = program();
    plain.env_remove("DOMINO_NO_CACHE").env_remove("XDG_CACHE_HOME").current_dir(folder.path());
    let found = run(plain.env("HOME", "rel").args(["cache", "--json"]), b"");
    assert_eq!((found.code, &last_line(&found)["folder"]), (Some(0), &Value::Null), "{}", found.stderr);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn lines_of_json_may_begin_with_a_byte_order_mark() {
    let row = json!({ "id": 7, "syntax": "regex", "grammar": "a", "text": "a" });
    let run = domino(&["check", "--batch"], format!("\u{feff}{row}\n{row}\n").as_bytes());
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers.len() == 2 && answers.iter().all(|answer| answer["accepted"] == true), "{answers:?}");

    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let model = folder.path().to_str().unwrap();
    let request = json!({ "id": 7, "regex": "ab" });
    let run = domino(&["generate", "-m", model, "--batch", "-"], format!("\u{feff}{request}\n").as_bytes());
    let answer = last_line(&run);
    assert_eq!((&answer["id"], &answer["text"]), (&json!(7), &json!("ab")), "{answer}");
}

/// Writes a model whose vocabulary lacks a letter, so that a step fails where only that letter can follow.
fn write_model_without(folder: &Path, letter: &str) {
    write_model(folder);
    let file = folder.join("tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let vocabulary = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    let (ids, merges) = (vocabulary.clone(), tokenizer["model"]["merges"].take());
    // Ids must have no gaps: tokens with the letter become others, of bytes that no other token has.
    let other = |(token, id): (String, Value)| (token.replace(letter, &"q".repeat(100)), id);
    tokenizer["model"]["vocab"] = Value::Object(ids.into_iter().map(other).collect());
    let merges = merges.as_array().cloned().unwrap_or_default();
    let without = merges.into_iter().filter(|merge| !merge.to_string().contains(letter)).collect();
    tokenizer["model"]["merges"] = Value::Array(without);
    std::fs::write(file, tokenizer.to_string()).unwrap();
}

#[test]
fn a_step_that_fails_keeps_the_text() {
    let folder = tempfile::tempdir().unwrap();
    write_model_without(folder.path(), "z");
    let model = folder.path().to_str().unwrap();
    let generate = |more: &[&str]| {
        let usual = ["generate", "-m", model, "-p", "The answer: ", "-r", "[ab]{5}(z|zzz)"];
        domino(&[&usual[..], more].concat(), b"")
    };
    let failed = generate(&["--json"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    let object = last_line(&failed);
    assert_eq!(failed.stdout.lines().count(), 1, "{}", failed.stdout);
    let text = object["text"].as_str().unwrap();
    assert!(text.len() == 5 && text.bytes().all(|byte| b"ab".contains(&byte)), "{object}");
    assert_eq!((&object["finish"], &object["complete"]), (&json!("error"), &json!(false)));
    assert!(object["tokens"].as_u64().unwrap() > 0 && !object["token_ids"].as_array().unwrap().is_empty());
    let error = object["error"].as_str().unwrap();
    assert!(error.contains("no token of the vocabulary can follow"), "{error}");
    assert!(error.contains("5 bytes of text were made") && error.contains("in the grammar: "), "{error}");
    // People see the text, then the error, and no word of an interruption.
    let shown = generate(&[]);
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(1), text));
    assert!(shown.stderr.contains("error: ") && shown.stderr.contains("[failed; "), "{}", shown.stderr);
    assert!(!shown.stderr.contains("interrupted"), "{}", shown.stderr);
    // Completed as far as the language goes, yet no success.
    let finished = generate(&["--json", "--finish"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let object = last_line(&finished);
    assert_eq!((&object["text"], &object["complete"]), (&json!(format!("{text}z")), &json!(true)));
    assert_eq!((&object["appended"], &object["finished_by"]), (&json!("z"), &json!("completion")));
    assert!(object["error"].is_string(), "{object}");

    let request =
        |finish: bool| json!({ "id": 1, "prompt": "The answer: ", "regex": "[ab]{5}z", "finish": finish });
    for finish in [false, true] {
        let run = domino(&["generate", "-m", model, "--batch", "-"], request(finish).to_string().as_bytes());
        let answer = last_line(&run);
        let expected = if finish { format!("{text}z") } else { text.to_owned() };
        assert_eq!((&answer["text"], answer["error"].is_string()), (&json!(expected), true), "{answer}");
        assert_eq!(answer["complete"], json!(finish), "{answer}");
    }
}

#[test]
fn a_budget_that_ends_a_step_keeps_the_text() {
    let folder = tempfile::tempdir().unwrap();
    write_model_without(folder.path(), "z");
    let model = folder.path().to_str().unwrap();
    // Nothing but `a` can be written, in ever more ways: the end is no token.
    let grammar = "root ::= s \"z\"\ns ::= x x x | x x | \"a\"\nx ::= s\n";
    let file = folder.path().join("costly.gbnf");
    std::fs::write(&file, grammar).unwrap();
    let kept = |object: &Value| {
        let text = object["text"].as_str().unwrap();
        assert!(text.len() > 100 && text.bytes().all(|byte| byte == b'a'), "{object}");
        assert_eq!((&object["finish"], &object["complete"]), (&json!("error"), &json!(false)));
        let error = object["error"].as_str().unwrap();
        let place = format!(" is used up after {} bytes of text, in rules `s`, `root`", text.len());
        assert!(error.contains(&place) && error.matches("budget").count() == 1, "{error}");
        assert!(object["hint"].as_str().unwrap().contains("--max-memory"), "{object}");
    };
    let one = ["generate", "-m", model, "-p", "The answer: ", "-n", "1500", "--json", "-g"];
    let run = domino(&[&one[..], &[file.to_str().unwrap()], &SMALL].concat(), b"");
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    kept(&last_line(&run));
    let request = json!({
        "id": 1, "prompt": "The answer: ", "grammar": grammar, "syntax": "gbnf", "max_tokens": 1500,
    });
    let batch = [&["generate", "-m", model, "--batch", "-"], &SMALL[..]].concat();
    kept(&last_line(&domino(&batch, request.to_string().as_bytes())));
}
