//! Speculative decoding of one run (paper, 3.6): passes over the last token and a draft.

use std::{num::NonZeroUsize, time::Duration};

use super::{
    super::{
        error::DecodeError,
        row::{PassRows, kept},
        run::{Step, TextRun},
        sampling::likely::FAR,
        stats::timed,
    },
    verification::{Between, PassMade, Phase, Ready},
};
use crate::{clock::Instant, ids::TokenId, model::Model, proposer::Drafter};

/// The speculation of one run.
#[derive(Debug)]
pub(in crate::decode) struct RunSpeculation<'a> {
    drafter: &'a mut Drafter,
    phase: Phase,
}

impl<'a> RunSpeculation<'a> {
    /// Creates the speculation of a model whose passes over up to `at_once` tokens cost as much as one token.
    pub(in crate::decode) fn new(drafter: &'a mut Drafter, at_once: NonZeroUsize) -> Self {
        drafter.set_at_once(at_once);
        Self { drafter, phase: Phase::default() }
    }

    /// The draft of the last pass, with refused tokens.
    pub(in crate::decode) fn drafted(&self) -> &[TokenId] {
        self.phase.drafted()
    }

    /// Makes the run's next step, from a row that is there already or from a new pass.
    pub(in crate::decode) fn step<M: Model>(
        &mut self,
        model: &mut M,
        run: &mut TextRun,
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

    /// Makes a pass over what the model has not seen, with a draft behind it.
    fn pass<M: Model>(
        &mut self,
        between: Between,
        model: &mut M,
        run: &mut TextRun,
    ) -> Result<PassMade, DecodeError> {
        // All but the last token were verified, or are the prompt.
        let seen = model.position().min(run.sequence().len() - 1);
        model.truncate(seen).map_err(DecodeError::model)?;
        let mut ready = between.prepare(self.drafter, run, seen, model.context());
        let learns = self.drafter.learns() && self.drafter.wants_likely();
        let made = match run.takes_kept() {
            true => begun(model, &mut ready, run, learns.then_some(FAR))?,
            false => None,
        };
        let (made, took) = match made {
            Some(made) => made,
            None => {
                ready.narrow(run);
                let start = Instant::now();
                let pass = |ready: &Ready| model.forward(ready.tokens(), ready.wanted());
                let logits = or_without_draft(&mut ready, run, pass).map_err(DecodeError::model)?;
                (PassRows::Here(logits), start.elapsed())
            }
        };
        if ready.counts() {
            self.drafter.passed(ready.size(), took.as_secs_f64());
        }
        Ok(ready.made(made, run, took))
    }
}

/// Makes a pass whose rows stay where the model computes them, and times it; the masks are made meanwhile.
/// Tokens are chosen there, from all rows with one wait, if the model can, and tokens `near` the likeliest
/// are listed for whoever learns from them. `None`, and no pass, for a model that cannot keep rows.
fn begun<M: Model>(
    model: &mut M,
    ready: &mut Ready,
    run: &mut TextRun,
    near: Option<f32>,
) -> Result<Option<(PassRows, Duration)>, DecodeError> {
    let mut took = Duration::ZERO;
    let pass = |ready: &Ready| model.begin(ready.tokens(), ready.wanted());
    let rows = timed(&mut took, || or_without_draft(ready, run, pass)).map_err(DecodeError::model)?;
    let Some(rows) = rows.map(kept) else { return Ok(None) };
    let sets = ready.masks(run);
    let made = timed(&mut took, || PassRows::there(rows, sets.as_deref(), run, near))?;
    Ok(Some((made, took)))
}

/// Makes a pass, and repeats it without its draft if it fails.
fn or_without_draft<T, E: std::fmt::Display>(
    ready: &mut Ready,
    run: &mut TextRun,
    mut pass: impl FnMut(&Ready) -> Result<T, E>,
) -> Result<T, E> {
    match pass(ready) {
        Err(error) if ready.has_draft() => {
            tracing::debug!("a pass with a draft failed, and is made without: {error}");
            run.stats_mut().passes += 1;
            ready.drop_draft();
            pass(ready)
        }
        made => made,
    }
}
