//! Rows of logits of a pass: in memory, or still where the model computes them.
//!
//! Invariant: a choice from a row is the same wherever the row is.

use std::borrow::Cow;

use super::{
    error::DecodeError,
    run::{Step, TextRun},
    sampling::choice::KeptRow,
};
use crate::{
    ids::TokenId,
    model::{Kept, KeptRows, Logits, RowAnswer, RowChoice},
    vocab::TokenSet,
};

/// The rows of a pass.
pub(super) enum PassRows {
    /// Rows in memory.
    Here(Logits),
    /// Rows where the model computes them, and their answers, if they were asked.
    There(Kept<DecodeError>, Vec<RowAnswer>),
}

/// A row of a pass.
pub(super) enum PassRow<'a> {
    /// The needed part of a row, in memory.
    Here(Cow<'a, [f32]>),
    /// A row where the model computes it.
    There(KeptRow<'a>),
}

impl PassRows {
    /// Waits for rows where the model computes them. Where these can, the run's next token and those after
    /// the draft's are chosen there, from all rows at once; `sets` are the tokens that may follow, if the run
    /// has a constraint. Lists the tokens that are `near` the likeliest ones, if that is asked.
    pub(super) fn there(
        rows: Kept<DecodeError>,
        sets: Option<&[TokenSet]>,
        run: &TextRun,
        near: Option<f32>,
    ) -> Result<Self, DecodeError> {
        // Without masks, as where a budget is used up, there is nothing to choose among.
        let answers = match sets.is_some() || run.constraint().is_none() {
            true => run.chooser().choose_rows(&rows, sets, run.sequence().len(), near)?,
            false => None,
        };
        if answers.is_none() {
            rows.wait()?;
        }
        Ok(Self::There(rows, answers.unwrap_or_default()))
    }

    /// Returns the row with this index; an empty one if there is none in memory.
    pub(super) fn row(&self, index: usize) -> PassRow<'_> {
        match self {
            Self::Here(logits) => PassRow::Here(logits.row(index).unwrap_or_default().into()),
            Self::There(rows, answers) => PassRow::There(KeptRow { rows, index, answer: answers.get(index) }),
        }
    }
}

impl<'a> PassRow<'a> {
    /// The tokens that the row has listed, with their logits, if it was asked and could.
    pub(super) fn listed(&self) -> Option<&'a [(TokenId, f32)]> {
        match self {
            Self::Here(_) => None,
            Self::There(row) => row.answer?.near.as_deref(),
        }
    }

    /// Takes the next token of `run` from the row, wherever it is; `None` if it ends the text.
    pub(super) fn take(&self, run: &mut TextRun) -> Result<Option<Step>, DecodeError> {
        match self {
            Self::Here(row) => run.take(row),
            Self::There(row) => run.take_kept(*row),
        }
    }

    /// Brings the row to memory; logits of tokens that cannot follow in `run` may be missing.
    pub(super) fn bring(self, run: &mut TextRun) -> Result<PassRow<'a>, DecodeError> {
        match self {
            Self::Here(row) => Ok(Self::Here(row)),
            Self::There(KeptRow { rows, index, .. }) => Ok(Self::Here(run.among(rows, index)?.into())),
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

    fn choose(&self, first: usize, choices: &[RowChoice<'_>]) -> Result<Option<Vec<RowAnswer>>, DecodeError> {
        self.0.choose(first, choices).map_err(DecodeError::model)
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
