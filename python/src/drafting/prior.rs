//! `Prior`: counts learnt from the texts of a grammar.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, TryLockError},
};

use domino::{
    TokenId,
    proposer::{CountProposer, Learning, Prior, Propose, Seen, Site},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{
    compile::PyCompiled,
    engine::unlocked,
    failure::{Failure, Outcome},
    parts::{Parts, write},
    steps::{PyCancel, Watch, patiently},
    vocabulary::token_ids,
};

/// Counts of tokens by place in a grammar, for one vocabulary: what drafts are made of. One thread
/// at a time may use it; the others get `BusyError`.
#[pyclass(name = "Prior", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyPrior {
    parts: Arc<Parts>,
    prior: Mutex<Prior>,
}

/// A function, and what it is called with to make a prior again.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, PyCompiled));

impl PyPrior {
    /// A prior of this grammar.
    pub(crate) fn new(parts: Arc<Parts>, prior: Prior) -> Self {
        Self { parts, prior: Mutex::new(prior) }
    }

    /// Locks what it knows. Never waits: whoever has it may be waiting for the interpreter's lock.
    ///
    /// # Errors
    /// If another thread has it.
    pub(crate) fn held(&self) -> Outcome<MutexGuard<'_, Prior>> {
        match self.prior.try_lock() {
            Ok(prior) => Ok(prior),
            Err(TryLockError::WouldBlock) => Err(Failure::Busy("prior")),
            // Counts that a panic has left half-made can at worst guess badly.
            Err(TryLockError::Poisoned(held)) => Ok(held.into_inner()),
        }
    }
}

/// Shows a proposer all tokens of a text, each where it came; `prompt` came before them.
///
/// # Errors
/// If a token cannot follow, or a bound is reached.
pub(crate) fn show_text(
    proposer: &mut dyn Propose,
    parts: &Parts,
    prompt: Vec<TokenId>,
    tokens: &[TokenId],
) -> Outcome<()> {
    let cancel = PyCancel::default();
    let watch = Watch { cancel: &cancel, more: None, signals: true };
    let (mut session, mut spent, mut before) = (parts.compiled.constraint(), 0, prompt);
    for &token in tokens {
        let mut site = Site::new(Some(&session), &mut before, 0.0, &|_, _| 0.0);
        proposer.observe(&mut site, Seen::new(token, None));
        drop(site);
        patiently(&mut session, &mut spent, &parts.bounds, &watch, |session| session.advance(token))?;
        before.push(token);
    }
    Ok(())
}

#[pymethods]
impl PyPrior {
    /// A prior that knows nothing.
    #[new]
    #[pyo3(signature = (compiled, /))]
    fn empty(compiled: PyRef<'_, PyCompiled>) -> Self {
        let parts = Arc::clone(&compiled.parts);
        let prior = Prior::new(&parts.compiled);
        Self::new(parts, prior)
    }

    /// Learns a text of the grammar: its tokens, those of `prompt` before it. Raises `RefusedError` if one
    /// cannot follow; then nothing was learnt.
    #[pyo3(signature = (tokens, /, *, prompt=Vec::new()))]
    fn learn(&self, py: Python<'_>, tokens: Vec<i64>, prompt: Vec<i64>) -> Outcome<()> {
        let (tokens, prompt) = (token_ids(&tokens)?, token_ids(&prompt)?);
        unlocked(py, || {
            let mut prior = self.held()?;
            let mut proposer = CountProposer::new(prior.clone(), Learning::Online);
            show_text(&mut proposer, &self.parts, prompt, &tokens)?;
            *prior = proposer.prior().clone();
            Ok(())
        })
    }

    /// Adds what another one of the same grammar and vocabulary knows.
    #[pyo3(signature = (other, /))]
    fn merge(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Outcome<()> {
        let other = other.held()?.clone();
        unlocked(py, || Ok(self.held()?.merge(&other)?))
    }

    /// Forgets the contexts that were met least, until at most this many are left.
    #[pyo3(signature = (contexts, /))]
    fn shrink(&self, py: Python<'_>, contexts: usize) -> Outcome<()> {
        unlocked(py, || {
            self.held()?.shrink(contexts);
            Ok(())
        })
    }

    /// Sums up what it holds: `label`, `observed` tokens, `contexts`, `guesses` made while learning, and the
    /// `right` ones of them.
    fn summary<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyDict>> {
        let (summary, row) = (self.held()?.summary(), PyDict::new(py));
        row.set_item("label", &summary.label)?;
        row.set_item("observed", summary.observed)?;
        row.set_item("contexts", summary.levels.iter().map(|&(contexts, _)| contexts).sum::<usize>())?;
        row.set_item("guesses", summary.guesses)?;
        row.set_item("right", summary.right)?;
        Ok(row)
    }

    /// Serialises it.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.held()?.to_bytes()))
    }

    /// Reads what `to_bytes` made, for the same grammar and vocabulary.
    #[staticmethod]
    #[pyo3(signature = (data, compiled, /))]
    fn from_bytes(py: Python<'_>, data: &[u8], compiled: PyRef<'_, PyCompiled>) -> Outcome<Self> {
        let parts = Arc::clone(&compiled.parts);
        unlocked(py, || {
            let prior = Prior::from_bytes(data, &parts.compiled)?;
            Ok(Self::new(parts, prior))
        })
    }

    /// Writes `to_bytes` into a file, which is there whole or not at all.
    #[pyo3(signature = (path, /))]
    fn save(&self, py: Python<'_>, path: PathBuf) -> Outcome<()> {
        unlocked(py, || write(&path, &self.held()?.to_bytes()))
    }

    /// Reads what `save` or `domino learn` wrote, for the same grammar and vocabulary.
    #[staticmethod]
    #[pyo3(signature = (path, compiled, /))]
    fn load(py: Python<'_>, path: PathBuf, compiled: PyRef<'_, PyCompiled>) -> Outcome<Self> {
        let parts = Arc::clone(&compiled.parts);
        unlocked(py, || {
            let prior = Prior::from_bytes(&std::fs::read(path)?, &parts.compiled)?;
            Ok(Self::new(parts, prior))
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Outcome<Pickled<'py>> {
        let from_bytes = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((from_bytes, (self.to_bytes(py)?, PyCompiled { parts: Arc::clone(&self.parts) })))
    }

    fn __repr__(&self) -> String {
        self.held().map_or_else(
            |_| "<Prior in use>".to_owned(),
            |prior| format!("<Prior of {} tokens>", prior.summary().observed),
        )
    }
}
