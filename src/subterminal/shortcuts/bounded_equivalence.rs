//! Bounded equivalence of states: two states of one terminal that treat all texts up to some length alike.
//!
//! In a pattern whose length is bounded, such as `^[A-Z][^<>]*$` of at most 260 characters, each character
//! leads to a state of its own, and two of them differ only in texts longer than most tokens. So one state
//! takes the row of the other, and only the few long tokens are walked.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use hashbrown::HashSet;

use crate::{
    limits::{LimitExceeded, Work},
    scanner::{NONE, TerminalDfa},
};

/// Bounds: least length of a walk, in trie nodes, for which other states are compared; number of states that
/// are kept for that; and length of texts, in bytes, that two states must treat alike.
const LONG_WALK: usize = if cfg!(test) { 1 } else { 4_096 };
const MOST_WALKED: usize = 4;
const WORTH_TAKING: u32 = if cfg!(test) { 1 } else { 8 };

/// Length of texts, in bytes, up to which states are compared; few tokens are longer.
const FAR: u32 = 32;

/// Number of pairs of states that one comparison may look at.
const MOST_PAIRS: usize = 2_048;

/// The last states of a terminal whose rows took long walks.
#[derive(Debug, Default)]
pub(in crate::subterminal) struct Walked(Mutex<VecDeque<u32>>);

impl Walked {
    /// Records the number of trie nodes that the row of a state took.
    pub(in crate::subterminal) fn note(&self, state: u32, nodes: usize) {
        if nodes >= LONG_WALK {
            let mut walked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if walked.len() == MOST_WALKED {
                walked.pop_front();
            }
            walked.push_back(state);
        }
    }

    /// Are there none?
    pub(in crate::subterminal) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the recorded state that is most like `state`, and a length: all shorter texts are treated
    /// alike.
    pub(in crate::subterminal) fn like(
        &self,
        dfa: &TerminalDfa,
        state: u32,
        work: &mut Work,
    ) -> Result<Option<(u32, u32)>, LimitExceeded> {
        let walked = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut best = None;
        for &other in walked.iter().rev() {
            let Apart { from, pairs } = compare(dfa, state, other);
            work.spend(pairs * dfa.class_count() / 8)?;
            if from > best.map_or(WORTH_TAKING, |(_, from)| from) {
                best = Some((other, from));
            }
            if from >= FAR {
                break;
            }
        }
        Ok(best)
    }
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Apart {
    /// Length below which all texts are treated alike.
    from: u32,
    /// Number of pairs of states that were looked at.
    pairs: usize,
}

/// Compares two states: breadth-first search over the pairs of states that texts lead to from them.
fn compare(dfa: &TerminalDfa, one: u32, other: u32) -> Apart {
    let mut seen: HashSet<(u32, u32)> = HashSet::from_iter([(one, other)]);
    let mut layer = vec![(one, other)];
    let ends = |state: u32| dfa.accepting()[state as usize];
    for length in 0..FAR {
        if layer.is_empty() {
            return Apart { from: u32::MAX, pairs: seen.len() };
        }
        if seen.len() > MOST_PAIRS || layer.iter().any(|&(one, other)| ends(one) != ends(other)) {
            return Apart { from: length, pairs: seen.len() };
        }
        let mut next = Vec::new();
        for (one, other) in layer {
            // Mostly all classes lead to the same pair.
            let mut before = (NONE, NONE);
            for pair @ (to, beside) in dfa.row(one).iter().copied().zip(dfa.row(other).iter().copied()) {
                if to == beside || pair == before {
                    continue;
                }
                if to == NONE || beside == NONE {
                    return Apart { from: length + 1, pairs: seen.len() };
                }
                before = pair;
                if seen.insert(pair) {
                    next.push(pair);
                }
            }
        }
        layer = next;
    }
    Apart { from: FAR, pairs: seen.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subterminal::shortcuts::reference_rows_tests::dfa;

    /// Returns the length of the shortest text of at most `most` bytes `a` and `b` that tells states apart.
    fn by_texts(dfa: &TerminalDfa, one: u32, other: u32, most: u32) -> Option<u32> {
        let step = |state: Option<u32>, byte: u8| {
            let to = dfa.row(state?)[usize::from(dfa.classes()[usize::from(byte)])];
            Some(to).filter(|&to| to != NONE)
        };
        let mut layer = vec![(Some(one), Some(other))];
        for length in 0..=most {
            let ends = |state: Option<u32>| state.map(|state| dfa.accepting()[state as usize]);
            if layer.iter().any(|&(one, other)| ends(one) != ends(other)) {
                return Some(length);
            }
            let after = |&(one, other): &(Option<u32>, Option<u32>)| {
                [b'a', b'b'].map(|byte| (step(one, byte), step(other, byte)))
            };
            layer = layer.iter().flat_map(after).collect();
        }
        None
    }

    proptest! {
        #[test]
        fn bounded_equivalence_agrees_with_trying_all_texts(
            pattern in "([ab]|a\\{1,5\\}|\\(a\\|bb\\)\\{2,4\\}|b\\*){1,4}",
        ) {
            let dfa = dfa(&pattern);
            let states = || (0..).take(dfa.len());
            for (one, other) in states().flat_map(|one| states().map(move |other| (one, other))) {
                let found = compare(&dfa, one, other).from;
                match by_texts(&dfa, one, other, 7) {
                    Some(length) => prop_assert_eq!(found, length, "{} and {} of {}", one, other, pattern),
                    None => prop_assert!(found > 7, "{} and {} of {}: {}", one, other, pattern, found),
                }
            }
        }
    }
}
