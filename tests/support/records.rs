//! The data of the repository's records, which lie in them as archives.

use std::{
    io::{self, Write},
    path::Path,
    process::Command,
};

use tempfile::TempDir;

use super::pages::root;

/// Unpacks the data of the record in this folder, if it has some. `None` after a message where `xz` is not
/// installed.
pub(crate) fn data(record: &Path) -> Option<TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = root().join(record).join("data.tar.xz");
    if !file.exists() {
        return Some(folder);
    }
    let done = Command::new("tar").arg("-xf").arg(&file).current_dir(folder.path()).output();
    if done.as_ref().is_ok_and(|done| done.status.success()) {
        return Some(folder);
    }
    assert!(Command::new("xz").arg("--version").output().is_err(), "{}: {done:?}", file.display());
    let message = format!("SKIPPED: {} needs `tar` and `xz`\n", file.display());
    io::stderr().write_all(message.as_bytes()).expect("standard error");
    None
}
