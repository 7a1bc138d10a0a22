//! The origin of a record: the command, and the commit of the program.

use std::{path::Path, process::Command};

/// The command that was given, with the program by its name alone. Absolute paths would reveal the folders of
/// a person, so they are made relative to the current folder, or reduced to the name of the file.
pub(super) fn command() -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut words: Vec<String> =
        std::env::args_os().map(|word| shown(&word.to_string_lossy(), &here)).collect();
    if let Some(program) = words.first_mut() {
        *program = "domino".to_owned();
    }
    words
}

/// Removes absolute paths from a word of a command.
fn shown(word: &str, here: &Path) -> String {
    if let Some((flag, value)) = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
        return format!("{flag}={}", shown(value, here));
    }
    let path = Path::new(word);
    if !path.is_absolute() {
        return word.to_owned();
    }
    let inside = path.strip_prefix(here).ok().filter(|inside| !inside.as_os_str().is_empty());
    let name = inside.map(Path::as_os_str).or(path.file_name());
    name.map_or_else(|| word.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The commit of the program: the one that `DOMINO_COMMIT` named when it was built, or else that of the
/// working tree that it runs in, if that is one of this package. A tree whose files differ from its commit is
/// marked as modified.
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

/// Runs git and returns its output; `None` if there is no git or it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).stdin(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn commands_have_no_absolute_paths() {
        for (word, expected) in [
            ("experiment", "experiment"),
            ("d.toml", "d.toml"),
            ("../d.toml", "../d.toml"),
            ("/projects/domino/d.toml", "d.toml"),
            ("/projects/domino/a/d.toml", "a/d.toml"),
            ("/elsewhere/d.toml", "d.toml"),
            ("--out=/projects/domino/out", "--out=out"),
            ("--out=/tmp/out", "--out=out"),
            ("--shard", "--shard"),
            ("1/2", "1/2"),
            ("/", "/"),
        ] {
            assert_eq!(shown(word, Path::new("/projects/domino")), expected);
        }
    }
}
