//! Finds the keys that can run out: those with a prefix that only few keys of their terminal share.
//!
//! Most objects of most grammars have none, and need no search for keys that run out. A key is decided once,
//! when it comes, by a walk through the automata of such terminals.

use std::sync::Arc;

use super::program::Program;
use crate::{ids::TerminalId, scanner::Strings, subterminal::TerminalTable};

/// The key terminals with a prefix that few keys share. A key has run out if all keys that it can become have
/// come, and those are keys of its terminal. So while an object has no key of these terminals, none runs out.
#[derive(Debug)]
pub(super) struct ScarceKeys {
    tables: Vec<Arc<TerminalTable>>,
    /// Does every key count, since the grammar promises nothing about its key terminals?
    are_all: bool,
}

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

    /// May this key be of such a terminal? Walks it through each terminal; most walks end at the first byte.
    pub(super) fn may_have(&self, key: &str) -> bool {
        // With escapes it has other spellings.
        let is_escaped = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\');
        self.are_all
            || !self.tables.is_empty() && key.bytes().any(is_escaped)
            || self.tables.iter().any(|table| may_run_out_along(table, key))
    }
}

/// Is the key, in quotes, a text of the terminal, with a prefix that few of its texts share?
fn may_run_out_along(table: &TerminalTable, key: &str) -> bool {
    let (dfa, mut are_few) = (table.dfa(), false);
    if dfa.spelled().is_some() {
        // How many there are is not known there. Behind the closing quote all texts end.
        return dfa.takes(0, std::iter::once(b'"').chain(key.bytes()).chain([b'"']));
    }
    let Some(mut state) = dfa.step(0, b'"') else { return false };
    for byte in key.bytes().chain([b'"']) {
        are_few = are_few || !table.strings(state).are_many();
        let Some(next) = dfa.step(state, byte) else { return false };
        state = next;
    }
    are_few && dfa.accepts(state)
}

/// Has the terminal a prefix that few of its strings share? A terminal of one string does not count: the
/// grammar promises that its key is new.
fn may_run_out(table: &TerminalTable) -> bool {
    let dfa = table.dfa();
    let Some(start) = dfa.step(0, b'"') else { return false };
    let is_named = table.strings(start) == Strings { plain: 1, others: false };
    table.may_run_out() && !is_named
}
