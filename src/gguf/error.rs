//! Errors of GGUF files.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Kinds of [`GgufError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GgufErrorKind {
    /// There is no such file.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// It is not a GGUF file, is damaged or cut short.
    Damaged,
}

/// A GGUF file that cannot be used.
#[derive(Debug)]
pub(crate) struct GgufError {
    pub(crate) kind: GgufErrorKind,
    pub(crate) file: PathBuf,
    /// The fault in the file, in words.
    pub(crate) reason: String,
}

impl GgufError {
    /// Creates an error of `kind` about `file`.
    pub(crate) fn new(kind: GgufErrorKind, file: &Path, reason: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), reason: reason.into() }
    }

    /// Creates the error of a file that cannot be opened or read.
    pub(super) fn io(file: &Path, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => GgufErrorKind::Missing,
            _ => GgufErrorKind::Unreadable,
        };
        Self::new(kind, file, error.to_string())
    }
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.reason)
    }
}

impl std::error::Error for GgufError {}
