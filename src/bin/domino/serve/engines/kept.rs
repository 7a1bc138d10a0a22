//! Counts that are kept in a folder between runs (`--prior-dir`): a file for each client, model and grammar.
//!
//! What is counted are tokens of texts that were written for users, so the files hold parts of these texts.
//! They are for the server's user alone, and those of one client are not read for another.
//!
//! Invariants: a file under its final name is whole, since it is written under another one and then renamed.
//! A file that cannot be read or written costs a line in the log, never a request. Files of other programs
//! are neither read nor changed, and nothing is removed that does not have the name of such a file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};
use std::{ffi::OsStr, fs, fs::DirEntry, io, sync::Arc, sync::MutexGuard, sync::PoisonError, thread};

use domino::{CompiledGrammar, proposer::CountProposer, proposer::Prior, store::WholeFile};

use crate::{session::drafts::Learner, terminal::failure::BadInput};

/// Time between two rounds in which the counts are written that have changed.
const EVERY: Duration = Duration::from_secs(300);

/// Most bytes of all files; those that were not written for longest go first.
const MOST_BYTES: u64 = 1 << 30;

/// Most bytes that are written before the folder is looked at again.
const MOST_UNSEEN: u64 = 64 << 20;

/// Description in the files.
const LABEL: &str = "learnt by `domino serve` from texts of one client, of which it holds parts";

/// A folder of counts, and the thread that writes it. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct PriorKeeper {
    folder: Arc<PriorFolder>,
    jobs: Sender<KeeperJob>,
}

/// A folder of counts that learn from the texts of one model.
#[derive(Debug)]
struct PriorFolder {
    path: PathBuf,
    model: String,
}

/// Work of the thread.
#[derive(Debug)]
enum KeeperJob {
    /// Keeps these counts from now on.
    Keep(Arc<KeptCounts>),
    /// Writes counts that nobody uses any more.
    Leave(Arc<KeptCounts>),
    /// Writes all that have changed, and says so.
    WriteAll(Sender<()>),
}

/// Counts of one client for one grammar, and their file.
#[derive(Debug)]
struct KeptCounts {
    file: PathBuf,
    learner: Learner,
    /// Tokens that the counts in the file are of.
    written: AtomicU64,
}

/// Holder of counts that are kept; dropping it has them written.
#[derive(Debug)]
pub(crate) struct Keeping {
    counts: Arc<KeptCounts>,
    jobs: Sender<KeeperJob>,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        // At the end of the program nobody takes it, and all was written before.
        let _ = self.jobs.send(KeeperJob::Leave(Arc::clone(&self.counts)));
    }
}

impl PriorKeeper {
    /// Makes the folder if there is none, and starts the thread.
    ///
    /// # Errors
    /// If files cannot be made in it.
    pub(crate) fn open(path: &Path, model: &str) -> Result<Self, BadInput> {
        Self::with_rounds(path, model, EVERY)
    }

    fn with_rounds(path: &Path, model: &str, every: Duration) -> Result<Self, BadInput> {
        let bad = |error: io::Error| {
            BadInput::new(format!("--prior-dir: files cannot be made in {}: {error}", path.display()))
                .hint("it takes a folder of the server's own, which is made if it is not there")
        };
        make_folder(path).map_err(bad)?;
        write_whole(&path.join(README), README_TEXT.as_bytes()).map_err(bad)?;
        let folder = Arc::new(PriorFolder { path: path.to_owned(), model: plain(model) });
        let (jobs, work) = channel();
        // What earlier runs have written is looked at after the first file.
        let writer = CountWriter { folder: Arc::clone(&folder), kept: Vec::new(), unseen: MOST_UNSEEN };
        let thread = thread::Builder::new().name("priors".to_owned());
        thread.spawn(move || writer.work(&work, every)).map_err(bad)?;
        Ok(Self { folder, jobs })
    }

