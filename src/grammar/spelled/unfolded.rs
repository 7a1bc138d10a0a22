//! Searches through a lazy automaton, whose states are computed as texts reach them.

use std::hash::Hash;

use hashbrown::{HashMap, HashSet, hash_map::Entry};

use crate::{
    grammar::automaton::{Automaton, Edge, State},
    limits::{Budget, LimitExceeded},
};

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
