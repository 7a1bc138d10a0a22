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

/// A folder with the real program and model, and scripts in place of the others.
fn folder(smoke: &str, decoding: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let models = concat!(env!("DOMINO_ROOT"), "/models");
    for (name, to) in [("domino", env!("CARGO_BIN_EXE_domino")), ("models", models)] {
        std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
    }
    for (name, body) in [("cuda_smoke", smoke), ("decoding", decoding)] {
        let program = folder.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(folder.path().join("COMMIT"), "0123abc\n").unwrap();
    folder
}

fn run(arguments: &[&str], seconds: &str, kept: &Path) -> Output {
    let mut script = Command::new(SCRIPT);
    script.args(arguments).env("DOMINO_RECORD_SECONDS", seconds).env("DOMINO_CARD_KEPT", kept);
    script.output().unwrap()
}

fn lines(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("record.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")));
    lines.collect()
}

fn dry(folder: &Path, seconds: &str) -> (Output, Vec<Value>, PathBuf, TempDir) {
    let parent = TempDir::new().unwrap();
    let out = parent.path().join("out put");
    let paths = [folder, &out].map(|path| path.to_str().unwrap());
    let output = run(&["--dry-run", paths[0], paths[1]], seconds, parent.path());
    let lines = lines(&out);
    (output, lines, out, parent)
}

/// The names of the files of a record.
fn files(out: &Path) -> Vec<String> {
    let names = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
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
    assert_eq!(files(&out), ["parts.tar.gz", "record.jsonl", "table.md"]);
    let start = part(&lines, "start");
    assert_eq!(start["status"], "ran", "{start}");
    assert!(part(&lines, "bits")["command"].as_str().unwrap().starts_with("./cuda_smoke bits cpu f32"));
    // What came stands beside what is asked, and what did not run says so.
    let table = lines.last().unwrap()["table"].as_str().unwrap();
    assert_eq!(table.trim_end(), fs::read_to_string(out.join("table.md")).unwrap().trim_end());
    let milliseconds = curve["curve"][0]["median_seconds"].as_f64().unwrap() * 1e3;
    for row in [
        format!("| 13m bf16, t(1), ms | 0.3 | {milliseconds:.2} | not run | not run |"),
        "| 13m bf16, t(8), ms | 0.3 | not run | not run | not run |".into(),
        "| 7b bf16, t(16), ms | 5.8 | not run | not run | not run |".into(),
        "| drafts over unconstrained, 13m, json | >= 1.00, tokens a pass x 0.85 | not run | | |".into(),
        "| texts that differ, 13m bf16 | 0 | not run | | |".into(),
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
    // Means over the texts of a grammar.
    let decoding = r#"text() {
printf '{"grammar":"%s","answer":{"compare":{"speedup_over_unconstrained":%s,' "$1" "$2"
printf '"tokens_per_pass":%s,"speedup_over_plain":9}}}\n' "$3"
}
text json 1.5 2.0; text c 0.9 1.1; text json 1.54 2.0"#;
    let folder = folder(smoke, decoding);
    let (output, lines, ..) = dry(folder.path(), "300");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let table = lines.last().unwrap()["table"].as_str().unwrap();
    for row in [
        "| drafts over unconstrained, 13m, json | >= 1.70 | 1.52 | | |",
        "| drafts over unconstrained, 13m, c | >= 1.00 | 0.90 | | |",
        "| drafts over unconstrained, 13m, rpg | >= 1.00, tokens a pass x 0.85 | not run | | |",
        "| rows that differ, 13m bf16 | 0 | 0 of 1152 | | |",
        "| choices that differ, 13m bf16 | 0 | 1 of 640 | | |",
        "| texts that differ, 13m bf16 | 0 | 3 of 2000 | | |",
        "| texts that differ, SmolLM2 bf16 | 0 | not run | | |",
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
    let folder = folder("[ $# = 6 ] || exit 3; echo before >&2; sleep 600", "echo fine");
    let kept = TempDir::new().unwrap();
    let out = kept.path().join("out");
    let paths = [folder.path(), &out].map(|path| path.to_str().unwrap());
    let some = |parts, seconds| {
        let output = run(&["--dry-run", "--parts", parts, paths[0], paths[1]], seconds, kept.path());
        (output.status.code(), lines(&out))
    };
    let (code, made) = some("smoke-f32", "300");
    assert_eq!((code, made.len()), (Some(1), 3), "{made:?}");
    let smoke = part(&made, "smoke-f32");
    assert_eq!((smoke["status"].as_str(), smoke["exit"].as_u64()), (Some("failed"), Some(3)));
    // Another run goes on in the same record.
    let (code, made) = some("bits,passes-13m,no-such", "3");
    assert_eq!((code, made.len()), (Some(1), 8), "{made:?}");
    assert_eq!(
        (&part(&made, "bits")["status"], &part(&made, "bits")["err"]),
        (&"out of time".into(), &"before".into())
    );
    assert_eq!(part(&made, "passes-13m")["reason"], "no time was left");
    assert_eq!(part(&made, "no-such")["reason"], "there is no part of this name");
    assert_eq!(made[7]["no_time_for"], "bits,passes-13m");
    assert_eq!((&made[2]["all_ran_well"], &made[7]["all_ran_well"]), (&false.into(), &false.into()));
}

#[test]
fn missing_programs_are_recorded() {
    let folder = folder("echo fine", "echo fine");
    fs::remove_file(folder.path().join("decoding")).unwrap();
    let (output, lines, ..) = dry(folder.path(), "300");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(part(&lines, "decoding-13m")["reason"], "there is no program ./decoding");
}

/// Programs of a packed folder are unpacked once, to where they are kept.
#[test]
fn a_packed_folder_is_unpacked() {
    let folder = folder("echo fine", "echo fine");
    let packed = TempDir::new().unwrap();
    let archive = packed.path().join("domino-cuda.tar.xz");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder.path()).args(["-cJf"]).arg(&archive).arg(".");
    if !tar.status().is_ok_and(|status| status.success()) {
        println!("LEFT OUT: no tar and xz here");
        return;
    }
    let out = packed.path().join("out");
    let paths = [packed.path(), &out].map(|path| path.to_str().unwrap());
    for _ in 0..2 {
        let output = run(&["--dry-run", "--parts", "decoding-13m", paths[0], paths[1]], "300", packed.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let made = lines(&out);
    assert_eq!((made.len(), &made[1]["out"], &made[4]["out"]), (6, &"fine".into(), &"fine".into()));
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
        vec!["--parts"],
    ] {
        let output = run(&arguments, "300", folder.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && !out.exists(), "{arguments:?}");
    }
}
