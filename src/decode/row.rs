//! Rows of logits of a pass: in memory, or still where the model computes them.
//!
//! Invariant: a choice from a row is the same wherever the row is.

use std::borrow::Cow;

use super::{error::DecodeError, run::TextRun};
use crate::{
    ids::TokenId,
    model::{Kept, KeptRows, Logits},
    vocab::TokenSet,
};

/// The rows of a pass.
pub(super) enum PassRows {
    /// Rows in memory.
    Here(Logits),
    /// Rows where the model computes them.
    There(Kept<DecodeError>),
}

/// A row of a pass.
pub(super) enum PassRow<'a> {
    /// The needed part of a row, in memory.
    Here(Cow<'a, [f32]>),
    /// The row with this index, where the model computes it.
    There(&'a Kept<DecodeError>, usize),
}

impl PassRows {
    /// Returns the row with this index; an empty one if there is none in memory.
    pub(super) fn row(&self, index: usize) -> PassRow<'_> {
        match self {
            Self::Here(logits) => PassRow::Here(logits.row(index).unwrap_or_default().into()),
            Self::There(rows) => PassRow::There(rows, index),
        }
    }
}

impl<'a> PassRow<'a> {
    /// Brings the row to memory; logits of tokens that cannot follow in `run` may be missing.
    pub(super) fn bring(self, run: &mut TextRun) -> Result<PassRow<'a>, DecodeError> {
        match self {
            Self::Here(row) => Ok(Self::Here(row)),
            Self::There(rows, index) => Ok(Self::Here(run.among(rows, index)?.into())),
        }
    }
}

/// Wraps kept rows, so that their errors are the run's.
pub(super) fn kept<E: std::error::Error + Send + Sync + 'static>(rows: Kept<E>) -> Kept<DecodeError> {
    Box::new(RowsOnDevice(rows))
}

struct RowsOnDevice<E>(Kept<E>);

impl<E: std::error::Error + Send + Sync + 'static> KeptRows for RowsOnDevice<E> {
    type Error = DecodeError;

    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn likeliest(&self, index: usize, allowed: &TokenSet) -> Result<Option<TokenId>, DecodeError> {
        self.0.likeliest(index, allowed).map_err(DecodeError::model)
    }

    fn row(&self, index: usize) -> Result<Vec<f32>, DecodeError> {
        self.0.row(index).map_err(DecodeError::model)
    }

    fn among(&self, index: usize, allowed: &TokenSet) -> Result<Vec<f32>, DecodeError> {
        self.0.among(index, allowed).map_err(DecodeError::model)
    }

    fn wait(&self) -> Result<(), DecodeError> {
        self.0.wait().map_err(DecodeError::model)
    }
}
