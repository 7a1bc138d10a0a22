//! The undo history: the states before the last steps, as many as the window holds.

use std::collections::VecDeque;

use super::error::StepErrorKind;
use crate::ids::StateId;

/// The states before the last steps, oldest first, and the number of forgotten ones.
///
/// Nothing follows end of text, so every step started in a state.
#[derive(Debug, Clone)]
pub(super) struct History {
    /// States, each with the number of bytes of text before it.
    states: VecDeque<(StateId, u32)>,
    forgotten: usize,
    window: usize,
}

impl History {
    /// Creates an empty history that can undo the last `window` steps.
    pub(super) fn new(window: usize) -> Self {
        Self { states: VecDeque::new(), forgotten: 0, window }
    }

    /// Records a step from `state`, before which the text has `bytes` bytes. Past the window the oldest step
    /// is forgotten.
    pub(super) fn push(&mut self, state: StateId, bytes: u32) {
        if self.states.len() >= self.window {
            self.forgotten += 1;
            if self.states.pop_front().is_none() {
                return;
            }
        }
        self.states.push_back((state, bytes));
    }

    /// Undoes the last `steps` steps, at least one. Returns the state where they started, and the bytes
    /// before it.
    pub(super) fn back(&mut self, steps: usize) -> Result<(StateId, u32), StepErrorKind> {
        let kept = self.states.len();
        match kept.checked_sub(steps).and_then(|at| Some((at, *self.states.get(at)?))) {
            Some((at, start)) => {
                self.states.truncate(at);
                Ok(start)
            }
            None if steps <= self.len() => Err(StepErrorKind::HistoryForgotten(kept)),
            None => Err(StepErrorKind::HistoryTooShort(self.len())),
        }
    }

    /// Number of steps taken and not undone, forgotten ones included.
    pub(super) fn len(&self) -> usize {
        self.forgotten + self.states.len()
    }

    /// Number of steps that can be undone.
    pub(super) fn kept(&self) -> usize {
        self.states.len()
    }

    /// The states, the latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = StateId> + '_ {
        self.states.iter().rev().map(|&(state, _)| state)
    }

    /// Puts each state's new name in its place; the steps before the last state that has none are forgotten.
    pub(super) fn rename(&mut self, name: impl Fn(StateId) -> Option<StateId>) {
        let unknown = self.states.iter().rposition(|&(state, _)| name(state).is_none());
        let lost = unknown.map_or(0, |at| at + 1);
        self.states.drain(..lost);
        self.forgotten += lost;
        for (state, _) in &mut self.states {
            *state = name(*state).unwrap_or(*state);
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<(StateId, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a plain list of all steps.
        #[test]
        fn the_last_steps_are_kept(window in 0..6_usize, calls in prop::collection::vec(0..12_usize, 0..60)) {
            let mut history = History::new(window);
            let mut all: Vec<StateId> = Vec::new();
            // What was forgotten stays so, however far one goes back.
            let mut forgotten = 0;
            for (time, call) in calls.into_iter().enumerate() {
                let state = StateId::from_index(time).unwrap();
                match call {
                    0 => history.rename(|state| (state.raw() % 7 > 0).then_some(state)),
                    1..5 => {
                        let found = history.back(call);
                        if call > all.len() {
                            prop_assert_eq!(found, Err(StepErrorKind::HistoryTooShort(all.len())));
                        } else if call > all.len() - forgotten {
                            let known = all.len() - forgotten;
                            prop_assert_eq!(found, Err(StepErrorKind::HistoryForgotten(known)));
                        } else {
                            let start = all.len() - call;
                            prop_assert_eq!(found, Ok((all[start], u32::try_from(start).unwrap())));
                            all.truncate(all.len() - call);
                        }
                    }
                    _ => {
                        history.push(state, u32::try_from(all.len()).unwrap());
                        all.push(state);
                        forgotten = forgotten.max(all.len().saturating_sub(window));
                    }
                }
                if call == 0 {
                    let unknown = (forgotten..all.len()).rev().find(|&at| all[at].raw().is_multiple_of(7));
                    forgotten = unknown.map_or(forgotten, |at| at + 1);
                }
                prop_assert_eq!(history.len(), all.len());
                prop_assert!(history.latest_first().eq(all[forgotten..].iter().rev().copied()));
                // A deque doubles.
                prop_assert!(history.bytes() <= 8 * (2 * window).max(4));
                prop_assert!(history.bytes() >= 8 * (all.len() - forgotten));
            }
        }
    }
}
