//! Memory of a batch: thousands of rows take no more than some.
#![cfg(target_os = "linux")]

use std::{fmt::Write, fs, path::Path, process::Stdio, time::Duration};

use serde_json::json;

use crate::support::{program::program, random_model::write_model};

/// Bytes that each row carries along; they are copied, so that the answers have them too.
const CARRIED: usize = 20_000;
/// Number of grammars that rows are held against, more than are kept.
const GRAMMARS: usize = 150;

/// Runs a batch of `rows` rows; returns its peak of memory in bytes, and the answers.
fn peak(rows: usize, folder: &Path) -> (usize, String) {
    let (file, out) = (folder.join("rows.jsonl"), folder.join(format!("out{rows}.jsonl")));
    let mut lines = String::new();
    for number in 0..rows {
        let regex = format!("[a-z]{{{}}}", number % GRAMMARS + 1);
        let meta = "x".repeat(CARRIED);
        let row = json!({"id": number, "regex": regex, "max_tokens": 1, "meta": meta});
        writeln!(lines, "{row}").unwrap();
    }
    fs::write(&file, lines).unwrap();
    let mut child = program()
        .args(["generate", "--parallel", "4", "--speculate", "off", "--model"])
        .arg(folder)
        .arg("--batch")
        .arg(&file)
        .arg("--out")
        .arg(&out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The peak never falls, so that the last look at it is nearly the whole of it.
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        peak = kib.map_or(peak, |kib| kib * 1024);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    (peak, fs::read_to_string(out).unwrap())
}

#[test]
fn thousands_of_rows_are_streamed() {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path());
    let (few, _) = peak(GRAMMARS, folder.path());
    let (many, written) = peak(2_000, folder.path());
    assert_eq!(written.lines().count(), 2_000);
    // All rows are 40 MB, and so are all answers.
    let all = 2_000 * CARRIED;
    assert!(few > 0 && many < few + all / 4, "{few} bytes for some rows, {many} for all");
}
