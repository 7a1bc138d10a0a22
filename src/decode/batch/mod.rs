//! Decodes several texts with one model: all runs share every pass, each with a draft of its own if it
//! speculates, whenever they join and however long their prompts are.
//!
//! Invariant: a run's tokens are those it would have alone, whatever shares its passes, and whenever it
//! joins; an error in one run ends only that run.

mod prefixes;
pub(super) mod sequence;
mod turns;

use std::{fmt, sync::Arc, time::Duration};

use self::sequence::{
    BatchEvent, BatchSequence, Placed, PromptChunk, PromptScores, SequenceId, SequenceTurn, Took, drop_drafts,
};
use self::{prefixes::Prefixes, turns::Admission};
use super::decoder::{check_constraint, check_size};
use super::error::{BuildError, BuildErrorKind, DecodeError};
use super::run::{Finish, Generation, TextRun};
use super::sampling::{choice::possible, logprobs::Logprobs};
use super::speculation::verification::{Between, Offer, Ready};
use super::speculation::{ModelSlot, calibrate};
use super::{options::DecodeOptions, stats::DecodeStats};
use crate::ids::{TokenId, as_f64};
use crate::model::{BatchInput, BatchModel, Logits};
use crate::proposer::{Allocation, DraftBudget, Drafter, Offered, Pass, PassCost, Speedup};
use crate::vocab::{TokenSet, Vocabulary};
use crate::{Constraint, clock::Instant, cores};

/// Least value of a drafted token relative to its cost, if several sequences share a pass: a further token
/// costs nearly as much there as one without a draft, so a small error of the cost would turn a gain into a
/// loss (`experiments/programs/batch/README.md`).
const SHARED_MARGIN: f64 = 1.1;

/// Generates several texts at once, each with its own constraint and options. As many as the model has room
/// for share its passes; the others wait for a place, in the order they were added, or in
/// [turns](BatchDecoder::add_in_turn).
pub struct BatchDecoder<B: BatchModel> {
    model: B,
    vocabulary: Vocabulary,
    /// All tokens that can be generated.
    possible: Arc<TokenSet>,
    /// Sequences by place in the model.
    places: Vec<Option<BatchSequence>>,
    admission: Admission,
    next: u64,
    passes: usize,
    /// Measured cost of the shared passes.
    cost: PassCost,
    /// Recent speedup by drafts.
    speedup: Speedup,
}

impl<B: BatchModel> BatchDecoder<B> {
    /// Creates a decoder without sequences. One pass over the vocabulary.
    ///
    /// # Errors
    /// If the vocabulary has ids past the model's rows of logits, or the model has no room for a sequence.
    pub fn new(model: B, vocabulary: Vocabulary) -> Result<Self, BuildError> {
        if model.sequences() == 0 {
            return Err(BuildErrorKind::NoSequences.into());
        }
        check_size(&vocabulary, model.vocabulary_size())?;
        let places = (0..model.sequences()).map(|_| None).collect();
        let possible = Arc::new(possible(&vocabulary));
        let admission = Admission::default();
        let (cost, speedup) = (PassCost::default(), Speedup::default());
        Ok(Self { model, vocabulary, possible, places, admission, next: 0, passes: 0, cost, speedup })
    }

    /// Chunked prefill: limits a pass to `tokens` (at least one) tokens of prompts while other texts are
    /// being written, and to four times as many otherwise. Texts that have begun keep their pace beside a
    /// long prompt, and the prompt can be cancelled meanwhile. Default: a prompt is read in one pass.
    #[must_use]
    pub fn prompt_chunk(mut self, tokens: usize) -> Self {
        self.admission.chunk = tokens.max(1);
        self
    }

