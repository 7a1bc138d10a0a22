//! JSON strings of an automaton over characters, as a lazy automaton over bytes: states are made when a text
//! reaches them.
//!
//! A pattern with counts, such as `^x[^\n]{0,1000}$`, has a state for each count, which is not much; but each
//! character may be spelled in many ways, and the states inside of the spellings are another dozen for each.
//! So a state is a triple that is not listed anywhere: a state over characters, a node of the automaton that
//! reads one character, and, if their number is bounded, a count of characters.
//!
//! The step by a byte is computed on such places. A text, which has to keep its place, asks for a number for
//! it; numbers may run out, which is an error and not an end of the text.
//!
//! Invariant: a byte leads to live places only, and the start is live.

mod alike;
mod lengths;
mod lexer;
mod numbers;

use std::{
    hash::Hash,
    sync::{Arc, OnceLock},
};

use hashbrown::{HashMap, HashSet, hash_map::Entry};

use self::{
    lengths::{LiveCounts, free_distances},
    lexer::{ByteEffect, CharacterLexer},
    numbers::{FIRST, NO_END, PlaceNumbers},
};
use super::automaton::{Automaton, Edge, State};
use crate::{
    automata::{
        minimize::{DfaTable, NONE, longest},
        mix,
    },
    limits::{Budget, LimitExceeded},
};

pub use self::lengths::Bounds;
pub(in crate::grammar) use self::lengths::CountLevels;
pub(crate) use self::{
    alike::{Alike, LONG},
    numbers::{MayNumber, OutOfNumbers, SpelledPlace, TextAt},
};

/// The numbers of the start, in front of the opening quote, and of the end, behind the closing one.
const START: u32 = 0;
const END: u32 = 1;

/// JSON strings, given by an automaton over characters and the spellings of each character. An escape, or a
/// pair of escaped surrogates, is one character. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Spelled {
    language: Arc<SpelledStrings>,
    numbers: Arc<PlaceNumbers>,
}

/// The language itself, without the numbers of its states.
#[derive(Debug)]
struct SpelledStrings {
    lexer: Arc<CharacterLexer>,
    table: Arc<DfaTable>,
    lengths: LiveCounts,
    hash: u64,
    /// The fewest bytes to an end from each state if lengths are free; made on first use.
    distances: OnceLock<Box<[u32]>>,
}

impl PartialEq for Spelled {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&*self.language, &*other.language);
        one.hash == other.hash
            && one.lengths.bounds() == other.lengths.bounds()
            && one.table == other.table
            && one.lexer == other.lexer
    }
}

impl Eq for Spelled {}

impl std::hash::Hash for Spelled {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.language.hash);
    }
}

/// The spellings of characters: the edges of the first byte, and the states inside of a character. See
/// [`Spelled::new`].
#[derive(Debug)]
pub(crate) struct CharacterSpellings {
    pub(crate) first: Vec<Edge>,
    pub(crate) inside: Box<[State]>,
}

impl Spelled {
    /// The strings of `table` with a number of characters within the bounds, and with quotes. An edge of
    /// `characters` to a number below the table's width ends a character of that class; other edges lead to a
    /// state inside of a character, by its position plus the width, which must come earlier in the list.
    ///
    /// `None` if there is no string, if there are too many states, or if bounds would take too long. Linear
    /// in the table and, for a least length, in that many copies of it.
    pub(crate) fn new(table: DfaTable, characters: CharacterSpellings, bounds: Bounds) -> Option<Self> {
        let classes = u32::try_from(table.width).ok()?;
        let lexer = CharacterLexer::new(classes, characters.first, &characters.inside);
        Self::of_parts(Arc::new(table), Arc::new(lexer), bounds)
    }

    fn of_parts(table: Arc<DfaTable>, lexer: Arc<CharacterLexer>, bounds: Bounds) -> Option<Self> {
        if table.accepting.is_empty() || table.width == 0 {
            return None;
        }
        let lengths = LiveCounts::new(&table, &lexer, bounds)?;
        if !lengths.is_live(0, 0) {
            return None;
        }
        let counts = u64::from(bounds.last()) + 1;
        let numbers = PlaceNumbers::new(table.accepting.len(), counts, lexer.len())?;
        let hash = table.transitions.iter().fold(lexer.hash(), |hash, &to| mix(hash, u64::from(to)));
        let hash = table.accepting.iter().fold(hash, |hash, &ends| mix(hash, u64::from(ends)));
        let hash = mix(hash, u64::from(bounds.min) << 32 | u64::from(bounds.last()));
        let hash = mix(hash, u64::from(bounds.max.is_some()));
        let language = SpelledStrings { lexer, table, lengths, hash, distances: OnceLock::new() };
        Some(Self { language: Arc::new(language), numbers: Arc::new(numbers) })
    }

