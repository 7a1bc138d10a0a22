//! Errors of steps.

use crate::{
    ids::TokenId,
    limits::{Budget, LimitExceeded},
};

/// Kinds of [`StepError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepErrorKind {
    /// The token cannot follow here.
    Refused(TokenId),
    /// More steps were to be rolled back than were taken; holds how many there were.
    HistoryTooShort(usize),
    /// The steps to be rolled back were taken, but further back than the session remembers; holds how many it
    /// does, at most [`Limits::history`](crate::Limits::history).
    HistoryForgotten(usize),
    /// No text goes on to a complete one: with [greedy lexing](crate::Syntax::LarkGreedy) that can be.
    NoCompletion,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A step that could not be taken; the constraint has not moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    kind: StepErrorKind,
    place: Option<Box<TextPlace>>,
}

/// The place in text and grammar at which a step ran out of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPlace {
    /// Bytes of text before the step.
    pub bytes: usize,
    /// Rules that were open there, at most a few; those of the terminals that the text was in come first.
    pub rules: Vec<String>,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after {} bytes of text", self.bytes)?;
        for (at, rule) in self.rules.iter().enumerate() {
            write!(f, "{}`{rule}`", if at == 0 { ", in " } else { ", " })?;
        }
        Ok(())
    }
}

impl StepError {
    pub(crate) fn new(kind: StepErrorKind) -> Self {
        Self { kind, place: None }
    }

    /// Creates the error of a budget that was used up at `place`.
    pub(super) fn limit(limit: LimitExceeded, place: TextPlace) -> Self {
        Self { kind: StepErrorKind::Limit(limit), place: Some(Box::new(place)) }
    }

    /// The place, if a budget is used up.
    #[must_use]
    pub fn place(&self) -> Option<&TextPlace> {
        self.place.as_deref()
    }

    /// Can the step be called again to go on where it stopped? See [`Patience`](crate::Patience).
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        matches!(&self.kind, StepErrorKind::Limit(limit) if limit.budget() == Budget::StepWork)
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &StepErrorKind {
        &self.kind
    }
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            StepErrorKind::Refused(token) => {
                write!(f, "token {token} cannot follow: no text of the grammar goes on like this")
            }
            StepErrorKind::HistoryTooShort(steps) => {
                write!(f, "cannot roll back that far: only {steps} steps were taken")
            }
            StepErrorKind::HistoryForgotten(steps) => {
                write!(
                    f,
                    "cannot roll back that far: only the last {steps} steps are remembered \
                     (see `Limits::history`)"
                )
            }
            StepErrorKind::NoCompletion => {
                write!(
                    f,
                    "no text that begins like this is complete\nhint: greedy lexing takes the longest \
                     terminal, also where the grammar has nothing to go on with behind it"
                )
            }
            StepErrorKind::Limit(limit) => {
                write!(f, "{limit}")?;
                if let Some(place) = &self.place {
                    write!(f, " {place}")?;
                }
                write!(f, "\nhint: {}", limit.hint())
            }
        }
    }
}

impl std::error::Error for StepError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            StepErrorKind::Limit(limit) => Some(limit),
            _ => None,
        }
    }
}

impl From<LimitExceeded> for StepError {
    fn from(limit: LimitExceeded) -> Self {
        Self::new(StepErrorKind::Limit(limit))
    }
}
