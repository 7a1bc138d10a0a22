//! `Compiled`: a grammar ready to constrain texts.

use std::{path::PathBuf, sync::Arc, time::Duration};

use domino::{CompiledGrammar, Compiler, Limits, Vocabulary};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use serde_json::{Value, json};

use crate::{
    bytes,
    compiler::PyCompiler,
    constraint::PyConstraint,
    engine::unlocked,
    failure::{Failure, Outcome},
    grammar::{self, PyGrammar, Read, Written},
    limits,
    steps::Bounds,
    vocabulary::PyVocabulary,
};

/// A grammar compiled for a vocabulary. Immutable and cheap to share; all its constraints add to what it
/// knows. Pickles and files have the grammar, the vocabulary, and the trees that are there.
#[pyclass(name = "Compiled", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyCompiled {
    pub(crate) parts: Arc<Parts>,
}

/// What its constraints share.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) compiled: CompiledGrammar,
    pub(crate) read: Arc<Read>,
    pub(crate) limits: Limits,
    pub(crate) bounds: Bounds,
}

impl Parts {
    /// Compiles a grammar.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn new(
        compiler: &Compiler,
        read: &Arc<Read>,
        limits: &Limits,
        step: Option<Duration>,
    ) -> Outcome<Self> {
        let compiled = compiler.compile(&read.grammar)?;
        let bounds = Bounds::new(limits, compiled.vocabulary(), step);
        Ok(Self { compiled, read: Arc::clone(read), limits: limits.clone(), bounds })
    }

    fn to_bytes(&self, with_trees: bool) -> Vec<u8> {
        let Written { notation, text, options } = &self.read.written;
        let head = json!({
            "notation": notation, "options": options, "limits": limits::to_json(&self.limits),
            "step_seconds": self.bounds.step.map(|step| step.as_secs_f64()),
        });
        let trees = if with_trees { self.compiled.artefact() } else { Vec::new() };
        let vocabulary = self.vocabulary().to_bytes();
        bytes::joined(&[head.to_string().as_bytes(), text.as_bytes(), &vocabulary, &trees])
    }

    /// The vocabulary that it was compiled for, without what the grammar has spelled out.
    fn vocabulary(&self) -> &Vocabulary {
        self.compiled.vocabulary()
    }

    fn from_bytes(data: &[u8], compiler: Option<&Compiler>) -> Outcome<Self> {
        let [head, text, vocabulary, trees] = bytes::parts(data)?;
        let wrong =
            |error: &dyn std::fmt::Display| Failure::Foreign(format!("not a compiled grammar: {error}"));
        let head: Value = serde_json::from_slice(head).map_err(|error| wrong(&error))?;
        let text = std::str::from_utf8(text).map_err(|error| wrong(&error))?.to_owned();
        let notation = head.get("notation").and_then(Value::as_str).unwrap_or_default().to_owned();
        let options = head.get("options").cloned().unwrap_or_default();
        let read = Arc::new(Written { notation, text, options }.read()?);
        let limits = limits::from_json(head.get("limits").unwrap_or(&Value::Null))?;
        let step = match head.get("step_seconds").and_then(Value::as_f64) {
            Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|error| wrong(&error))?),
            None => None,
        };
        let vocabulary = Vocabulary::from_bytes(vocabulary)?;
        let parts = match compiler {
            Some(compiler) => Self::new(&compiler.clone().limits(limits.clone()), &read, &limits, step)?,
            None => {
                let compiler = Compiler::new(vocabulary.clone()).limits(limits.clone());
                Self::new(&compiler.share_automata(grammar::automata().clone()), &read, &limits, step)?
            }
        };
        if parts.vocabulary().fingerprint() != vocabulary.fingerprint() {
            return Err(Failure::Foreign(
                "it was compiled for another vocabulary than this compiler's".to_owned(),
            ));
        }
        if !trees.is_empty() {
            parts.compiled.load_artefact(trees)?;
        }
        Ok(parts)
    }
}

#[pymethods]
impl PyCompiled {
    /// A text in the making, at its start.
    fn constraint(&self) -> PyConstraint {
        PyConstraint::new(Arc::clone(&self.parts))
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

    /// It as bytes: with `trees`, those of all terminals, which are made if they are not there.
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

/// Writes a file by way of another one beside it.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write(path: &std::path::Path, bytes: &[u8]) -> Outcome<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    Ok(written?)
}
