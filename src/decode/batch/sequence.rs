//! One sequence of a batch, by its phase.

use std::time::Duration;

use super::{
    super::{
        error::DecodeError,
        options::DecodeOptions,
        row::PassRows,
        run::{Finish, TextRun},
        sampling::logprobs::Logprobs,
        speculation::verification::{Between, Phase, Ready},
    },
    event::{BatchEvent, SequenceId, SequenceTurn},
};
use crate::{clock::Instant, ids::TokenId, model::Logits, proposer::Drafter};

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
        let prompt = self.run.sequence().get(1..self.run.stats().prompt_tokens)?;
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
        run.stats_mut().total_time += took.time;
        loop {
            let start = Instant::now();
            let (step, phase) = rows.take(drafter.as_mut(), &mut run);
            run.stats_mut().total_time += start.elapsed();
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
