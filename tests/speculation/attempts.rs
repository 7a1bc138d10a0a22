//! `experiments/evidence/run` runs a definition again while its control leaves the range, keeps all attempts,
//! and publishes them with their spread. The program is a scripted one, so nothing is timed.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// Plays `domino experiment`: each call writes the tables of an attempt whose control is the next of those in
/// the file `controls`. `stop` in its place ends the call without an attempt.
const PROGRAM: &str = r#"#!/bin/sh
set -e
here=$(dirname "$0")
next=$(head -n 1 "$here/controls")
sed -i 1d "$here/controls"
echo "$@" >> "$here/calls"
[ "$next" != stop ] || exit 9
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
mkdir -p "$out/tables"
printf '%s\r\n' model,grammar,n,control,control_low,control_high,control_n,control_processor \
    "small,json,9,0.5,,,9,0.5" "small,all,9,$next,,,9,1.0" > "$out/tables/control.csv"
printf '%s\r\n' model,grammar,temperature,texts,over_no_grammar,over_no_grammar_low,over_no_grammar_high \
    "small,gsm8k,0,4 of 5,$next,1,3" > "$out/tables/same-texts.csv"
printf '[]' > "$out/summary.json"
printf '# A record\n' > "$out/tables.md"
"#;

/// Runs a program of the folder `experiments/evidence`.
fn evidence(name: &str, arguments: &[&str], folder: &Path) -> Output {
    let path = Path::new(env!("DOMINO_ROOT")).join("experiments/evidence").join(name);
    let mut command = Command::new("python3");
    command.arg(path).args(arguments).env("DOMINO", folder.join("domino"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("python3")
}

/// The controls of all attempts that were kept, and the calls that were made, after the run of a definition
/// whose attempts have these controls.
fn attempts(folder: &Path, controls: &[&str]) -> (Vec<f64>, usize) {
    use std::os::unix::fs::PermissionsExt;

    let program = folder.join("domino");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("controls"), controls.join("\n") + "\n").unwrap();
    let out = folder.join("out");
    let stops = controls.contains(&"stop");
    let done = evidence("run", &["quick", "--out", out.to_str().unwrap()], folder);
    assert_eq!(done.status.code(), Some(i32::from(stops)), "{}", String::from_utf8_lossy(&done.stderr));
    let kept = fs::read_to_string(out.join("quick/attempts.jsonl")).unwrap();
    let lines = kept.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let control = |line: serde_json::Value| {
        assert!(line["load"].is_array() && line["ended"].as_str().unwrap().ends_with('Z'), "{line}");
        line["control"]["small"][0].as_f64().unwrap()
    };
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    (lines.map(control).collect(), calls.lines().count())
}

#[test]
fn what_leaves_the_range_is_run_again_and_kept() {
    for (controls, expected) in [
        (&["1.02"][..], &[1.02][..]),
        (&["0.95"], &[0.95]),
        (&["0.94", "1.0"], &[0.94, 1.0]),
        (&["1.04", "0.5", "1.03"], &[1.04, 0.5, 1.03]),
        // Three are all.
        (&["1.1", "0.9", "0.8", "1.0"], &[1.1, 0.9, 0.8]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(attempts(folder.path(), controls), (expected.to_vec(), expected.len()), "{controls:?}");
        // What is settled is not run again.
        assert_eq!(attempts(folder.path(), &["1.0"]).1, expected.len());
        let tables = fs::read_to_string(folder.path().join("out/tables.md")).unwrap();
        assert_eq!(tables.matches("| quick/attempt-").count(), expected.len(), "{tables}");
    }
}

/// An attempt that was cut off is the one that goes on.
#[test]
fn an_attempt_that_ended_early_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(attempts(folder.path(), &["0.9", "stop"]), (vec![0.9], 2));
    assert_eq!(attempts(folder.path(), &["0.99"]), (vec![0.9, 0.99], 3));
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    let folders: Vec<&str> =
        calls.lines().filter_map(|call| call.rsplit_once('/')).map(|(_, at)| at).collect();
    assert_eq!(folders, ["attempt-1", "attempt-2", "attempt-2"]);
}

/// Of attempts of which none was steady the middle number is shown, marked, with the least and the largest;
/// of others the steady one's, with its interval.
#[test]
fn numbers_of_unsteady_attempts_have_their_spread_and_a_mark() {
    for (controls, shown, places) in [
        (&["1.1", "0.9", "0.8"][..], "0.90 ‡ (0.80 to 1.10)", 3),
        (&["0.8", "1.0"], "1.00 (1.00 to 3.00)", 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        attempts(folder.path(), controls);
        let out = folder.path().join("out");
        fs::rename(out.join("quick"), out.join("qwen_same")).unwrap();
        assert!(evidence("tables", &[out.to_str().unwrap()], folder.path()).status.success());
        let tables = fs::read_to_string(out.join("tables.md")).unwrap();
        let row = tables.lines().find(|line| line.contains("Qwen2.5-Coder-0.5B-Instruct, GSM8K | 4 of 5"));
        let row = row.unwrap_or_else(|| panic!("{tables}"));
        assert!(row.contains(shown) && row.matches("attempt-").count() == places, "{row}");
        assert_eq!(tables.matches("| yes |").count(), places, "{tables}");
    }
}
