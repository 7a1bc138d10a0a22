//! Schedules the sequences of a batch by fair sharing: places are shared between clients, then between the
//! requests of a client; within a request the first to come is served first.
//!
//! Invariant: turns decide when a token is made, and never which token it is.

use std::collections::{HashMap, VecDeque};

use super::{
    super::sequence::BatchSequence,
    event::{SequenceId, SequenceTurn},
};

/// Sequences without a place.
#[derive(Default)]
pub(in super::super) struct Waiting {
    /// Sequences in the order in which they came.
    all: VecDeque<BatchSequence>,
}

/// Number of places by client and by request.
struct Held {
    clients: HashMap<u64, usize>,
    requests: HashMap<SequenceTurn, usize>,
}

impl Held {
    fn new<'a>(places: impl IntoIterator<Item = &'a BatchSequence>) -> Self {
        let mut held = Self { clients: HashMap::new(), requests: HashMap::new() };
        for sequence in places {
            *held.clients.entry(sequence.turn.client).or_default() += 1;
            *held.requests.entry(sequence.turn).or_default() += 1;
        }
        held
    }

    /// Returns the numbers of places of the client and of the request.
    fn of(&self, turn: SequenceTurn) -> (usize, usize) {
        let client = self.clients.get(&turn.client).copied().unwrap_or(0);
        (client, self.requests.get(&turn).copied().unwrap_or(0))
    }
}

impl Waiting {
    /// Adds a sequence to those that wait.
    pub(in super::super) fn push(&mut self, sequence: BatchSequence) {
        self.all.push_back(sequence);
    }

    /// Iterates over those that wait.
    pub(in super::super) fn iter(&self) -> impl Iterator<Item = &BatchSequence> {
        self.all.iter()
    }

    /// Number of those that wait.
    pub(in super::super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Removes a waiting sequence by its name.
    pub(in super::super) fn remove(&mut self, sequence: SequenceId) -> Option<BatchSequence> {
        let at = self.all.iter().position(|found| found.id == sequence)?;
        self.all.remove(at)
    }

    /// Takes the sequence whose turn it is: the oldest one of the request with the fewest `places`, among
    /// those of the client with the fewest. `None` if it is too large, which `fits` says; others do not
    /// overtake it.
    pub(in super::super) fn next(
        &mut self,
        places: &[Option<BatchSequence>],
        fits: impl FnOnce(&BatchSequence) -> bool,
    ) -> Option<BatchSequence> {
        let (at, _) = self.first(&Held::new(places.iter().flatten()))?;
        if !fits(&self.all[at]) {
            return None;
        }
        self.all.remove(at)
    }

    /// Finds the sequence whose turn it is, with the numbers of places of its client and its request.
    fn first(&self, held: &Held) -> Option<(usize, (usize, usize))> {
        let turns = self.all.iter().enumerate();
        let ranked = turns.map(|(at, sequence)| (held.of(sequence.turn), sequence.id, at));
        ranked.min().map(|(held, _, at)| (at, held))
    }

    /// Finds the place that must be given up to a waiting sequence if none is free. A place qualifies if its
    /// client has at least two places more than the client whose turn it is, or if it is of that client and
    /// its request has at least two more than the request whose turn it is. Of these the richest client and
    /// request give up their youngest sequence, which waits again and later goes on where it was.
    pub(in super::super) fn place_to_yield(&self, places: &[Option<BatchSequence>]) -> Option<usize> {
        if places.iter().any(Option::is_none) {
            return None;
        }
        let held = Held::new(places.iter().flatten());
        let (at, (of_client, of_request)) = self.first(&held)?;
        let turn = self.all[at].turn;
        let taken = places.iter().enumerate().filter_map(|(place, found)| Some((place, found.as_ref()?)));
        let ranked =
            taken.map(|(place, sequence)| (held.of(sequence.turn), sequence.id, place, sequence.turn));
        let richer = ranked.filter(|&((client, request), _, _, other)| {
            client >= of_client + 2 || other.client == turn.client && request >= of_request + 2
        });
        richer.max().map(|(_, _, place, _)| place)
    }
}
