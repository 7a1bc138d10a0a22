//! The keys that can run out.

use std::sync::Arc;

use crate::subterminal::TerminalTable;

/// The key terminals with a prefix that few keys share. A key has run out if all keys that it can become have
/// come, and those are keys of its terminal. So while an object has no key of these terminals, none runs out.
#[derive(Debug)]
pub(crate) struct ScarceKeys {
    pub(super) tables: Vec<Arc<TerminalTable>>,
    /// Does every key count, since the grammar promises nothing about its key terminals?
    pub(super) are_all: bool,
}

impl ScarceKeys {
    /// May this key be of such a terminal? Walks it through each terminal; most walks end at the first byte.
    pub(crate) fn may_have(&self, key: &str) -> bool {
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
