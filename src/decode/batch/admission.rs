//! Admission of sequences to the places of a batch.

use super::{event::BatchEvent, prefixes::Prefixes, sequence::BatchSequence, turns::Waiting};
use crate::{decode::error::DecodeError, model::BatchModel};

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
