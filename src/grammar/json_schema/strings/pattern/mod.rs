//! ECMA-262 regular expressions -> automata.
//!
//! The NFA is built from the end to the start (continuations are states). Look-ahead and look-behind are
//! parts of it, which the subset construction follows ([`Nfa`]), so both are exact anywhere in a pattern, of
//! any length. Only look-around of the other direction inside of either is refused.

mod classes;
pub(super) mod ecma;
pub(super) mod looks;
mod simplify;

use hashbrown::HashMap;

use crate::grammar::json_schema::{
    dfa::{CharDfa, LookAhead, Nfa, NfaState, Prev},
    leaf::LeafError,
};
use ecma::RegexNode;
use simplify::simplified;

/// The strings in which `pattern` finds a match.
pub(in crate::grammar::json_schema) fn language(pattern: &str) -> Result<CharDfa, LeafError> {
    language_of(&simplified(ecma::parse(pattern)?))
}

/// The strings in which an expression finds a match.
fn language_of(node: &RegexNode) -> Result<CharDfa, LeafError> {
    let mut builder = NfaBuilder::default();
    let found = builder.nfa.push(NfaState::Found)?;
    let start = builder.build(node, found)?;
    builder.nfa.determinise(start, Prev::Start, true, &classes::word())
}

/// The place of an NFA in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    /// The whole pattern.
    #[default]
    Pattern,
    Ahead,
    Behind,
}

/// A builder of an NFA. Look-around is built once, by its place in the pattern, however often counts copy it.
#[derive(Default)]
struct NfaBuilder {
    nfa: Nfa,
    aheads: HashMap<usize, LookAhead>,
    behinds: HashMap<usize, u32>,
    inside: Inside,
}

impl NfaBuilder {
    /// Builds the state that reads `node` and then the rest. Recurses as deep as groups are nested.
    fn build(&mut self, node: &RegexNode, next: u32) -> Result<u32, LeafError> {
        match node {
            RegexNode::Class(class) => self.nfa.class(class, next),
            RegexNode::Sequence(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.build(part, next))
            }
            RegexNode::Alternatives(parts) => {
                let starts = parts.iter().map(|part| self.build(part, next)).collect::<Result<_, _>>()?;
                self.nfa.push(NfaState::Split(starts))
            }
            RegexNode::Repeat { node, min, max } => self.repeat(node, *min, *max, next),
            RegexNode::Assert(assertion) => self.nfa.push(NfaState::Assert(*assertion, next)),
            RegexNode::Ahead { wanted, node, at } => {
                let look = self.ahead(node, *at)?;
                self.nfa.push(NfaState::Ahead(look, *wanted, next))
            }
            RegexNode::Behind { wanted, node, at } => {
                let look = self.behind(node, *at)?;
                self.nfa.push(NfaState::Behind(look, *wanted, next))
            }
        }
    }

    fn repeat(&mut self, node: &RegexNode, min: u32, max: Option<u32>, next: u32) -> Result<u32, LeafError> {
        let mut start = match max {
            Some(max) => {
                let mut start = next;
                for _ in min..max {
                    let body = self.build(node, start)?;
                    start = self.nfa.push(NfaState::Split(vec![body, next]))?;
                }
                start
            }
            None => {
                let again = self.nfa.push(NfaState::Split(Vec::new()))?;
                let body = self.build(node, again)?;
                self.nfa.set(again, NfaState::Split(vec![body, next]));
                again
            }
        };
        for _ in 0..min {
            let body = self.build(node, start)?;
            // Each copy gets a state, so that the budget also counts copies of the empty expression.
            start = self.nfa.push(NfaState::Split(vec![body]))?;
        }
        Ok(start)
    }

    /// Look-ahead: the rest begins with a match of `node`.
    fn ahead(&mut self, node: &RegexNode, at: usize) -> Result<LookAhead, LeafError> {
        if self.inside == Inside::Behind {
            return Err(LeafError::Unsupported { what: "look-ahead inside look-behind", at });
        }
        if let Some(&known) = self.aheads.get(&at) {
            return Ok(known);
        }
        let mut inner = Self { inside: Inside::Ahead, ..Self::default() };
        let found = inner.nfa.push(NfaState::Found)?;
        let start = inner.build(node, found)?;
        let look = self.nfa.ahead(&inner.nfa, start, &classes::word())?;
        self.aheads.insert(at, look);
        Ok(look)
    }

    /// Look-behind: the text before ends with a match of `node`.
    fn behind(&mut self, node: &RegexNode, at: usize) -> Result<u32, LeafError> {
        if self.inside == Inside::Ahead {
            return Err(LeafError::Unsupported { what: "look-behind inside look-ahead", at });
        }
        if let Some(&known) = self.behinds.get(&at) {
            return Ok(known);
        }
        let end = self.nfa.push(NfaState::Split(Vec::new()))?;
        let outside = std::mem::replace(&mut self.inside, Inside::Behind);
        let start = self.build(node, end)?;
        self.inside = outside;
        let look = self.nfa.behind(start, end)?;
        self.behinds.insert(at, look);
        Ok(look)
    }
}
