//! How long the strings of a language are.

use std::collections::VecDeque;

use super::{CHARS, CharDfa, NONE, Row, explore, too_many_states};
use crate::grammar::json_schema::leaf::LeafError;

/// Steps of following all states at once, in states visited. A few ns each.
const MAX_STEPS: u64 = 50_000_000;

impl CharDfa {
    /// The length of the shortest string. Linear.
    pub(in crate::grammar::json_schema) fn shortest(&self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let mut seen = vec![false; self.len()];
        seen[0] = true;
        let mut open = VecDeque::from([(0_u32, 0_u64)]);
        while let Some((state, length)) = open.pop_front() {
            if self.accepts(state) {
                return Some(length);
            }
            for &to in self.row(state).iter().filter(|to| **to != NONE) {
                if !std::mem::replace(&mut seen[to as usize], true) {
                    open.push_back((to, length + 1));
                }
            }
        }
        None
    }

    /// The length of the longest string, if the language is finite and not empty. Linear.
    pub(in crate::grammar::json_schema) fn longest(&self) -> Option<u64> {
        let mut incoming = vec![0_usize; self.len()];
        for &to in self.0.table.transitions.iter().filter(|to| **to != NONE) {
            incoming[to as usize] += 1;
        }
        // Kahn's algorithm: every state lies on a way to the end, so a cycle means that the language is infinite.
        let mut depth = vec![0_u64; self.len()];
        let mut open: Vec<u32> = if incoming.first() == Some(&0) { vec![0] } else { Vec::new() };
        let (mut taken, mut longest) = (0, 0);
        while let Some(state) = open.pop() {
            taken += 1;
            if self.accepts(state) {
                longest = longest.max(depth[state as usize]);
            }
            for &to in self.row(state).iter().filter(|to| **to != NONE) {
                depth[to as usize] = depth[to as usize].max(depth[state as usize] + 1);
                incoming[to as usize] -= 1;
                if incoming[to as usize] == 0 {
                    open.push(to);
                }
            }
        }
        (taken == self.len() && !self.is_empty()).then_some(longest)
    }

    /// Is there a string of `min` to `max` characters?
    ///
    /// # Errors
    /// If that takes too long to find out, as it can where `min` is large and close to `max`.
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
        let states = u64::try_from(self.len()).unwrap_or(u64::MAX);
        let infinite = self.longest().is_none();
        // A cycle has at most as many characters as there are states, so lengths of an infinite language are no
        // further apart than that.
        if infinite && max.is_none_or(|max| max - min >= states) {
            return Ok(true);
        }
        // A finite language has no string longer than its longest.
        let last = max.unwrap_or(u64::MAX).min(self.longest().unwrap_or(u64::MAX));
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
                return Err(too_many_states());
            }
        }
        Ok(false)
    }

    /// Its strings of `min` to `max` characters.
    ///
    /// # Errors
    /// If counting takes too many states.
    pub(in crate::grammar::json_schema) fn within(
        &self,
        min: u64,
        max: Option<u64>,
    ) -> Result<Self, LeafError> {
        if self.is_empty() || (min == 0 && max.is_none()) {
            return Ok(self.clone());
        }
        let longest = self.longest();
        if self.shortest().is_some_and(|shortest| shortest >= min)
            && (max.is_none() || longest.zip(max).is_some_and(|(longest, max)| longest <= max))
        {
            return Ok(self.clone());
        }
        explore(self.alphabet().clone(), (0_u32, 0_u64), |&(state, length)| {
            let accepts = self.accepts(state) && length >= min;
            // Past `min`, lengths only matter if there is a greatest.
            let next = if max.is_none() { (length + 1).min(min) } else { length + 1 };
            let full = max.is_some_and(|max| length >= max);
            let step = |&to: &u32| (to != NONE && !full).then_some((to, next));
            Ok(Row { accepts, to: self.row(state).iter().map(step).collect() })
        })
    }

    /// How many strings there are, at most `limit + 1`; infinitely many count as that.
    pub(in crate::grammar::json_schema) fn count(&self, limit: usize) -> usize {
        let over = limit.saturating_add(1);
        if self.is_empty() {
            return 0;
        }
        if self.longest().is_none() {
            return over;
        }
        // Depth-first with memory, by hand: an automaton may be deep.
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
