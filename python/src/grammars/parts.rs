//! Parts of a `Compiled`, and its bytes for files and other processes.

use std::{path::Path, sync::Arc, time::Duration};

use domino::{CompiledGrammar, Compiler, Limits, Vocabulary, store::WholeFile};
use serde_json::{Value, json};

use crate::{
    bytes,
    failure::{Failure, Outcome},
    grammar::{self, Read, Written},
    limits,
    steps::Bounds,
};

/// A compiled grammar with all that its constraints share.
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
    /// If the grammar cannot be compiled.
    pub(crate) fn new(
        compiler: &Compiler,
        read: &Arc<Read>,
        limits: &Limits,
        step: Option<Duration>,
    ) -> Outcome<Self> {
        let compiled = compiler.compile(&*read.behind_thought(compiler.vocabulary(), limits)?)?;
        let bounds = Bounds::new(limits, compiled.vocabulary(), step);
        Ok(Self { compiled, read: Arc::clone(read), limits: limits.clone(), bounds })
    }

    /// Serialises it, with the trees of all terminals if they are wanted.
    pub(crate) fn to_bytes(&self, with_trees: bool) -> Vec<u8> {
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
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        self.compiled.vocabulary()
    }

    /// Reads bytes of [`to_bytes`](Self::to_bytes); a compiler of the same vocabulary saves making that
    /// again.
    ///
    /// # Errors
    /// If they are something else, of another version, or of another vocabulary.
    pub(crate) fn from_bytes(data: &[u8], compiler: Option<&Compiler>) -> Outcome<Self> {
        let [head, text, vocabulary, trees] = bytes::parts(data)?;
        let wrong =
            |error: &dyn std::fmt::Display| Failure::Foreign(format!("not a compiled grammar: {error}"));
        let head: Value = serde_json::from_slice(head).map_err(|error| wrong(&error))?;
        let text = std::str::from_utf8(text).map_err(|error| wrong(&error))?.to_owned();
        let notation = head.get("notation").and_then(Value::as_str).unwrap_or_default().to_owned();
        let options = head.get("options").cloned().unwrap_or_default();
        let read = Arc::new(Written { notation, text, options }.read(None)?);
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

/// Writes a file whole or not at all.
///
/// # Errors
/// If the file cannot be written or renamed.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    Ok(WholeFile::new(path).write(bytes)?)
}
