//! Files of a folder of counts: their names, how they are written, and how many bytes they may have.
//!
//! Invariant: nothing is removed that does not have the name of such a file.

use std::{
    ffi::OsStr,
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use domino::store::WholeFile;

/// Ending of a file of counts.
pub(super) const ENDING: &str = "prior";

/// Characters of a file's name before its ending.
pub(super) const NAME_LENGTH: usize = 32;

/// Folders above a file of counts: the client, and the model.
const LEVELS: usize = 2;

/// Age after which a file that is being written never will be finished.
const STALE: Duration = Duration::from_secs(3600);

/// Foreign files that the log names.
const MOST_TOLD: usize = 8;

/// The file that says what the others are.
pub(super) const README: &str = "README.txt";

pub(super) const README_TEXT: &str = "\
The files *.prior in the folders here are counts of `domino serve --prior-dir`: which tokens came at
which places of a grammar, in texts that were written for clients. They hold parts of these texts, so
guard them as you would guard the texts themselves.

CLIENT/MODEL/GRAMMAR.prior is what the texts of one client (a folder of its own, named by its API key's
name or its address), one model and one grammar have taught. The server reads a file before it writes
the first text of that kind, and writes it every five minutes and when it ends. A file or a folder may
be removed at any time while no server runs: what is in it is then forgotten.
";

/// Makes the name of a file or a folder of any text: its plain characters, at most 40, and a hash of all.
pub(crate) fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let shown: String = text.chars().take(40).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{shown}-{}", &hash[..8])
}

/// Makes a folder, and those above it, for the server's user alone.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Writes a file whole or not at all, for the server's user alone.
pub(super) fn write_whole(file: &Path, content: &[u8]) -> io::Result<()> {
    WholeFile::new(file).synced().private().write(content)
}

/// Tells in the log which files are none of counts, and removes those that were begun long ago and never
/// finished.
pub(super) fn tell_of_others(folder: &Path) {
    let mut others = Vec::new();
    for found in walk(folder) {
        if found.is_part() {
            if found.changed.elapsed().is_ok_and(|age| age > STALE) {
                let _ = fs::remove_file(&found.path);
            }
        } else if !found.is_counts() && found.path != folder.join(README) {
            others.push(found.path);
        }
    }
    for path in others.iter().take(MOST_TOLD) {
        tracing::warn!("{} is no file of counts; it is ignored", path.display());
    }
    if let Some(more @ 1..) = others.len().checked_sub(MOST_TOLD) {
        tracing::warn!("{more} more files in {} are no counts", folder.display());
    }
}

/// Removes the files of counts that were not written for longest, until the others have at most `most` bytes.
pub(super) fn trim(folder: &Path, most: u64) {
    let mut counts: Vec<FolderFile> = walk(folder).into_iter().filter(FolderFile::is_counts).collect();
    counts.sort_by_key(|found| found.changed);
    let mut total = counts.iter().fold(0_u64, |sum, found| sum.saturating_add(found.bytes));
    for found in counts {
        if total <= most {
            return;
        }
        match fs::remove_file(&found.path) {
            Ok(()) => total = total.saturating_sub(found.bytes),
            Err(error) => tracing::warn!("{}: {error}; it cannot be removed", found.path.display()),
        }
    }
}

/// A file, or what is neither that nor a folder.
#[derive(Debug)]
struct FolderFile {
    path: PathBuf,
    /// Folders above it.
    level: usize,
    is_file: bool,
    bytes: u64,
    changed: SystemTime,
}

impl FolderFile {
    /// Has it the name of a file of counts, at such a file's place?
    fn is_counts(&self) -> bool {
        self.is_file && self.level == LEVELS && is_name(self.name())
    }

    /// Has it the name of a file that is being written?
    fn is_part(&self) -> bool {
        let whole = WholeFile::of_part(self.name());
        self.is_file && whole.is_some_and(|whole| is_name(whole) || whole == README)
    }

    fn name(&self) -> &str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }
}

