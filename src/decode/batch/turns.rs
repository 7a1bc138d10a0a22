//! Schedules the sequences of a batch by fair sharing, and admits them to its places: places are shared
//! between clients, then between the requests of a client; within a request the first to come is served
//! first. Where clients or requests have equally many places they take turns (round-robin), as where there is
//! only one place.
//!
//! Invariant: turns decide when a token is made, and never which token it is.

use std::collections::{HashMap, HashSet, VecDeque};

use super::prefixes::Prefixes;
use super::sequence::{BatchEvent, BatchSequence, SequenceId, SequenceTurn};
use crate::{decode::error::DecodeError, model::BatchModel};

/// Sequences without a place.
#[derive(Default)]
pub(super) struct Waiting {
    /// Sequences in the order in which they came.
    all: VecDeque<BatchSequence>,
    /// The number of the last sequence that came, and the number of turns so far.
    now: TurnTime,
    /// Times at which clients that wait last had a turn.
    clients: HashMap<u64, TurnTime>,
    /// Times at which requests that wait last had a turn.
    requests: HashMap<SequenceTurn, TurnTime>,
}

/// A time of the schedule. A sequence comes at its number, before all turns that follow.
type TurnTime = (u64, u64);

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
    pub(super) fn push(&mut self, sequence: BatchSequence) {
        self.now.0 = self.now.0.max(sequence.id.0);
        self.all.push_back(sequence);
    }

    /// Iterates over those that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = &BatchSequence> {
        self.all.iter()
    }

    /// Number of those that wait.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Removes a waiting sequence by its name.
    pub(super) fn remove(&mut self, sequence: SequenceId) -> Option<BatchSequence> {
        let at = self.all.iter().position(|found| found.id == sequence)?;
        self.all.remove(at)
    }

    /// Takes the sequence whose turn it is: the oldest one of the request with the fewest `places`, among
    /// those of the client with the fewest; of equals, of the one that has waited longest for a turn. `None`
    /// if it is too large, which `fits` says; others do not overtake it.
    pub(super) fn next(
        &mut self,
        places: &[Option<BatchSequence>],
        fits: impl FnOnce(&BatchSequence) -> bool,
    ) -> Option<BatchSequence> {
        let (at, _) = self.first(&Held::new(places.iter().flatten()))?;
        if !fits(&self.all[at]) {
            return None;
        }
        let taken = self.all.remove(at)?;
        self.note(taken.turn);
        Some(taken)
    }

    /// Notes a turn of a client and of a request. Those of which nothing waits are forgotten: what they send
    /// later comes later than their last turn.
    fn note(&mut self, turn: SequenceTurn) {
        self.now.1 += 1;
        self.clients.insert(turn.client, self.now);
        self.requests.insert(turn, self.now);
        let turns: HashSet<SequenceTurn> = self.all.iter().map(|sequence| sequence.turn).collect();
        let clients: HashSet<u64> = turns.iter().map(|turn| turn.client).collect();
        self.clients.retain(|client, _| clients.contains(client));
        self.requests.retain(|request, _| turns.contains(request));
    }

    /// Times since which the client and the request of a sequence have waited for a turn.
    fn since(&self, sequence: &BatchSequence) -> (TurnTime, TurnTime) {
        let came = (sequence.id.0, 0);
        let client = self.clients.get(&sequence.turn.client).copied().unwrap_or(came);
        (client, self.requests.get(&sequence.turn).copied().unwrap_or(came))
    }

    /// Finds the sequence whose turn it is, with the numbers of places of its client and its request.
    fn first(&self, held: &Held) -> Option<(usize, (usize, usize))> {
        let ranked = self.all.iter().enumerate().map(|(at, sequence)| {
            let (client, request) = held.of(sequence.turn);
            let (client_since, request_since) = self.since(sequence);
            (client, client_since, request, request_since, sequence.id, at)
        });
        ranked.min().map(|(client, _, request, _, _, at)| (at, (client, request)))
    }

    /// Finds the place that must be given up to a waiting sequence if none is free. A place qualifies if its
    /// client has at least two places more than the client whose turn it is, or if it is of that client and
    /// its request has at least two more than the request whose turn it is. Of these the richest client and
    /// request give up their youngest sequence, which waits again and later goes on where it was.
    fn place_to_yield(&self, places: &[Option<BatchSequence>]) -> Option<usize> {
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

/// Sequences that wait, and the bounds that decide when they may join.
pub(super) struct Admission {
    pub(super) waiting: Waiting,
    pub(super) prefixes: Prefixes,
    /// Most tokens of prompts that a pass reads.
    pub(super) chunk: usize,
    /// Most tokens of all texts together, counting those that they may yet get, and those whose memory goes
    /// with theirs.
    pub(super) room: usize,
}

impl Default for Admission {
    fn default() -> Self {
        let (waiting, prefixes) = (Waiting::default(), Prefixes::default());
        Self { waiting, prefixes, chunk: usize::MAX, room: usize::MAX }
    }
}

impl Admission {
    /// Puts waiting sequences in free places; those that end before their first pass get none. If no place is
    /// free, one may change hands.
    pub(super) fn admit<B: BatchModel>(
        &mut self,
        model: &mut B,
        places: &mut [Option<BatchSequence>],
        events: &mut Vec<BatchEvent>,
    ) {
        for (place, _) in places.iter().enumerate().filter(|(_, found)| found.is_none()) {
            if model.position(place) > 0 {
                // This frees the memory early. `seat` empties the place again, and reports errors.
                let _ = model.truncate(place, 0);
            }
        }
        if let Some(place) = self.waiting.place_to_yield(places) {
            self.give_up(model, place, places);
        }
        let (context, room) = (model.context(), self.room);
        for place in 0..places.len() {
            while places[place].is_none() {
                let held = places.iter().flatten().map(|one| model.reserved(one.run.most_tokens(context)));
                let taken = held.fold(0, usize::saturating_add);
                let fits = |next: &BatchSequence| {
                    let most = model.reserved(next.run.most_tokens(context));
                    taken == 0 || most.saturating_add(taken) <= room
                };
                let Some(sequence) = self.waiting.next(places, fits) else { return };
                places[place] = self.seat(model, place, sequence, events);
            }
        }
    }

    /// Gives a sequence its place, unless it ends before its first pass.
    fn seat<B: BatchModel>(
        &mut self,
        model: &mut B,
        place: usize,
        mut sequence: BatchSequence,
        events: &mut Vec<BatchEvent>,
    ) -> Option<BatchSequence> {
        let context = model.context();
        let checked = sequence.run.check_prompt(context);
        let empty = checked.and_then(|()| model.truncate(place, 0).map_err(DecodeError::model));
        if let Err(error) = empty {
            events.push(sequence.failed(error));
            return None;
        }
        // What is copied has no rows.
        let cached = match sequence.scores.is_wanting() {
            true => 0,
            false => self.prefixes.fill(model, place, sequence.run.sequence(), sequence.turn.scope),
        };
        sequence.run.note_cached(cached);
        sequence.unless_ended(context, events)
    }

    /// Makes the sequence at a place wait again. Its keys and values are kept, if there is room.
    fn give_up<B: BatchModel>(&mut self, model: &B, place: usize, places: &mut [Option<BatchSequence>]) {
        let Some(sequence) = places[place].take() else { return };
        let tokens = sequence.run.sequence();
        let seen = model.position(place).min(tokens.len() - 1);
        self.prefixes.keep(model, place, &tokens[..seen], sequence.turn.scope);
        self.waiting.push(sequence);
    }
}
