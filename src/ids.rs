//! Newtype ids and the only place that turns `usize` into them.
//!
//! Invariant: an id is an index that fits in 32 bits. Conversions are fallible where the source is
//! not bounded by construction.

use std::{fmt, ops::Range};

use crate::limits::{Budget, LimitExceeded};

/// Sizes have 32 to 64 bits wherever this runs, so that the conversions below lose nothing.
const _: () = assert!(usize::BITS >= 32);
const _: () = assert!(usize::BITS <= 64);

/// The number as an index.
#[inline(always)]
pub(crate) const fn as_index(number: u32) -> usize {
    number as usize
}

/// The size in 64 bits.
#[inline(always)]
pub(crate) const fn as_u64(size: usize) -> u64 {
    size as u64
}

/// The size as a float: exact below 2^53, otherwise the nearest.
#[expect(clippy::cast_precision_loss, reason = "the nearest float is wanted")]
pub(crate) const fn as_f64(size: usize) -> f64 {
    size as f64
}

/// The number of the thing at `index`.
///
/// # Errors
/// If it does not fit in 32 bits; the error names `what`, as in "states of an automaton".
pub(crate) fn number(index: usize, what: &'static str) -> Result<u32, LimitExceeded> {
    u32::try_from(index).map_err(|_| LimitExceeded::new(Budget::Fixed, what, as_index(u32::MAX)))
}

/// The numbers of `count` things, in order. Things past the last number have none, and none is made for them.
pub(crate) fn numbers(count: usize) -> Range<u32> {
    0..u32::try_from(count).unwrap_or(u32::MAX)
}

/// Declares a 32-bit index type.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// Creates the id with this number.
            #[must_use]
            pub const fn new(raw: u32) -> Self {
                Self(raw)
            }

            /// Creates the id of index `index`, or returns `None` if it does not fit in 32 bits.
            #[must_use]
            pub fn from_index(index: usize) -> Option<Self> {
                u32::try_from(index).ok().map(Self)
            }

            /// The number.
            #[must_use]
            pub const fn raw(self) -> u32 {
                self.0
            }

            /// The number as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id_type! {
    /// A token of a [`Vocabulary`](crate::vocab::Vocabulary).
    TokenId
}
id_type! {
    /// A rule of a [`Grammar`](crate::grammar::Grammar).
    RuleId
}
id_type! {
    /// An expression of a [`Grammar`](crate::grammar::Grammar).
    ExprId
}
id_type! {
    /// A terminal of the lowered grammar.
    TerminalId
}
id_type! {
    /// A scanner state: a terminal and a state of its DFA, numbered across all terminals.
    ScanStateId
}
id_type! {
    /// A canonical Earley set.
    SetId
}
id_type! {
    /// A canonical constraint state: threads and boundary.
    StateId
}
id_type! {
    /// A node of the vocabulary's byte trie.
    TrieNodeId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_indices_convert_both_ways() {
        assert_eq!(numbers(0).len(), 0);
        for (index, found) in numbers(3).enumerate() {
            assert_eq!((number(index, "things").unwrap(), as_index(found)), (found, index));
        }
        assert_eq!(number(as_index(u32::MAX), "things"), Ok(u32::MAX));
        assert_eq!(as_u64(usize::MAX).count_ones(), usize::BITS);
        assert_eq!(as_f64(1 << 24), 16_777_216.0);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn indices_past_u32_are_errors() {
        let past = as_index(u32::MAX) + 1;
        let error = number(past, "states of an automaton").unwrap_err();
        assert_eq!((error.budget(), error.limit()), (Budget::Fixed, u64::from(u32::MAX)));
        assert!(error.to_string().contains("states of an automaton"), "{error}");
        assert_eq!(TokenId::from_index(past), None);
        assert_eq!(numbers(past + 5).last(), Some(u32::MAX - 1));
    }
}
