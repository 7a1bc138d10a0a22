//! The sequences of a batch: their names, what happens to them, and each by its phase.
//!
//! Prompts are read in chunks (chunked prefill), so that texts which have begun need not wait for a long one.

use std::time::Duration;

use crate::decode::run::{Finish, Generation, PassRows, Step, TextRun};
use crate::decode::speculation::verification::{Between, Phase, Ready};
use crate::decode::{error::DecodeError, options::DecodeOptions, sampling::logprobs::Logprobs};
use crate::model::{BatchInput, Logits, Rows};
use crate::{clock::Instant, ids::TokenId, proposer::Drafter};

/// A run, its id, its drafter, and its state between two passes: `P` is a phase of verification.
pub(super) struct BatchSequence<P = Between> {
    pub(super) id: SequenceId,
    pub(super) turn: SequenceTurn,
    pub(super) run: TextRun,
    pub(super) drafter: Option<Drafter>,
    pub(super) phase: P,
    pub(super) scores: PromptScores,
}

/// Log-probabilities of a prompt's tokens from the second on, as they are found.
#[derive(Debug, Default)]
pub(super) struct PromptScores {
    /// Number of alternatives; `None` if none were asked for, or if all are shown.
    alternatives: Option<usize>,
    found: Vec<Logprobs>,
}

impl PromptScores {
    pub(super) fn new(prompt: &[TokenId], options: &DecodeOptions) -> Self {
        let asked = options.prompt_logprobs && prompt.len() > 1;
        Self { alternatives: options.logprobs.filter(|_| asked), found: Vec::new() }
    }

    /// Are rows of the prompt still wanted?
    pub(super) fn is_wanting(&self) -> bool {
        self.alternatives.is_some()
    }
}

/// A sequence and its place in the model.
pub(super) struct Placed<P> {
    pub(super) place: usize,
    pub(super) sequence: BatchSequence<P>,
}

/// The time of a pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    pub(super) time: Duration,
    /// Fitted cost of such passes, with a prompt in it counted as a token: drafts are weighed against it.
    pub(super) reckoned: Duration,
    /// Cost relative to a pass without drafts, unless a prompt was in it.
    pub(super) times: Option<f64>,
}

impl<P> BatchSequence<P> {
    /// Takes the rows of tokens of the prompt, of which the first has the index `from`. Returns the event of
    /// a prompt whose last token is found.
    pub(super) fn score(&mut self, rows: &Logits, from: usize) -> Option<BatchEvent> {
        let PromptScores { alternatives, found } = &mut self.scores;
        let prompt = self.run.sequence().get(1..self.run.stats.prompt_tokens)?;
        for index in 0..rows.rows() {
            // A prompt that was read before its sequence gave its place up is read again.
            if let (Some(row), Some(&token)) = (rows.row(index), prompt.get(found.len()))
                && from + index == found.len()
            {
                found.push(Logprobs::new(row, token, None, (*alternatives)?));
            }
        }
        let is_whole = found.len() == prompt.len() && alternatives.take().is_some();
        is_whole.then(|| BatchEvent::Prompt { sequence: self.id, logprobs: std::mem::take(found) })
    }

    pub(super) fn finished(self, finish: Finish) -> BatchEvent {
        BatchEvent::Finished { sequence: self.id, generation: self.run.into_generation(finish) }
    }

    pub(super) fn failed(self, error: DecodeError) -> BatchEvent {
        let generation = self.run.into_generation(Finish::Length);
        BatchEvent::Failed { sequence: self.id, error, generation }
    }

    /// Is its drafter shared with other sequences?
    pub(super) fn is_shared(&self) -> bool {
        self.drafter.as_ref().is_some_and(Drafter::is_shared)
    }

    /// Returns itself, unless it has ended.
    pub(super) fn unless_ended(mut self, context: usize, events: &mut Vec<BatchEvent>) -> Option<Self> {
        match self.run.end(context) {
            Ok(None) => return Some(self),
            Ok(Some(finish)) => events.push(self.finished(finish)),
            Err(error) => events.push(self.failed(error)),
        }
        None
    }
}

impl BatchSequence<Ready> {
    /// Takes as many tokens as there are rows of its pass. Returns the events, and itself unless it has
    /// ended.
    pub(super) fn take(
        self,
        logits: Logits,
        took: Took,
        context: usize,
    ) -> (Option<BatchSequence>, Vec<BatchEvent>) {
        let Self { id, turn, mut run, mut drafter, phase, .. } = self;
        let mut events = Vec::new();
        let mut rows = phase.made(PassRows::Here(logits), &mut run, took.time);
        rows.spend(took.reckoned);
        run.stats.total_time += took.time;
        loop {
            let start = Instant::now();
            let (step, phase) = rows.take(drafter.as_mut(), &mut run);
            run.stats.total_time += start.elapsed();
            let sequence = BatchSequence { id, turn, run, drafter, phase, scores: PromptScores::default() };
            match step {
                Ok(step) => events.extend(step.map(|step| BatchEvent::Token { sequence: id, step })),
                Err(error) => {
                    events.push(sequence.failed(error));
                    return (None, events);
                }
            }
            let Some(sequence) = sequence.unless_ended(context, &mut events) else { return (None, events) };
            (run, drafter) = (sequence.run, sequence.drafter);
            match sequence.phase {
                Phase::Rows(more) => rows = more,
                Phase::Between(phase) => {
                    let scores = PromptScores::default();
                    return (Some(BatchSequence { id, turn, run, drafter, phase, scores }), events);
                }
            }
        }
    }
}

