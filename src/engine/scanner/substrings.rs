//! The substrings of a long text: a suffix automaton (Blumer et al., 1985) built lazily, as texts come to its
//! states.
//!
//! A state is the set of places of the text where the bytes read so far end. It is found from the start on by
//! dividing the places by the byte that follows. Strings of some length occur once, and their state is the
//! one place.
//!
//! Invariant: two sets of places are nested or disjoint, since of two strings that end at the same place the
//! longer occurs at fewer places. So the first place and the number of places identify a set.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use crate::{
    ids::{as_u64, number},
    limits::LimitExceeded,
};

/// The substrings of whole characters of a text.
#[derive(Debug)]
pub(crate) struct Substrings {
    text: Arc<str>,
    /// Is the empty substring among them?
    with_empty: bool,
    /// Length of the text, in bytes.
    length: u32,
    /// Length of the shortest character, in bytes.
    shortest: u32,
    shared: RwLock<SharedStates>,
}

/// The states with several places, the start first.
#[derive(Debug)]
struct SharedStates {
    states: Vec<SuffixState>,
    /// Number of the next state.
    fresh: u32,
    /// States by first place and number of places.
    known: HashMap<(u32, usize), u32>,
    bytes: usize,
}

#[derive(Debug)]
struct SuffixState {
    first: u32,
    count: usize,
    next: Next,
}

#[derive(Debug)]
enum Next {
    /// The places, as long as nobody has asked what follows.
    Places(Box<[u32]>),
    /// The bytes that follow, ascending, and the states they lead to.
    Edges(Box<[(u8, u32)]>),
}

impl PartialEq for Substrings {
    fn eq(&self, other: &Self) -> bool {
        self.with_empty == other.with_empty && self.text == other.text
    }
}

impl Eq for Substrings {}

impl Clone for Substrings {
    /// Creates the automaton of the same language, with no state made.
    fn clone(&self) -> Self {
        self.without_states(self.with_empty)
    }
}

impl Substrings {
    /// Creates the automaton of a non-empty text, with the empty substring or without. Linear in the text,
    /// for its shortest character.
    ///
    /// # Errors
    /// If the text is so long that some state might have no number.
    pub(crate) fn new(text: Arc<str>, with_empty: bool) -> Result<Self, LimitExceeded> {
        let what = "bytes of a text whose substrings are wanted";
        let length = number(text.len(), what)?;
        number(bound(text.len()), what)?;
        let shortest = text.chars().map(char::len_utf8).min().unwrap_or(1);
        let shortest = u32::try_from(shortest).unwrap_or(1);
        let shared = RwLock::new(SharedStates::new(text.len()));
        Ok(Self { text, with_empty, length, shortest, shared })
    }

    /// Returns the automaton of the same text with no state made, with the empty substring or without.
    fn without_states(&self, with_empty: bool) -> Self {
        let shared = RwLock::new(SharedStates::new(self.text.len()));
        let Self { length, shortest, .. } = *self;
        Self { text: Arc::clone(&self.text), with_empty, length, shortest, shared }
    }

