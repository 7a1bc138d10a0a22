//! The budgets of a grammar under construction: of its expressions and of their automata; and the handle that
//! ends the construction.

use hashbrown::HashSet;

use super::{automaton::Automaton, pattern::PatternKind};
use crate::limits::{Budget, Cancel, LimitExceeded, Limits};

/// The budgets of a [`GrammarBuilder`](super::GrammarBuilder).
#[derive(Debug)]
pub(super) struct Room {
    expressions: usize,
    /// Memory of automata, in bytes: the limit, then what is taken of it.
    most: usize,
    bytes: usize,
    /// The automata met so far, each counted once.
    known: HashSet<Automaton>,
    cancel: Option<Cancel>,
}

impl Room {
    /// The budgets that the limits allow.
    pub(super) fn new(limits: &Limits) -> Self {
        let expressions = limits.expressions.min(u32::MAX as usize);
        let (known, cancel) = (HashSet::new(), limits.cancel.clone());
        Self { expressions, most: limits.terminal_bytes, bytes: 0, known, cancel }
    }

    /// Checks that there is room for one more expression beside `count`.
    ///
    /// # Errors
    /// If there is none, or the construction was cancelled.
    pub(super) fn expression(&self, count: usize) -> Result<(), LimitExceeded> {
        let exceeded =
            || LimitExceeded::new(Budget::Expressions, "expressions of a grammar", self.expressions);
        self.cancel.as_ref().map_or(Ok(()), Cancel::look)?;
        if count < self.expressions { Ok(()) } else { Err(exceeded()) }
    }

    /// Memory of the automata so far, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the room of a leaf's automaton, if it has one that was not met before.
    ///
    /// # Errors
    /// If there is not enough.
    pub(super) fn leaf(&mut self, kind: &PatternKind) -> Result<(), LimitExceeded> {
        let (automaton, more) = match kind {
            PatternKind::Automaton(automaton) => (automaton, 0),
            PatternKind::LengthBounded(bounded) => (bounded.automaton(), bounded.bytes()),
            PatternKind::Spelled(spelled) => {
                self.bytes += spelled.bytes();
                let fits = self.bytes <= self.most;
                return fits.then_some(()).ok_or_else(|| LimitExceeded::of_terminals(self.most));
            }
            PatternKind::Expression(_) | PatternKind::Substrings(_) => return Ok(()),
        };
        self.bytes += more;
        if self.known.insert(automaton.clone()) {
            self.bytes += automaton.bytes();
        }
        if self.bytes > self.most { Err(LimitExceeded::of_terminals(self.most)) } else { Ok(()) }
    }
}
