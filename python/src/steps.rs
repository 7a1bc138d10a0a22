//! Takes steps in pieces, between which they can be cancelled, interrupted, or run out of time.
//!
//! The engine does a step in pieces of bounded work and keeps what each has found out
//! (`domino::Patience::one_piece`), so a step that goes on repeats nothing.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use domino::{Cancel, Constraint, Limits, StepError, Vocabulary};
use pyo3::prelude::*;

use crate::failure::{Failure, Outcome};

/// Approximate nodes of a vocabulary's trie for each token.
const NODES: usize = 3;
/// Nodes that totals are reckoned for at least, as in `domino::Limits`.
const LEAST_NODES: usize = 1 << 16;

/// Bounds of a step and of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    step_pieces: usize,
    text_pieces: usize,
    pub(crate) step: Option<Duration>,
}

impl Bounds {
    /// Derives them from the limits.
    pub(crate) fn new(limits: &Limits, vocabulary: &Vocabulary, step: Option<Duration>) -> Self {
        let nodes = vocabulary.size().saturating_mul(NODES).max(LEAST_NODES);
        let pieces = |units: usize| (units.saturating_mul(nodes) / limits.step_work.max(1)).max(1);
        Self { step_pieces: pieces(limits.step_units), text_pieces: pieces(limits.text_units), step }
    }
}

/// Cancels from another thread what constraints do, and the reading and compiling of grammars that were given
/// it. All that they do afterwards raises `CancelledError`, until `reset`.
#[pyclass(name = "CancelHandle", module = "domino_decoding", frozen)]
#[derive(Debug, Clone, Default)]
pub(crate) struct PyCancel {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// True once cancelled, for steps to look at.
    flag: AtomicBool,
    /// The handle since the last reset, for reading and compiling to look at. Both are changed together,
    /// under this lock.
    work: Mutex<Cancel>,
}

#[pymethods]
impl PyCancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends the steps that are being taken, within some milliseconds, and the reading and compiling, within
    /// some tenths of a second; and all later ones.
    fn cancel(&self) {
        let work = self.work();
        work.cancel();
        self.shared.flag.store(true, Ordering::Relaxed);
    }

    /// Lets steps be taken again, and grammars be read and compiled. What was cancelled stays so.
    fn reset(&self) {
        let mut work = self.work();
        *work = Cancel::new();
        self.shared.flag.store(false, Ordering::Relaxed);
    }

    /// Has it been cancelled?
    #[getter]
    fn cancelled(&self) -> bool {
        self.is_set()
    }
}

impl PyCancel {
    pub(crate) fn is_set(&self) -> bool {
        self.shared.flag.load(Ordering::Relaxed)
    }

    /// The handle for work on a grammar that begins now.
    pub(crate) fn of_work(&self) -> Cancel {
        self.work().clone()
    }

    fn work(&self) -> MutexGuard<'_, Cancel> {
        self.shared.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watch over a step, which may end it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) cancel: &'a PyCancel,
    pub(crate) more: Option<&'a PyCancel>,
    /// Is this the thread that called, which Ctrl-C may interrupt?
    pub(crate) signals: bool,
}

impl Watch<'_> {
    /// Checks whether the step must end.
    ///
    /// # Errors
    /// If it must.
    pub(crate) fn look(&self) -> Outcome<()> {
        if self.cancel.is_set() || self.more.is_some_and(PyCancel::is_set) {
            return Err(Failure::Cancelled);
        }
        if self.signals { Ok(Python::attach(|py| py.check_signals())?) } else { Ok(()) }
    }
}

/// Takes a step in as many pieces as it needs; `spent` counts those of the text.
///
/// # Errors
/// Those of the step, and where the watch or the bounds end it.
pub(crate) fn patiently<T>(
    session: &mut Constraint,
    spent: &mut usize,
    bounds: &Bounds,
    watch: &Watch<'_>,
    mut step: impl FnMut(&mut Constraint) -> Result<T, StepError>,
) -> Outcome<T> {
    let mut since = None;
    for pieces in 1_usize.. {
        match step(session) {
            Err(error) if error.can_go_on() => {
                *spent = spent.saturating_add(1);
                if pieces >= bounds.step_pieces || *spent >= bounds.text_pieces {
                    return Err(error.into());
                }
                watch.look()?;
                let since = since.get_or_insert_with(Instant::now);
                if let Some(most) = bounds.step.filter(|&most| since.elapsed() >= most) {
                    return Err(Failure::TimeOver(most.as_secs_f64()));
                }
            }
            done => return Ok(done?),
        }
    }
    Err(Failure::Cancelled)
}