    /// Copies the language with a numbering of its own, if states are numbered as they are met.
    pub(crate) fn afresh(&self) -> Self {
        Self { language: Arc::clone(&self.language), numbers: Arc::new(self.numbers.afresh()) }
    }

    /// Copies the language with a numbering for a walk over a vocabulary, which does not run out; `None` if
    /// all states have numbers anyway.
    pub(crate) fn of_a_walk(&self) -> Option<Self> {
        let numbers = Arc::new(self.numbers.of_a_walk()?);
        Some(Self { language: Arc::clone(&self.language), numbers })
    }

    /// Replaces the numbering by one with room for a few numbers.
    #[cfg(test)]
    pub(crate) fn with_few_numbers(&self, places: u32) -> Self {
        Self { language: Arc::clone(&self.language), numbers: Arc::new(PlaceNumbers::of_few(places)) }
    }

    /// The strings without bounds on their length; `None` if there are no bounds.
    pub(crate) fn unbounded(&self) -> Option<Self> {
        if self.bounds() == Bounds::NONE {
            return None;
        }
        Self::of_parts(Arc::clone(&self.language.table), Arc::clone(&self.language.lexer), Bounds::NONE)
    }

    /// The bounds on the number of characters, beside what the automaton says.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.language.lengths.bounds()
    }

    /// The number of states of the automaton over characters.
    #[must_use]
    pub fn states(&self) -> usize {
        self.language.table.accepting.len()
    }

    /// A number above those of all states; the start is 0.
    pub(crate) fn bound(&self) -> usize {
        self.numbers.bound() as usize
    }

    /// The place of a state; `None` for the start and the end.
    pub(crate) fn place(&self, state: u32) -> Option<SpelledPlace> {
        (state >= FIRST).then(|| self.numbers.place(state))
    }

    /// The number of a place.
    ///
    /// # Errors
    /// If it has no number yet, and none is left.
    pub(crate) fn state(&self, place: SpelledPlace) -> Result<u32, OutOfNumbers> {
        self.numbers.of(place, MayNumber::Yes)
    }

    /// The point of a text that is in a state.
    pub(crate) fn at(&self, state: u32) -> TextAt {
        match state {
            START => TextAt::Start,
            END => TextAt::End,
            _ => TextAt::In(self.numbers.place(state)),
        }
    }

    /// The state for a point of a text.
    ///
    /// # Errors
    /// If it has no number yet, and may get none.
    pub(crate) fn number(&self, at: TextAt, fresh: MayNumber) -> Result<u32, OutOfNumbers> {
        match at {
            TextAt::Start => Ok(START),
            TextAt::In(place) => self.numbers.of(place, fresh),
            TextAt::End => Ok(END),
        }
    }

    /// The state after one more byte, if the byte may come.
    ///
    /// # Errors
    /// If it has no number yet, and may get none.
    pub(crate) fn step(&self, state: u32, byte: u8, fresh: MayNumber) -> Result<Option<u32>, OutOfNumbers> {
        self.follow(self.at(state), byte).map(|to| self.number(to, fresh)).transpose()
    }

    /// The point after one more byte, if the byte may come.
    pub(crate) fn follow(&self, at: TextAt, byte: u8) -> Option<TextAt> {
        match at {
            TextAt::Start => (byte == b'"').then_some(TextAt::In(SpelledPlace::default())),
            TextAt::In(place) => match self.language.lexer.read(place.node, byte) {
                Some(read) => self.after(place, read).map(TextAt::In),
                None => (byte == b'"' && self.may_end(place)).then_some(TextAt::End),
            },
            TextAt::End => None,
        }
    }

    /// The place after the effect of a byte, if it is live.
    fn after(&self, place: SpelledPlace, read: ByteEffect) -> Option<SpelledPlace> {
        match read {
            ByteEffect::Class(class) => self.next(place, class),
            ByteEffect::Inside(node) => {
                let mut ends = self.language.lexer.ends_of(node).iter();
                ends.any(|&(class, _)| self.next(place, class).is_some())
                    .then_some(SpelledPlace { node, ..place })
            }
        }
    }

    /// The place after a character of a class, if it is live.
    fn next(&self, place: SpelledPlace, class: u32) -> Option<SpelledPlace> {
        let SpelledStrings { table, lengths, .. } = &*self.language;
        let state = table.transitions[place.state as usize * table.width + class as usize];
        if state == NONE {
            return None;
        }
        let count = lengths.next(place.count);
        lengths.is_live(state, count).then_some(SpelledPlace { state, count, node: 0 })
    }

    /// True if the closing quote may come.
    fn may_end(&self, place: SpelledPlace) -> bool {
        let SpelledStrings { table, lengths, .. } = &*self.language;
        place.node == 0 && table.accepting[place.state as usize] && lengths.may_end(place.count)
    }

    /// True if the text may end here.
    pub(crate) fn accepts(&self, state: u32) -> bool {
        state == END
    }

    /// The fewest bytes after which the text may end. The first call computes it for all states.
    pub(crate) fn distance(&self, state: u32) -> u32 {
        self.distance_at(self.at(state))
    }

    fn distance_of(&self, place: SpelledPlace) -> u32 {
        if place.node == 0 {
            return self.between(place.state, place.count);
        }
        let ends = self.language.lexer.ends_of(place.node).iter();
        let after = |&(class, bytes): &(u32, u8)| {
            let to = self.next(place, class)?;
            Some(self.between(to.state, to.count).saturating_add(bytes.into()))
        };
        ends.filter_map(after).min().unwrap_or(NO_END)
    }

    fn between(&self, state: u32, count: u32) -> u32 {
        let SpelledStrings { table, lexer, lengths, distances, .. } = &*self.language;
        lengths
            .distance(state, count)
            .unwrap_or_else(|| distances.get_or_init(|| free_distances(table, lexer))[state as usize])
    }

    /// The equivalence of states for texts up to some length.
    pub(crate) fn alike(&self, longest: u32) -> Alike {
        Alike::new(&self.language.table, longest)
    }

    /// The number of characters that may come after a place before bounds make a difference; `None` if they
    /// do at once.
    pub(crate) fn room(&self, place: SpelledPlace) -> Option<u32> {
        self.language.lengths.room(place.count)
    }

    /// A canonical place: the least count at which the same states are live, up to `longest` characters
    /// further on, and, where all states are live, the least equivalent state.
    pub(crate) fn least_alike(
        &self,
        place: SpelledPlace,
        longest: u32,
        states: impl FnOnce(u32) -> u32,
    ) -> SpelledPlace {
        let alike = self.language.lengths.alike(place.count);
        let far = |end: u32| place.count.saturating_add(longest) <= end;
        match alike.filter(|alike| far(*alike.end())) {
            Some(alike) if self.language.lengths.are_all_live(place.count) => {
                SpelledPlace { state: states(place.state), count: *alike.start(), ..place }
            }
            Some(alike) => SpelledPlace { count: *alike.start(), ..place },
            None => place,
        }
    }

    /// True if there are finitely many strings. Linear.
    pub(crate) fn is_finite(&self) -> bool {
        let table = &self.language.table;
        self.bounds().max.is_some() || longest(table.width, &table.transitions)[0].is_some()
    }

    /// A name that tells a state from others, the same in every run.
    pub(crate) fn name(&self, state: u32) -> u64 {
        self.numbers.name(state)
    }

    /// A class for each byte, and the number of classes.
    pub(crate) fn byte_classes(&self) -> (Box<[u8; 256]>, usize) {
        self.language.lexer.byte_classes()
    }

    /// A hash of the language's automaton.
    pub(crate) fn hash(&self) -> u64 {
        self.language.hash
    }

    /// All numbers that tell the language from others, for comparison.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        let SpelledStrings { table, lexer, lengths, .. } = &*self.language;
        let Bounds { min, max } = lengths.bounds();
        let ends = table.accepting.iter().map(|&ends| u32::from(ends));
        let bounds = [min, max.unwrap_or(0), u32::from(max.is_some())];
        lexer.words().chain(table.transitions.iter().copied()).chain(ends).chain(bounds)
    }

    /// Memory of the states that were numbered as texts reached them, in bytes.
    pub(crate) fn met_bytes(&self) -> usize {
        self.numbers.bytes()
    }

    /// Memory, in bytes, with everything made so far. Parts shared with the strings of any length count
    /// there.
    pub(crate) fn bytes(&self) -> usize {
        let SpelledStrings { table, lexer, lengths, distances, .. } = &*self.language;
        let shared = match lengths.bounds() {
            Bounds::NONE => {
                table.transitions.capacity() * size_of::<u32>() + table.accepting.capacity() + lexer.bytes()
            }
            _ => 0,
        };
        let distances = distances.get().map_or(0, |distances| size_of_val(&**distances));
        let kept =
            size_of::<SpelledStrings>() + size_of::<PlaceNumbers>() + shared + lengths.bytes() + distances;
        kept + self.met_bytes()
    }
}

