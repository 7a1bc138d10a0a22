//! Counts that are learnt while texts are written, and the file that keeps them.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use domino::{
    Lookahead, Terminals,
    proposer::{CountProposer, Prior},
};

use crate::files::output::Output;

/// A proposer whose counts can be read while it learns.
pub(crate) type Learner = Arc<Mutex<CountProposer>>;

/// Copies the counts of a learner.
pub(crate) fn known(learner: &Learner) -> Prior {
    learner.lock().unwrap_or_else(PoisonError::into_inner).prior().clone()
}

/// A learner that learns while a text is written, and the file for its counts.
pub(crate) struct Keeper {
    pub(super) learner: Learner,
    pub(super) file: Option<PathBuf>,
}

impl Keeper {
    /// The lookahead and the terminals that the prior was learnt at.
    pub(crate) fn learnt_at(&self) -> (Lookahead, Terminals) {
        let learner = self.learner.lock().unwrap_or_else(PoisonError::into_inner);
        (learner.prior().lookahead(), learner.prior().terminals())
    }

    /// Writes the counts to the file, if there is one.
    pub(crate) fn keep(&self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        Output::prepare(file)?.write(&known(&self.learner).to_bytes())
    }
}
