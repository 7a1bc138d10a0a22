//! Several runs with one model: every pass is shared by all runs, each with a draft of its own if it speculates.
//!
//! Invariant: a run's tokens are those it has alone, whatever shares its passes, and whenever it joins; what goes
//! wrong in one run ends that one only.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    calibration::{Place, calibrate},
    choice::possible,
    decoder::{check_constraint, check_size},
    error::{BuildError, BuildErrorKind, DecodeError},
    options::DecodeOptions,
    pool::each,
    run::{Finish, Generation, Run, Step},
    verification::Verification,
};
use crate::{
    constraint::Constraint,
    ids::TokenId,
    model::{BatchInput, BatchModel, Logits},
    proposer::{Cut, Drafter, Offered, Pass, PassCost, Speedup, Worth},
    vocab::{TokenSet, Vocabulary},
};

/// Names a sequence of a [`BatchDecoder`]; ascending in the order in which they were added, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(u64);

/// What happened to one sequence in a step.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// It has another token.
    Token {
        /// Which sequence.
        sequence: SequenceId,
        /// The token.
        step: Step,
    },
    /// It has ended and left its place to another.
    Finished {
        /// Which sequence.
        sequence: SequenceId,
        /// What it generated. The time of a shared pass counts in full.
        generation: Generation,
    },
    /// It cannot go on, and has left its place. The others are not concerned.
    Failed {
        /// Which sequence.
        sequence: SequenceId,
        /// Why.
        error: DecodeError,
        /// What it generated until then, as if cut by length.
        generation: Generation,
    },
}

/// Generates several texts at once, each with its own constraint and options. As many as the model has room for
/// share its passes; the others wait for a place, in the order they were added.
pub struct BatchDecoder<B: BatchModel> {
    model: B,
    vocabulary: Vocabulary,
    /// All tokens that can be generated at all.
    possible: Arc<TokenSet>,
    /// By place in the model.
    places: Vec<Option<Sequence>>,
    waiting: VecDeque<Sequence>,
    next: u64,
    passes: usize,
    /// What passes of all together cost.
    cost: PassCost,
    /// What drafts have gained lately.
    speedup: Speedup,
}

/// A run, its name, and what drafts for it.
struct Sequence {
    id: SequenceId,
    run: Run,
    drafter: Option<Drafter>,
    verification: Verification,
}

/// What a pass took.
#[derive(Debug, Clone, Copy)]
struct Took {
    time: Duration,
    /// What such passes cost, a prompt in it counted as a token: what drafts are weighed against.
    reckoned: Duration,
    /// How many times that of a pass without drafts it is, unless a prompt was in it.
    times: Option<f64>,
}

impl Sequence {
    fn finished(self, finish: Finish) -> BatchEvent {
        BatchEvent::Finished { sequence: self.id, generation: self.run.into_generation(finish) }
    }

    fn failed(self, error: DecodeError) -> BatchEvent {
        let generation = self.run.into_generation(Finish::Length);
        BatchEvent::Failed { sequence: self.id, error, generation }
    }

    /// Does what drafts for it do so for others as well?
    fn is_shared(&self) -> bool {
        self.drafter.as_ref().is_some_and(Drafter::is_shared)
    }

    /// What could be drafted for it.
    fn offered(&self) -> &[Offered] {
        self.verification.offered(self.drafter.as_ref())
    }

    /// Takes its next token, of which there is a row.
    fn take_one(&mut self) -> Result<Option<Step>, DecodeError> {
        let start = Instant::now();
        let taken = self.verification.take(self.drafter.as_mut(), &mut self.run);
        self.run.stats_mut().total_time += start.elapsed();
        taken
    }
}

/// What is in these places of all.
fn these<'a>(
    all: &'a mut [Option<Sequence>],
    places: &'a [usize],
) -> impl Iterator<Item = &'a mut Option<Sequence>> {
    all.iter_mut().enumerate().filter(|(place, _)| places.contains(place)).map(|(_, sequence)| sequence)
}

