//! ECMA-262 regular expressions -> automata.
//!
//! The NFA is built from the end to the start (continuations are states), so that at a look-ahead the rest of
//! the pattern has been built. `(?=X)Y` is then the intersection of two languages of texts up to the end, "X
//! and anything" and "Y and the rest"; its automaton takes the place of Y. That is exact wherever the rest
//! does not lead back to the look-ahead, so only look-ahead inside an unbounded repetition is refused.

mod classes;
pub(super) mod ecma;
pub(super) mod looks;
mod simplify;

use crate::grammar::json_schema::{
    dfa::{Assertion, CharDfa, Nfa, NfaState, Prev},
    leaf::LeafError,
};
use ecma::RegexNode;
use simplify::simplified;

/// Limit on the copies of a look-ahead that a counted repetition may make.
const MAX_LOOKS: u32 = 8;

/// The strings in which `pattern` finds a match.
pub(in crate::grammar::json_schema) fn language(pattern: &str) -> Result<CharDfa, LeafError> {
    language_of(&simplified(ecma::parse(pattern)?))
}

/// The strings in which an expression finds a match.
fn language_of(node: &RegexNode) -> Result<CharDfa, LeafError> {
    let mut nfa = Nfa::default();
    let found = nfa.push(NfaState::Found)?;
    let start = build(&mut nfa, node, PatternContext { next: found, at_start: false, in_loop: false })?;
    nfa.determinise(start, Prev::Start, true, &classes::word())
}

/// The surroundings of a part of an expression.
#[derive(Debug, Clone, Copy)]
struct PatternContext {
    /// The state that follows the part.
    next: u32,
    /// True if the text is known to start here.
    at_start: bool,
    /// True if the rest can lead back here.
    in_loop: bool,
}

/// Builds the state that reads `node` and then the rest. Recurses as deep as groups are nested.
fn build(nfa: &mut Nfa, node: &RegexNode, place: PatternContext) -> Result<u32, LeafError> {
    match node {
        RegexNode::Class(class) => nfa.class(class, place.next),
        RegexNode::Sequence(parts) => {
            let mut at_start = place.at_start;
            let known: Vec<bool> = parts
                .iter()
                .map(|part| {
                    let here = at_start;
                    at_start = match part {
                        RegexNode::Assert(Assertion::Start) => true,
                        RegexNode::Assert(_) | RegexNode::Ahead { .. } => here,
                        _ => false,
                    };
                    here
                })
                .collect();
            let mut next = place.next;
            for (part, at_start) in parts.iter().zip(known).rev() {
                next = build(nfa, part, PatternContext { next, at_start, ..place })?;
            }
            Ok(next)
        }
        RegexNode::Alternatives(parts) => {
            let starts = parts.iter().map(|part| build(nfa, part, place)).collect::<Result<_, _>>()?;
            nfa.push(NfaState::Split(starts))
        }
        RegexNode::Repeat { node, min, max } => repeat(nfa, node, *min, *max, place),
        RegexNode::Assert(assertion) => nfa.push(NfaState::Assert(*assertion, place.next)),
        RegexNode::Ahead { wanted, node, at } => {
            if place.in_loop {
                return Err(LeafError::Unsupported { what: "look-ahead inside a repetition", at: *at });
            }
            ahead(nfa, node, *wanted, place)
        }
    }
}

fn repeat(
    nfa: &mut Nfa,
    node: &RegexNode,
    min: u32,
    max: Option<u32>,
    place: PatternContext,
) -> Result<u32, LeafError> {
    let in_loop = place.in_loop || max.is_none_or(|max| max > MAX_LOOKS);
    let inner = |next: u32| PatternContext { next, at_start: false, in_loop };
    let mut start = match max {
        Some(max) => {
            let mut start = place.next;
            for _ in min..max {
                let body = build(nfa, node, inner(start))?;
                start = nfa.push(NfaState::Split(vec![body, place.next]))?;
            }
            start
        }
        None => {
            let again = nfa.push(NfaState::Split(Vec::new()))?;
            let body = build(nfa, node, inner(again))?;
            nfa.set(again, NfaState::Split(vec![body, place.next]));
            again
        }
    };
    for _ in 0..min {
        let body = build(nfa, node, inner(start))?;
        // Each copy gets a state, so that the budget also counts copies of the empty expression.
        start = nfa.push(NfaState::Split(vec![body]))?;
    }
    Ok(start)
}

/// Builds the state that reads the rest, wherever `node` does (or does not) match from here on.
fn ahead(nfa: &mut Nfa, node: &RegexNode, wanted: bool, place: PatternContext) -> Result<u32, LeafError> {
    let found = nfa.push(NfaState::Found)?;
    let inside = build(nfa, node, PatternContext { next: found, ..place })?;
    let word = classes::word();
    let both = |nfa: &Nfa, prev: Prev| -> Result<CharDfa, LeafError> {
        let looked = nfa.determinise(inside, prev, false, &word)?;
        let rest = nfa.determinise(place.next, prev, false, &word)?;
        if wanted { rest.and(&looked) } else { rest.minus(&looked) }
    };
    if place.at_start || !nfa.looks_back() {
        let dfa = both(nfa, if place.at_start { Prev::Start } else { Prev::Other })?;
        return nfa.embed(&dfa);
    }
    let mut cases = Vec::new();
    for prev in [Prev::Start, Prev::Word, Prev::Other] {
        let dfa = both(nfa, prev)?;
        let start = nfa.embed(&dfa)?;
        cases.push(nfa.push(NfaState::Assert(Assertion::After(prev), start))?);
    }
    nfa.push(NfaState::Split(cases))
}
