//! A folder of sealed files that may be lost at any time: an LRU cache.
//!
//! Invariant: a file under its final name is whole, however many processes write ([`WholeFile`]). Nothing
//! here fails: an unreadable file counts as absent, an unwritable one is not kept, and a warning says so.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use super::sealed::{Kind, PayloadKey, PayloadReader, SEAL_BYTES, StoreError, StoreErrorKind, open, seal};
use crate::{ids::saturating_usize, limits::CACHE_BYTES};

const ENDING: &str = ".domino";
/// Age after which an unfinished file never will be finished.
const STALE: Duration = Duration::from_secs(3600);

/// A folder in which vocabularies, tables and trees are kept between runs, or no folder at all.
///
/// Several processes may share one. If the folder cannot be written, or a file cannot be used, things are
/// made anew, with a warning (`tracing`), and an unusable file is replaced. The least recently used files go
/// (LRU) when the folder would grow past its budget. Cloning is cheap.
///
/// The folder should be the user's own: checksums find accidents, and files are checked so that none can make
/// the library fail, but who may write here can change what a grammar allows.
///
/// ```
/// use domino::store::CacheFolder;
///
/// let cache = CacheFolder::new("/tmp/domino").with_budget(100 << 20);
/// assert_eq!(cache.path(), Some("/tmp/domino".as_ref()));
/// assert_eq!(cache.budget(), 100 << 20);
/// assert_eq!(CacheFolder::none().path(), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct CacheFolder {
    inner: Option<Arc<Inner>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Bound on the bytes of all files together.
    budget: u64,
    /// Set once a warning has said that the folder does not work.
    warned: AtomicBool,
}

/// A file of a [`CacheFolder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheFile {
    /// The kind of contents, such as `vocabulary`; [`UNFINISHED`](Self::UNFINISHED) without a final name.
    pub kind: String,
    /// The file's name in the folder.
    pub name: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// Time of the last read or write.
    pub used: SystemTime,
}

impl CacheFile {
    /// The kind of files that have no final name.
    pub const UNFINISHED: &str = "unfinished";
}

/// The files that [`CacheFolder::clear`] has removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Number of files.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: u64,
}

