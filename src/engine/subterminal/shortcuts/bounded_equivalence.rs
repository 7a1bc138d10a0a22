//! Bounded equivalence of states: two states of one terminal that treat all texts up to some length alike.
//!
//! In a terminal with a bounded count, such as `[a-z]{1,64}` or `^[A-Z][^<>]*$` of at most 260 characters,
//! each character leads to a state of its own, and two of them differ only in texts that come to the bound.
//! Where no token is as long as that, one state's row is the other's; otherwise it takes over that row, and
//! only the few long tokens are walked.
//!
//! The lengths are found for all states at once by Moore's partition refinement: round `n` splits the classes
//! of states that some text of `n` bytes tells apart. Of a class that is split one part keeps the name, and
//! after the first round only states before a renamed one are looked at, so a round costs a few states where
//! a count comes closer to its bound.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    automata::Grouped,
    ids::as_index,
    limits::{LimitExceeded, Work},
    scanner::{NONE, TerminalDfa},
};

/// Length of texts, in bytes, that two states must treat alike for one to take over the other's row.
const WORTH_TAKING: u32 = if cfg!(test) { 1 } else { 8 };

/// Number of transitions up to which a terminal's states are compared, and number of looks at transitions
/// after which no longer texts are: some 10 ms each.
const MOST_TRANSITIONS: usize = 1 << 20;
const MOST_LOOKS: usize = 1 << 22;

/// Length of texts, in bytes, of which one tells two states apart if both have trees grown ahead. States in
/// the middle of a count differ in longer texts alone.
const GROWN_APART: u32 = 1;

/// The classes of a terminal's states, once its rows took as much work as comparing the states.
#[derive(Debug, Default)]
pub(in crate::subterminal) struct LikeStates {
    worked: AtomicUsize,
    classes: OnceLock<Classes>,
}

impl LikeStates {
    /// Records that the row of a state is known, and the work that it took.
    pub(in crate::subterminal) fn note(&self, state: u32, worked: usize) {
        self.worked.fetch_add(worked, Ordering::Relaxed);
        if let Some(classes) = self.classes.get() {
            classes.note(state);
        }
    }

    /// Returns a state whose row `is_known` that is most like `state`, and a length: all shorter texts are
    /// treated alike. `None` if there is none worth taking a row from. `longest` is the length of the longest
    /// token. Compares all states at some time.
    pub(in crate::subterminal) fn like(
        &self,
        dfa: &TerminalDfa,
        (state, longest): (u32, u32),
        is_known: impl Fn(u32) -> bool,
        work: &mut Work,
    ) -> Result<Option<(u32, u32)>, LimitExceeded> {
        let transitions = dfa.transitions().len();
        if self.worked.load(Ordering::Relaxed) < transitions || transitions > MOST_TRANSITIONS {
            return Ok(None);
        }
        let mut made = Ok(());
        let classes = self.classes.get_or_init(|| {
            let (classes, looks) = Classes::new(dfa, longest.saturating_add(1));
            (0..).take(dfa.len()).filter(|&state| is_known(state)).for_each(|state| classes.note(state));
            made = work.spend(looks / 2);
            classes
        });
        made.map(|()| classes.like(state))
    }

    /// Memory on the heap, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        self.classes
            .get()
            .map_or(0, |classes| size_of_val(&*classes.of) + classes.classes.capacity() * size_of::<Class>())
    }
}

/// Has a state that goes on with texts of the vocabulary of at most `longest` bytes the same row as one that
/// treats all texts of less than `from` bytes alike? So it is if that holds for one byte more: what goes on
/// from the other state alone would begin with such a text.
pub(in crate::subterminal) fn have_same_row(longest: u32, from: u32) -> bool {
    longest < from.saturating_sub(1)
}

/// A state of a table, the state whose tree is grown for both, and the length below which they treat all
/// texts alike.
pub(in crate::subterminal) type Grown = (u32, u32, u32);

/// Finds for each state of a table the first one that only texts longer than [`GROWN_APART`] tell apart from
/// it, if any. Costs as much as comparing all states.
pub(in crate::subterminal) fn grown(dfa: &TerminalDfa, longest: u32) -> Vec<Grown> {
    let longest = if dfa.transitions().len() > MOST_TRANSITIONS { GROWN_APART } else { longest };
    let (classes, _) = Classes::new(dfa, longest.saturating_add(1).max(GROWN_APART));
    let mut firsts: Vec<Option<u32>> = vec![None; classes.classes.len()];
    let state = |state: u32| {
        let first = *firsts[as_index(classes.above(state))].get_or_insert(state);
        (state, first, classes.apart(state, first))
    };
    (0..).take(dfa.len()).map(state).collect()
}

/// The partition of a terminal's states after some rounds.
#[derive(Debug)]
struct Classes {
    /// The class of each state.
    of: Box<[u32]>,
    classes: Vec<Class>,
    /// Length of texts, in bytes, below which the states of a class treat all texts alike.
    whole: u32,
}

/// A class of states.
#[derive(Debug)]
struct Class {
    /// The class that it was split from, itself for the first two, and the length of the shortest text that
    /// tells the two apart.
    parent: u32,
    from: u32,
    /// A state of it whose row took long and is known.
    known: OnceLock<u32>,
}

impl Class {
    fn new(parent: u32, from: u32) -> Self {
        Self { parent, from, known: OnceLock::new() }
    }
}

