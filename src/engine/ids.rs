//! Newtype ids, and the only place that turns `usize` into them.
//!
//! Invariant: an id is an index that fits in 32 bits, and two things never share one. `number` is the one
//! way from an index to its number, and fails where there is none; `Numbered` is a list that is checked so
//! as it grows, so that those who read the list need no check. Where a list has been checked as it grew, or
//! is no longer than one that was, its numbers are those of `numbered`, or `(0_u32..).zip(list)`.
//!
//! Counts, sizes and bounds on work, for which the largest number is as good as any larger one, have the
//! functions called `saturating_`. Nothing that these return may be an id or an index.

use std::{
    fmt,
    ops::{Deref, DerefMut, Range},
};

use crate::limits::{Budget, LimitExceeded};

/// Sizes have 32 to 64 bits wherever this runs, so that the conversions below lose nothing.
const _: () = assert!(usize::BITS >= 32);
const _: () = assert!(usize::BITS <= 64);

/// The number as an index.
#[inline(always)]
#[doc(hidden)]
pub const fn as_index(number: u32) -> usize {
    number as usize
}

/// The size in 64 bits.
#[inline(always)]
#[doc(hidden)]
pub const fn as_u64(size: usize) -> u64 {
    size as u64
}

/// The size as a float: exact below 2^53, otherwise the nearest.
#[expect(clippy::cast_precision_loss, reason = "the nearest float is wanted")]
#[doc(hidden)]
pub const fn as_f64(size: usize) -> f64 {
    size as f64
}

/// The number of the thing at `index`.
///
/// # Errors
/// If it does not fit in 32 bits; the error names `what`, as in "states of an automaton".
pub(crate) fn number(index: usize, what: &'static str) -> Result<u32, LimitExceeded> {
    u32::try_from(index).map_err(|_| too_many(what))
}

/// The numbers of `count` things, in order.
///
/// # Errors
/// If there are 2^32 or more; the error names `what`.
pub(crate) fn numbers(count: usize, what: &'static str) -> Result<Range<u32>, LimitExceeded> {
    Ok(0..number(count, what)?)
}

/// Iterates over a list with the numbers of its things. The list is one that was checked as it grew, by
/// [`number`] or by what bounds it.
pub(crate) fn numbered<T>(list: &[T]) -> impl ExactSizeIterator<Item = (u32, &T)> {
    let mut next = 0_u32;
    list.iter().map(move |thing| {
        let number = next;
        next = next.wrapping_add(1);
        (number, thing)
    })
}

/// Creates the error of things that are more than there are numbers.
fn too_many(what: &'static str) -> LimitExceeded {
    LimitExceeded::new(Budget::Fixed, what, as_index(u32::MAX))
}

/// A list whose things all have numbers: it ends in an error before there is a thing without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered<T> {
    things: Vec<T>,
    count: u32,
}

impl<T> Numbered<T> {
    /// Numbers the things of a list.
    ///
    /// # Errors
    /// If there are 2^32 or more; the error names `what`.
    pub(crate) fn of(things: Vec<T>, what: &'static str) -> Result<Self, LimitExceeded> {
        Ok(Self { count: number(things.len(), what)?, things })
    }

    /// Makes an empty list with room for this many things.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { things: Vec::with_capacity(capacity), count: 0 }
    }

    /// Adds a thing, and returns its number.
    ///
    /// # Errors
    /// If there are 2^32 - 1 already; the error names `what`, as in "states of an automaton".
    #[inline]
    pub(crate) fn push(&mut self, thing: T, what: &'static str) -> Result<u32, LimitExceeded> {
        let number = self.count;
        self.count = number.checked_add(1).ok_or_else(|| too_many(what))?;
        self.things.push(thing);
        Ok(number)
    }

    /// The numbers of all things, in order.
    pub(crate) fn numbers(&self) -> Range<u32> {
        0..self.count
    }

    /// Memory of the list on the heap, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.things.capacity() * size_of::<T>()
    }

    /// Takes the last thing off.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.things.pop();
        self.count -= u32::from(last.is_some());
        last
    }

    /// Drops all things behind the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        while self.things.len() > length {
            self.pop();
        }
    }
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { things: Vec::new(), count: 0 }
    }
}

impl<T> Deref for Numbered<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.things
    }
}

impl<T> DerefMut for Numbered<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.things
    }
}

impl<T> IntoIterator for Numbered<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.things.into_iter()
    }
}

/// The count or bound in 32 bits; the largest number for all that do not fit. Not for ids and indices: see
/// [`number`].
#[doc(hidden)]
pub fn saturating_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The size or bound as one of this machine; the largest for all that do not fit. Not for ids and indices:
/// see [`number`].
pub(crate) fn saturating_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// The count as a signed number; the largest for all that do not fit. Not for ids and indices: see
/// [`number`].
pub(crate) fn saturating_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
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
        assert_eq!(numbers(0, "things"), Ok(0..0));
        for (index, found) in numbers(3, "things").unwrap().enumerate() {
            assert_eq!((number(index, "things").unwrap(), as_index(found)), (found, index));
        }
        let pairs = numbered(&['a', 'b']);
        assert_eq!((pairs.len(), pairs.collect::<Vec<_>>()), (2, vec![(0, &'a'), (1, &'b')]));
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
        assert_eq!(numbers(past, "states of an automaton").unwrap_err(), error);
        assert_eq!(numbers(past - 1, "states of an automaton").unwrap().last(), Some(u32::MAX - 1));
    }

    #[test]
    fn lists_end_before_two_things_share_a_number() {
        let mut list = Numbered::default();
        assert_eq!([list.push('a', "letters"), list.push('b', "letters")], [Ok(0), Ok(1)]);
        assert_eq!((list.numbers(), &*list), (0..2, &['a', 'b'][..]));
        list.truncate(1);
        list.truncate(5);
        assert_eq!((list.numbers(), list.push('c', "letters"), list.len()), (0..1, Ok(1), 2));
        assert_eq!(list.push('d', "letters").map(|_| list.pop()), Ok(Some('d')));
        assert_eq!((Numbered::<char>::default().pop(), list.numbers()), (None, 0..2));
        assert_eq!(Numbered::of(vec!['a', 'c'], "letters"), Ok(list.clone()));
        list[0] = 'z';
        assert_eq!(list.into_iter().collect::<String>(), "zc");
        // As if there were as many things as there can be.
        let mut full = Numbered { things: vec!['a'], count: u32::MAX - 1 };
        assert_eq!(full.push('b', "letters"), Ok(u32::MAX - 1));
        let error = full.push('c', "letters").unwrap_err();
        assert_eq!((error.budget(), error.limit()), (Budget::Fixed, u64::from(u32::MAX)));
        assert!(error.to_string().contains("letters"), "{error}");
        assert_eq!((&*full, full.numbers().end), (&['a', 'b'][..], u32::MAX));
    }

    #[test]
    fn counts_end_at_the_largest_number() {
        assert_eq!([saturating_u32(0), saturating_u32(7)], [0, 7]);
        assert_eq!(saturating_u32(as_index(u32::MAX)), u32::MAX);
        assert_eq!([saturating_usize(0), saturating_usize(9)], [0, 9]);
        assert_eq!(saturating_usize(u64::MAX), usize::MAX);
        assert_eq!([saturating_i64(0), saturating_i64(5)], [0, 5]);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn counts_past_the_largest_number_are_it() {
        assert_eq!(saturating_u32(as_index(u32::MAX) + 5), u32::MAX);
        assert_eq!(saturating_i64(usize::MAX), i64::MAX);
    }
}
