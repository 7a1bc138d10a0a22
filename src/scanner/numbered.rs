//! Automata that number a state when a text first comes to it: numbers take memory, and may run out.
//!
//! Texts keep their states and need numbers. Looking ahead from a state needs none, and a walk over a
//! vocabulary has numbers of its own, which are dropped with it.

use std::borrow::Cow;

use super::{dfa::TerminalDfa, implicit_dfa::ImplicitDfa};
use crate::grammar::spelled::{MayNumber, OutOfNumbers};

impl TerminalDfa {
    /// Steps by one byte, if the terminal can go on with it.
    ///
    /// # Errors
    /// If the state has no number yet, and may get none.
    pub(crate) fn go(&self, state: u32, byte: u8, fresh: MayNumber) -> Result<Option<u32>, OutOfNumbers> {
        match self.unlisted() {
            Some(unlisted) => unlisted.step(state, byte, fresh),
            None => Ok(self.step(state, byte)),
        }
    }

    /// Can the terminal go on with these bytes? Numbers no state.
    pub(crate) fn takes(&self, state: u32, bytes: impl IntoIterator<Item = u8>) -> bool {
        let mut bytes = bytes.into_iter();
        match self.unlisted() {
            Some(unlisted) => unlisted.takes(state, bytes),
            None => bytes.try_fold(state, |state, byte| self.step(state, byte)).is_some(),
        }
    }

    /// Can the terminal go on at all?
    pub(crate) fn goes_on(&self, state: u32) -> bool {
        (0..=u8::MAX).any(|byte| self.takes(state, [byte]))
    }

    /// Returns this automaton for a walk over a vocabulary, or a copy if it numbers states as texts come to
    /// them: the numbers of a walk are not needed after it.
    pub(crate) fn of_a_walk(&self) -> Cow<'_, Self> {
        match self.unlisted().and_then(ImplicitDfa::of_a_walk) {
            Some(unlisted) => {
                let classes = Box::new(*self.classes());
                Cow::Owned(Self::made_as_needed(classes, self.class_count(), unlisted))
            }
            None => Cow::Borrowed(self),
        }
    }

    /// Returns the state of this automaton [of a walk](Self::of_a_walk) that corresponds to a state of
    /// `other`.
    pub(crate) fn same_as(&self, other: &Self, state: u32) -> u32 {
        match (self.spelled(), other.spelled()) {
            // A walk's numbers do not run out.
            (Some((own, _)), Some((spelled, _))) => {
                own.number(spelled.at(state), MayNumber::Yes).unwrap_or(state)
            }
            _ => state,
        }
    }

    /// Memory of the states that were numbered as texts came to them, in bytes.
    pub(crate) fn met_bytes(&self) -> usize {
        self.unlisted().map_or(0, ImplicitDfa::met_bytes)
    }
}
