//! Automata made by exploring a deterministic step function, and Boolean operations built on that.

use std::hash::Hash;

use hashbrown::HashMap;

use super::{Alphabet, CharDfa, DfaTable, MAX_CELLS, MAX_STATES, NONE, too_many_states};
use crate::{grammar::json_schema::leaf::LeafError, ids::as_index};

/// A state's row: true if it accepts, and its successor by each class.
pub(in crate::grammar::json_schema) struct DfaRow<S> {
    pub(in crate::grammar::json_schema) accepts: bool,
    pub(in crate::grammar::json_schema) to: Vec<Option<S>>,
}

/// The minimised automaton of all states that can be reached from `start`.
///
/// # Errors
/// If there are more than [`MAX_STATES`] states, or if `row` fails.
pub(in crate::grammar::json_schema) fn explore<S: Clone + Eq + Hash>(
    alphabet: Alphabet,
    start: S,
    row: impl FnMut(&S) -> Result<DfaRow<S>, LeafError>,
) -> Result<CharDfa, LeafError> {
    explore_up_to(MAX_STATES, alphabet, start, row)
}

/// Explores like [`explore`], with another limit on the states.
pub(super) fn explore_up_to<S: Clone + Eq + Hash>(
    most: usize,
    alphabet: Alphabet,
    start: S,
    mut row: impl FnMut(&S) -> Result<DfaRow<S>, LeafError>,
) -> Result<CharDfa, LeafError> {
    let width = alphabet.classes();
    let mut number: HashMap<S, u32> = HashMap::from([(start.clone(), 0)]);
    let mut order = vec![start];
    let mut table = DfaTable { width, transitions: Vec::new(), accepting: Vec::new() };
    while table.accepting.len() < order.len() {
        let DfaRow { accepts, to } = row(&order[table.accepting.len()])?;
        table.accepting.push(accepts);
        for class in 0..width {
            let Some(to) = to.get(class).and_then(Option::as_ref) else {
                table.transitions.push(NONE);
                continue;
            };
            let id = match number.get(to) {
                Some(&id) => id,
                None => {
                    let fresh = u32::try_from(order.len()).map_err(|_| too_many_states(most))?;
                    number.insert(to.clone(), fresh);
                    order.push(to.clone());
                    fresh
                }
            };
            table.transitions.push(id);
        }
        if order.len() > most || table.transitions.len() > MAX_CELLS {
            return Err(too_many_states(most));
        }
    }
    Ok(CharDfa::from_table(alphabet, table))
}

/// A Boolean operation under which a string in neither language is not in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    And,
    Or,
    Minus,
}

impl CharDfa {
    /// The intersection.
    pub(in crate::grammar::json_schema) fn and(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(other.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(self.clone());
        }
        self.product(other, Op::And)
    }

    /// The union.
    pub(in crate::grammar::json_schema) fn or(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(self.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(other.clone());
        }
        self.product(other, Op::Or)
    }

    /// The difference: strings that are not in `other`.
    pub(in crate::grammar::json_schema) fn minus(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_empty() || other.is_empty() {
            return Ok(self.clone());
        }
        if other.is_all() || self == other {
            return Ok(Self::none());
        }
        self.product(other, Op::Minus)
    }

    /// The complement. Linear.
    pub(in crate::grammar::json_schema) fn not(&self) -> Self {
        complement(self.alphabet(), &self.0.table)
    }

    /// The product construction. [`NONE`] stands for the state in which one side can no longer accept.
    fn product(&self, other: &Self, op: Op) -> Result<Self, LeafError> {
        let (alphabet, pairs) = self.0.alphabet.joined(&other.0.alphabet);
        explore(alphabet, (0_u32, 0_u32), |&(left, right)| {
            let accepts = |dfa: &Self, state: u32| state != NONE && dfa.accepts(state);
            let (in_left, in_right) = (accepts(self, left), accepts(other, right));
            let accepts = match op {
                Op::And => in_left && in_right,
                Op::Or => in_left || in_right,
                Op::Minus => in_left && !in_right,
            };
            let step = |dfa: &Self, state: u32, class: usize| {
                if state == NONE { NONE } else { dfa.row(state)[class] }
            };
            let to = pairs.iter().map(|&(left_class, right_class)| {
                let to = (step(self, left, left_class), step(other, right, right_class));
                let dead = match op {
                    Op::And => to.0 == NONE || to.1 == NONE,
                    Op::Or => to == (NONE, NONE),
                    Op::Minus => to.0 == NONE,
                };
                (!dead).then_some(to)
            });
            Ok(DfaRow { accepts, to: to.collect() })
        })
    }
}

/// The complement of a minimal, trimmed automaton. Linear.
pub(super) fn complement(alphabet: &Alphabet, table: &DfaTable) -> CharDfa {
    let width = table.width;
    // The state behind the last; the states have numbers below `NONE`, and it stands in for `NONE`.
    let sink = table.accepting.iter().fold(0_u32, |sink, _| sink + 1);
    // From at most one state every string is accepted, and no edge leaves it: no string that gets there is in
    // the complement. From every other state some string is not accepted.
    let all = (0..sink).find(|&state| {
        let row = &table.transitions[as_index(state) * width..][..width];
        table.accepting[as_index(state)] && row.iter().all(|to| *to == state)
    });
    if all == Some(0) {
        return CharDfa::none();
    }
    let turned = |&to: &u32| match to {
        NONE => sink,
        to if Some(to) == all => NONE,
        to => to,
    };
    let mut transitions: Vec<u32> = Vec::with_capacity(table.transitions.len() + width);
    transitions.extend(table.transitions.iter().map(turned));
    transitions.extend(std::iter::repeat_n(sink, width));
    let accepting = table.accepting.iter().map(|accepts| !accepts).chain([true]).collect();
    // Two states that differ still do when both accept what they did not.
    CharDfa::from_minimal(alphabet, &DfaTable { width, transitions, accepting })
}
