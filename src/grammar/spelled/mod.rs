//! JSON strings of an automaton over characters: how they are spelled in bytes is found out as texts come to
//! it.
//!
//! A pattern with counts, such as `^x[^\n]{0,1000}$`, has a state for each count, which is little; but each
//! character may be written in many ways, and the states inside of these are another dozen for each. Here a
//! state is a state of characters beside a node of the automaton that reads one character, and a count of
//! characters where their number is bounded. None of this is listed.
//!
//! Invariant: `step` leads to live states only, and the start is live.

mod alike;
mod lengths;
mod lexer;
mod numbers;

use std::sync::{Arc, OnceLock};

use hashbrown::{HashMap, HashSet, hash_map::Entry};

pub(crate) use alike::{Alike, LONG};
pub use lengths::Bounds;
use lengths::{Lengths, free_distances};
use lexer::{Lexer, Read};
use numbers::{FIRST, Numbers};

use super::automaton::{Automaton, Edge, State};
use crate::{
    hopcroft::{NONE, Table, mix},
    limits::{Budget, LimitExceeded},
};

/// The start, in front of the opening quote, and the end, behind the closing one.
const START: u32 = 0;
const END: u32 = 1;

/// JSON strings, given by an automaton over characters and by how each character is written. An escape or a
/// pair of escaped surrogates is one character. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Spelled(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lexer: Arc<Lexer>,
    table: Arc<Table>,
    lengths: Lengths,
    numbers: Numbers,
    hash: u64,
    /// Fewest bytes to an end by state where lengths are free; made when they are first asked for.
    distances: OnceLock<Box<[u32]>>,
}

/// A state of characters, how many of them have come, and where in the next one the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Place {
    pub(crate) state: u32,
    pub(crate) count: u32,
    pub(crate) node: u32,
}

impl PartialEq for Spelled {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&*self.0, &*other.0);
        one.hash == other.hash
            && one.lengths.bounds() == other.lengths.bounds()
            && one.table == other.table
            && one.lexer == other.lexer
    }
}

impl Eq for Spelled {}

impl std::hash::Hash for Spelled {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// How characters are written: the edges of the first byte, and the states inside of a character. See
/// [`Spelled::new`].
#[derive(Debug)]
pub(crate) struct Characters {
    pub(crate) first: Vec<Edge>,
    pub(crate) inside: Box<[State]>,
}

impl Spelled {
    /// The strings of `table` with so many characters, with quotes. An edge of `characters` to a number below
    /// the table's width ends a character of that class; others lead to a state inside of a character, by its
    /// place plus the width, which is none that comes later in the list.
    ///
    /// `None` if there is no string, or if there are too many states, or bounds would take too long. Linear
    /// in the table and, for a least length, in that many copies of it.
    pub(crate) fn new(table: Table, characters: Characters, bounds: Bounds) -> Option<Self> {
        let classes = u32::try_from(table.width).ok()?;
        let lexer = Lexer::new(classes, characters.first, &characters.inside);
        Self::of_parts(Arc::new(table), Arc::new(lexer), bounds)
    }

    fn of_parts(table: Arc<Table>, lexer: Arc<Lexer>, bounds: Bounds) -> Option<Self> {
        if table.accepting.is_empty() || table.width == 0 {
            return None;
        }
        let lengths = Lengths::new(&table, &lexer, bounds)?;
        if !lengths.is_live(0, 0) {
            return None;
        }
        let counts = u64::from(bounds.last()) + 1;
        let numbers = Numbers::new(table.accepting.len(), counts, lexer.len())?;
        let hash = table.transitions.iter().fold(lexer.hash(), |hash, &to| mix(hash, u64::from(to)));
        let hash = table.accepting.iter().fold(hash, |hash, &ends| mix(hash, u64::from(ends)));
        let hash = mix(hash, u64::from(bounds.min) << 32 | u64::from(bounds.max.unwrap_or(u32::MAX)));
        let inner = Inner { lexer, table, lengths, numbers, hash, distances: OnceLock::new() };
        Some(Self(Arc::new(inner)))
    }

    /// The strings of any length; `None` if these are.
    pub(crate) fn unbounded(&self) -> Option<Self> {
        if self.bounds() == Bounds::NONE {
            return None;
        }
        Self::of_parts(Arc::clone(&self.0.table), Arc::clone(&self.0.lexer), Bounds::NONE)
    }

    /// The bounds on the number of characters, beside what the automaton says.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.0.lengths.bounds()
    }

    /// Number of states of the automaton over characters.
    #[must_use]
    pub fn states(&self) -> usize {
        self.0.table.accepting.len()
    }

