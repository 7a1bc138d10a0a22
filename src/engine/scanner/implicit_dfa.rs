//! Automata whose states are in no table, but are computed when texts come to them (lazy DFAs).
//!
//! A state's number says what it is, where there are few enough; otherwise numbers are given to states in the
//! order in which texts come to them. A step costs more than a look-up in a table, and memory
//! grows with the texts, not with the pattern.

use std::{borrow::Cow, sync::Arc};

use super::{dfa::TerminalDfa, substrings::Substrings};
use crate::grammar::{
    LengthBounded, Spelled,
    spelled::{MayNumber, OutOfNumbers, Unfolded},
};
use crate::{automata::mix, store::PayloadWriter};

/// An automaton in place of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImplicitDfa {
    /// The substrings of a text.
    Substrings(Substrings),
    /// Strings with bounds on their length, and the DFA of the unbounded strings. Both number the states of
    /// that DFA alike.
    LengthBounded(LengthBounded, Arc<TerminalDfa>),
    /// Strings of an automaton over characters, and if their length is bounded the DFA of the unbounded
    /// strings.
    Spelled(Spelled, Option<Arc<TerminalDfa>>),
}

impl ImplicitDfa {
    /// Steps by one byte.
    ///
    /// # Errors
    /// If the state has no number yet, and may get none.
    pub(super) fn step(&self, state: u32, byte: u8, fresh: MayNumber) -> Result<Option<u32>, OutOfNumbers> {
        match self {
            Self::Substrings(substrings) => Ok(substrings.step(state, byte)),
            Self::LengthBounded(bounded, dfa) => {
                let to = dfa.step(bounded.place(state).0, byte);
                Ok(to.and_then(|to| bounded.after(state, to)))
            }
            Self::Spelled(spelled, _) => spelled.step(state, byte, fresh),
        }
    }

    /// May the terminal go on with these bytes? Numbers no state.
    pub(super) fn takes(&self, state: u32, mut bytes: impl Iterator<Item = u8>) -> bool {
        match self {
            Self::Spelled(spelled, _) => {
                bytes.try_fold(spelled.at(state), |at, byte| spelled.follow(at, byte)).is_some()
            }
            _ => {
                // The others have numbers for all states.
                let step = |state, byte| self.step(state, byte, MayNumber::Yes).ok().flatten();
                bytes.try_fold(state, step).is_some()
            }
        }
    }

    /// Returns a copy for a walk over a vocabulary, if this one numbers states as texts come to them.
    pub(super) fn of_a_walk(&self) -> Option<Self> {
        match self {
            Self::Spelled(spelled, _) => Some(Self::Spelled(spelled.of_a_walk()?, None)),
            Self::Substrings(_) | Self::LengthBounded(..) => None,
        }
    }

    /// Memory of the states that were numbered as texts came to them, in bytes.
    pub(super) fn met_bytes(&self) -> usize {
        match self {
            Self::Spelled(spelled, unbounded) => {
                spelled.met_bytes() + unbounded.as_ref().map_or(0, |unbounded| unbounded.met_bytes())
            }
            Self::Substrings(_) | Self::LengthBounded(..) => 0,
        }
    }

    /// May the terminal end here?
    pub(super) fn accepts(&self, state: u32) -> bool {
        match self {
            Self::Substrings(substrings) => substrings.accepts(state),
            Self::LengthBounded(bounded, _) => bounded.accepts(state),
            Self::Spelled(spelled, _) => spelled.accepts(state),
        }
    }

    /// Returns the fewest bytes after which the terminal may end.
    pub(super) fn distance(&self, state: u32) -> u32 {
        match self {
            Self::Substrings(substrings) => substrings.distance(state),
            Self::LengthBounded(bounded, _) => bounded.distance(state),
            Self::Spelled(spelled, _) => spelled.distance(state),
        }
    }

    /// Returns a name that identifies the state, whatever was met first.
    pub(super) fn name(&self, state: u32) -> u64 {
        match self {
            Self::Substrings(substrings) => substrings.name(state),
            Self::LengthBounded(..) => u64::from(state),
            Self::Spelled(spelled, _) => spelled.name(state),
        }
    }

    /// Is the language finite?
    pub(super) fn is_finite(&self) -> bool {
        match self {
            Self::Substrings(_) => true,
            Self::LengthBounded(bounded, dfa) => bounded.is_finite() || dfa.is_finite(),
            Self::Spelled(spelled, _) => spelled.is_finite(),
        }
    }

    /// Is every text at most `bytes` long?
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        match self {
            Self::Substrings(substrings) => substrings.text().len() <= bytes,
            Self::LengthBounded(bounded, _) => bounded.is_within(bytes),
            Self::Spelled(spelled, _) => spelled.is_within(bytes),
        }
    }

    /// Removes the empty text.
    pub(super) fn without_empty(&self) -> Self {
        match self {
            Self::Substrings(substrings) => Self::Substrings(substrings.without_empty()),
            // Quotes are in every text.
            Self::LengthBounded(..) | Self::Spelled(..) => self.clone(),
        }
    }

    /// Bound on the numbers of states.
    pub(super) fn bound(&self) -> usize {
        match self {
            Self::Substrings(substrings) => substrings.bound(),
            Self::LengthBounded(bounded, _) => bounded.bound(),
            Self::Spelled(spelled, _) => spelled.bound(),
        }
    }

    /// Memory without the other DFA, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Substrings(substrings) => substrings.bytes(),
            Self::LengthBounded(bounded, _) => bounded.bytes(),
            Self::Spelled(spelled, _) => spelled.bytes(),
        }
    }

    /// A hash of the language. Linear in a text.
    pub(super) fn hash(&self) -> u64 {
        match self {
            Self::Substrings(substrings) => {
                let words = substrings.text().as_bytes().chunks(8);
                let word = |part: &[u8]| part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
                words.fold(u64::from(substrings.has_empty()), |hash, part| mix(hash, word(part)))
            }
            Self::LengthBounded(bounded, dfa) => {
                let (min, max) = bounded.lengths().into_inner();
                mix(dfa.hash_of_all(), u64::from(min) << 32 | u64::from(max))
            }
            Self::Spelled(spelled, _) => spelled.hash(),
        }
    }

    /// Serialises all that distinguishes it from others of its kind.
    pub(super) fn write(&self, writer: &mut PayloadWriter) {
        match self {
            Self::Substrings(substrings) => {
                writer.bytes(&[u8::from(substrings.has_empty())]);
                writer.bytes(substrings.text().as_bytes());
            }
            Self::LengthBounded(bounded, dfa) => {
                dfa.write(writer);
                let (min, max) = bounded.lengths().into_inner();
                writer.u32s([min, max].into_iter());
            }
            Self::Spelled(spelled, _) => {
                let words: Vec<u32> = spelled.words().collect();
                writer.u32s(words.into_iter());
            }
        }
    }
}

// An automaton may number a state when a text first comes to it: numbers take memory, and may run out. Texts
// keep their states and need numbers. Looking ahead from a state needs none, and a walk over a vocabulary has
// numbers of its own, which are dropped with it.

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
