//! The session users hold.

use crate::{ids::TokenId, limits::LimitExceeded, vocab::TokenSet};

/// A text in the making and what may follow. Cloning is cheap; `Send`.
#[derive(Debug, Clone)]
pub struct Constraint {}

/// Kinds of [`StepError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepErrorKind {
    /// The token cannot follow here.
    Refused(TokenId),
    /// More tokens were to be rolled back than were advanced.
    HistoryTooShort,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A step that could not be taken; the constraint has not moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}")]
pub struct StepError {
    kind: StepErrorKind,
}

impl StepError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &StepErrorKind {
        &self.kind
    }
}

/// One live thread, for display: where the text may be in the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadView {
    /// Canonical id of the parser state in which the terminal was started.
    pub parser_state: u32,
    /// The terminal, printed.
    pub terminal: String,
    /// State of its DFA.
    pub scanner_state: u32,
    /// Dotted rules of the parser state that wait for this terminal, printed.
    pub items: Vec<String>,
}

impl Constraint {
    /// The tokens that may follow, end-of-text ids included when the text is complete.
    /// # Errors
    /// When a budget is used up.
    pub fn mask(&mut self) -> Result<&TokenSet, StepError> {
        unimplemented!()
    }
    /// May `token` follow? Much cheaper than a mask (opportunistic masking, paper 3.5).
    /// # Errors
    /// When a budget is used up.
    pub fn allows(&mut self, _token: TokenId) -> Result<bool, StepError> {
        unimplemented!()
    }
    /// The one token that may follow, if there is exactly one.
    /// # Errors
    /// When a budget is used up.
    pub fn forced(&mut self) -> Result<Option<TokenId>, StepError> {
        unimplemented!()
    }
    /// Goes on by `token` (end of text included, after which nothing may follow). On error nothing has moved.
    /// # Errors
    /// If it may not follow, or a budget is used up.
    pub fn advance(&mut self, _token: TokenId) -> Result<(), StepError> {
        unimplemented!()
    }
    /// Goes on by as many of `bytes` as can follow and returns how many those were. Counts as one step for
    /// rollback if all could follow; otherwise nothing has moved.
    /// # Errors
    /// When a budget is used up.
    pub fn advance_bytes(&mut self, _bytes: &[u8]) -> Result<usize, StepError> {
        unimplemented!()
    }
    /// Goes back `steps` steps exactly.
    /// # Errors
    /// If there were fewer.
    pub fn rollback(&mut self, _steps: usize) -> Result<(), StepError> {
        unimplemented!()
    }
    /// Is the text so far in the language (end of text would be allowed)?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        unimplemented!()
    }
    /// Has end of text been advanced?
    #[must_use]
    pub fn is_ended(&self) -> bool {
        unimplemented!()
    }
    /// The bytes that may follow, for error messages.
    /// # Errors
    /// When a budget is used up.
    pub fn next_bytes(&mut self) -> Result<Vec<u8>, StepError> {
        unimplemented!()
    }
    /// The live threads.
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadView> {
        unimplemented!()
    }
}