/// How many times what it costs a drafted token must be worth, where several sequences share a pass: a further token costs
/// a good part of what one without a draft does there, so that a cost which is off by a little makes a loss of a gain.
const MARGIN: f64 = 1.1;

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Takes tokens for the sequence of a place, given its rows of a pass, as many as there are rows for. Tells what happened.
fn take(place: &mut Option<Sequence>, rows: Logits, took: Took, context: usize) -> Vec<BatchEvent> {
    let mut events = Vec::new();
    if let Some(Sequence { run, verification, .. }) = place {
        verification.made(rows, run, took.time);
        verification.spend(took.reckoned);
        run.stats_mut().total_time += took.time;
    }
    while let Some(sequence) = place.as_mut().filter(|sequence| !sequence.verification.needs_pass()) {
        match sequence.take_one() {
            Ok(step) => {
                events.extend(step.map(|step| BatchEvent::Token { sequence: sequence.id, step }));
                end(place, context, &mut events);
            }
            Err(error) => fail(place, error, &mut events),
        }
    }
    events
}

/// Frees the place if its sequence has ended.
fn end(place: &mut Option<Sequence>, context: usize, events: &mut Vec<BatchEvent>) {
    let Some(sequence) = place else { return };
    match sequence.run.end(context) {
        Ok(None) => {}
        Ok(Some(finish)) => events.extend(place.take().map(|sequence| sequence.finished(finish))),
        Err(error) => fail(place, error, events),
    }
}

fn fail(place: &mut Option<Sequence>, error: DecodeError, events: &mut Vec<BatchEvent>) {
    events.extend(place.take().map(|sequence| sequence.failed(error)));
}