    /// LRU cache of `bytes` bytes for the keys and values of prompts, and of texts that gave their places up.
    /// A later prompt of the same [scope](SequenceTurn::scope) that begins alike copies them instead of being
    /// read. Without effect if the model [cannot copy them](BatchModel::copied_block). Default: no cache.
    #[must_use]
    pub fn prefix_cache(mut self, bytes: usize) -> Self {
        self.admission.prefixes = Prefixes::new(bytes);
        self
    }

    /// Lets texts in only while they have no more tokens together, those of prompts and those that they may
    /// yet get included, each with as many as [go with its memory](BatchModel::reserved). One that alone may
    /// get more is let in by itself. Default: no bound.
    #[must_use]
    pub fn most_tokens(mut self, tokens: usize) -> Self {
        self.admission.room = tokens;
        self
    }

    /// Bytes of keys and values that are kept of prompts.
    #[must_use]
    pub fn prefix_bytes(&self) -> usize {
        self.admission.prefixes.bytes()
    }

    /// Adds a sequence that continues `prompt`, under `constraint` from its present state on. It joins when
    /// there is a place.
    ///
    /// # Errors
    /// If the constraint was compiled for another vocabulary. A prompt that is empty or too long is no error
    /// here: [`step`](Self::step) returns a [`BatchEvent::Failed`] for it.
    pub fn add(
        &mut self,
        prompt: &[TokenId],
        constraint: Option<Constraint>,
        options: &DecodeOptions,
    ) -> Result<SequenceId, BuildError> {
        self.add_in_turn(prompt, constraint, options, None, SequenceTurn::default())
    }

    /// Adds a sequence like [`add`](Self::add), speculating with `drafter`. The length of drafts depends on
    /// the cost of passes of all sequences together, which is measured on the way; the drafter's own costs
    /// are not used.
    ///
    /// # Errors
    /// All of [`add`](Self::add).
    pub fn add_with_drafter(
        &mut self,
        prompt: &[TokenId],
        constraint: Option<Constraint>,
        options: &DecodeOptions,
        drafter: Drafter,
    ) -> Result<SequenceId, BuildError> {
        self.add_in_turn(prompt, constraint, options, Some(drafter), SequenceTurn::default())
    }

    /// Adds a sequence like [`add`](Self::add), speculating where there is a drafter. Where places are too
    /// few they go round between clients, and between the requests of a client: a text that has one may
    /// give it up to another, and goes on later where it was.
    ///
    /// # Errors
    /// All of [`add`](Self::add).
    pub fn add_in_turn(
        &mut self,
        prompt: &[TokenId],
        constraint: Option<Constraint>,
        options: &DecodeOptions,
        drafter: Option<Drafter>,
        turn: SequenceTurn,
    ) -> Result<SequenceId, BuildError> {
        check_constraint(&self.vocabulary, constraint.as_ref())?;
        let id = SequenceId(self.next);
        self.next += 1;
        let possible = Arc::clone(&self.possible);
        let run = TextRun::new(prompt, self.vocabulary.clone(), possible, constraint, options);
        let (phase, scores) = (Between::default(), PromptScores::new(prompt, options));
        self.admission.waiting.push(BatchSequence { id, turn, run, drafter, phase, scores });
        Ok(id)
    }

    /// Lets waiting sequences join, makes one pass for all, and takes a token for each. Returns the events, a
    /// token before the end that it brings; none if no sequence is left.
    pub fn step(&mut self) -> Vec<BatchEvent> {
        let mut events = Vec::new();
        self.admission.admit(&mut self.model, &mut self.places, &mut events);
        let cut = self.cut_back();
        let places = self.places.iter_mut().enumerate();
        let all: Vec<Placed<Between>> = places
            .filter_map(|(place, sequence)| sequence.take().map(|sequence| Placed { place, sequence }))
            .collect();
        if all.is_empty() {
            return events;
        }
        if let Err(error) = cut {
            // No place can go back to where it was: none goes on.
            let error = Arc::new(error);
            let failed = |one: Placed<_>| one.sequence.failed(DecodeError::model(Arc::clone(&error)));
            events.extend(all.into_iter().map(failed));
            return events;
        }
        let (all, mut reading, idle) =
            sequence::split(all, self.admission.chunk, |place| self.model.position(place));
        self.put_back(idle);
        let mut ready = self.prepare(all);
        let mut passed = self.pass(&ready, &mut reading, &mut events);
        if passed.is_err() && drop_drafts(&mut ready) {
            passed = self.pass(&ready, &mut reading, &mut events);
        }
        match passed {
            Ok((rows, took)) => {
                self.put_back(reading.into_iter().map(|reader| reader.one));
                self.take(ready, rows, took, &mut events);
            }
            // Somebody's fault: alone, each finds out whether it is his.
            Err(_) => self.pass_alone(ready, reading, &mut events),
        }
        events
    }