    /// Removes the empty substring.
    pub(crate) fn without_empty(&self) -> Self {
        self.without_states(false)
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Is the empty substring among them?
    pub(crate) fn has_empty(&self) -> bool {
        self.with_empty
    }

    /// Bound on the numbers of states: the start is 0, then comes one for each place, then those of several
    /// places.
    pub(crate) fn bound(&self) -> usize {
        bound(self.text.len())
    }

    /// Steps by one byte. A lookup once the state is divided; the first time a pass over its places.
    pub(crate) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let Some(at) = self.several(state) else {
            return (self.text.as_bytes().get(state as usize) == Some(&byte)).then(|| state + 1);
        };
        let edge = |shared: &SharedStates| match &shared.states[at].next {
            Next::Edges(edges) => {
                Some(edges.binary_search_by_key(&byte, |edge| edge.0).ok().map(|edge| edges[edge].1))
            }
            Next::Places(_) => None,
        };
        if let Some(known) = edge(&self.shared.read().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        self.divide(&mut shared, at);
        edge(&shared).flatten()
    }

    /// May a substring end here?
    pub(crate) fn accepts(&self, state: u32) -> bool {
        if state == 0 { self.with_empty } else { self.text.is_char_boundary(self.place(state)) }
    }

    /// Returns the fewest bytes after which a substring ends.
    pub(crate) fn distance(&self, state: u32) -> u32 {
        if state == 0 {
            return if self.with_empty { 0 } else { self.shortest };
        }
        let place = self.place(state);
        (0..).zip(place..).find(|&(_, at)| self.text.is_char_boundary(at)).map_or(0, |(bytes, _)| bytes)
    }

    /// Identifies the state, whatever was met first: its first place and the number of its places.
    pub(crate) fn name(&self, state: u32) -> u64 {
        match self.several(state) {
            None => u64::from(state),
            Some(at) => {
                let SuffixState { first, count, .. } =
                    self.shared.read().unwrap_or_else(PoisonError::into_inner).states[at];
                as_u64(count) << 32 | u64::from(first)
            }
        }
    }

    /// Memory, in bytes, states made so far included.
    pub(crate) fn bytes(&self) -> usize {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        let states = shared.states.capacity() * size_of::<SuffixState>() + shared.known.allocation_size();
        self.text.len() + states + shared.bytes
    }

    /// Returns the index of a state of several places.
    fn several(&self, state: u32) -> Option<usize> {
        let state = state as usize;
        if state == 0 { Some(0) } else { state.checked_sub(self.text.len()).filter(|at| *at > 0) }
    }

    /// Returns a place of the state, which is not the start. All are alike: between characters, or inside
    /// one.
    fn place(&self, state: u32) -> usize {
        match self.several(state) {
            None => state as usize,
            Some(at) => self.shared.read().unwrap_or_else(PoisonError::into_inner).states[at].first as usize,
        }
    }

    /// Makes the states that a state leads to.
    fn divide(&self, shared: &mut SharedStates, at: usize) {
        let Next::Places(places) = &mut shared.states[at].next else { return };
        let places = std::mem::take(places);
        shared.bytes -= size_of_val(&*places);
        let text = self.text.as_bytes();
        let byte = |&place: &u32| text.get(place as usize).copied();
        let mut edges: Vec<(u8, u32)> = Vec::new();
        if at == 0 {
            // All places between characters; a place within is where another text ends, but none begins.
            let begins = |place: &u32| self.text.is_char_boundary(*place as usize);
            self.spread((0..self.length).filter(begins), shared, &mut edges);
        } else if places.len() <= FEW {
            let mut by_byte: Vec<(u8, u32)> =
                places.iter().filter_map(|place| Some((byte(place)?, place + 1))).collect();
            // Places stay in order within a byte.
            by_byte.sort_by_key(|(byte, _)| *byte);
            for group in by_byte.chunk_by(|one, other| one.0 == other.0) {
                let to = self.state(shared, group.iter().map(|(_, place)| *place));
                edges.push((group[0].0, to));
            }
        } else {
            self.spread(places.iter().copied(), shared, &mut edges);
        }
        shared.bytes += size_of_val(&*edges);
        shared.states[at].next = Next::Edges(edges.into());
    }

    /// Does the same as [`divide`](Self::divide) for many places: a counting sort.
    fn spread(
        &self,
        places: impl Iterator<Item = u32> + Clone,
        shared: &mut SharedStates,
        edges: &mut Vec<(u8, u32)>,
    ) {
        let text = self.text.as_bytes();
        let mut next = [0_usize; 257];
        let followed = || places.clone().filter_map(|place| Some((*text.get(place as usize)?, place + 1)));
        followed().for_each(|(byte, _)| next[usize::from(byte) + 1] += 1);
        (0..256).for_each(|byte| next[byte + 1] += next[byte]);
        let firsts = next;
        let mut sorted = vec![0_u32; next[256]];
        for (byte, place) in followed() {
            let at = &mut next[usize::from(byte)];
            sorted[*at] = place;
            *at += 1;
        }
        for byte in 0..=u8::MAX {
            let group = &sorted[firsts[usize::from(byte)]..firsts[usize::from(byte) + 1]];
            if !group.is_empty() {
                edges.push((byte, self.state(shared, group.iter().copied())));
            }
        }
    }

    /// Returns the state of some places, which are ascending.
    fn state(
        &self,
        shared: &mut SharedStates,
        mut places: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> u32 {
        let count = places.len();
        let all = places.clone();
        let first = places.next().unwrap_or(0);
        if count == 1 {
            return first;
        }
        let SharedStates { states, fresh, known, bytes } = shared;
        let at = *known.entry((first, count)).or_insert_with(|| {
            let places: Box<[u32]> = all.collect();
            *bytes += size_of_val(&*places);
            states.push(SuffixState { first, count, next: Next::Places(places) });
            *fresh += 1;
            *fresh - 1
        });
        // Sets that are within each other or apart are fewer than places, so numbers stay below the bound.
        self.length + at
    }
}

/// Number of places up to which sorting them costs less than counting bytes.
const FEW: usize = 64;

impl SharedStates {
    /// Creates the start alone, of a text of this length.
    fn new(length: usize) -> Self {
        let start = SuffixState { first: 0, count: length, next: Next::Places(Box::default()) };
        Self { states: vec![start], fresh: 1, known: HashMap::new(), bytes: 0 }
    }
}

/// Returns the bound on the numbers of states for a text of this length.
fn bound(length: usize) -> usize {
    length.saturating_mul(2).saturating_add(1)
}

#[cfg(test)]
mod tests;