    /// States are numbered below this; the start is 0.
    pub(crate) fn bound(&self) -> usize {
        self.0.numbers.bound() as usize
    }

    /// The place of a state; `None` of the start and the end.
    pub(crate) fn place(&self, state: u32) -> Option<Place> {
        (state >= FIRST).then(|| self.0.numbers.place(state))
    }

    /// The state of a place; `None` if there are no more numbers.
    pub(crate) fn state(&self, place: Place) -> Option<u32> {
        self.0.numbers.of(place)
    }

    /// The state after one more byte.
    pub(crate) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        match state {
            START => (byte == b'"').then(|| self.state(Place::default()))?,
            END => None,
            _ => {
                let place = self.0.numbers.place(state);
                match self.0.lexer.read(place.node, byte) {
                    Some(read) => self.after(place, read),
                    None => (byte == b'"' && self.may_end(place)).then_some(END),
                }
            }
        }
    }

    /// The state after what a byte has read, if it is live.
    fn after(&self, place: Place, read: Read) -> Option<u32> {
        let to = match read {
            Read::Class(class) => self.next(place, class)?,
            Read::Inside(node) => {
                let mut ends = self.0.lexer.ends_of(node).iter();
                ends.any(|&(class, _)| self.next(place, class).is_some())
                    .then_some(Place { node, ..place })?
            }
        };
        self.state(to)
    }

    /// The place after a character of a class, if it is live.
    fn next(&self, place: Place, class: u32) -> Option<Place> {
        let Inner { table, lengths, .. } = &*self.0;
        let state = table.transitions[place.state as usize * table.width + class as usize];
        if state == NONE {
            return None;
        }
        let count = lengths.next(place.count);
        lengths.is_live(state, count).then_some(Place { state, count, node: 0 })
    }

    /// May the closing quote come?
    fn may_end(&self, place: Place) -> bool {
        place.node == 0 && self.0.table.accepting[place.state as usize] && self.0.lengths.may_end(place.count)
    }

    /// May the text end here?
    pub(crate) fn accepts(&self, state: u32) -> bool {
        state == END
    }

    /// The fewest bytes after which the text may end. The first use finds them for all states.
    pub(crate) fn distance(&self, state: u32) -> u32 {
        match state {
            START => self.distance_of(Place::default()).saturating_add(1),
            END => 0,
            _ => self.distance_of(self.0.numbers.place(state)),
        }
    }

    fn distance_of(&self, place: Place) -> u32 {
        if place.node == 0 {
            return self.between(place.state, place.count);
        }
        let ends = self.0.lexer.ends_of(place.node).iter();
        let after = |&(class, bytes): &(u32, u8)| {
            let to = self.next(place, class)?;
            Some(self.between(to.state, to.count).saturating_add(bytes.into()))
        };
        ends.filter_map(after).min().unwrap_or(u32::MAX)
    }

    fn between(&self, state: u32, count: u32) -> u32 {
        let Inner { table, lexer, lengths, distances, .. } = &*self.0;
        lengths
            .distance(state, count)
            .unwrap_or_else(|| distances.get_or_init(|| free_distances(table, lexer))[state as usize])
    }

    /// A shortest text; the least of these.
    pub(crate) fn shortest(&self) -> Vec<u8> {
        let (mut text, mut state) = (Vec::new(), START);
        while let Some(left) = self.distance(state).checked_sub(1) {
            let mut edges = self.edges(state);
            edges.sort_unstable();
            let Some(edge) = edges.into_iter().find(|edge| self.distance(edge.to) == left) else { break };
            text.push(edge.first);
            state = edge.to;
        }
        text
    }

    /// The edges of a state, to live states.
    pub(crate) fn edges(&self, state: u32) -> Vec<Edge> {
        let quote = |to: u32| Edge { first: b'"', last: b'"', to };
        match state {
            START => self.step(START, b'"').map(quote).into_iter().collect(),
            END => Vec::new(),
            _ => {
                let place = self.0.numbers.place(state);
                let edges = self.0.lexer.edges(place.node).filter_map(|(first, last, read)| {
                    Some(Edge { first, last, to: self.after(place, read)? })
                });
                edges.chain(self.may_end(place).then(|| quote(END))).collect()
            }
        }
    }

    /// Is every text at most `bytes` long? As many steps as states are met, for each byte.
    pub(crate) fn is_within(&self, bytes: usize) -> bool {
        let mut states = vec![START];
        for _ in 0..=bytes {
            let mut next: Vec<u32> =
                states.iter().flat_map(|&state| self.edges(state)).map(|edge| edge.to).collect();
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        states.is_empty()
    }

    /// All states that texts come to, the start first; `None` if there are more than `most`. Linear.
    pub(crate) fn reached(&self, most: usize) -> Option<Vec<u32>> {
        let mut met: HashSet<u32> = HashSet::from_iter([START]);
        let (mut order, mut next) = (vec![START], 0);
        while let Some(&state) = order.get(next) {
            next += 1;
            order.extend(self.edges(state).into_iter().map(|edge| edge.to).filter(|&to| met.insert(to)));
            if order.len() > most {
                return None;
            }
        }
        Some(order)
    }

    /// All of its states, for those who need them at once. Linear in them.
    ///
    /// # Errors
    /// If there are more than `most`.
    pub(crate) fn product(&self, most: usize) -> Result<Automaton, LimitExceeded> {
        let too_many = || LimitExceeded::new(Budget::DfaStates, "states of a string with counts", most);
        let mut numbers: HashMap<u32, u32> = HashMap::from_iter([(START, 0)]);
        let mut order = vec![START];
        let mut states: Vec<State> = Vec::new();
        while let Some(&state) = order.get(states.len()) {
            let mut made = State { accepts: self.accepts(state), edges: Vec::new() };
            for edge in self.edges(state) {
                // At most `most` and what one state leads to, so numbers fit.
                let fresh = u32::try_from(order.len()).unwrap_or(NONE);
                let to = match numbers.entry(edge.to) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(free) => {
                        order.push(edge.to);
                        *free.insert(fresh)
                    }
                };
                made.edges.push(Edge { to, ..edge });
            }
            if order.len() > most {
                return Err(too_many());
            }
            states.push(made);
        }
        Automaton::new(states).map_err(|_| too_many())
    }

    /// States of characters that do the same to texts of some length.
    pub(crate) fn alike(&self, longest: u32) -> Alike {
        Alike::new(&self.0.table, longest)
    }

    /// How many characters may come after a place that bounds make no difference to; `None` if they do to
    /// the first.
    pub(crate) fn room(&self, place: Place) -> Option<u32> {
        self.0.lengths.room(place.count)
    }

    /// A place of the least count at which the same states are live as at a place's, up to `longest`
    /// characters further on, and of the least state that does the same where all are live.
    pub(crate) fn least_alike(&self, place: Place, longest: u32, states: impl FnOnce(u32) -> u32) -> Place {
        let alike = self.0.lengths.alike(place.count);
        let far = |end: u32| place.count.saturating_add(longest) <= end;
        match alike.filter(|alike| far(*alike.end())) {
            Some(alike) if self.0.lengths.are_all_live(place.count) => {
                Place { state: states(place.state), count: *alike.start(), ..place }
            }
            Some(alike) => Place { count: *alike.start(), ..place },
            None => place,
        }
    }

    /// Are there finitely many strings? Linear.
    pub(crate) fn is_finite(&self) -> bool {
        self.bounds().max.is_some() || lengths::is_finite(&self.0.table)
    }

    /// What tells a state from others, in every run.
    pub(crate) fn name(&self, state: u32) -> u64 {
        self.0.numbers.name(state)
    }

    /// A class of each byte, and how many there are.
    pub(crate) fn byte_classes(&self) -> (Box<[u8; 256]>, usize) {
        self.0.lexer.byte_classes()
    }

    /// A hash of the language's automaton.
    pub(crate) fn hash(&self) -> u64 {
        self.0.hash
    }

    /// All that tells it from others, as numbers.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        let Inner { table, lexer, lengths, .. } = &*self.0;
        let Bounds { min, max } = lengths.bounds();
        let ends = table.accepting.iter().map(|&ends| u32::from(ends));
        let bounds = [min, max.unwrap_or(0), u32::from(max.is_some())];
        lexer.words().chain(table.transitions.iter().copied()).chain(ends).chain(bounds)
    }

    /// Memory, in bytes, what was made so far included. What it shares with the strings of any length counts
    /// there.
    pub(crate) fn bytes(&self) -> usize {
        let Inner { table, lexer, lengths, numbers, distances, .. } = &*self.0;
        let shared = match lengths.bounds() {
            Bounds::NONE => {
                table.transitions.capacity() * size_of::<u32>() + table.accepting.capacity() + lexer.bytes()
            }
            _ => 0,
        };
        let distances = distances.get().map_or(0, |distances| size_of_val(&**distances));
        size_of::<Inner>() + shared + lengths.bytes() + numbers.bytes() + distances
    }
}