impl CacheFolder {
    /// Names the folder `path`, with a budget of [`CACHE_BYTES`]. It is made when something is first kept.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(path.into(), CACHE_BYTES)
    }

    /// Names no folder: nothing is kept, nothing is found.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the room for all files to `bytes`. Larger files are neither kept nor read.
    #[must_use]
    pub fn with_budget(self, bytes: u64) -> Self {
        self.inner.map_or_else(Self::none, |inner| Self::of(inner.path.clone(), bytes))
    }

    fn of(path: PathBuf, budget: u64) -> Self {
        Self { inner: Some(Arc::new(Inner { path, budget, warned: AtomicBool::new(false) })) }
    }

    /// The path; `None` for no folder.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.inner.as_deref().map(|inner| inner.path.as_path())
    }

    /// Bound on the bytes of its files together; 0 for no folder.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.inner.as_deref().map_or(0, |inner| inner.budget)
    }

    /// Lists the files in it that are of this library, of any version. A missing folder has none.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn files(&self) -> io::Result<Vec<CacheFile>> {
        self.inner.as_deref().map_or_else(|| Ok(Vec::new()), Inner::files)
    }

    /// Removes the files that [`files`](Self::files) lists, and nothing else.
    ///
    /// # Errors
    /// If the folder cannot be listed or a file not removed.
    pub fn clear(&self) -> io::Result<Cleared> {
        let mut cleared = Cleared::default();
        let Some(inner) = self.inner.as_deref() else { return Ok(cleared) };
        for file in inner.files()? {
            match fs::remove_file(inner.path.join(&file.name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {
                    cleared.files += 1;
                    cleared.bytes += file.bytes;
                }
            }
        }
        Ok(cleared)
    }

    /// Decodes the payload of this kind and key, if there is a usable one. Reads the file and hashes it once,
    /// about 1 ms for 2 MB. An unusable file is reported by a warning and counts as absent.
    pub fn get<T>(
        &self,
        kind: Kind,
        key: &PayloadKey,
        decode: impl FnOnce(&mut PayloadReader<'_>) -> Result<T, StoreError>,
    ) -> Option<T> {
        let inner = self.inner.as_deref()?;
        let path = inner.file(kind, key);
        let file = match inner.read(&path) {
            Ok(file) => file?,
            Err(error) => {
                inner.warn("read", &error);
                return None;
            }
        };
        let decoded = open(&file, kind, key).and_then(|payload| {
            let mut reader = PayloadReader::new(payload);
            let value = decode(&mut reader)?;
            reader.finish()?;
            Ok(value)
        });
        match decoded {
            Ok(value) => {
                tracing::debug!(file = %path.display(), "read from the cache");
                Some(value)
            }
            // To be expected after every change of version, and no reason to look.
            Err(error) if matches!(error.kind(), StoreErrorKind::Version { .. }) => {
                tracing::debug!("{}: {error}; it will be made again", path.display());
                None
            }
            Err(error) => {
                tracing::warn!("{}: {error}; it will be made again", path.display());
                None
            }
        }
    }

    /// Keeps a payload, if possible. Writes a file and lists the folder: a few milliseconds, and about 1 ms
    /// for each 2 MB.
    pub fn put(&self, kind: Kind, key: &PayloadKey, payload: &[u8]) {
        let Some(inner) = self.inner.as_deref() else { return };
        let bytes = (payload.len() + SEAL_BYTES) as u64;
        if bytes > inner.budget {
            tracing::debug!(kind = kind.name(), bytes, budget = inner.budget, "too large for the cache");
            return;
        }
        let path = inner.file(kind, key);
        match inner.write(&path, &seal(kind, key, payload)) {
            Ok(()) => tracing::debug!(file = %path.display(), bytes, "kept in the cache"),
            Err(error) => inner.warn("written", &error),
        }
    }
}

impl Inner {
    fn file(&self, kind: Kind, key: &PayloadKey) -> PathBuf {
        self.path.join(format!("{}-{}{ENDING}", kind.name(), key.hex()))
    }

    fn warn(&self, done: &str, error: &io::Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the cache folder {} cannot be {done}: {error}; going on without it",
                self.path.display()
            );
        }
    }

    /// Reads all bytes of a file; `None` if there is none, or none that could be of this library.
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let absent = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        // Opening what is not a file, such as a pipe, could wait for ever.
        let length = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= self.budget => metadata.len(),
            Ok(_) => return Ok(None),
            Err(error) => return if absent(&error) { Ok(None) } else { Err(error) },
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return if absent(&error) { Ok(None) } else { Err(error) },
        };
        // The time of use decides which file goes first; if it cannot be set, the time of writing does.
        let _ = file.set_modified(SystemTime::now());
        let mut bytes = Vec::new();
        // More than can be addressed is refused like more than there is.
        bytes.try_reserve_exact(saturating_usize(length))?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Writes a whole file at `path`, or nothing.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.path)?;
        self.make_room(path, bytes.len() as u64)?;
        WholeFile::new(path).write(bytes)
    }

    /// Removes files, the least recently used first, until `bytes` more fit in the budget once `path` is
    /// replaced.
    fn make_room(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let mut files = self.files()?;
        files.retain(|file| !path.ends_with(&file.name));
        files.sort_by_key(|file| file.used);
        let mut sum = files.iter().fold(bytes, |sum, file| sum.saturating_add(file.bytes));
        for file in &files {
            let stale =
                file.kind == CacheFile::UNFINISHED && file.used.elapsed().is_ok_and(|age| age > STALE);
            if stale || (sum > self.budget && file.kind != CacheFile::UNFINISHED) {
                // Another process may have been first.
                let _ = fs::remove_file(self.path.join(&file.name));
                tracing::debug!(file = file.name, "removed from the cache");
                sum = sum.saturating_sub(file.bytes);
            }
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<CacheFile>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(kind) = kind_of(&name) else { continue };
            // Another process may have removed it meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                let used = metadata.modified().unwrap_or(UNIX_EPOCH);
                files.push(CacheFile { kind: kind.to_owned(), name, bytes: metadata.len(), used });
            }
        }
        Ok(files)
    }
}

/// Returns the kind of a file with this name, of any version; `None` if the name is not of this library.
fn kind_of(name: &str) -> Option<&str> {
    let part = WholeFile::of_part(name);
    let (kind, key) = part.unwrap_or(name).strip_suffix(ENDING)?.rsplit_once('-')?;
    let ours = key.len() == 64
        && key.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !kind.is_empty()
        && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    ours.then_some(if part.is_some() { CacheFile::UNFINISHED } else { kind })
}

// A file that is whole or not there is written beside its place under a name of its own, and then renamed.
//
// Invariant: under its final name a file has all of its old or all of its new content, however many
// processes write it and whenever one is killed. The crate `tempfile` does the same; it would bring several
// crates into the bare library, and gives its files permissions and names that are not those wanted here.

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

#[cfg(test)]
mod whole_tests;