impl<B: BatchModel> BatchDecoder<B> {
    /// A decoder without sequences. One pass over the vocabulary.
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
        let (waiting, cost, speedup) = (VecDeque::new(), PassCost::default(), Speedup::default());
        Ok(Self { model, vocabulary, possible, places, waiting, next: 0, passes: 0, cost, speedup })
    }

    /// Adds a sequence that goes on from `prompt`, under `constraint` from its present state on. It joins when there
    /// is a place.
    ///
    /// # Errors
    /// If the constraint was compiled for another vocabulary. What is wrong with the prompt is told by an event.
    pub fn add(
        &mut self,
        prompt: &[TokenId],
        constraint: Option<Constraint>,
        options: &DecodeOptions,
    ) -> Result<SequenceId, BuildError> {
        self.join(prompt, constraint, options, None)
    }

    /// As [`add`](Self::add), speculating with `drafter`. How long drafts are depends on what passes of all sequences
    /// together cost, which is found out on the way; what the drafter knows of costs is not asked.
    ///
    /// # Errors
    /// Those of [`add`](Self::add).
    pub fn add_with_drafter(
        &mut self,
        prompt: &[TokenId],
        constraint: Option<Constraint>,
        options: &DecodeOptions,
        drafter: Drafter,
    ) -> Result<SequenceId, BuildError> {
        self.join(prompt, constraint, options, Some(drafter))
    }

    fn join(
        &mut self,
        prompt: &[TokenId],
        constraint: Option<Constraint>,
        options: &DecodeOptions,
        drafter: Option<Drafter>,
    ) -> Result<SequenceId, BuildError> {
        check_constraint(&self.vocabulary, constraint.as_ref())?;
        let id = SequenceId(self.next);
        self.next += 1;
        let possible = Arc::clone(&self.possible);
        let run = Run::new(prompt, self.vocabulary.clone(), possible, constraint, options);
        self.waiting.push_back(Sequence { id, run, drafter, verification: Verification::default() });
        Ok(id)
    }

    /// Lets waiting sequences join, makes one pass for all, and takes a token for each. Returns what happened, a
    /// token before the end it brings; nothing if there is no sequence left.
    pub fn step(&mut self) -> Vec<BatchEvent> {
        let mut events = Vec::new();
        self.admit(&mut events);
        let places: Vec<usize> =
            (0..self.places.len()).filter(|&place| self.places[place].is_some()).collect();
        if places.is_empty() {
            return events;
        }
        if let Err(error) = self.prepare(&places) {
            // No place can go back to where it was: none goes on.
            let error = Arc::new(error);
            for place in places {
                fail(&mut self.places[place], DecodeError::model(Arc::clone(&error)), &mut events);
            }
            return events;
        }
        let mut passed = self.pass(&places);
        if passed.is_err() && self.drop_drafts(&places) {
            passed = self.pass(&places);
        }
        match passed {
            Ok((rows, took)) => self.take(&places, rows, took, &mut events),
            Err(error) if places.len() == 1 => {
                fail(&mut self.places[places[0]], DecodeError::model(error), &mut events);
            }
            // Somebody's fault: alone, each finds out whether it is his.
            Err(_) => {
                for place in places {
                    match self.pass(&[place]) {
                        Ok((rows, took)) => self.take(&[place], rows, took, &mut events),
                        Err(error) => fail(&mut self.places[place], DecodeError::model(error), &mut events),
                    }
                }
            }
        }
        events
    }

    /// Ends a sequence here, wherever it is, and frees its place. What it generated, as if cut by length and not
    /// completed, whatever its options say: see [`close`](Self::close) for that. `None` if it has ended or never was.
    pub fn cancel(&mut self, sequence: SequenceId) -> Option<Generation> {
        Some(self.remove(sequence)?.run.into_generation(Finish::Length))
    }

    /// Ends a sequence here, wherever it is, and frees its place. What it generated is completed by the shortest
    /// text that makes it one of its constraint's language, as [`Steps::close`](super::Steps::close) does:
    /// [`BatchEvent::Finished`], or [`BatchEvent::Failed`] if a budget is used up. `None` if it has ended or never
    /// was. The others are not concerned, and no pass is made.
    pub fn close(&mut self, sequence: SequenceId) -> Option<BatchEvent> {
        let mut found = self.remove(sequence)?;
        Some(match found.run.close() {
            Ok(()) => found.finished(Finish::Closed),
            Err(error) => found.failed(error),
        })
    }

    /// Takes a sequence out of its place, or of those that wait.
    fn remove(&mut self, sequence: SequenceId) -> Option<Sequence> {
        let is_it = |found: &Sequence| found.id == sequence;
        match self.waiting.iter().position(is_it) {
            Some(at) => self.waiting.remove(at),
            None => self.places.iter_mut().find(|place| place.as_ref().is_some_and(is_it))?.take(),
        }
    }

    /// A sequence's text so far but for what may turn out to be the beginning of a stop string. `None` if it has
    /// ended or never was.
    #[must_use]
    pub fn settled_text(&self, sequence: SequenceId) -> Option<&[u8]> {
        let mut all = self.places.iter().flatten().chain(&self.waiting);
        Some(all.find(|found| found.id == sequence)?.run.settled_text())
    }

    /// Sequences that have not ended, those that wait included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.iter().flatten().count() + self.waiting.len()
    }

    /// Is there no sequence left?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Measures what passes cost, so that drafts are as long as pays from the first one on; some forty short passes.
    /// Without it that is found out on the way. Does nothing while there are sequences, or where it is known.
    ///
    /// # Errors
    /// If a pass fails.
    pub fn calibrate(&mut self) -> Result<(), DecodeError> {
        let passes = self.cost.unmeasured(true);
        match self.vocabulary.end_of_text().first() {
            Some(&token) if self.is_empty() && !passes.is_empty() => {
                let cost = &mut self.cost;
                let mut place = Place { model: &mut self.model, place: 0 };
                calibrate(&mut place, token, passes, |pass, seconds| cost.observe(pass, seconds))
            }
            _ => Ok(()),
        }
    }

    /// Passes of the model so far.
    #[must_use]
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Puts waiting sequences in free places, but for those that end before their first pass.
    fn admit(&mut self, events: &mut Vec<BatchEvent>) {
        let context = self.model.context();
        for place in 0..self.places.len() {
            while self.places[place].is_none()
                && let Some(sequence) = self.waiting.pop_front()
            {
                let checked = sequence.run.check_prompt(context);
                match checked.and_then(|()| self.model.truncate(place, 0).map_err(DecodeError::model)) {
                    Ok(()) => {
                        self.places[place] = Some(sequence);
                        end(&mut self.places[place], context, events);
                    }
                    Err(error) => events.push(sequence.failed(error)),
                }
            }
        }
    }

    /// Prepares the pass of the sequences in these places: what the model holds of each, and each one's draft. All guess at
    /// once, each beside drafts of the others that are as long as the last ones; then all drafts are cut to what is worth it.
    fn prepare(&mut self, places: &[usize]) -> Result<(), B::Error> {
        let context = self.model.context();
        let (mut usual, mut without, mut drafting) = (Pass::default(), Pass::default(), 0);
        let mut todo = Vec::with_capacity(places.len());
        for &place in places {
            let Some(Sequence { run, drafter, verification, .. }) = &self.places[place] else { continue };
            let length = run.sequence().len();
            // All but the last token were verified, or are the prompt.
            let seen = self.model.position(place).min(length - 1);
            self.model.truncate(place, seen)?;
            let pending = Pass { tokens: length - seen, whole: 1 };
            let own = if pending.tokens > 1 { pending } else { verification.usual() };
            (usual, without) = (usual + own, without + verification.first());
            drafting += usize::from(drafter.is_some());
            todo.push((seen, own));
        }
        let cost = &self.cost;
        let margin = if places.len() > 1 { MARGIN } else { 1.0 };
        let pace = margin * count(places.len()) * self.speedup.times() / cost.seconds(without);
        let threads = rayon::current_num_threads();
        let worth = |drafting: usize| {
            let at_once = drafting.clamp(1, threads);
            Worth { cost, pace, sequences: places.len(), at_once }
        };
        let mut all: Vec<&mut Sequence> = these(&mut self.places, places).flatten().collect();
        let offer = |(sequence, (seen, own)): (&mut &mut Sequence, (usize, Pass))| {
            let others = Pass { tokens: usual.tokens - own.tokens, whole: usual.whole - own.whole };
            let worth = worth(if sequence.is_shared() { 1 } else { drafting });
            let Sequence { run, drafter, verification, .. } = &mut **sequence;
            verification.offer(drafter.as_mut(), run, seen, context, (others, &worth));
        };
        each(all.iter_mut().zip(todo).collect(), |(sequence, _)| sequence.is_shared(), offer);
        let offers: Vec<&[Offered]> = all.iter().map(|sequence| sequence.offered()).collect();
        let plain = all
            .iter()
            .zip(&offers)
            .fold(Pass::default(), |plain, (sequence, offered)| plain + sequence.verification.plain(offered));
        let worth = worth(drafting);
        let Cut { kept, gains } = worth.cut(plain, &offers);
        for (sequence, cut) in all.iter_mut().zip(kept.into_iter().zip(gains)) {
            let Sequence { drafter, verification, .. } = &mut **sequence;
            verification.keep(drafter.as_mut(), cut, cost.seconds(without), &worth);
        }
        each(all, |_| false, |Sequence { run, verification, .. }| verification.ready(run));
        Ok(())
    }

    /// Leaves all drafts out. Were there any?
    fn drop_drafts(&mut self, places: &[usize]) -> bool {
        let mut any = false;
        for &place in places {
            let Some(Sequence { verification, .. }) = &mut self.places[place] else { continue };
            if verification.has_draft() {
                verification.drop_draft();
                any = true;
            }
        }
        any
    }

    /// The prepared pass of these places.
    fn pass(&mut self, places: &[usize]) -> Result<(Vec<Logits>, Took), B::Error> {
        let mut inputs = Vec::with_capacity(places.len());
        let (mut all, mut regular, mut counts) = (Pass::default(), Pass::default(), true);
        let mut without = Pass::default();
        for &place in places {
            let Some(Sequence { verification, .. }) = &self.places[place] else { continue };
            inputs.push(BatchInput {
                sequence: place,
                tokens: verification.tokens(),
                rows: verification.wanted(),
            });
            let size = verification.size();
            all = all + size;
            regular = regular + if verification.counts() { size } else { Pass::whole(1) };
            without = without + verification.first();
            counts &= verification.counts();
        }
        let start = Instant::now();
        let rows = self.model.forward(&inputs)?;
        let took = start.elapsed();
        self.passes += 1;
        if counts {
            self.cost.observe(all, took.as_secs_f64());
        }
        let seconds = self.cost.seconds(regular);
        let reckoned = Duration::try_from_secs_f64(seconds).unwrap_or(took);
        let times = counts.then(|| seconds / self.cost.seconds(without));
        Ok((rows, Took { time: took, reckoned, times }))
    }

    /// Takes tokens for the sequences of these places, given the rows of their pass.
    fn take(&mut self, places: &[usize], rows: Vec<Logits>, took: Took, events: &mut Vec<BatchEvent>) {
        let context = self.model.context();
        let work: Vec<_> = these(&mut self.places, places).zip(rows).collect();
        let shared =
            |(place, _): &(&mut Option<Sequence>, _)| place.as_ref().is_some_and(Sequence::is_shared);
        let before = events.len();
        let taken = each(work, shared, |(place, rows)| take(place, rows, took, context));
        events.extend(taken.into_iter().flatten());
        if let Some(times) = took.times {
            let token = |event: &&BatchEvent| matches!(event, BatchEvent::Token { .. });
            let tokens = events[before..].iter().filter(token).count();
            self.speedup.note(count(tokens) / count(places.len()), times);
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
