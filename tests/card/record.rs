//! `experiments/cuda/run`, the script of a card's record, in a dry run on the CPU.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("DOMINO_ROOT"), "/experiments/cuda/run");

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
    assert!(part(&lines, "bits")["command"].as_str().unwrap().starts_with("./cuda_smoke bits cpu f32"));
    // What came stands beside what is asked, and what did not run says so.
    let table = lines.last().unwrap()["table"].as_str().unwrap();
    assert_eq!(table.trim_end(), fs::read_to_string(out.join("table.md")).unwrap().trim_end());
    let milliseconds = curve["curve"][0]["median_seconds"].as_f64().unwrap() * 1e3;
    for row in [
        format!("| 13m bf16, t(1), ms | 0.3 | {milliseconds:.2} | not run |"),
        "| 13m bf16, t(8), ms | 0.3 | not run | not run |".into(),
        "| 7b bf16, t(16), ms | 5.8 | not run | not run |".into(),
        "| drafts over unconstrained, 13m, json | >= 1.00, tokens a pass x 0.85 | not run | |".into(),
        "| texts that differ, 13m bf16 | 0 | not run | |".into(),
    ] {
        assert!(table.lines().any(|line| line == row), "{row}\n{table}");
    }
}

/// Figures of all kinds of parts arrive in the table.
#[test]
fn the_table_is_read_off_the_outputs() {
    let smoke = r#"[ "$1" = bits ] || exit 0
echo '{"rows":{"compared":1152,"differing":0},"choices":{"compared":640,"differing":1},'\
'"texts":{"compared":2000,"differing":3,"drafted":5}}'"#;
    let speculation = r#"while [ $# -gt 1 ]; do if [ "$1" = --out ]; then out=$2; fi; shift; done
plain='"plain_over_unconstrained":0.9'
echo '{"grammar":"json",'$plain',"over_unconstrained":1.5234,"tokens_per_pass":2.0}' > "$out"
echo '{"grammar":"c","over_unconstrained":0.9,"tokens_per_pass":1.1,'$plain'}' >> "$out""#;
    let folder = folder(smoke, speculation);
    let (output, lines, ..) = dry(folder.path(), "300");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let table = lines.last().unwrap()["table"].as_str().unwrap();
    for row in [
        "| drafts over unconstrained, 13m, json | >= 1.70 | 1.52 | |",
        "| drafts over unconstrained, 13m, c | >= 1.00 | 0.90 | |",
        "| drafts over unconstrained, 13m, rpg | >= 1.00, tokens a pass x 0.85 | not run | |",
        "| rows that differ, 13m bf16 | 0 | 0 of 1152 | |",
        "| choices that differ, 13m bf16 | 0 | 1 of 640 | |",
        "| texts that differ, 13m bf16 | 0 | 3 of 2000 | |",
        "| texts that differ, SmolLM2 bf16 | 0 | not run | |",
    ] {
        assert!(table.lines().any(|line| line == row), "{row}\n{table}");
    }
    assert!(table.starts_with("A dry run on the CPU"), "{table}");
    // The table is printed, not only written.
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("| texts that differ, 13m bf16 | 0 | 3 of 2000"), "{shown}");
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
fn missing_programs_are_recorded() {
    let folder = folder("echo fine", "echo fine");
    fs::remove_file(folder.path().join("speculation")).unwrap();
    let (output, lines, ..) = dry(folder.path(), "300");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(part(&lines, "decoding-13m")["reason"], "there is no program ./speculation");
}

#[test]
fn wrong_arguments_of_the_script_are_refused() {
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
