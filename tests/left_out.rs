//! What the published package leaves out: tests marked `cfg(not(packaged))`, named here when the others run.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// In an attribute: not in the package.
const MARK: &str = "not(packaged)";

/// The tests and modules of tests under `folder` that are marked.
fn marked(folder: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            marked(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a file");
            let mut lines = text.lines();
            while let Some(line) = lines.next() {
                if line.trim_start().starts_with("#[") && line.contains(MARK) {
                    let item = lines.find_map(|line| {
                        let words = line.trim_start().trim_start_matches("pub(crate) ");
                        words.strip_prefix("mod ").or_else(|| words.strip_prefix("fn "))
                    });
                    let item = item.expect("a test or a module");
                    found.push(item.trim_end_matches(['{', ';', ' ', '(', ')']).to_owned());
                }
            }
        }
    }
}

#[test]
fn tests_that_need_more_than_the_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["src", "tests"] {
        marked(&root.join(folder), &mut found);
    }
    assert!(!found.is_empty(), "no test is marked");
    if cfg!(packaged) {
        // Not by `eprintln!`: the test harness would swallow that of a test that passes.
        let message = format!(
            "LEFT OUT, since the package has neither model nor fixtures, fuzz corpus and experiments: {}\n",
            found.join(", ")
        );
        io::stderr().write_all(message.as_bytes()).expect("standard error");
    }
    if cfg!(not(feature = "oracle")) {
        let message = b"LEFT OUT: tests against the oracle, which run with `--features oracle`\n";
        io::stderr().write_all(message).expect("standard error");
    }
}
