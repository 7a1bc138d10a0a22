//! Failures, and their exceptions in `domino_decoding.errors`.

use domino::{
    CaptureError, CompileError, CompileErrorKind, GrammarError, LimitExceeded, StepError, StepErrorKind,
    VocabularyError,
    grammar::{GrammarErrorKind, json_schema::SchemaError},
    proposer::PriorError,
    store::StoreError,
};
use pyo3::{
    exceptions::{PyOSError, PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyModule},
};

/// Result of a call into the engine.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Reasons of failure; made without the interpreter's lock.
#[derive(Debug)]
pub(crate) enum Failure {
    Grammar(GrammarError),
    Schema(SchemaError),
    Vocabulary(VocabularyError),
    Compile(CompileError),
    Step(StepError),
    Store(StoreError),
    /// Bytes that this package did not write.
    Foreign(String),
    Prior(PriorError),
    Capture(CaptureError),
    Limit(LimitExceeded),
    /// The text of a constraint has ended.
    Ended,
    /// A number that cannot be a token's.
    NoToken(i64),
    /// A token that cannot follow.
    Refused(u32),
    Cancelled,
    /// A step took longer than the compiler's `step_seconds`.
    TimeOver(f64),
    /// Another thread uses it.
    Busy(&'static str),
    Panic(String),
    /// An array that no mask can be written into.
    Mask(String),
    Value(String),
    Type(String),
    Io(std::io::Error),
    Python(PyErr),
}

macro_rules! from {
    ($($error:ty => $kind:ident),*) => { $(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$kind(error)
            }
        }
    )* };
}

from! {
    GrammarError => Grammar, SchemaError => Schema, VocabularyError => Vocabulary, CompileError => Compile,
    StepError => Step, StoreError => Store, PriorError => Prior, CaptureError => Capture,
    LimitExceeded => Limit, std::io::Error => Io, PyErr => Python
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| shown(py, failure).unwrap_or_else(|error| error))
    }
}

/// Converts a failure to its exception.
fn shown(py: Python<'_>, failure: Failure) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    let (class, text) = match failure {
        Failure::Python(error) => return Ok(error),
        Failure::Io(error) => return Ok(PyOSError::new_err(error.to_string())),
        Failure::Value(text) => return Ok(PyValueError::new_err(text)),
        Failure::Type(text) => return Ok(PyTypeError::new_err(text)),
        Failure::Grammar(error) if error.is_cancelled() => ("CancelledError", error.to_string()),
        Failure::Schema(error) if error.is_cancelled() => ("CancelledError", error.to_string()),
        Failure::Compile(error) if error.is_cancelled() => ("CancelledError", error.to_string()),
        Failure::Grammar(error) => (of_grammar(&details, &error)?, error.to_string()),
        Failure::Schema(error) => (of_schema(&details, &error)?, error.to_string()),
        Failure::Vocabulary(error) => ("VocabularyError", error.to_string()),
        Failure::Compile(error) => {
            let exceeded = matches!(error.kind(), CompileErrorKind::Limit(_));
            (if exceeded { "CompileLimitError" } else { "CompileError" }, error.to_string())
        }
        Failure::Step(error) => (of_step(&details, &error)?, error.to_string()),
        Failure::Store(error) => {
            details.set_item("hint", error.hint())?;
            ("StoreError", format!("{error}\nhint: {}", error.hint()))
        }
        Failure::Foreign(text) => ("StoreError", text),
        Failure::Prior(error) => {
            details.set_item("hint", error.hint())?;
            ("StoreError", format!("{error}\nhint: {}", error.hint()))
        }
        Failure::Capture(error) => {
            details.set_item("hint", error.hint())?;
            ("CaptureError", format!("{error}\nhint: {}", error.hint()))
        }
        Failure::Limit(limit) => {
            details.set_item("hint", in_python(&limit.hint()))?;
            ("LimitError", format!("{limit}\nhint: {}", limit.hint()))
        }
        Failure::Ended => ("EndedError", "the text has ended: nothing may follow end of text".to_owned()),
        Failure::NoToken(token) => {
            details.set_item("token", token)?;
            ("RefusedError", format!("token {token} cannot follow: tokens are numbers from 0 on"))
        }
        Failure::Refused(token) => {
            details.set_item("token", token)?;
            ("RefusedError", format!("token {token} cannot follow: no text of the grammar goes on like this"))
        }
        Failure::Cancelled => ("CancelledError", "cancelled by its handle; nothing has moved".to_owned()),
        Failure::TimeOver(seconds) => {
            let text = format!("the step takes longer than {seconds} s, the compiler's `step_seconds`");
            ("TimeError", text + "\nhint: called again, it goes on where it stopped")
        }
        Failure::Busy(what) => {
            let hint = "give each thread its own: fork() or Compiled.constraint()";
            details.set_item("hint", hint)?;
            ("BusyError", format!("another thread is using this {what}\nhint: {hint}"))
        }
        Failure::Panic(said) => ("InternalError", format!("a mistake of domino, please report it: {said}")),
        Failure::Mask(text) => ("MaskError", text),
    };
    let raised = errors(py)?.getattr(class)?.call((in_python(&text),), Some(&details))?;
    Ok(PyErr::from_value(raised))
}

/// Notes the schema's place and hint, and names the class.
fn of_schema(details: &Bound<'_, PyDict>, error: &SchemaError) -> PyResult<&'static str> {
    details.set_item("message", error.message())?;
    details.set_item("hint", error.hint())?;
    details.set_item("pointer", error.pointer())?;
    details.set_item("keyword", error.keyword())?;
    let exceeded = matches!(error.kind(), domino::grammar::json_schema::SchemaErrorKind::Limit);
    Ok(if exceeded { "SchemaLimitError" } else { "SchemaError" })
}

/// Notes places and hint, and names the class.
fn of_grammar(details: &Bound<'_, PyDict>, error: &GrammarError) -> PyResult<&'static str> {
    details.set_item("message", error.message())?;
    details.set_item("hint", error.hint())?;
    if let Some(place) = error.places().first() {
        let position = place.position();
        details.set_item("line", position.line)?;
        details.set_item("column", position.column)?;
        details.set_item("span", (place.span().start, place.span().end))?;
    }
    let exceeded = matches!(error.kind(), GrammarErrorKind::Limit(_));
    Ok(if exceeded { "GrammarLimitError" } else { "GrammarError" })
}

/// Notes the token or the place, and names the class.
fn of_step(details: &Bound<'_, PyDict>, error: &StepError) -> PyResult<&'static str> {
    Ok(match error.kind() {
        StepErrorKind::Refused(token) => {
            details.set_item("token", token.raw())?;
            "RefusedError"
        }
        StepErrorKind::HistoryTooShort(steps) | StepErrorKind::HistoryForgotten(steps) => {
            details.set_item("steps", steps)?;
            "RollbackError"
        }
        StepErrorKind::Limit(limit) => {
            details.set_item("hint", in_python(&limit.hint()))?;
            if let Some(place) = error.place() {
                details.set_item("bytes", place.bytes)?;
                details.set_item("rules", place.rules.clone())?;
            }
            "LimitError"
        }
        _ => "StepError",
    })
}

/// Names of budgets as Python has them.
fn in_python(text: &str) -> String {
    text.replace("`Limits::", "the limit `")
}

/// The module with the classes of exceptions.
fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import("domino_decoding.errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}
