//! Speculative decoding of one run (paper, 3.6): passes over the last token and a draft, and their cost,
//! which is measured before the first draft. Apart are draft models, and the verification of drafts.

pub(super) mod draft_model;
pub(super) mod verification;

use std::{num::NonZeroUsize, time::Duration};

use self::verification::{Between, PassMade, Phase, Ready};
use super::run::{PassRows, Step, TextRun, kept};
use super::{error::DecodeError, sampling::logprobs::FAR, stats::timed};
use crate::model::{BatchInput, BatchModel, Logits, Model, Rows};
use crate::proposer::{Drafter, Pass};
use crate::{clock::Instant, ids::TokenId, vocab::TokenSet};

/// Measures `passes` over `token`: each twice, or once if passes are long. Calls `noted` with the seconds.
/// The cache is empty afterwards.
pub(super) fn calibrate<M: Model>(
    model: &mut M,
    token: TokenId,
    passes: Vec<Pass>,
    mut noted: impl FnMut(Pass, f64),
) -> Result<(), DecodeError> {
    /// Number of tokens in the cache meanwhile.
    const BEFORE: usize = 32;
    const LONG: Duration = Duration::from_millis(30);
    model.truncate(0).map_err(DecodeError::model)?;
    let before = BEFORE.min(model.context() / 2).max(1);
    model.forward(&vec![token; before], Rows::Last).map_err(DecodeError::model)?;
    let nothing = TokenSet::empty(model.vocabulary_size());
    for pass in passes {
        let tokens = pass.tokens;
        if before + tokens > model.context() {
            continue;
        }
        let sets = vec![nothing.clone(); tokens];
        let rows = if pass.whole == 0 { Rows::Among(&sets) } else { Rows::All };
        let mut best = Duration::MAX;
        for _ in 0..2 {
            let mut took = Duration::ZERO;
            timed(&mut took, || model.forward(&vec![token; tokens], rows)).map_err(DecodeError::model)?;
            model.truncate(before).map_err(DecodeError::model)?;
            best = best.min(took);
            if took > LONG {
                break;
            }
        }
        noted(pass, best.as_secs_f64());
    }
    model.truncate(0).map_err(DecodeError::model)
}

/// One place of a model with several sequences.
pub(super) struct ModelSlot<'a, B> {
    pub(super) model: &'a mut B,
    pub(super) place: usize,
}

impl<B: BatchModel> Model for ModelSlot<'_, B> {
    type Error = B::Error;

    fn position(&self) -> usize {
        self.model.position(self.place)
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, B::Error> {
        let all = self.model.forward(&[BatchInput { sequence: self.place, tokens, rows }])?;
        Ok(all.into_iter().next().unwrap_or_else(|| Logits::new(Vec::new(), self.vocabulary_size())))
    }

    fn truncate(&mut self, position: usize) -> Result<(), B::Error> {
        self.model.truncate(self.place, position)
    }
}

/// The speculation of one run.
pub(super) struct RunSpeculation<'a> {
    drafter: &'a mut Drafter,
    phase: Phase,
}

impl<'a> RunSpeculation<'a> {
    /// Creates the speculation of a model whose passes over up to `at_once` tokens cost as much as one token.
    pub(super) fn new(drafter: &'a mut Drafter, at_once: NonZeroUsize) -> Self {
        drafter.set_at_once(at_once);
        Self { drafter, phase: Phase::default() }
    }

    /// The draft of the last pass, with refused tokens.
    pub(super) fn drafted(&self) -> &[TokenId] {
        self.phase.drafted()
    }

    /// Makes the run's next step, from a row that is there already or from a new pass.
    pub(super) fn step<M: Model>(
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
            run.stats.passes += 1;
            ready.drop_draft();
            pass(ready)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OneByOne, ScriptedModel};

    /// With a small context there are fewer tokens in the cache meanwhile, and passes without room are left
    /// out.
    #[test]
    fn measured_passes_fit_into_the_context() {
        let all = [1, 2, 12, 13, 20, 30];
        for (context, fitting) in [(24, 3), (40, 5), (4096, 6)] {
            let model = ScriptedModel::new(10, context, 1);
            let mut batch = OneByOne::new(vec![model.clone(), model]);
            let mut place = ModelSlot { model: &mut batch, place: 1 };
            let passes = all.map(Pass::whole).to_vec();
            let mut noted = Vec::new();
            calibrate(&mut place, TokenId::new(3), passes, |pass, seconds| {
                assert!(seconds.is_finite());
                noted.push(pass.tokens);
            })
            .unwrap();
            assert_eq!((&noted[..], place.position()), (&all[..fitting], 0), "{context}");
        }
    }

    #[test]
    fn a_slot_has_the_position_of_its_sequence() {
        let mut batch = OneByOne::new(vec![ScriptedModel::new(10, 64, 1), ScriptedModel::new(10, 64, 1)]);
        let mut place = ModelSlot { model: &mut batch, place: 1 };
        place.forward(&[TokenId::new(1); 3], Rows::Last).unwrap();
        assert_eq!((place.position(), place.context(), place.vocabulary_size()), (3, 64, 10));
        assert_eq!((batch.position(0), batch.position(1)), (0, 3));
    }
}
