//! Counts that are kept in a folder between runs (`--prior-dir`): a file for each client, model and grammar.
//!
//! What is counted are tokens of texts that were written for users, so the files hold parts of these texts.
//! They are for the server's user alone, and those of one client are not read for another.
//!
//! Invariants: a file under its final name is whole, since it is written under another one and then renamed.
//! A file that cannot be read or written costs a line in the log, never a request. Files of other programs
//! are neither read nor changed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use domino::{
    CompiledGrammar,
    proposer::{CountProposer, Prior},
};

use super::kept_files::{self, README};
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
        kept_files::make_folder(path).map_err(bad)?;
        kept_files::write_whole(&path.join(README), kept_files::README_TEXT.as_bytes()).map_err(bad)?;
        let folder = Arc::new(PriorFolder { path: path.to_owned(), model: kept_files::plain(model) });
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
        let name = short(prior.grammar(), kept_files::NAME_LENGTH);
        self.path.join(client).join(model).join(name).with_extension(kept_files::ENDING)
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
        kept_files::tell_of_others(&self.folder.path);
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
            kept_files::trim(&self.folder.path, MOST_BYTES);
        }
    }
}

fn write(file: &Path, mut prior: Prior) -> io::Result<u64> {
    prior.set_label(LABEL);
    let bytes = prior.to_bytes();
    file.parent().map_or(Ok(()), kept_files::make_folder)?;
    kept_files::write_whole(file, &bytes)?;
    Ok(u64::try_from(bytes.len()).unwrap_or_default())
}

fn held(learner: &Learner) -> MutexGuard<'_, CountProposer> {
    learner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
