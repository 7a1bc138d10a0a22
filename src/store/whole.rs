//! Files that are written whole or not at all: each is written beside its place under a name of its own, and
//! then renamed.
//!
//! Invariant: under its final name a file has all of its old or all of its new content, however many
//! processes write it and whenever one is killed. The crate `tempfile` does the same; it would bring several
//! crates into the bare library, and gives its files permissions and names that are not those wanted here.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// Ending of the name of a file that is being written.
const PART: &str = ".part";

/// A file that is written whole or not at all.
///
/// ```
/// use domino::store::WholeFile;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("numbers.json");
/// WholeFile::new(&path).write(b"[1, 2]")?;
/// assert_eq!(std::fs::read(&path)?, b"[1, 2]");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct WholeFile {
    path: PathBuf,
    synced: bool,
    #[cfg_attr(not(unix), expect(dead_code, reason = "other systems have no bits for who may read a file"))]
    private: bool,
}

impl WholeFile {
    /// Names the file, whose folder must be there. Nothing is written yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), synced: false, private: false }
    }

    /// Waits until the content is on the disk before the file gets its name, so that it is whole also after a
    /// loss of power. Milliseconds, on most disks.
    #[must_use]
    pub fn synced(self) -> Self {
        Self { synced: true, ..self }
    }

    /// Lets nobody but the user read or write the file, where the system has such permissions (Unix).
    #[must_use]
    pub fn private(self) -> Self {
        Self { private: true, ..self }
    }

    /// Writes the content, and replaces the file if it is there; a link is replaced, and not followed.
    ///
    /// # Errors
    /// If the path names no file, or a file in its folder cannot be made, written or renamed. The file is
    /// then as before, and nothing is left beside it.
    pub fn write(&self, content: &[u8]) -> io::Result<()> {
        let part = self.part()?;
        let file = self.begin(&part)?;
        let written = self.fill(file, content).and_then(|()| fs::rename(&part, &self.path));
        if written.is_err() {
            // What is left of it is of no use, and the first error is the one that matters.
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// Finds out whether a file can be made in the folder, by making one and removing it.
    ///
    /// # Errors
    /// If the file cannot be made or removed.
    pub fn try_out(&self) -> io::Result<()> {
        let part = self.part()?;
        self.begin(&part)?;
        fs::remove_file(part)
    }

    /// Returns the name of the file that a file of this name would have become: `None` if it is not one that
    /// is being written. Whoever cleans a folder so recognises what a killed process has left.
    #[must_use]
    pub fn of_part(name: &str) -> Option<&str> {
        let (whole, number) = name.strip_prefix('.')?.strip_suffix(PART)?.rsplit_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let ours = number.split('-').count() == 3 && number.split('-').all(is_number);
        (ours && !whole.is_empty()).then_some(whole)
    }

    /// Makes the path of the file beside its place.
    fn part(&self) -> io::Result<PathBuf> {
        let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        let name: &OsStr = self.path.file_name().ok_or_else(no_file)?;
        let mut part = OsString::from(".");
        part.push(name);
        part.push(format!(".{}{PART}", number()));
        Ok(self.path.with_file_name(part))
    }

    /// Makes the file beside its place, which is not there yet.
    fn begin(&self, part: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if self.private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        options.open(part)
    }

    fn fill(&self, mut file: File, content: &[u8]) -> io::Result<()> {
        file.write_all(content)?;
        if self.synced { file.sync_all() } else { Ok(()) }
    }
}

/// Makes a number that no other writer has, on this machine or on another that shares the folder: process,
/// count and time.
fn number() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    if cfg!(all(target_family = "wasm", target_os = "unknown")) {
        // There are no files there, nor processes or a time, and to ask for these two would panic.
        return format!("0-{count}-0");
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{count}-{since}", std::process::id())
}

#[cfg(test)]
mod tests;
