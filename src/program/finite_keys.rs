//! Finds the keys that can run out: those with a prefix that only few keys of their terminal share.
//!
//! Most objects of most grammars have none, and need no search for keys that run out. A key is decided once,
//! when it comes, by a walk through the automata of such terminals.

use std::sync::Arc;

use super::{program::Program, scarce_keys::ScarceKeys};
use crate::{ids::TerminalId, scanner::Strings, subterminal::TerminalTable};

impl ScarceKeys {
    /// Collects the terminals of a JSON grammar whose keys may run out. Linear in the automata of its keys.
    pub(super) fn new(program: &Program) -> Self {
        let are_all = !program.lowered.keys.is_some_and(|rule| rule.are_terminals);
        let count = if are_all { 0 } else { program.tables.len() };
        let is_scarce = |at: &usize| {
            let key = TerminalId::from_index(*at).filter(|&terminal| program.is_before_colon(terminal));
            key.is_some() && may_run_out(&program.tables[*at])
        };
        let scarce = (0..count).filter(is_scarce);
        let tables = scarce.map(|at| Arc::clone(&program.tables[at])).collect();
        Self { tables, are_all }
    }
}

/// Has the terminal a prefix that few of its strings share? A terminal of one string does not count: the
/// grammar promises that its key is new.
fn may_run_out(table: &TerminalTable) -> bool {
    let dfa = table.dfa();
    let Some(start) = dfa.step(0, b'"') else { return false };
    let is_named = table.strings(start) == Strings { plain: 1, others: false };
    table.may_run_out() && !is_named
}
