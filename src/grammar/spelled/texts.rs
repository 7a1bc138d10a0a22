//! Searches through all texts of strings that are spelled as texts come to them. They go by places, so that no
//! state gets a number for them.

use hashbrown::{HashMap, HashSet, hash_map::Entry};

use super::{At, Place, Spelled};
use crate::{
    grammar::automaton::{Automaton, Edge, State},
    limits::{Budget, LimitExceeded},
};

/// Bytes, the first and the last of them, and the point of a text that they lead to.
pub(crate) type WayOn = (u8, u8, At);

impl Spelled {
    /// The ways on from a point of a text.
    pub(crate) fn ways(&self, at: At) -> Vec<WayOn> {
        let quote = |to: At| (b'"', b'"', to);
        match at {
            At::Start => vec![quote(At::In(Place::default()))],
            At::In(place) => {
                let edges =
                    self.language.lexer.edges(place.node).filter_map(|(first, last, read)| {
                        Some((first, last, At::In(self.after(place, read)?)))
                    });
                edges.chain(self.may_end(place).then(|| quote(At::End))).collect()
            }
            At::End => Vec::new(),
        }
    }

    /// A shortest text; the least of these.
    pub(crate) fn shortest(&self) -> Vec<u8> {
        self.shortest_from(At::Start)
    }

    /// A shortest text from a point on to the end; the least of these.
    pub(crate) fn shortest_from(&self, mut at: At) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(left) = self.distance_at(at).checked_sub(1) {
            let nearer = self.ways(at).into_iter().filter(|&(_, _, to)| self.distance_at(to) == left);
            let Some((first, _, to)) = nearer.min_by_key(|(first, ..)| *first) else { break };
            text.push(first);
            at = to;
        }
        text
    }

    /// Is every text at most `bytes` long? As many steps as places are met, for each byte.
    pub(crate) fn is_within(&self, bytes: usize) -> bool {
        let mut points: HashSet<At> = HashSet::from([At::Start]);
        for _ in 0..=bytes {
            points = points.into_iter().flat_map(|at| self.ways(at)).map(|(_, _, to)| to).collect();
        }
        points.is_empty()
    }

    /// All points that texts come to, the start first; `None` if there are more than `most`. Linear.
    pub(crate) fn reached(&self, most: usize) -> Option<Vec<At>> {
        let mut met: HashSet<At> = HashSet::from([At::Start]);
        let (mut order, mut next) = (vec![At::Start], 0);
        while let Some(&at) = order.get(next) {
            next += 1;
            order.extend(self.ways(at).into_iter().map(|(_, _, to)| to).filter(|&to| met.insert(to)));
            if order.len() > most {
                return None;
            }
        }
        Some(order)
    }

    /// The automaton with all of its states, for those who need them at once. Linear in them.
    ///
    /// # Errors
    /// If there are more than `most`.
    pub(crate) fn product(&self, most: usize) -> Result<Automaton, LimitExceeded> {
        let too_many = || LimitExceeded::new(Budget::DfaStates, "states of a string with counts", most);
        let mut numbers: HashMap<At, u32> = HashMap::from([(At::Start, 0)]);
        let (mut order, mut states): (Vec<At>, Vec<State>) = (vec![At::Start], Vec::new());
        while let Some(&at) = order.get(states.len()) {
            let mut made = State { accepts: at == At::End, edges: Vec::new() };
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