    /// Makes a pass for each of these sequences, after one for all has failed.
    fn pass_alone(
        &mut self,
        ready: Vec<Placed<Ready>>,
        reading: Vec<PromptChunk>,
        events: &mut Vec<BatchEvent>,
    ) {
        for mut reader in reading {
            match self.pass(&[], std::slice::from_mut(&mut reader), events) {
                Ok(_) => self.put_back([reader.one]),
                Err(error) => events.push(reader.one.sequence.failed(DecodeError::model(error))),
            }
        }
        for one in ready {
            match self.pass(std::slice::from_ref(&one), &mut [], events) {
                Ok((rows, took)) => self.take(vec![one], rows, took, events),
                Err(error) => events.push(one.sequence.failed(DecodeError::model(error))),
            }
        }
    }

    /// Leaves sequences at their places.
    fn put_back(&mut self, all: impl IntoIterator<Item = Placed<Between>>) {
        for Placed { place, sequence } in all {
            self.places[place] = Some(sequence);
        }
    }

    /// Ends a sequence, wherever it is, and frees its place. Returns its text as if cut by length and not
    /// completed, whatever its options are; for that see [`close`](Self::close). `None` if it has ended or
    /// never existed.
    pub fn cancel(&mut self, sequence: SequenceId) -> Option<Generation> {
        Some(self.remove(sequence)?.run.into_generation(Finish::Length))
    }

    /// Ends a sequence, wherever it is, and frees its place. Its text is completed by the shortest text of
    /// its constraint's language, as by [`Steps::close`](crate::decode::Steps::close):
    /// [`BatchEvent::Finished`], or [`BatchEvent::Failed`] if a budget is used up. `None` if it has ended or
    /// never existed. The others are not affected, and no pass is made.
    pub fn close(&mut self, sequence: SequenceId) -> Option<BatchEvent> {
        let mut found = self.remove(sequence)?;
        Some(match found.run.close() {
            Ok(()) => found.finished(Finish::Closed),
            Err(error) => found.failed(error),
        })
    }

    /// Removes a sequence from its place, or from the waiting ones.
    fn remove(&mut self, sequence: SequenceId) -> Option<BatchSequence> {
        let is_it = |found: &BatchSequence| found.id == sequence;
        match self.admission.waiting.remove(sequence) {
            Some(found) => Some(found),
            None => self.places.iter_mut().find(|place| place.as_ref().is_some_and(is_it))?.take(),
        }
    }

    /// Returns a sequence's text so far, without a possible beginning of a stop string at its end. `None` if
    /// it has ended or never existed.
    #[must_use]
    pub fn settled_text(&self, sequence: SequenceId) -> Option<&[u8]> {
        let mut all = self.places.iter().flatten().chain(self.admission.waiting.iter());
        Some(all.find(|found| found.id == sequence)?.run.settled_text())
    }

