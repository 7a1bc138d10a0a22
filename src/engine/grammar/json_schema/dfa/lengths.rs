//! The lengths of the strings of a language, in characters.

use super::{CHARS, CharClass, CharDfa, DfaRow, MAX_STATES, NONE, char_at, explore, too_many_states};
use crate::{
    automata::minimize::{distances, longest},
    grammar::json_schema::leaf::LeafError,
    ids::as_u64,
};

/// Limit on the states visited when all states are followed at once. Each takes a few ns.
const MAX_STEPS: u64 = 50_000_000;

impl CharDfa {
    /// The length of the shortest string. Linear.
    pub(in crate::grammar::json_schema) fn shortest(&self) -> Option<u64> {
        let table = (self.table().width, &self.table().transitions[..]);
        let distances = distances(table, |state| self.accepts(state), |_| true);
        distances.first().map(|&length| u64::from(length))
    }

    /// The length of the longest string read from each state; `None` if there is none. Linear.
    pub(in crate::grammar::json_schema) fn remaining(&self) -> Vec<Option<u64>> {
        match self.is_endless() {
            true => vec![None; self.len()],
            false => longest(self.table().width, &self.table().transitions),
        }
    }

    /// True if every state leads to a state with a loop. Then strings of any length are read from each state,
    /// as all states are live. So it is with all strings but a few.
    fn is_endless(&self) -> bool {
        let loops: Vec<bool> = self.states().map(|state| self.row(state).contains(&state)).collect();
        let to_a_loop = |to: &u32| *to != NONE && loops[*to as usize];
        self.states().all(|state| self.row(state).iter().any(to_a_loop))
    }

    /// The length of the longest string, if the language is finite and not empty. Linear.
    pub(in crate::grammar::json_schema) fn longest(&self) -> Option<u64> {
        self.remaining().first().copied().flatten()
    }

    /// True if there is a string of `min` to `max` characters.
    ///
    /// # Errors
    /// If that takes too long to find out, which it may if `min` is large and close to `max`.
    pub(in crate::grammar::json_schema) fn has_length(
        &self,
        min: u64,
        max: Option<u64>,
    ) -> Result<bool, LeafError> {
        let Some(shortest) = self.shortest() else { return Ok(false) };
        if max.is_some_and(|max| max < shortest || max < min) {
            return Ok(false);
        }
        if min <= shortest {
            return Ok(true);
        }
        if let Some(longest) = self.longest()
            && longest < min
        {
            return Ok(false);
        }
        let states = as_u64(self.len());
        let infinite = self.longest().is_none();
        // A cycle has at most as many characters as there are states, so neighbouring lengths of an infinite
        // language are no further apart than that.
        if infinite && max.is_none_or(|max| max - min >= states - 1) {
            return Ok(true);
        }
        // A finite language has no string longer than its longest.
        let last = max.unwrap_or(u64::MAX).min(self.longest().unwrap_or(u64::MAX));
        // Otherwise all states that some string of each length leads to are followed.
        let mut now = vec![false; self.len()];
        now[0] = true;
        let mut steps = 0;
        for length in 0..=last {
            let here = || now.iter().zip(0_u32..).filter(|(here, _)| **here).map(|(_, state)| state);
            if length >= min && here().any(|state| self.accepts(state)) {
                return Ok(true);
            }
            let mut next = vec![false; self.len()];
            for state in here() {
                self.row(state).iter().filter(|to| **to != NONE).for_each(|&to| next[to as usize] = true);
            }
            now = next;
            steps += states * u64::try_from(self.alphabet().classes()).unwrap_or(1);
            if steps > MAX_STEPS {
                return Err(too_many_states(MAX_STATES));
            }
        }
        Ok(false)
    }

    /// The strings of the language with `min` to `max` characters: the product with a counter.
    ///
    /// # Errors
    /// If the product has too many states.
    pub(in crate::grammar::json_schema) fn within(
        &self,
        min: u64,
        max: Option<u64>,
    ) -> Result<Self, LeafError> {
        if self.is_empty() || (min == 0 && max.is_none()) {
            return Ok(self.clone());
        }
        let remaining = self.remaining();
        // The count is forgotten as soon as both bounds are sure to be met.
        let blurred = |state: u32, length: u64| {
            let free = match (max, remaining[state as usize]) {
                (None, _) => true,
                (Some(max), Some(more)) => length + more <= max,
                (Some(_), None) => false,
            };
            (state, (length < min || !free).then_some(length))
        };
        explore(self.alphabet().clone(), blurred(0, 0), |&(state, length)| {
            let fits = |length| length >= min && max.is_none_or(|max| length <= max);
            let step = |&to: &u32| match length {
                _ if to == NONE => None,
                None => Some((to, None)),
                Some(length) => max.is_none_or(|max| length < max).then(|| blurred(to, length + 1)),
            };
            let accepts = self.accepts(state) && length.is_none_or(fits);
            Ok(DfaRow { accepts, to: self.row(state).iter().map(step).collect() })
        })
    }

    /// The class and bounds of the language, if it is all strings of `min` to `max` characters of a class.
    /// Linear.
    pub(in crate::grammar::json_schema) fn one_class(&self) -> Option<(CharClass, u64, u64)> {
        let (mut state, mut length, mut min, mut class) = (0, 0, None, None);
        let longest = self.longest()?;
        loop {
            if self.accepts(state) {
                min.get_or_insert(length);
            } else if min.is_some() {
                return None;
            }
            if length == longest {
                return Some((class?, min?, longest));
            }
            let edges = self.edges(state);
            let to = edges.first()?.2;
            if edges.iter().any(|edge| edge.2 != to) {
                return None;
            }
            let here = CharClass::new(edges.iter().map(|edge| (char_at(edge.0), char_at(edge.1))));
            if class.get_or_insert_with(|| here.clone()) != &here {
                return None;
            }
            (state, length) = (to, length + 1);
        }
    }

    /// The number of strings, at most `limit + 1`, which also stands for infinitely many.
    pub(in crate::grammar::json_schema) fn count(&self, limit: usize) -> usize {
        let over = limit.saturating_add(1);
        if self.is_empty() {
            return 0;
        }
        if self.longest().is_none() {
            return over;
        }
        // Depth-first search with memoisation, on a stack of its own: an automaton may be deep.
        let mut counts: Vec<Option<usize>> = vec![None; self.len()];
        let mut open = vec![0_u32];
        while let Some(&state) = open.last() {
            let unknown: Vec<u32> = self
                .row(state)
                .iter()
                .copied()
                .filter(|&to| to != NONE && counts[to as usize].is_none())
                .collect();
            if !unknown.is_empty() {
                open.extend(unknown);
                continue;
            }
            let mut count = usize::from(self.accepts(state));
            for (first, last, class) in self.alphabet().intervals() {
                let to = self.row(state)[class];
                let below = counts.get(to as usize).copied().flatten().unwrap_or(0);
                let characters = usize::try_from((last - first + 1).min(CHARS)).unwrap_or(over);
                count = count.saturating_add(below.saturating_mul(characters)).min(over);
            }
            counts[state as usize] = Some(count);
            open.pop();
        }
        counts[0].unwrap_or(over)
    }
}
