//! The automata of one schema: what other schemas have in common with it, and the budget of its own.

use super::Algebra;
use crate::{
    grammar::json_schema::{
        AutomataCache, LeafError, StringSet,
        error::{Checked, PendingError},
    },
    limits::{LimitExceeded, Limits},
};

/// The cache of automata that all schemas share, and the memory budget of one schema's own.
#[derive(Debug)]
pub(in super::super) struct Automata<'o> {
    pub(in super::super) common: &'o AutomataCache,
    /// Memory of the automata of patterns, in bytes: the limit, then what is taken of it.
    most: usize,
    bytes: usize,
}

impl<'o> Automata<'o> {
    pub(in super::super) fn new(common: &'o AutomataCache, limits: &Limits) -> Self {
        Self { common, most: limits.terminal_bytes, bytes: 0 }
    }

    /// Takes room for a set of strings that is kept as long as the schema is read.
    ///
    /// # Errors
    /// If the budget is used up.
    pub(in super::super) fn take(&mut self, set: &StringSet) -> Result<(), LeafError> {
        self.bytes = self.bytes.saturating_add(set.bytes());
        if self.bytes > self.most {
            return Err(LimitExceeded::of_terminals(self.most).into());
        }
        Ok(())
    }
}

impl Algebra<'_> {
    /// Turns an exceeded budget of a leaf language into a problem of the schema at work.
    pub(in super::super) fn fitting<T>(&self, result: Result<T, LeafError>) -> Checked<T> {
        result.map_err(|error| PendingError::of_leaf(self.here(), None, error))
    }
}
