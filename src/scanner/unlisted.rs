//! Automata whose states are in no table: they are made, or found, when texts come to them.

use std::sync::Arc;

use super::{dfa::TerminalDfa, substrings::Substrings};
use crate::{
    grammar::{Measured, Spelled},
    hopcroft::mix,
    store::Writer,
};

/// What there is in place of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unlisted {
    /// The substrings of a text.
    Substrings(Substrings),
    /// Strings with bounds on their length, and the DFA of the same strings without bounds. Both number the
    /// states of that DFA alike.
    Measured(Measured, Arc<TerminalDfa>),
    /// Strings of an automaton over characters, and where there are bounds the DFA of the same strings
    /// without them.
    Spelled(Spelled, Option<Arc<TerminalDfa>>),
}

impl Unlisted {
    /// The state after one more byte.
    pub(super) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        match self {
            Self::Substrings(substrings) => substrings.step(state, byte),
            Self::Measured(measured, dfa) => measured.after(state, dfa.step(measured.place(state).0, byte)?),
            Self::Spelled(spelled, _) => spelled.step(state, byte),
        }
    }

    /// May the terminal end here?
    pub(super) fn accepts(&self, state: u32) -> bool {
        match self {
            Self::Substrings(substrings) => substrings.accepts(state),
            Self::Measured(measured, _) => measured.accepts(state),
            Self::Spelled(spelled, _) => spelled.accepts(state),
        }
    }

    /// The fewest bytes after which the terminal may end.
    pub(super) fn distance(&self, state: u32) -> u32 {
        match self {
            Self::Substrings(substrings) => substrings.distance(state),
            Self::Measured(measured, _) => measured.distance(state),
            Self::Spelled(spelled, _) => spelled.distance(state),
        }
    }

    /// What tells the state from others, whatever was met first.
    pub(super) fn name(&self, state: u32) -> u64 {
        match self {
            Self::Substrings(substrings) => substrings.name(state),
            Self::Measured(..) => u64::from(state),
            Self::Spelled(spelled, _) => spelled.name(state),
        }
    }

    /// Is the language finite?
    pub(super) fn is_finite(&self) -> bool {
        match self {
            Self::Substrings(_) | Self::Measured(..) => true,
            Self::Spelled(spelled, _) => spelled.is_finite(),
        }
    }

    /// Is every text at most `bytes` long?
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        match self {
            Self::Substrings(substrings) => substrings.text().len() <= bytes,
            Self::Measured(measured, _) => measured.is_within(bytes),
            Self::Spelled(spelled, _) => spelled.is_within(bytes),
        }
    }

    /// The same language without the empty text.
    pub(super) fn without_empty(&self) -> Self {
        match self {
            Self::Substrings(substrings) => Self::Substrings(substrings.without_empty()),
            // Quotes are in every text.
            Self::Measured(..) | Self::Spelled(..) => self.clone(),
        }
    }

    /// States are numbered below this.
    pub(super) fn bound(&self) -> usize {
        match self {
            Self::Substrings(substrings) => substrings.bound(),
            Self::Measured(measured, _) => measured.bound(),
            Self::Spelled(spelled, _) => spelled.bound(),
        }
    }

    /// Memory beside that of another DFA, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Substrings(substrings) => substrings.bytes(),
            Self::Measured(measured, _) => measured.bytes(),
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
            Self::Measured(measured, dfa) => {
                let (min, max) = measured.lengths().into_inner();
                mix(dfa.hash_of_all(), u64::from(min) << 32 | u64::from(max))
            }
            Self::Spelled(spelled, _) => spelled.hash(),
        }
    }

    /// Writes all that tells it from others of its kind.
    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            Self::Substrings(substrings) => {
                writer.bytes(&[u8::from(substrings.has_empty())]);
                writer.bytes(substrings.text().as_bytes());
            }
            Self::Measured(measured, dfa) => {
                dfa.write(writer);
                let (min, max) = measured.lengths().into_inner();
                writer.u32s([min, max].into_iter());
            }
            Self::Spelled(spelled, _) => {
                let words: Vec<u32> = spelled.words().collect();
                writer.u32s(words.into_iter());
            }
        }
    }
}
