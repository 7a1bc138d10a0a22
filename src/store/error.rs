//! Errors of files that this library wrote.

use std::fmt;

/// Kinds of [`StoreError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The file is not of this library.
    NotOurs,
    /// Written by another version of this library.
    Version {
        /// The version that wrote it.
        found: String,
        /// The version that this is.
        ours: String,
    },
    /// The file holds something else, such as trees where a vocabulary was expected.
    Kind,
    /// The file was made for another grammar, another vocabulary or other options.
    Key,
    /// The file ends too early.
    Truncated,
    /// The checksum is wrong, or the file goes on past its end.
    Damaged,
    /// The seal is whole, but the contents make no sense; holds the fault.
    Malformed(&'static str),
}

/// A file of this library that cannot be used. Nothing is lost but time: all such files can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
}

impl StoreError {
    pub(super) fn new(kind: StoreErrorKind) -> Self {
        Self { kind }
    }

    /// Creates the error of a payload that makes no sense: `what`, such as "a token past the end".
    pub(crate) fn malformed(what: &'static str) -> Self {
        Self::new(StoreErrorKind::Malformed(what))
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.kind {
            StoreErrorKind::NotOurs | StoreErrorKind::Kind => "name another file, or make this one again",
            StoreErrorKind::Key => "make it again for this grammar, vocabulary and options",
            _ => "make it again; in a cache folder that happens by itself",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StoreErrorKind::NotOurs => f.write_str("not a file written by domino"),
            StoreErrorKind::Version { found, ours } => {
                write!(f, "written by another version of domino: {found}, and this is {ours}")
            }
            StoreErrorKind::Kind => f.write_str("holds something else"),
            StoreErrorKind::Key => {
                f.write_str("made for another grammar, another vocabulary or other options")
            }
            StoreErrorKind::Truncated => f.write_str("ends too early"),
            StoreErrorKind::Damaged => f.write_str("damaged: its checksum is wrong"),
            StoreErrorKind::Malformed(what) => write!(f, "makes no sense: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}
