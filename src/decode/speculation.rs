//! Speculative decoding of one run (paper, 3.6): passes over the last token and a draft.

use std::time::Instant;

use super::{
    error::DecodeError,
    run::{Run, Step},
    verification::{Between, Phase, Rows},
};
use crate::{ids::TokenId, model::Model, proposer::Drafter};

/// The speculation of one run.
#[derive(Debug)]
pub(super) struct Speculation<'a> {
    drafter: &'a mut Drafter,
    phase: Phase,
}

impl<'a> Speculation<'a> {
    pub(super) fn new(drafter: &'a mut Drafter) -> Self {
        Self { drafter, phase: Phase::default() }
    }

    /// The draft of the last pass, what was refused of it included.
    pub(super) fn drafted(&self) -> &[TokenId] {
        self.phase.drafted()
    }

    /// The run's next step, from a row that is there already or from a new pass.
    pub(super) fn step<M: Model>(
        &mut self,
        model: &mut M,
        run: &mut Run,
    ) -> Result<Option<Step>, DecodeError> {
        let start = Instant::now();
        let rows = match std::mem::take(&mut self.phase) {
            Phase::Rows(rows) => rows,
            Phase::Between(between) => self.pass(between, model, run)?,
        };
        let (step, mut phase) = rows.take(Some(self.drafter), run);
        phase.spend(start.elapsed());
        self.phase = match run.finish() {
            Some(_) => Phase::Between(phase.settle(self.drafter)),
            None => phase,
        };
        step
    }

    /// A pass over what the model has not seen, with a draft behind it.
    fn pass<M: Model>(
        &mut self,
        between: Between,
        model: &mut M,
        run: &mut Run,
    ) -> Result<Rows, DecodeError> {
        // All but the last token were verified, or are the prompt.
        let seen = model.position().min(run.sequence().len() - 1);
        model.truncate(seen).map_err(DecodeError::model)?;
        let mut ready = between.prepare(self.drafter, run, seen, model.context());
        let start = Instant::now();
        let mut logits = model.forward(ready.tokens(), ready.wanted());
        if let Err(error) = &logits
            && ready.has_draft()
        {
            tracing::debug!("a pass with a draft failed, and is made without: {error}");
            run.stats_mut().passes += 1;
            ready.drop_draft();
            logits = model.forward(ready.tokens(), ready.wanted());
        }
        let took = start.elapsed();
        if ready.counts() {
            self.drafter.passed(ready.size(), took.as_secs_f64());
        }
        Ok(ready.made(logits.map_err(DecodeError::model)?, run, took))
    }
}