impl Unfolded for Spelled {
    type At = TextAt;

    fn start(&self) -> TextAt {
        TextAt::Start
    }

    fn ends_at(&self, at: TextAt) -> bool {
        at == TextAt::End
    }

    fn ways(&self, at: TextAt) -> Vec<WayOn<TextAt>> {
        let quote = |to: TextAt| (b'"', b'"', to);
        match at {
            TextAt::Start => vec![quote(TextAt::In(SpelledPlace::default()))],
            TextAt::In(place) => {
                let edges = self.language.lexer.edges(place.node).filter_map(|(first, last, read)| {
                    Some((first, last, TextAt::In(self.after(place, read)?)))
                });
                edges.chain(self.may_end(place).then(|| quote(TextAt::End))).collect()
            }
            TextAt::End => Vec::new(),
        }
    }

    /// The fewest bytes from a point to an end. The first call computes it for all states.
    fn distance_at(&self, at: TextAt) -> u32 {
        match at {
            TextAt::Start => self.distance_of(SpelledPlace::default()).saturating_add(1),
            TextAt::In(place) => self.distance_of(place),
            TextAt::End => 0,
        }
    }
}

/// An edge: its first and last byte, and the point of a text that they lead to.
pub(crate) type WayOn<A> = (u8, u8, A);

