//! Python's module `domino_decoding._native`: the engine's types as classes.
//!
//! Invariants: a panic of the engine becomes an exception (`engine::guarded`); long work is done without the
//! interpreter's lock; memory of others is written in `rows` alone, which is the only file with `unsafe`.

mod batch;
mod bytes;
mod compile;
mod constraint;
mod drafting;
mod engine;
mod failure;
mod grammars;
mod json;
mod limits;
mod rows;
mod steps;
mod vocabulary;

use pyo3::prelude::*;

use self::{
    drafting::{drafts, prior, proposers},
    grammars::{grammar, parts, schema, tools},
};

/// The classes and functions; `domino_decoding/__init__.py` hands them on.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        batch::fill_batch,
        compile::{PyCompiled, PyCompiler},
        constraint::PyConstraint,
        drafts::PyDrafter,
        engine::after_fork,
        grammar::PyGrammar,
        prior::PyPrior,
        rows::{PyMask, PyRawMask},
        steps::PyCancel,
        vocabulary::PyVocabulary,
    };

    use super::*;

    /// The version of the library that the wheel was built of.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("limit_names", crate::limits::NAMES)
    }
}