/// Is this the name of a file of counts?
fn is_name(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING).and_then(|rest| rest.strip_suffix('.')).unwrap_or_default();
    stem.len() == NAME_LENGTH && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Lists everything in the folder down to the level of counts, in no order; links are not followed. What
/// cannot be read is left out.
fn walk(folder: &Path) -> Vec<FolderFile> {
    let (mut found, mut open) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((here, level)) = open.pop() {
        let entries = fs::read_dir(&here).into_iter().flatten().flatten();
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && level < LEVELS => open.push((entry.path(), level + 1)),
                _ => found.extend(look(&entry, level)),
            }
        }
    }
    found
}

fn look(entry: &DirEntry, level: usize) -> Option<FolderFile> {
    let about = entry.path().symlink_metadata().ok()?;
    Some(FolderFile {
        path: entry.path(),
        level,
        is_file: about.is_file(),
        bytes: about.len(),
        changed: about.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, path: &str, bytes: usize) -> PathBuf {
        let file = folder.join(path);
        make_folder(file.parent().unwrap()).unwrap();
        write_whole(&file, &vec![b'x'; bytes]).unwrap();
        file
    }

    #[test]
    fn file_names_are_plain_and_distinct() {
        for text in ["", ".", "..", "../../etc/passwd", "a b", "key \u{e4}", "a\0b", &"x".repeat(300)] {
            let name = plain(text);
            assert!(name.len() <= 49 && !name.contains(['/', '\0', ' ']), "{name}");
            assert!(Path::new(&name).components().count() == 1 && name != "." && name != "..", "{name}");
        }
        assert_ne!(plain("a b"), plain("a_b"));
        assert!(plain("alice").starts_with("alice-"));
    }

    #[test]
    fn trimming_removes_only_files_of_counts_the_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let name = |letter: &str| format!("key/model/{}.prior", letter.repeat(NAME_LENGTH));
        let kept = [
            write(folder.path(), "notes.txt", 500),
            write(folder.path(), "key/model/notes.prior", 500),
            write(folder.path(), &name("g"), 500),
            write(folder.path(), &name("a").replace("model/", ""), 500),
            write(folder.path(), &name("a").replace("model/", "model/more/"), 500),
        ];
        let counts: Vec<PathBuf> =
            ["a", "b", "c"].map(|letter| write(folder.path(), &name(letter), 100)).to_vec();
        for (file, seconds) in counts.iter().zip([2, 1, 3]) {
            let age = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::options().write(true).open(file).unwrap().set_modified(age).unwrap();
        }
        let there = || counts.iter().map(|file| file.is_file()).collect::<Vec<_>>();
        trim(folder.path(), 300);
        assert_eq!(there(), [true, true, true]);
        trim(folder.path(), 299);
        assert_eq!(there(), [true, false, true]);
        trim(folder.path(), 0);
        assert_eq!(there(), [false, false, false]);
        assert!(kept.iter().all(|file| file.is_file()));
    }

    #[cfg(unix)]
    #[test]
    fn files_and_folders_are_for_one_user() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = write(folder.path(), "a/b/c.prior", 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        // A folder that cannot be written leaves nothing behind.
        assert!(write_whole(&folder.path().join("none/file"), b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_old_unfinished_files_of_counts_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let name = "0123456789abcdef".repeat(2);
        let old = |path: &str| {
            let file = write(folder.path(), path, 1);
            let opened = fs::File::options().write(true).open(&file).unwrap();
            opened.set_modified(SystemTime::UNIX_EPOCH).unwrap();
            file
        };
        let gone = [old(&format!("a/b/.{name}.prior.1-0-5.part")), old(".README.txt.77-0-5.part")];
        let stay = [
            write(folder.path(), &format!("a/b/.{name}.prior.2-0-5.part"), 1),
            old("a/b/video.part"),
            old("a/b/.video.1-0-5.part"),
            old(&format!("a/b/.{name}.prior.x-0-5.part")),
            old(&format!("a/b/{name}.prior")),
            old("README.txt"),
        ];
        tell_of_others(folder.path());
        assert!(gone.iter().all(|file| !file.exists()) && stay.iter().all(|file| file.exists()));
    }
}