impl Classes {
    /// Tells apart the states of a table by texts of at most `longest` bytes. Returns the number of looks at
    /// transitions, too: each round looks at those of the states before a class that the last round renamed.
    fn new(dfa: &TerminalDfa, longest: u32) -> (Self, usize) {
        let width = dfa.class_count().max(1);
        let accepting = dfa.accepting();
        let mut of: Box<[u32]> = accepting.iter().map(|&ends| u32::from(ends)).collect();
        let mut classes = vec![Class::new(0, 0), Class::new(1, 0)];
        let ends = accepting.iter().filter(|&&ends| ends).count();
        let mut sizes = vec![of.len() - ends, ends];
        let before = Grouped::new(of.len(), || {
            let rows = (0_u32..).zip(dfa.transitions().chunks_exact(width));
            rows.flat_map(|(from, row)| row.iter().filter(|to| **to != NONE).map(move |&to| (to, from)))
        });
        let mut open: Vec<u32> = (0..).take(of.len()).collect();
        let (mut length, mut looks) = (0, 0);
        while !open.is_empty() && length < longest && looks < MOST_LOOKS {
            length += 1;
            looks += open.len() * width;
            let name = |to: &u32| if *to == NONE { NONE } else { of[as_index(*to)] };
            let signature = |state: u32| dfa.row(state).iter().map(name);
            let class_of = |state: u32| of[as_index(state)];
            open.sort_unstable_by(|&one, &other| {
                let classes = class_of(one).cmp(&class_of(other));
                classes.then_with(|| signature(one).cmp(signature(other)))
            });
            let mut renamed: Vec<&[u32]> = Vec::new();
            for members in open.chunk_by(|&one, &other| class_of(one) == class_of(other)) {
                let parts = members.chunk_by(|&one, &other| signature(one).eq(signature(other)));
                // The name stays with the states that were not looked at, or else with the largest part.
                let all = members.len() == sizes[as_index(class_of(members[0]))];
                let kept = parts.clone().max_by_key(|part| part.len()).filter(|_| all);
                renamed.extend(parts.filter(|part| kept.is_none_or(|kept| kept[0] != part[0])));
            }
            let mut next = Vec::new();
            for part in renamed {
                let parent = of[as_index(part[0])];
                // There are no more classes than states, and these have numbers.
                let Ok(fresh) = u32::try_from(classes.len()) else { break };
                classes.push(Class::new(parent, length));
                sizes[as_index(parent)] -= part.len();
                sizes.push(part.len());
                for &state in part {
                    of[as_index(state)] = fresh;
                    next.extend(before.of(state));
                }
            }
            next.sort_unstable();
            next.dedup();
            open = next;
        }
        let whole = if open.is_empty() { u32::MAX } else { length.saturating_add(1) };
        (Self { of, classes, whole }, looks)
    }

    /// Records that the row of a state is known.
    fn note(&self, state: u32) {
        // An earlier one is as good.
        let _ = self.classes[as_index(self.of[as_index(state)])].known.set(state);
    }

    /// Implements [`LikeStates::like`]: the nearest class above that has a known row.
    fn like(&self, state: u32) -> Option<(u32, u32)> {
        let (mut class, mut from) = (self.of[as_index(state)], self.whole);
        loop {
            let Class { parent, from: apart, known } = &self.classes[as_index(class)];
            if let Some(&other) = known.get()
                && other != state
            {
                return Some((other, from));
            }
            from = from.min(*apart);
            if from <= WORTH_TAKING {
                return None;
            }
            class = *parent;
        }
    }

    /// Returns the class that a state was in before longer texts than [`GROWN_APART`] were tried.
    fn above(&self, state: u32) -> u32 {
        let mut class = self.of[as_index(state)];
        while self.classes[as_index(class)].from > GROWN_APART {
            class = self.classes[as_index(class)].parent;
        }
        class
    }

    /// Returns the length below which two states treat all texts alike: the least on the way between their
    /// classes.
    fn apart(&self, one: u32, other: u32) -> u32 {
        let (mut one, mut other) = (self.of[as_index(one)], self.of[as_index(other)]);
        let mut from = self.whole;
        while one != other {
            // A class has a greater number than the one that it was split from.
            let later = if one > other { &mut one } else { &mut other };
            let Class { parent, from: apart, .. } = self.classes[as_index(*later)];
            if parent == *later {
                return 0;
            }
            from = from.min(apart);
            *later = parent;
        }
        from
    }
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
            pattern in "([ab]|a\\{1,5\\}|\\(a\\|bb\\)\\{2,4\\}|b\\*|\\(a\\{1,3\\}b\\)\\{0,3\\}){1,4}",
            longest in 0_u32..9,
        ) {
            let dfa = dfa(&pattern);
            let (classes, _) = Classes::new(&dfa, longest);
            let states = || (0..).take(dfa.len());
            for (one, other) in states().flat_map(|one| states().map(move |other| (one, other))) {
                let found = classes.apart(one, other);
                match by_texts(&dfa, one, other, longest.min(7)) {
                    Some(length) => prop_assert_eq!(found, length, "{} and {} of {}", one, other, pattern),
                    None => prop_assert!(
                        found > longest.min(7), "{} and {} of {}: {}", one, other, pattern, found
                    ),
                }
            }
        }
    }
}
