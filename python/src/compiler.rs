//! `Compiler`: compiles grammars for one vocabulary.

use std::{path::PathBuf, sync::Arc, time::Duration};

use domino::{Compiler, Limits, grammar::json_schema::SchemaOptions, store::CacheFolder};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    compiled::{Parts, PyCompiled},
    engine::unlocked,
    failure::{Failure, Outcome},
    grammar::{PyGrammar, automata},
    limits,
    vocabulary::PyVocabulary,
};

/// Compiles grammars for one vocabulary. What they have in common is worked out once. Threads may share it.
///
/// `cache`: a folder that keeps what takes long between runs. `limits`: budgets by name, see `limit_names`.
/// `step_seconds`: a step that takes longer ends in `TimeError`.
#[pyclass(name = "Compiler", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyCompiler {
    pub(crate) inner: Compiler,
    vocabulary: PyVocabulary,
    limits: Limits,
    step: Option<Duration>,
}

#[pymethods]
impl PyCompiler {
    #[new]
    #[pyo3(signature = (vocabulary, /, *, cache=None, limits=None, step_seconds=None))]
    fn new(
        vocabulary: PyRef<'_, PyVocabulary>,
        cache: Option<PathBuf>,
        limits: Option<&Bound<'_, PyDict>>,
        step_seconds: Option<f64>,
    ) -> Outcome<Self> {
        let limits = limits::read(limits)?;
        let step = match step_seconds.map(Duration::try_from_secs_f64) {
            Some(Ok(step)) => Some(step),
            Some(Err(error)) => return Err(Failure::Value(format!("step_seconds: {error}"))),
            None => None,
        };
        let vocabulary = vocabulary.clone();
        let inner = Compiler::new(vocabulary.inner.clone()).limits(limits.clone());
        let inner = inner.share_automata(automata().clone());
        let inner = match cache {
            Some(folder) => inner.cache(CacheFolder::new(folder)),
            None => inner,
        };
        Ok(Self { inner, vocabulary, limits, step })
    }

    /// Compiles a grammar. Raises `CompileError` if it has no text at all, or asks for tokens that are not
    /// there.
    #[pyo3(signature = (grammar, /))]
    fn compile(&self, py: Python<'_>, grammar: PyRef<'_, PyGrammar>) -> Outcome<PyCompiled> {
        let read = Arc::clone(&grammar.read);
        let parts = unlocked(py, || Parts::new(&self.inner, &read, &self.limits, self.step))?;
        Ok(PyCompiled { parts: Arc::new(parts) })
    }

    /// Makes ahead what grammars such as this one need of the vocabulary; without one, what JSON Schemas
    /// need: while a model is loaded, for instance.
    #[pyo3(signature = (grammar=None, /))]
    fn prepare(&self, py: Python<'_>, grammar: Option<PyRef<'_, PyGrammar>>) -> Outcome<()> {
        let read = grammar.map(|grammar| Arc::clone(&grammar.read));
        unlocked(py, || {
            let made = match &read {
                Some(read) => self.inner.prepare(&read.grammar),
                None => {
                    let kinds = SchemaOptions::default().kinds_of_values_with(&self.limits, automata())?;
                    self.inner.prepare(&kinds.grammar)
                }
            };
            Ok(made?)
        })
    }

    /// Drops what it keeps for the next grammars until that takes no more than `most` bytes.
    #[pyo3(signature = (most=0, /))]
    fn trim(&self, py: Python<'_>, most: usize) -> Outcome<()> {
        unlocked(py, || {
            self.inner.trim(most);
            Ok(())
        })
    }

    /// Memory in bytes of what its grammars share (`terminals`), of that what no grammar uses (`unused`), and
    /// of automata of schemas (`automata`).
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (memory, row) = (self.inner.memory(), PyDict::new(py));
        row.set_item("terminals", memory.terminals)?;
        row.set_item("unused", memory.unused)?;
        row.set_item("automata", memory.automata)?;
        Ok(row)
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self) -> PyVocabulary {
        self.vocabulary.clone()
    }

    fn __repr__(&self) -> String {
        format!("<Compiler for {} tokens>", self.vocabulary.inner.token_count())
    }
}
