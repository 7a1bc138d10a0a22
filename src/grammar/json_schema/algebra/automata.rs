//! The automata of one schema: what other schemas have in common with it, and the budget of its own.

use super::Algebra;
use crate::{
    grammar::json_schema::{
        AutomataCache, LeafError, StringSet,
        error::{Checked, Problem},
    },
    limits::{LimitExceeded, Limits},
};

/// Automata of other schemas, and room for those of this one.
#[derive(Debug)]
pub(in super::super) struct Automata<'o> {
    pub(in super::super) common: &'o AutomataCache,
    /// Memory of the automata of patterns, in bytes: what there may be, and what there is.
    most: usize,
    bytes: usize,
}

impl<'o> Automata<'o> {
    pub(in super::super) fn new(common: &'o AutomataCache, limits: &Limits) -> Self {
        Self { common, most: limits.terminal_bytes, bytes: 0 }
    }

    /// Takes the room of a set of strings that is kept as long as the schema is read.
    ///
    /// # Errors
    /// If there is not enough.
    pub(in super::super) fn take(&mut self, set: &StringSet) -> Result<(), LeafError> {
        self.bytes = self.bytes.saturating_add(set.bytes());
        if self.bytes > self.most {
            return Err(LimitExceeded::of_terminals(self.most).into());
        }
        Ok(())
    }
}

impl Algebra<'_> {
    /// Turns a budget of a leaf language into a problem of the schema at work.
    pub(in super::super) fn fitting<T>(&self, result: Result<T, LeafError>) -> Checked<T> {
        result.map_err(|error| Problem::of_leaf(self.here(), None, error))
    }
}
