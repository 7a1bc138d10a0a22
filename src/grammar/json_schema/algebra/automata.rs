//! The automata of one schema, what other schemas have in common with it, and the budgets of its own work.

use super::{Algebra, MOST_FORMULAS, MOST_WORK, TOO_MANY};
use crate::{
    grammar::json_schema::{
        AutomataCache, LeafError, StringSet,
        error::{Checked, PendingError, SchemaErrorKind},
    },
    limits::{Cancel, LimitExceeded, Limits},
};

/// The cache of automata that all schemas share, the memory budget of one schema's own, and the handle that
/// ends the reading.
#[derive(Debug)]
pub(in super::super) struct Automata<'o> {
    pub(in super::super) common: &'o AutomataCache,
    /// Memory of the automata of patterns, in bytes: the limit, then what is taken of it.
    most: usize,
    bytes: usize,
    cancel: Option<Cancel>,
}

impl<'o> Automata<'o> {
    pub(in super::super) fn new(common: &'o AutomataCache, limits: &Limits) -> Self {
        Self { common, most: limits.terminal_bytes, bytes: 0, cancel: limits.cancel.clone() }
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
    /// The problem of a budget that is used up at the schema at work.
    pub(in super::super) fn too_large(&self, what: &str) -> Box<PendingError> {
        PendingError::new(SchemaErrorKind::Limit, self.here(), None, what.to_owned())
            .with_hint("combine fewer alternatives, or patterns with smaller counts")
    }

    /// The work counted so far.
    pub(in super::super) fn work(&self) -> usize {
        self.work
    }

    /// Counts work that is about to be done against the budget.
    pub(in super::super) fn spend(&mut self, units: usize) -> Checked<()> {
        self.work += units;
        let made = self.formulas.len().max(self.leaves.len()).max(self.keys.len());
        let made = made.max(self.conditions.len());
        let most = self.trial.unwrap_or(MOST_WORK);
        if self.work > most.min(MOST_WORK) || made > MOST_FORMULAS {
            return Err(self.too_large(TOO_MANY));
        }
        self.look()
    }

    /// Checks that nobody has cancelled the reading: whenever work is counted, and after each language of a
    /// leaf, the longest work in one piece.
    pub(in super::super) fn look(&self) -> Checked<()> {
        let looked = self.automata.cancel.as_ref().map_or(Ok(()), Cancel::look);
        looked.map_err(|limit| PendingError::of_limit(self.here(), limit))
    }

    /// Turns an exceeded budget of a leaf language into a problem of the schema at work.
    pub(in super::super) fn fitting<T>(&self, result: Result<T, LeafError>) -> Checked<T> {
        self.look()?;
        result.map_err(|error| PendingError::of_leaf(self.here(), None, error))
    }
}
