//! `experiments/cuda/run`, the script of a card's record, in a dry run on the CPU.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/cuda/run");

/// A folder with the real program, and scripts in place of the experiments' programs.
fn folder(smoke: &str, speculation: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_domino"), folder.path().join("domino")).unwrap();
    for (name, body) in [("cuda_smoke", smoke), ("speculation", speculation)] {
        let program = folder.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(folder.path().join("COMMIT"), "0123abc\n").unwrap();
    folder
}

fn run(arguments: &[&str], seconds: &str) -> Output {
    Command::new(SCRIPT).args(arguments).env("DOMINO_RECORD_SECONDS", seconds).output().unwrap()
}

fn dry(folder: &Path, seconds: &str) -> (Output, Vec<Value>, PathBuf, TempDir) {
    let parent = TempDir::new().unwrap();
    let out = parent.path().join("out put");
    let output = run(&["--dry-run", folder.to_str().unwrap(), out.to_str().unwrap()], seconds);
    let text = fs::read_to_string(out.join("record.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")));
    let lines = lines.collect();
    (output, lines, out, parent)
}

fn part<'a>(lines: &'a [Value], name: &str) -> &'a Value {
    lines.iter().find(|line| line["part"] == name).unwrap_or_else(|| panic!("no part {name}"))
}

#[test]
fn a_dry_run_makes_one_record_of_all_parts() {
    let odd = r#"printf 'a "quoted" \\ back\\slash\ttab\nsecond é line\n'; printf '\001' ; echo "$*""#;
    let folder = folder(odd, "echo fine");
    let (output, lines, out, _parent) = dry(folder.path(), "300");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let machine = &lines[0];
    assert_eq!((machine["dry_run"].as_bool(), machine["commit"].as_str()), (Some(true), Some("0123abc")));
    assert!(machine["date"].as_str().unwrap().ends_with('Z') && machine["cores"].as_u64().unwrap() > 0);
    assert_eq!(lines.last().unwrap()["all_ran_well"], true);
    let smoke = part(&lines, "smoke-f32");
    let said = smoke["out"].as_str().unwrap();
    assert!(said.starts_with("a \"quoted\" \\ back\\slash\ttab\nsecond é line\n"), "{said:?}");
    assert!(said.ends_with("cpu f32 models/domino-small"), "{said:?}");
    // Parts that a machine or a dry run lacks are named, not passed over.
    assert_eq!(part(&lines, "smoke-bf16")["status"], "left out");
    assert_eq!(part(&lines, "transformers")["reason"], "a dry run");
    // The real program's figures are in the record, whole.
    let passes = part(&lines, "passes-13m");
    assert_eq!(passes["status"], "ran", "{passes}");
    let curve: Value = serde_json::from_str(passes["out"].as_str().unwrap()).unwrap();
    assert_eq!(curve["curve"].as_array().unwrap().len(), 2);
    assert!(out.join("passes-13m.out").exists() && !out.join("cache").exists());
}

#[test]
fn parts_that_fail_or_take_too_long_are_recorded_and_others_go_on() {
    let folder = folder("echo before >&2; exit 3", "sleep 600");
    // The second part gets the rest of seven seconds; later parts have no time.
    let (output, lines, ..) = dry(folder.path(), "7");
    assert_eq!(output.status.code(), Some(1));
    let smoke = part(&lines, "smoke-f32");
    assert_eq!((smoke["status"].as_str(), smoke["exit"].as_u64()), (Some("failed"), Some(3)));
    assert_eq!(smoke["err"], "before");
    assert_eq!(part(&lines, "decoding-13m")["status"], "out of time");
    assert_eq!(part(&lines, "passes-13m")["status"], "left out");
    assert_eq!(lines.last().unwrap()["all_ran_well"], false);
}

#[test]
fn programs_that_are_missing_are_said() {
    let folder = folder("echo fine", "echo fine");
    fs::remove_file(folder.path().join("speculation")).unwrap();
    let (output, lines, ..) = dry(folder.path(), "300");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(part(&lines, "decoding-13m")["reason"], "there is no program ./speculation");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = folder("echo", "echo");
    let path = folder.path().to_str().unwrap();
    let out = folder.path().join("out");
    for arguments in [
        vec![],
        vec![path],
        vec!["/nowhere/at/all", "out"],
        vec!["--dry-run", path],
        // There already.
        vec!["--dry-run", path, path],
        // Without the program.
        vec!["--dry-run", "/", out.to_str().unwrap()],
    ] {
        let output = run(&arguments, "300");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && !out.exists(), "{arguments:?}");
    }
}
