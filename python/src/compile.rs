//! `Compiler` and `Compiled`: grammars made ready to constrain texts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use domino::{Compiler, Limits, store::CacheFolder};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{
    constraint::PyConstraint,
    engine::unlocked,
    failure::{Failure, Outcome},
    grammar::{PyGrammar, automata},
    limits,
    parts::{Parts, write},
    schema,
    steps::PyCancel,
    vocabulary::PyVocabulary,
};

/// Compiles grammars for one vocabulary. What they have in common is worked out once. Threads may share it.
///
/// `cache`: a folder that keeps what takes long between runs. `limits`: budgets by name, see `limit_names`.
/// `step_seconds`: a step that takes longer ends in `TimeError`.
#[pyclass(name = "Compiler", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyCompiler {
    inner: Compiler,
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
    /// there, and `CancelledError` if another thread cancels it by the handle `cancel`.
    #[pyo3(signature = (grammar, /, *, cancel=None))]
    fn compile(
        &self,
        py: Python<'_>,
        grammar: PyRef<'_, PyGrammar>,
        cancel: Option<PyRef<'_, PyCancel>>,
    ) -> Outcome<PyCompiled> {
        let read = Arc::clone(&grammar.read);
        let ended = cancel.map(|cancel| self.inner.cancelled_by(&cancel.of_work()));
        let compiler = ended.as_ref().unwrap_or(&self.inner);
        let parts = unlocked(py, || Parts::new(compiler, &read, &self.limits, self.step))?;
        Ok(PyCompiled { parts: Arc::new(parts) })
    }

    /// Makes ahead what grammars such as this one need of the vocabulary; without one, what JSON Schemas that
    /// are read with these options of `Grammar.json_schema` need: while a model is loaded, for instance.
    /// `cancel` as for `compile`.
    #[pyo3(signature = (grammar=None, /, *, cancel=None, **options))]
    fn prepare(
        &self,
        py: Python<'_>,
        grammar: Option<PyRef<'_, PyGrammar>>,
        cancel: Option<PyRef<'_, PyCancel>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Outcome<()> {
        if grammar.is_some() && options.is_some_and(|options| !options.is_empty()) {
            return Err(Failure::Value("options of schemas are for `prepare` without a grammar".to_owned()));
        }
        let options = schema::read(&schema::options_json(options)?)?;
        let read = grammar.map(|grammar| Arc::clone(&grammar.read));
        let ended = cancel.map(|cancel| self.inner.cancelled_by(&cancel.of_work()));
        let compiler = ended.as_ref().unwrap_or(&self.inner);
        unlocked(py, || {
            let made = match &read {
                Some(read) => compiler.prepare(&read.grammar),
                None => {
                    let kinds = options.kinds_of_values_with(&self.limits, automata())?;
                    compiler.prepare(&kinds.grammar)
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

/// A grammar compiled for a vocabulary. Immutable and cheap to share; all its constraints add to what it
/// knows. Pickles and files have the grammar, the vocabulary, and the trees that are there.
#[pyclass(name = "Compiled", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyCompiled {
    pub(crate) parts: Arc<Parts>,
}

#[pymethods]
impl PyCompiled {
    /// A text in the making, at its start. A thought before it is closed after `reasoning_tokens` steps.
    #[pyo3(signature = (*, reasoning_tokens=None))]
    fn constraint(this: &Bound<'_, Self>, reasoning_tokens: Option<usize>) -> PyConstraint {
        let parts = Arc::clone(&this.get().parts);
        PyConstraint::new(parts, this.clone().unbind().into_any(), reasoning_tokens)
    }

    /// The grammar.
    #[getter]
    fn grammar(&self) -> PyGrammar {
        PyGrammar { read: Arc::clone(&self.parts.read) }
    }

    /// The vocabulary it was compiled for.
    #[getter]
    fn vocabulary(&self) -> PyVocabulary {
        PyVocabulary { inner: self.parts.vocabulary().clone() }
    }

    /// Makes the trees of all terminals now, on all cores; masks are the same.
    fn grow_trees(&self, py: Python<'_>) -> Outcome<()> {
        unlocked(py, || {
            self.parts.compiled.grow_trees();
            Ok(())
        })
    }

    /// Makes masks ahead, those of the places that texts come to first. Returns how many places were seen,
    /// and whether these are all that there are. With `background` it returns None at once, and another
    /// thread does it.
    #[pyo3(signature = (*, background=false))]
    fn explore(&self, py: Python<'_>, background: bool) -> Outcome<Option<(usize, bool)>> {
        if background {
            self.parts.compiled.explore_in_background();
            return Ok(None);
        }
        unlocked(py, || {
            let explored = self.parts.compiled.explore();
            Ok(Some((explored.states, explored.complete)))
        })
    }

    /// Memory in bytes of what its constraints share, by kind.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = self.parts.compiled.memory();
        let row = PyDict::new(py);
        row.set_item("grammar", memory.grammar)?;
        row.set_item("terminals", memory.terminals)?;
        row.set_item("parser_sets", memory.parser_sets)?;
        row.set_item("states", memory.states)?;
        row.set_item("trees", memory.trees)?;
        row.set_item("masks", memory.masks)?;
        Ok(row)
    }

    /// Serialises it: with `trees`, those of all terminals, which are made if they are not there.
    #[pyo3(signature = (*, trees=true))]
    fn to_bytes<'py>(&self, py: Python<'py>, trees: bool) -> Outcome<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &unlocked(py, || Ok(self.parts.to_bytes(trees)))?))
    }

    /// Reads what `to_bytes` made. A `compiler` of the same vocabulary saves making that again.
    #[staticmethod]
    #[pyo3(signature = (data, /, *, compiler=None))]
    fn from_bytes(py: Python<'_>, data: &[u8], compiler: Option<PyRef<'_, PyCompiler>>) -> Outcome<Self> {
        let compiler = compiler.map(|compiler| compiler.inner.clone());
        let parts = unlocked(py, || Parts::from_bytes(data, compiler.as_ref()))?;
        Ok(Self { parts: Arc::new(parts) })
    }

    /// Writes `to_bytes` into a file, which is there whole or not at all.
    #[pyo3(signature = (path, /, *, trees=true))]
    fn save(&self, py: Python<'_>, path: PathBuf, trees: bool) -> Outcome<()> {
        unlocked(py, || write(&path, &self.parts.to_bytes(trees)))
    }

    /// Reads what `save` wrote.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, compiler=None))]
    fn load(py: Python<'_>, path: PathBuf, compiler: Option<PyRef<'_, PyCompiler>>) -> Outcome<Self> {
        let compiler = compiler.map(|compiler| compiler.inner.clone());
        let parts = unlocked(py, || Parts::from_bytes(&std::fs::read(path)?, compiler.as_ref()))?;
        Ok(Self { parts: Arc::new(parts) })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = unlocked(py, || Ok(self.parts.to_bytes(self.parts.compiled.has_trees())))?;
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    fn __repr__(&self) -> String {
        let vocabulary = self.parts.vocabulary().token_count();
        format!("<Compiled {} grammar for {vocabulary} tokens>", self.parts.read.written.notation)
    }
}
