//! Uses of the program: its help, flags in place of others, and its answers to mistakes.

mod explained;
mod forms;
mod help;
mod idle;
mod meant;

use std::path::Path;

use crate::support::{
    program::{Run, domino_in},
    random_model::write_model,
};

/// A folder with a small model in `model`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    std::fs::create_dir(&model).unwrap();
    write_model(&model);
    folder
}

/// Runs the program in a folder, without input.
fn run(folder: &Path, arguments: &[&str]) -> Run {
    domino_in(folder, arguments, b"")
}

/// Checks that the program refuses its arguments, and that its error and its hint have these words.
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let run = run(folder, arguments);
    assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{arguments:?}: {word:?} is not in {}", run.stderr);
    }
}
