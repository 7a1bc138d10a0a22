//! Boolean operations and quotients of languages, by product constructions.

use hashbrown::HashMap;

use super::{Language, RawDfa, too_many};
use crate::{
    automata::{ClassNumbers, Grouped, minimize::NONE},
    ids,
    limits::{LimitExceeded, Limits},
};

impl Language {
    /// The intersection of both languages.
    pub(crate) fn and(&self, other: &Self, limits: &Limits) -> Result<Self, LimitExceeded> {
        self.product(other, limits, |left, right| left && right)
    }

    /// The texts of the language that are not in `other`.
    pub(crate) fn minus(&self, other: &Self, limits: &Limits) -> Result<Self, LimitExceeded> {
        self.product(other, limits, |left, right| left && !right)
    }

    /// The complement within all texts of characters.
    pub(crate) fn not(&self, limits: &Limits) -> Result<Self, LimitExceeded> {
        Self::texts(limits)?.minus(self, limits)
    }

    /// The right quotient: the texts that a text of `suffix` completes to a text of the language. `O(n m)` in
    /// the numbers of states.
    pub(crate) fn before(&self, suffix: &Self, limits: &Limits) -> Result<Self, LimitExceeded> {
        limits.look()?;
        let (mine, other) = (&self.dfa, &suffix.dfa);
        let width = other.accepting.len();
        let pairs = mine.accepting.len().saturating_mul(width);
        let (_, joined) = joined(mine, other);
        if pairs > limits.dfa_states.saturating_mul(64) {
            return Err(too_many(limits));
        }
        let edges = pairs.saturating_mul(joined.len());
        if edges.saturating_mul(size_of::<u32>()) > limits.terminal_bytes {
            return Err(LimitExceeded::of_terminals(limits.terminal_bytes));
        }
        ids::number(edges, "edges between pairs of states")?;
        let all = || (0..mine.accepting.len()).flat_map(|left| (0..width).map(move |right| (left, right)));
        let numbers = ids::numbers(pairs, "pairs of states")?;
        // Pairs have numbers below that of the last, which fits, and so do those that lead to them.
        let incoming = Grouped::new(pairs, || {
            let joined = &joined;
            numbers.clone().zip(all()).flat_map(move |(from, (left, right))| {
                let after = move |&(one, two): &(u8, u8)| {
                    let to = step(mine, left, one)? * width + step(other, right, two)?;
                    Some((u32::try_from(to).ok()?, from))
                };
                joined.iter().filter_map(after)
            })
        });
        let ends = |(left, right): (usize, usize)| mine.accepting[left] && other.accepting[right];
        let mut found: Vec<bool> = all().map(ends).collect();
        let mut open: Vec<u32> = numbers.zip(&found).filter(|(_, found)| **found).map(|(at, _)| at).collect();
        while let Some(at) = open.pop() {
            for &from in incoming.of(at) {
                if !std::mem::replace(&mut found[from as usize], true) {
                    open.push(from);
                }
            }
        }
        let accepting = (0..mine.accepting.len()).map(|left| width > 0 && found[left * width]).collect();
        Ok(Self::minimal(RawDfa { accepting, ..mine.clone() }))
    }

    /// The product construction. `keep` decides by membership in both; it must be false of texts that are not
    /// in `self`, so a pair without a state on the left is dead.
    fn product(
        &self,
        other: &Self,
        limits: &Limits,
        keep: impl Fn(bool, bool) -> bool,
    ) -> Result<Self, LimitExceeded> {
        limits.look()?;
        if self.is_empty() {
            return Ok(self.clone());
        }
        let (classes, pairs) = joined(&self.dfa, &other.dfa);
        // `None` on the right: no text of `other` goes on like this.
        let start = (0_usize, (!other.is_empty()).then_some(0_usize));
        let mut number: HashMap<(usize, Option<usize>), u32> = HashMap::from([(start, 0)]);
        let mut order = vec![start];
        let mut raw =
            RawDfa { classes, class_count: pairs.len(), transitions: Vec::new(), accepting: Vec::new() };
        while let Some(&(left, right)) = order.get(raw.accepting.len()) {
            let in_other = right.is_some_and(|right| other.dfa.accepting[right]);
            raw.accepting.push(keep(self.dfa.accepting[left], in_other));
            for &(one, two) in &pairs {
                let Some(left) = step(&self.dfa, left, one) else {
                    raw.transitions.push(NONE);
                    continue;
                };
                let to = (left, right.and_then(|right| step(&other.dfa, right, two)));
                let fresh = ids::number(order.len(), "states of a product")?;
                raw.transitions.push(*number.entry(to).or_insert_with(|| {
                    order.push(to);
                    fresh
                }));
            }
            if order.len() > limits.dfa_states {
                return Err(too_many(limits));
            }
        }
        Ok(Self::minimal(raw))
    }
}

fn step(dfa: &RawDfa, state: usize, class: u8) -> Option<usize> {
    let to = dfa.transitions[state * dfa.class_count + usize::from(class)];
    (to != NONE).then_some(to as usize)
}

/// The coarsest common refinement of both partitions of the bytes, and the classes that each of its classes
/// is in.
fn joined(left: &RawDfa, right: &RawDfa) -> (Box<[u8; 256]>, Vec<(u8, u8)>) {
    let mut pairs: Vec<(u8, u8)> = Vec::new();
    let mut number: HashMap<(u8, u8), u8> = HashMap::new();
    let mut classes = Box::new([0_u8; 256]);
    let mut numbers = ClassNumbers::default();
    for (byte, class) in classes.iter_mut().enumerate() {
        let pair = (left.classes[byte], right.classes[byte]);
        *class = *number.entry(pair).or_insert_with(|| {
            pairs.push(pair);
            numbers.fresh()
        });
    }
    (classes, pairs)
}