    /// Returns what a sequence took so far, and the log-probabilities of its tokens, if its options ask for
    /// them. `None` if it has ended or never existed.
    #[must_use]
    pub fn so_far(&self, sequence: SequenceId) -> Option<(&DecodeStats, &[Logprobs])> {
        let mut all = self.places.iter().flatten().chain(self.admission.waiting.iter());
        let run = &all.find(|found| found.id == sequence)?.run;
        Some((&run.stats, &run.logprobs))
    }

    /// Number of sequences that have not ended, waiting ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.iter().flatten().count() + self.admission.waiting.len()
    }

    /// Is there no sequence left?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Measures the cost of passes, so that drafts have the right length from the first one on; some forty
    /// short passes. Otherwise it is measured on the way. Does nothing if there are sequences, or if it is
    /// known.
    ///
    /// # Errors
    /// If a pass fails.
    pub fn calibrate(&mut self) -> Result<(), DecodeError> {
        let passes = self.cost.unmeasured(true);
        match self.vocabulary.end_of_text().first() {
            Some(&token) if self.is_empty() && !passes.is_empty() => {
                let cost = &mut self.cost;
                let mut place = ModelSlot { model: &mut self.model, place: 0 };
                calibrate(&mut place, token, passes, |pass, seconds| cost.observe(pass, seconds))
            }
            _ => Ok(()),
        }
    }

    /// Number of passes of the model so far.
    #[must_use]
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Truncates the model's cache of each sequence to what its text has of it.
    fn cut_back(&mut self) -> Result<(), B::Error> {
        for (place, sequence) in self.places.iter().enumerate() {
            let Some(BatchSequence { run, .. }) = sequence else { continue };
            // All but the last token were verified, or are the prompt.
            let seen = self.model.position(place).min(run.sequence().len() - 1);
            self.model.truncate(place, seen)?;
        }
        Ok(())
    }

    /// Prepares the pass of these sequences. All guess at once, each assuming that drafts of the others are
    /// as long as the last ones; then all drafts are cut to what pays.
    fn prepare(&self, all: Vec<Placed<Between>>) -> Vec<Placed<Ready>> {
        let context = self.model.context();
        let (mut usual, mut without, mut drafting) = (Pass::default(), Pass::default(), 0);
        let mut todo = Vec::with_capacity(all.len());
        for one in all {
            let BatchSequence { run, drafter, phase, .. } = &one.sequence;
            let seen = self.model.position(one.place);
            let pending = Pass { tokens: run.sequence().len() - seen, whole: 1 };
            let own = if pending.tokens > 1 { pending } else { phase.usual() };
            (usual, without) = (usual + own, without + phase.first());
            drafting += usize::from(drafter.is_some());
            todo.push((one, seen, own));
        }
        let (cost, sequences) = (&self.cost, todo.len());
        let margin = if sequences > 1 { SHARED_MARGIN } else { 1.0 };
        let pace = margin * as_f64(sequences) * self.speedup.times() / cost.seconds(without);
        let threads = cores::count();
        let worth = |drafting: usize| {
            let at_once = drafting.clamp(1, threads);
            DraftBudget { cost, pace, sequences, at_once }
        };
        let offer = |(one, seen, own): (Placed<Between>, usize, Pass)| {
            let others = Pass { tokens: usual.tokens - own.tokens, whole: usual.whole - own.whole };
            let worth = worth(if one.sequence.is_shared() { 1 } else { drafting });
            one.map(|between, drafter, run| between.offer(drafter, run, seen, context, (others, &worth)))
        };
        let offers = each(todo, |(one, ..)| one.sequence.is_shared(), offer);
        let plain = offers.iter().fold(Pass::default(), |plain, one| plain + one.sequence.phase.plain());
        let worth = worth(drafting);
        let offered: Vec<&[Offered]> = offers.iter().map(|one| one.sequence.phase.tokens()).collect();
        let Allocation { kept, gains } = worth.cut(plain, &offered);
        let plain = cost.seconds(without);
        let cuts = kept.into_iter().zip(gains);
        let keep = |(one, cut): (Placed<Offer>, _)| {
            one.map(|offer, drafter, run| offer.keep(drafter, run, cut, plain, &worth))
        };
        each(offers.into_iter().zip(cuts).collect(), |_| false, keep)
    }

    /// Makes the prepared pass of these sequences, and of those that read on.
    fn pass(
        &mut self,
        all: &[Placed<Ready>],
        reading: &mut [PromptChunk],
        events: &mut Vec<BatchEvent>,
    ) -> Result<(Vec<Logits>, Took), B::Error> {
        let mut inputs = Vec::with_capacity(all.len() + reading.len());
        let (mut size, mut regular) = (Pass::default(), Pass::default());
        let mut counts = reading.is_empty();
        let mut without = Pass::default();
        for Placed { place, sequence: BatchSequence { phase: ready, .. } } in all {
            inputs.push(BatchInput { sequence: *place, tokens: ready.tokens(), rows: ready.wanted() });
            size = size + ready.size();
            regular = regular + ready.usual();
            without = without + ready.first();
            counts &= ready.counts();
        }
        inputs.extend(reading.iter().map(PromptChunk::input));
        let start = Instant::now();
        let mut rows = self.model.forward(&inputs)?;
        let read = rows.split_off(all.len());
        events.extend(reading.iter_mut().zip(&read).filter_map(|(reader, rows)| reader.score(rows)));
        let took = start.elapsed();
        self.passes += 1;
        if counts {
            self.cost.observe(size, took.as_secs_f64());
        }
        let seconds = self.cost.seconds(regular);
        let reckoned = Duration::try_from_secs_f64(seconds).unwrap_or(took);
        let times = counts.then(|| seconds / self.cost.seconds(without));
        Ok((rows, Took { time: took, reckoned, times }))
    }

    /// Takes tokens for these sequences, given the rows of their pass. Sequences that have not ended keep
    /// their places.
    fn take(&mut self, all: Vec<Placed<Ready>>, rows: Vec<Logits>, took: Took, events: &mut Vec<BatchEvent>) {
        let (context, sequences) = (self.model.context(), all.len());
        for Placed { place, sequence } in all.iter().filter(|one| one.sequence.phase.has_read_prompt()) {
            let seen = sequence.run.sequence();
            self.admission.prefixes.keep(&self.model, *place, seen, sequence.turn.scope);
        }
        let work: Vec<_> = all.into_iter().zip(rows).collect();
        let taken = each(
            work,
            |(one, _)| one.sequence.is_shared(),
            |(one, rows)| (one.place, one.sequence.take(rows, took, context)),
        );
        let before = events.len();
        for (place, (sequence, happened)) in taken {
            self.places[place] = sequence;
            events.extend(happened);
        }
        if let Some(times) = took.times {
            let token = |event: &&BatchEvent| matches!(event, BatchEvent::Token { .. });
            let tokens = events[before..].iter().filter(token).count();
            self.speedup.note(as_f64(tokens) / as_f64(sequences), times);
        }
    }
}

impl<B: BatchModel> fmt::Debug for BatchDecoder<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchDecoder")
            .field("places", &self.places.len())
            .field("sequences", &self.len())
            .field("passes", &self.passes)
            .finish_non_exhaustive()
    }
}

/// Does `work` for each: in parallel for those that are not `shared`, if there are threads, and then the
/// others one after the other. The results are in the order of `all`.
fn each<T: Send, R: Send>(
    all: Vec<T>,
    shared: impl Fn(&T) -> bool + Sync,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if all.len() < 2 || cores::count() < 2 {
        return all.into_iter().map(work).collect();
    }
    let own = |item| if shared(&item) { Err(item) } else { Ok(work(item)) };
    let done: Vec<Result<R, T>> = cores::map_large(all, own);
    done.into_iter().map(|done| done.unwrap_or_else(&work)).collect()
}

#[cfg(test)]
mod tests;
