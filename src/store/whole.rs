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
    /// Those of making a file and removing it.
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
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn files_are_made_and_replaced_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b.json");
        let file = WholeFile::new(&path);
        for file in [file.clone(), file.clone().synced(), file.private(), WholeFile::new(&path)] {
            for content in [&b"a long content"[..], b"", b"short"] {
                file.write(content).unwrap();
                assert_eq!(fs::read(&path).unwrap(), content);
                file.try_out().unwrap();
                assert_eq!(names(folder.path()), ["a.b.json"]);
            }
        }
    }

    #[test]
    fn what_cannot_be_written_is_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("file"), b"x").unwrap();
        // A folder is in its place; there is no folder; a file is in the folder's place; no file is named.
        assert!(WholeFile::new(&taken).write(b"content").is_err());
        for path in ["none/file", "taken/file/file"].map(|path| folder.path().join(path)) {
            let file = WholeFile::new(path);
            assert!(file.write(b"content").is_err() && file.try_out().is_err());
        }
        for path in ["", "/", ".."] {
            let error = WholeFile::new(path).write(b"content").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(
            (names(folder.path()), names(&taken)),
            (vec!["taken".to_owned()], vec!["file".to_owned()])
        );
        assert_eq!(fs::read(taken.join("file")).unwrap(), b"x");
    }

    /// What a killed process has left is in nobody's way.
    #[test]
    fn parts_are_recognised_and_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["file", "a.b.json", "-1-2.prior", ".hidden", "\u{e4}"] {
            let file = WholeFile::new(folder.path().join(name));
            let part = file.part().unwrap();
            fs::write(&part, b"half").unwrap();
            assert_eq!(WholeFile::of_part(part.file_name().unwrap().to_str().unwrap()), Some(name));
            file.write(b"whole").unwrap();
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"whole");
        }
        for name in [
            "file",
            "",
            ".part",
            "..part",
            "...part",
            ".file.part",
            "file.1-2-3.part",
            ".1-2-3.part",
            "..1-2-3.part",
            ".file.1-2.part",
            ".file.1-2-3-4.part",
            ".file.1--3.part",
            ".file.x-2-3.part",
            ".file.1-2-3.part~",
        ] {
            assert_eq!(WholeFile::of_part(name), None, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn private_files_are_for_one_user_and_others_as_any() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let path = folder.path().join(name);
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        fs::write(folder.path().join("any"), b"").unwrap();
        WholeFile::new(folder.path().join("plain")).write(b"").unwrap();
        WholeFile::new(folder.path().join("own")).private().write(b"").unwrap();
        assert_eq!((mode("plain"), mode("own")), (mode("any"), 0o600));
    }

    /// Readers see the content of one of many writers, all of it.
    #[test]
    fn many_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        WholeFile::new(&path).write(&[9; 5000]).unwrap();
        std::thread::scope(|scope| {
            for letter in 0..4_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        WholeFile::new(path).write(&[letter; 5000]).unwrap();
                        let found = fs::read(path).unwrap();
                        assert!(found.len() == 5000 && found.iter().all(|byte| *byte == found[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["file"]);
    }
}
