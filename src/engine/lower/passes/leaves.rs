//! Builds the DFAs of leaves that are given as automata, each once, on all cores.
//!
//! The schemas of a list of functions have mostly the same leaves, and together thousands.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hashbrown::{HashMap, HashSet};

use crate::{
    cores,
    grammar::{Automaton, Expr, PatternKind},
    limits::{LimitExceeded, Limits},
    scanner::{self, TerminalDfa},
};

/// Least number of automata that several cores build. Waking a core sometimes takes milliseconds.
const WORTH_SHARING: usize = 128;

/// The DFA of a leaf, or `None` if its language is empty.
pub(in crate::lower) type LeafDfa = Result<Option<TerminalDfa>, LimitExceeded>;

/// The automata of terminals, by number, within a memory budget.
#[derive(Debug, Default)]
pub(in crate::lower) struct TerminalAutomata {
    automata: Vec<Arc<TerminalDfa>>,
    bytes: usize,
}

impl TerminalAutomata {
    /// Adds an automaton that is not there yet.
    pub(in crate::lower) fn push(
        &mut self,
        dfa: Arc<TerminalDfa>,
        limits: &Limits,
    ) -> Result<(), LimitExceeded> {
        self.bytes += dfa.bytes();
        if self.bytes > limits.terminal_bytes {
            return Err(LimitExceeded::of_terminals(limits.terminal_bytes));
        }
        self.automata.push(dfa);
        Ok(())
    }
}

impl IntoIterator for TerminalAutomata {
    type Item = Arc<TerminalDfa>;
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.automata.into_iter()
    }
}

impl Deref for TerminalAutomata {
    type Target = [Arc<TerminalDfa>];

    fn deref(&self) -> &Self::Target {
        &self.automata
    }
}

/// Builds the DFAs of all leaves among these expressions that are given as automata. Linear in them.
pub(in crate::lower) fn leaves<'e>(exprs: &'e [Expr], limits: &Limits) -> HashMap<&'e Automaton, LeafDfa> {
    let automaton = |expr: &'e Expr| match expr {
        Expr::Pattern(pattern) => match pattern.kind() {
            PatternKind::Automaton(automaton) => Some((automaton, pattern.kind())),
            PatternKind::Expression(_)
            | PatternKind::Substrings(_)
            | PatternKind::LengthBounded(_)
            | PatternKind::Spelled(_) => None,
        },
        _ => None,
    };
    let mut seen = HashSet::new();
    let different: Vec<_> =
        exprs.iter().filter_map(automaton).filter(|(automaton, _)| seen.insert(*automaton)).collect();
    // Once there are too many bytes, none is made any more: the grammar is refused.
    let (most, bytes) = (limits.terminal_bytes, AtomicUsize::new(0));
    let made = |&(automaton, kind): &(&'e Automaton, &PatternKind)| {
        if bytes.load(Ordering::Relaxed) > most {
            return (automaton, Err(LimitExceeded::of_terminals(most)));
        }
        let leaf = scanner::build_pattern(kind, limits.dfa_states, limits);
        if let Ok(Some(dfa)) = &leaf {
            bytes.fetch_add(dfa.bytes(), Ordering::Relaxed);
        }
        (automaton, leaf)
    };
    match different.len() {
        0..WORTH_SHARING => different.iter().map(made).collect(),
        _ => cores::map(different, |leaf| made(&leaf)).into_iter().collect(),
    }
}