    /// Reads the counts of a client for a grammar. `None`: there are none that can be used.
    pub(crate) fn read(&self, client: &str, grammar: &CompiledGrammar) -> Option<Prior> {
        let file = self.folder.file(client, &Prior::new(grammar));
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!("{}: {error}; its counts are left out", file.display());
                return None;
            }
        };
        let read = Prior::from_bytes(&bytes, grammar);
        read.inspect_err(|error| {
            tracing::warn!("{}: {error}; it is ignored, and replaced by what is learnt", file.display());
        })
        .ok()
    }

    /// Keeps the counts of a client from now on, which are those of its file if there were some.
    pub(crate) fn keep(&self, client: &str, learner: &Learner) -> Keeping {
        let (file, written) = {
            let learner = held(learner);
            (self.folder.file(client, learner.prior()), learner.prior().observed())
        };
        let written = AtomicU64::new(written);
        let counts = Arc::new(KeptCounts { file, learner: Arc::clone(learner), written });
        // The thread lives as long as its senders.
        let _ = self.jobs.send(KeeperJob::Keep(Arc::clone(&counts)));
        Keeping { counts, jobs: self.jobs.clone() }
    }

    /// Writes all that has changed, for at most `patience`. Returns whether it was done.
    pub(crate) fn write_all(&self, patience: Duration) -> bool {
        let (done, is_done) = channel();
        self.jobs.send(KeeperJob::WriteAll(done)).is_ok() && is_done.recv_timeout(patience).is_ok()
    }
}

impl PriorFolder {
    /// The file of the counts of a client for what `prior` is for.
    fn file(&self, client: &str, prior: &Prior) -> PathBuf {
        let short = |fingerprint: &str, length: usize| fingerprint.chars().take(length).collect::<String>();
        let model = format!("{}-{}", self.model, short(prior.vocabulary(), 8));
        let name = short(prior.grammar(), NAME_LENGTH);
        self.path.join(client).join(model).join(name).with_extension(ENDING)
    }
}

/// Thread that writes.
struct CountWriter {
    folder: Arc<PriorFolder>,
    kept: Vec<Arc<KeptCounts>>,
    /// Bytes that were written since the folder was last looked at.
    unseen: u64,
}

impl CountWriter {
    fn work(mut self, jobs: &Receiver<KeeperJob>, every: Duration) {
        tell_of_others(&self.folder.path);
        let mut next = Instant::now() + every;
        loop {
            match jobs.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(KeeperJob::Keep(counts)) => self.kept.push(counts),
                Ok(KeeperJob::Leave(counts)) => {
                    self.write(&counts);
                    self.kept.retain(|other| !Arc::ptr_eq(other, &counts));
                }
                Ok(KeeperJob::WriteAll(done)) => {
                    self.write_all();
                    // Whoever waited may have left.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if next <= Instant::now() {
                self.write_all();
                next = Instant::now() + every;
            }
        }
    }

    fn write_all(&mut self) {
        for counts in self.kept.clone() {
            self.write(&counts);
        }
    }

    /// Writes counts that have changed. What cannot be written is tried again in the next round.
    fn write(&mut self, counts: &KeptCounts) {
        let (observed, prior) = {
            let learner = held(&counts.learner);
            let observed = learner.prior().observed();
            if observed <= counts.written.load(Ordering::Relaxed) {
                return;
            }
            (observed, learner.prior().clone())
        };
        match write(&counts.file, prior) {
            Ok(bytes) => {
                counts.written.store(observed, Ordering::Relaxed);
                self.unseen = self.unseen.saturating_add(bytes);
            }
            Err(error) => {
                let file = counts.file.display();
                tracing::warn!("{file}: {error}; what was learnt is not kept, until it can be written");
            }
        }
        if self.unseen > MOST_UNSEEN {
            self.unseen = 0;
            trim(&self.folder.path, MOST_BYTES);
        }
    }
}

fn write(file: &Path, mut prior: Prior) -> io::Result<u64> {
    prior.set_label(LABEL);
    let bytes = prior.to_bytes();
    file.parent().map_or(Ok(()), make_folder)?;
    write_whole(file, &bytes)?;
    Ok(u64::try_from(bytes.len()).unwrap_or_default())
}

fn held(learner: &Learner) -> MutexGuard<'_, CountProposer> {
    learner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ending of a file of counts.
const ENDING: &str = "prior";

/// Characters of a file's name before its ending.
const NAME_LENGTH: usize = 32;

/// Folders above a file of counts: the client, and the model.
const LEVELS: usize = 2;

/// Age after which a file that is being written never will be finished.
const STALE: Duration = Duration::from_secs(3600);

/// Foreign files that the log names.
const MOST_TOLD: usize = 8;

/// The file that says what the others are.
pub(super) const README: &str = "README.txt";

const README_TEXT: &str = "\
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
fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Writes a file whole or not at all, for the server's user alone.
fn write_whole(file: &Path, content: &[u8]) -> io::Result<()> {
    WholeFile::new(file).synced().private().write(content)
}

/// Tells in the log which files are none of counts, and removes those that were begun long ago and never
/// finished.
fn tell_of_others(folder: &Path) {
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
fn trim(folder: &Path, most: u64) {
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
mod tests;
