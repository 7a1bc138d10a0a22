//! Speculative decoding of one run (paper, 3.6): passes over the last token and a draft.

use std::time::Instant;

use super::{
    error::DecodeError,
    run::{Run, Step},
    verification::Verification,
};
use crate::{ids::TokenId, model::Model, proposer::Drafter};

/// The speculation of one run.
#[derive(Debug)]
pub(super) struct Speculation<'a> {
    drafter: &'a mut Drafter,
    verification: Verification,
}

impl<'a> Speculation<'a> {
    pub(super) fn new(drafter: &'a mut Drafter) -> Self {
        Self { drafter, verification: Verification::default() }
    }

    /// The draft of the last pass, what was refused of it included.
    pub(super) fn drafted(&self) -> &[TokenId] {
        self.verification.drafted()
    }

    /// The run's next step, from a row that is there already or from a new pass.
    pub(super) fn step<M: Model>(
        &mut self,
        model: &mut M,
        run: &mut Run,
    ) -> Result<Option<Step>, DecodeError> {
        let start = Instant::now();
        if self.verification.needs_pass() {
            // Settles the last pass, and sets its time back.
            self.pass(model, run)?;
        }
        let step = self.verification.take(Some(self.drafter), run);
        self.verification.spend(start.elapsed());
        if run.finish().is_some() {
            self.verification.settle(self.drafter);
        }
        step
    }

    /// A pass over what the model has not seen, with a draft behind it.
    fn pass<M: Model>(&mut self, model: &mut M, run: &mut Run) -> Result<(), DecodeError> {
        // All but the last token were verified, or are the prompt.
        let seen = model.position().min(run.sequence().len() - 1);
        model.truncate(seen).map_err(DecodeError::model)?;
        let verification = &mut self.verification;
        verification.prepare(self.drafter, run, seen, model.context());
        let start = Instant::now();
        let mut rows = model.forward(verification.tokens(), verification.wanted());
        if let Err(error) = &rows
            && verification.has_draft()
        {
            tracing::debug!("a pass with a draft failed, and is made without: {error}");
            run.stats_mut().passes += 1;
            verification.drop_draft();
            rows = model.forward(verification.tokens(), verification.wanted());
        }
        let took = start.elapsed();
        if verification.counts() {
            self.drafter.passed(verification.size(), took.as_secs_f64());
        }
        verification.made(rows.map_err(DecodeError::model)?, run, took);
        Ok(())
    }
}