/// An automaton given by the edges of each point of its texts. From all points an end can be reached.
pub(crate) trait Unfolded {
    /// A point of a text, which determines all that may follow.
    type At: Copy + Eq + Hash;

    /// The point in front of all texts.
    fn start(&self) -> Self::At;

    /// True if a text may end at this point.
    fn ends_at(&self, at: Self::At) -> bool;

    /// The edges of a point.
    fn ways(&self, at: Self::At) -> Vec<WayOn<Self::At>>;

    /// The fewest bytes from a point after which a text may end.
    fn distance_at(&self, at: Self::At) -> u32;

    /// The lexicographically least of the shortest texts.
    fn shortest(&self) -> Vec<u8> {
        self.shortest_from(self.start())
    }

    /// The lexicographically least of the shortest continuations from a point to the end.
    fn shortest_from(&self, mut at: Self::At) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(left) = self.distance_at(at).checked_sub(1) {
            let nearer = self.ways(at).into_iter().filter(|&(_, _, to)| self.distance_at(to) == left);
            let Some((first, _, to)) = nearer.min_by_key(|(first, ..)| *first) else { break };
            text.push(first);
            at = to;
        }
        text
    }

    /// True if every text is at most `bytes` long. Takes, for each byte, as many steps as points are met.
    fn is_within(&self, bytes: usize) -> bool {
        let mut points: HashSet<Self::At> = HashSet::from([self.start()]);
        for _ in 0..=bytes {
            points = points.into_iter().flat_map(|at| self.ways(at)).map(|(_, _, to)| to).collect();
        }
        points.is_empty()
    }

    /// All points that texts reach, the start first; `None` if there are more than `most`. Linear.
    fn reached(&self, most: usize) -> Option<Vec<Self::At>> {
        let mut met: HashSet<Self::At> = HashSet::from([self.start()]);
        let (mut order, mut next) = (vec![self.start()], 0);
        while let Some(&at) = order.get(next) {
            next += 1;
            order.extend(self.ways(at).into_iter().map(|(_, _, to)| to).filter(|&to| met.insert(to)));
            if order.len() > most {
                return None;
            }
        }
        Some(order)
    }

    /// The automaton with all of its states listed. Linear in them.
    ///
    /// # Errors
    /// If there are more than `most`.
    fn product(&self, most: usize) -> Result<Automaton, LimitExceeded> {
        let too_many = || LimitExceeded::new(Budget::DfaStates, "states of a string with counts", most);
        let mut numbers: HashMap<Self::At, u32> = HashMap::from([(self.start(), 0)]);
        let (mut order, mut states): (Vec<Self::At>, Vec<State>) = (vec![self.start()], Vec::new());
        while let Some(&at) = order.get(states.len()) {
            let mut made = State { accepts: self.ends_at(at), edges: Vec::new() };
            for (first, last, to) in self.ways(at) {
                let number = match numbers.entry(to) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(free) => {
                        let number = u32::try_from(order.len()).map_err(|_| too_many())?;
                        order.push(to);
                        *free.insert(number)
                    }
                };
                made.edges.push(Edge { first, last, to: number });
            }
            if order.len() > most {
                return Err(too_many());
            }
            states.push(made);
        }
        Automaton::new(states).map_err(|_| too_many())
    }
}
