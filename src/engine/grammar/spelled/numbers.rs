//! A numbering of states that are too many to list: places of texts in strings that are spelled lazily.

use std::sync::{PoisonError, RwLock};

use crate::{
    automata::HashIndex,
    limits::{Budget, LimitExceeded},
};

/// Limit on the numbers of one terminal: a grammar has room for 60 such terminals.
const MOST_NUMBERS: u32 = 1 << 26;
/// Limit on the places that are numbered by arithmetic.
const MOST_DIGITS: u32 = if cfg!(test) { 1 << 11 } else { MOST_NUMBERS };
/// The first number of a place; those below are the start and the end.
pub(super) const FIRST: u32 = 2;
/// The bits of a name for a node and for a state; the rest are for a count.
const NODE_BITS: u32 = 14;
const STATE_BITS: u32 = 18;

/// The error that no number is left for a state that a text reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfNumbers;

impl From<OutOfNumbers> for LimitExceeded {
    fn from(_: OutOfNumbers) -> Self {
        Self::new(
            Budget::Fixed,
            "states of one string with counts, each with a number",
            MOST_NUMBERS as usize,
        )
    }
}

/// Permission to give numbers to states that have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayNumber {
    Yes,
    No,
}

/// A numbering of places.
#[derive(Debug)]
pub(super) enum PlaceNumbers {
    /// The number of a place has its state, count and node as digits.
    Digits { states: u32, node_bits: u32, bound: u32 },
    /// There are too many places, so they are numbered in the order in which texts reach them.
    AsMet { met: RwLock<MetPlaces>, bound: u32 },
}

/// The places that have a number.
#[derive(Debug, Default)]
pub(super) struct MetPlaces {
    places: Vec<SpelledPlace>,
    index: HashIndex,
}

impl MetPlaces {
    fn find(&self, hash: u32, place: SpelledPlace) -> Option<u32> {
        let number = self.index.find(hash, |number| self.places.get(at(number)) == Some(&place));
        number.map(|number| number + FIRST)
    }
}

/// The index of a number, counted without those of the start and the end.
fn at(number: u32) -> usize {
    number as usize
}

impl PlaceNumbers {
    /// The numbering for this many states, counts and nodes. `None` if there are more states or nodes than a
    /// name can tell apart.
    pub(super) fn new(states: usize, counts: u64, nodes: usize) -> Option<Self> {
        let states = u32::try_from(states).ok().filter(|&states| states < 1 << STATE_BITS)?;
        let nodes = u32::try_from(nodes).ok().filter(|&nodes| nodes <= 1 << NODE_BITS)?;
        let node_bits = nodes.max(1).next_power_of_two().ilog2();
        // A product that does not fit is not one of few places.
        let few = u64::from(states).checked_mul(counts).filter(|places| *places <= u64::from(MOST_NUMBERS));
        let bound = few.and_then(|places| u32::try_from((places << node_bits) + u64::from(FIRST)).ok());
        Some(match bound.filter(|&bound| bound <= MOST_DIGITS) {
            Some(bound) => Self::Digits { states, node_bits, bound },
            None => Self::as_met(MOST_NUMBERS),
        })
    }

    /// An empty numbering of places as they are met, with numbers below `bound`.
    fn as_met(bound: u32) -> Self {
        Self::AsMet { met: RwLock::default(), bound }
    }

    /// Copies the numbering, emptied if places are numbered as they are met.
    pub(super) fn afresh(&self) -> Self {
        match *self {
            Self::Digits { states, node_bits, bound } => Self::Digits { states, node_bits, bound },
            Self::AsMet { bound, .. } => Self::as_met(bound),
        }
    }

    /// A numbering for a walk over a vocabulary, if places are numbered as they are met. It does not run out:
    /// a walk reaches fewer places than there are trie nodes, which are below the largest index.
    pub(super) fn of_a_walk(&self) -> Option<Self> {
        matches!(self, Self::AsMet { .. }).then(|| Self::as_met(u32::MAX - 1))
    }

    /// A numbering with room for `places` places, in the order in which they are met.
    #[cfg(test)]
    pub(super) fn of_few(places: u32) -> Self {
        Self::as_met(FIRST + places)
    }

    /// A bound above all numbers.
    pub(super) fn bound(&self) -> u32 {
        match self {
            Self::Digits { bound, .. } | Self::AsMet { bound, .. } => *bound,
        }
    }

    /// The number of a place.
    ///
    /// # Errors
    /// If it has no number yet, and may get none or none is left.
    pub(super) fn of(&self, place: SpelledPlace, fresh: MayNumber) -> Result<u32, OutOfNumbers> {
        let (met, bound) = match self {
            Self::Digits { states, node_bits, .. } => {
                return Ok(((place.count * states + place.state) << node_bits | place.node) + FIRST);
            }
            Self::AsMet { met, bound } => (met, *bound),
        };
        let reading = met.read().unwrap_or_else(PoisonError::into_inner);
        let hash = reading.index.hash(&place);
        if let Some(known) = reading.find(hash, place) {
            return Ok(known);
        }
        drop(reading);
        if fresh == MayNumber::No {
            return Err(OutOfNumbers);
        }
        let mut met = met.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = met.find(hash, place) {
            return Ok(known);
        }
        let next = u32::try_from(met.places.len()).map_err(|_| OutOfNumbers)?;
        let number = next.checked_add(FIRST).filter(|&number| number < bound).ok_or(OutOfNumbers)?;
        met.index.insert(hash, next);
        met.places.push(place);
        Ok(number)
    }

