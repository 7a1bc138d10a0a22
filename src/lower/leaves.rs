//! Leaves that are given as automata -> DFAs of terminals, each once, on all cores.
//!
//! The schemas of a list of functions have mostly the same leaves, and together thousands.

use hashbrown::{HashMap, HashSet};

use crate::{
    cores,
    grammar::{Automaton, Expr, PatternKind},
    limits::{LimitExceeded, Limits},
    scanner::{self, TerminalDfa},
};

/// Automata from which on several cores build them. Waking a core sometimes takes milliseconds.
const WORTH_SHARING: usize = 128;

/// The DFA of a leaf, or `None` if its language is empty.
pub(super) type Leaf = Result<Option<TerminalDfa>, LimitExceeded>;

/// The DFAs of all leaves among these expressions that are given as automata, by those. Linear in them.
pub(super) fn leaves<'e>(exprs: &'e [Expr], limits: &Limits) -> HashMap<&'e Automaton, Leaf> {
    let automaton = |expr: &'e Expr| match expr {
        Expr::Pattern(pattern) => match pattern.kind() {
            PatternKind::Automaton(automaton) => Some((automaton, pattern.kind())),
            PatternKind::Expression(_) | PatternKind::Substrings(_) | PatternKind::Measured(_) => None,
        },
        _ => None,
    };
    let mut seen = HashSet::new();
    let different: Vec<_> =
        exprs.iter().filter_map(automaton).filter(|(automaton, _)| seen.insert(*automaton)).collect();
    let made = |&(automaton, kind): &(&'e Automaton, &PatternKind)| {
        (automaton, scanner::build_pattern(kind, limits.dfa_states, limits))
    };
    match different.len() {
        0..WORTH_SHARING => different.iter().map(made).collect(),
        _ => cores::map(different, |leaf| made(&leaf)).into_iter().collect(),
    }
}
