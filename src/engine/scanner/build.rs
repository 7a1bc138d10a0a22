//! Builds a minimal, trimmed DFA from a pattern (Thompson's construction, subset construction, Hopcroft's
//! minimisation).
//!
//! Budgets bound the NFA's memory and the DFA's states before minimisation, so a pattern ends in an automaton
//! or in an error, never in exponential work.

use regex_syntax::hir::{Hir, HirKind};

use super::dfa::{RawDfa, TerminalDfa};
use crate::{
    grammar::{
        Automaton, PatternKind,
        automaton::{Edge, State},
        regular::automaton_of,
    },
    ids::as_index,
    limits::{Budget, LimitExceeded, Limits},
};

/// Factor on the number of states of an automaton that is minimal already: its table is made in linear time.
const MINIMAL_FACTOR: usize = 8;

/// Builds the DFA of a pattern's language, or `None` if that is empty. Budgets as for [`build`].
pub(crate) fn build_pattern(
    pattern: &PatternKind,
    max_states: usize,
    limits: &Limits,
) -> Result<Option<TerminalDfa>, LimitExceeded> {
    let too_many = || LimitExceeded::new(Budget::DfaStates, "DFA states of a terminal", max_states);
    limits.look()?;
    match pattern {
        PatternKind::Expression(hir) => build(hir, max_states, limits),
        PatternKind::Substrings(text) => TerminalDfa::of_substrings(text).map(Some),
        PatternKind::LengthBounded(bounded) => {
            let automaton = bounded.automaton();
            let fits = automaton.states().len() <= most_of(automaton, max_states);
            fits.then(|| Some(TerminalDfa::of_bounded(bounded))).ok_or_else(too_many)
        }
        PatternKind::Spelled(spelled) => {
            let fits = spelled.states() <= max_states.saturating_mul(MINIMAL_FACTOR);
            fits.then(|| Some(TerminalDfa::of_spelled(spelled))).ok_or_else(too_many)
        }
        PatternKind::Automaton(automaton) if automaton.states().len() > most_of(automaton, max_states) => {
            Err(too_many())
        }
        PatternKind::Automaton(automaton) if automaton.is_minimal() => {
            Ok(TerminalDfa::from_minimal(automaton))
        }
        PatternKind::Automaton(automaton) => Ok(TerminalDfa::from_raw(RawDfa::from(automaton))),
    }
}

/// Number of states that an automaton may have: more if it needs no minimising, whose cost the budget bounds.
fn most_of(automaton: &Automaton, max_states: usize) -> usize {
    if automaton.is_minimal() { max_states.saturating_mul(MINIMAL_FACTOR) } else { max_states }
}

/// Builds the DFA of `hir`'s language, or `None` if that is empty.
///
/// `max_states` bounds the states before minimisation, `limits.nfa_bytes` the NFA.
///
/// # Errors
/// When a budget is used up, or the work was cancelled. Determinisation can cost `2^n` states for `n` of the
/// expression; budgets end it.
pub(crate) fn build(
    hir: &Hir,
    max_states: usize,
    limits: &Limits,
) -> Result<Option<TerminalDfa>, LimitExceeded> {
    let too_many = || LimitExceeded::new(Budget::DfaStates, "DFA states of a terminal", max_states);
    limits.look()?;
    if let HirKind::Literal(literal) = hir.kind() {
        if literal.0.len() >= max_states {
            return Err(too_many());
        }
        return Ok(TerminalDfa::literal(&literal.0));
    }
    if let Some(literals) = literals(hir) {
        let states = trie(&literals, max_states).ok_or_else(too_many)?;
        return Ok(Automaton::new(states).ok().and_then(|it| TerminalDfa::from_raw(RawDfa::from(&it))));
    }
    by_nfa(hir, max_states, limits)
}

/// Builds the DFA of any expression, by way of an NFA.
fn by_nfa(hir: &Hir, max_states: usize, limits: &Limits) -> Result<Option<TerminalDfa>, LimitExceeded> {
    automaton_of(hir, max_states, limits).map(TerminalDfa::from_raw)
}

/// Returns the literals if `hir` is an alternation of them, as `true|false` is; none if it is the empty
/// class.
fn literals(hir: &Hir) -> Option<Vec<&[u8]>> {
    match hir.kind() {
        HirKind::Class(class) if class.is_empty() => Some(Vec::new()),
        HirKind::Alternation(parts) => {
            let literals = parts.iter().map(|part| match part.kind() {
                HirKind::Literal(literal) => Some(&*literal.0),
                _ => None,
            });
            literals.collect()
        }
        _ => None,
    }
}

/// Builds a trie of these literals as an automaton; `None` if it has more than `most` states.
fn trie(literals: &[&[u8]], most: usize) -> Option<Vec<State>> {
    let mut states = vec![State::default()];
    for literal in literals {
        let mut at = 0;
        for &byte in *literal {
            if states.len() > most {
                return None;
            }
            let known = states[at].edges.iter().find(|edge| edge.first == byte).map(|edge| edge.to);
            at = match known {
                Some(to) => as_index(to),
                None => {
                    let fresh = states.len();
                    let to = u32::try_from(fresh).ok()?;
                    states[at].edges.push(Edge { first: byte, last: byte, to });
                    states.push(State::default());
                    fresh
                }
            };
        }
        states[at].accepts = true;
    }
    Some(states).filter(|states| states.len() <= most)
}

#[cfg(test)]
mod tests;
