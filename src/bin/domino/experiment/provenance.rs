//! Where a record comes from: the command, and the commit of the program.

use std::{path::Path, process::Command};

/// The command that was given, the program by its name alone.
pub(super) fn command() -> Vec<String> {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        *program = "domino".to_owned();
    }
    words
}

/// The commit: the one that whoever built the program named in `DOMINO_COMMIT`, else that of the working tree
/// that the program runs in, if it is one of this package. A tree whose files differ from its commit is said
/// to be modified.
pub(super) fn commit() -> Option<String> {
    if let Some(commit) = option_env!("DOMINO_COMMIT") {
        return Some(commit.to_owned());
    }
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let manifest = std::fs::read_to_string(Path::new(&root).join("Cargo.toml")).ok()?;
    let own = concat!("name = \"", env!("CARGO_PKG_NAME"), "\"");
    if !manifest.lines().any(|line| line == own) {
        return None;
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}, modified") })
}

/// What git says, if it is there and all is well.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).stdin(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