    /// The place of a number from [`FIRST`] on.
    pub(super) fn place(&self, number: u32) -> SpelledPlace {
        let number = number - FIRST;
        match self {
            Self::Digits { states, node_bits, .. } => {
                let rest = number >> node_bits;
                SpelledPlace {
                    state: rest % states,
                    count: rest / states,
                    node: number & ((1 << node_bits) - 1),
                }
            }
            Self::AsMet { met, .. } => {
                let met = met.read().unwrap_or_else(PoisonError::into_inner);
                met.places.get(at(number)).copied().unwrap_or_default()
            }
        }
    }

    /// A name that tells a place from others, in whatever order places were met.
    pub(super) fn name(&self, number: u32) -> u64 {
        match self {
            Self::AsMet { .. } if number >= FIRST => name(self.place(number)) + u64::from(FIRST),
            _ => u64::from(number),
        }
    }

    /// Memory of the places that were met, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Digits { .. } => 0,
            Self::AsMet { met, .. } => {
                let met = met.read().unwrap_or_else(PoisonError::into_inner);
                met.places.capacity() * size_of::<SpelledPlace>() + met.index.bytes()
            }
        }
    }
}

/// Packs the parts of a place into one word.
fn name(place: SpelledPlace) -> u64 {
    u64::from(place.count) << (STATE_BITS + NODE_BITS)
        | u64::from(place.state) << NODE_BITS
        | u64::from(place.node)
}

/// The distance of states from which no end can be reached.
pub(super) const NO_END: u32 = u32::MAX;

/// A state over characters, the number of characters so far, and the node inside of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SpelledPlace {
    pub(crate) state: u32,
    pub(crate) count: u32,
    pub(crate) node: u32,
}

/// A point of a text: in front of the string, inside of it, or behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextAt {
    Start,
    In(SpelledPlace),
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> impl Iterator<Item = SpelledPlace> {
        let nodes = |state, count| (0..3).map(move |node| SpelledPlace { state, count, node });
        (0..5).flat_map(move |state| (0..7).flat_map(move |count| nodes(state, count)))
    }

    /// In either numbering, a number gives back its place, and names differ.
    #[test]
    fn numbers_give_back_their_places_and_names_differ() {
        for numbers in [PlaceNumbers::new(5, 7, 3).unwrap(), PlaceNumbers::of_few(200)] {
            let given: Vec<u32> = places().map(|place| numbers.of(place, MayNumber::Yes).unwrap()).collect();
            let mut names: Vec<u64> = given.iter().map(|&number| numbers.name(number)).collect();
            for (place, &number) in places().zip(&given) {
                assert_eq!(numbers.place(number), place);
                assert_eq!(numbers.of(place, MayNumber::No), Ok(number));
                assert!((FIRST..numbers.bound()).contains(&number));
            }
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), given.len());
        }
    }

    /// Places keep their numbers, and when numbers run out other places get none.
    #[test]
    fn places_past_the_last_number_get_none() {
        let numbers = PlaceNumbers::of_few(10);
        let given: Vec<Result<u32, OutOfNumbers>> =
            places().map(|place| numbers.of(place, MayNumber::Yes)).collect();
        assert!(given[..10].iter().all(Result::is_ok));
        assert!(given[10..].iter().all(|one| *one == Err(OutOfNumbers)));
        let again: Vec<_> = places().map(|place| numbers.of(place, MayNumber::No)).collect();
        assert_eq!(given, again);
        assert_eq!(numbers.afresh().of(SpelledPlace::default(), MayNumber::No), Err(OutOfNumbers));
        let walk = numbers.of_a_walk().unwrap();
        assert!(places().all(|place| walk.of(place, MayNumber::Yes).is_ok()));
        assert!(numbers.bytes() > 0 && walk.bytes() > numbers.bytes());
    }

    /// Numbers of many places, and of more than a product of 64 bits can count, are given as they are met.
    #[test]
    fn large_products_of_places_are_numbered_as_met() {
        for (states, counts) in [(1 << 10, 1 << 20), ((1 << 18) - 1, u64::from(u32::MAX)), (3, u64::MAX)] {
            assert!(matches!(PlaceNumbers::new(states, counts, 9), Some(PlaceNumbers::AsMet { .. })));
        }
        assert!(PlaceNumbers::new(1 << STATE_BITS, 1, 1).is_none());
        assert!(PlaceNumbers::new(1, 1, (1 << NODE_BITS) + 1).is_none());
    }
}