impl<P> Placed<P> {
    /// Moves to the next phase.
    pub(super) fn map<Q>(self, next: impl FnOnce(P, Option<&mut Drafter>, &mut TextRun) -> Q) -> Placed<Q> {
        let Self { place, sequence } = self;
        let BatchSequence { id, turn, mut run, mut drafter, phase, scores } = sequence;
        let phase = next(phase, drafter.as_mut(), &mut run);
        Placed { place, sequence: BatchSequence { id, turn, run, drafter, phase, scores } }
    }
}

/// Drops all drafts. Returns whether there were any.
pub(super) fn drop_drafts(all: &mut [Placed<Ready>]) -> bool {
    let mut any = false;
    for ready in all.iter_mut().map(|one| &mut one.sequence.phase).filter(|ready| ready.has_draft()) {
        ready.drop_draft();
        any = true;
    }
    any
}

/// The name of a sequence of a [`BatchDecoder`](super::super::BatchDecoder); ascending in the order of
/// addition, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub(super) u64);

/// The client and the request of a sequence. Places are shared evenly between the clients that ask for them,
/// and a client's places between its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SequenceTurn {
    /// The client.
    pub client: u64,
    /// The request, of which there may be several sequences.
    pub request: u64,
    /// Scope of cached prefixes: only sequences of one scope reuse one another's prompts.
    pub scope: u64,
}

/// An event of one sequence in a step.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// The log-probabilities of all tokens of a prompt but the first, before the first token of the text.
    /// They come if [`DecodeOptions::prompt_logprobs`](crate::decode::DecodeOptions::prompt_logprobs) asks
    /// for them, and not for a prompt of one token.
    Prompt {
        /// The sequence.
        sequence: SequenceId,
        /// The log-probabilities of each token, in order.
        logprobs: Vec<Logprobs>,
    },
    /// The sequence has another token.
    Token {
        /// The sequence.
        sequence: SequenceId,
        /// The token.
        step: Step,
    },
    /// The sequence has ended and left its place to another.
    Finished {
        /// The sequence.
        sequence: SequenceId,
        /// The generated text. The time of a shared pass counts in full.
        generation: Generation,
    },
    /// The sequence cannot go on, and has left its place. The others are not affected.
    Failed {
        /// The sequence.
        sequence: SequenceId,
        /// The cause.
        error: DecodeError,
        /// The text generated until then, as if cut by length.
        generation: Generation,
    },
}

/// Factor on the tokens of prompts that a pass reads if no text goes on in it.
const ALONE: usize = 4;

/// Most whole rows that a pass makes of one prompt: 64 of 150,000 tokens take 40 MB.
const WHOLE_ROWS: usize = 64;

/// A sequence of which the next pass reads only a chunk of the unseen tokens, and so makes no row to draw
/// from.
pub(super) struct PromptChunk {
    pub(super) one: Placed<Between>,
    /// Tokens that the model has seen.
    pub(super) seen: usize,
    /// Tokens that the pass reads; fewer than are left.
    pub(super) count: usize,
}

impl PromptChunk {
    /// The chunk as a part of the pass.
    pub(super) fn input(&self) -> BatchInput<'_> {
        let Placed { place, sequence } = &self.one;
        let tokens = &sequence.run.sequence()[self.seen..][..self.count];
        let rows = if sequence.scores.is_wanting() { Rows::All } else { Rows::Among(&[]) };
        BatchInput { sequence: *place, tokens, rows }
    }

    /// Takes the rows of the pass. Returns an event if the prompt's last one was among them.
    pub(super) fn score(&mut self, rows: &Logits) -> Option<BatchEvent> {
        self.one.sequence.score(rows, self.seen)
    }
}

/// Splits sequences into those for which the next pass makes a row, those of whose prompts it reads a chunk,
/// and those that must wait. A pass reads at most `chunk` tokens of prompts, and [`ALONE`] times as many if
/// no text goes on in it; sequences that came first are read first. `seen` returns the number of tokens that
/// the model has of a place.
pub(super) fn split(
    all: Vec<Placed<Between>>,
    chunk: usize,
    seen: impl Fn(usize) -> usize,
) -> (Vec<Placed<Between>>, Vec<PromptChunk>, Vec<Placed<Between>>) {
    let pending = |one: &Placed<Between>| one.sequence.run.sequence().len() - seen(one.place);
    let mut order: Vec<usize> = (0..all.len()).filter(|&index| pending(&all[index]) > 1).collect();
    order.sort_by_key(|&index| all[index].sequence.id);
    let alone = order.len() == all.len();
    let mut left = if alone { chunk.saturating_mul(ALONE) } else { chunk }.max(1);
    let mut counts = vec![None; all.len()];
    for index in order {
        let wanted = pending(&all[index]);
        // The last token goes with a pass that makes the row to draw from.
        let count = match all[index].sequence.scores.is_wanting() {
            true => (wanted - 1).min(left).min(WHOLE_ROWS),
            false => wanted.min(left),
        };
        left -= count;
        counts[index] = (count < wanted).then_some(count);
    }
    let (mut ready, mut reading, mut idle) = (Vec::with_capacity(all.len()), Vec::new(), Vec::new());
    for (one, count) in all.into_iter().zip(counts) {
        match count {
            None => ready.push(one),
            Some(0) => idle.push(one),
            Some(count) => reading.push(PromptChunk { seen: seen(one.place), one, count }),
        }
    }
    (ready, reading, idle)
}
