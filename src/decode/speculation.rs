//! Speculative decoding, lossless (paper, 3.6): passes over the last token and a draft, whose rows are taken one by one
//! for as long as what is drawn is what was drafted.
//!
//! Invariant: a run sees the rows it would see without drafts. A row is offered only while all tokens that its pass has
//! seen are those of the run, and each token is drawn from its row as ever. So whatever a proposer says, the tokens are
//! those of the plain run, as far as the model gives a row the same bits in whichever pass; domino's own runner does.
//! Clocks decide how long drafts are, never what is drawn.

use std::time::{Duration, Instant};

use super::{
    error::DecodeError,
    run::{Run, Step},
    stats::timed,
};
use crate::{
    ids::TokenId,
    model::{Logits, Model, Rows},
    proposer::{Draft, Drafter, Pass, Seen, Site},
    vocab::TokenSet,
};

/// The speculation of one run.
pub(super) struct Speculation<'a> {
    drafter: &'a mut Drafter,
    /// The rows of the last pass, as far as they can be of use.
    rows: Option<Logits>,
    /// The row about the next token.
    next: usize,
    draft: Draft,
    accepted: usize,
    /// Was the last pass over one token and its draft, so that its time says what drafts gain? A prompt's does not.
    counts: bool,
    /// Time since the last pass began, without what the caller did between steps.
    time: Duration,
    /// Scratch: the sequence, and the draft after it.
    sequence: Vec<TokenId>,
}

impl<'a> Speculation<'a> {
    pub(super) fn new(drafter: &'a mut Drafter) -> Self {
        Self {
            drafter,
            rows: None,
            next: 0,
            draft: Draft::default(),
            accepted: 0,
            counts: false,
            time: Duration::ZERO,
            sequence: Vec::new(),
        }
    }

    /// The run's next step, from a row that is there already or from a new pass.
    pub(super) fn step<M: Model>(
        &mut self,
        model: &mut M,
        run: &mut Run,
    ) -> Result<Option<Step>, DecodeError> {
        let mut time = self.time;
        let step = timed(&mut time, || self.step_untimed(model, run));
        self.time = time;
        if run.finish().is_some() {
            self.settle();
        }
        step
    }

    fn step_untimed<M: Model>(&mut self, model: &mut M, run: &mut Run) -> Result<Option<Step>, DecodeError> {
        if self.rows.is_none() {
            self.settle();
            self.pass(model, run)?;
        }
        let row = self.rows.as_ref().and_then(|rows| rows.row(self.next)).unwrap_or_default();
        let step = if self.drafter.learns() { self.observed(run)? } else { run.take(row)? };
        let drafted = self.draft.tokens.get(self.accepted);
        if step.is_some() && step.map(|step| step.token).as_ref() == drafted {
            self.accepted += 1;
            self.next += 1;
            run.stats_mut().accepted += 1;
        } else {
            self.rows = None;
        }
        Ok(step)
    }

    /// Takes the next token and shows it to the proposer.
    fn observed(&mut self, run: &mut Run) -> Result<Option<Step>, DecodeError> {
        let row = self.rows.as_ref().and_then(|rows| rows.row(self.next)).unwrap_or_default();
        let before = run.constraint().map(crate::constraint::Constraint::fork);
        let length = run.sequence().len();
        let likely = if self.drafter.wants_likely() { Some(run.likely(row)?) } else { None };
        let step = run.take(row)?;
        let mut time = run.stats().draft_time;
        timed(&mut time, || {
            self.sequence.clear();
            self.sequence.extend_from_slice(&run.sequence()[..length]);
            let noise = |position, token| run.sampler().noise(position, token);
            let temperature = run.sampler().sampling().temperature();
            let mut site = Site::new(before.as_ref(), &mut self.sequence, temperature, &noise);
            let ended = || run.end_of_text();
            if let Some(token) = step.map(|step| step.token).or_else(ended) {
                self.drafter.observe(&mut site, Seen::new(token, likely.as_deref()));
            }
        });
        run.stats_mut().draft_time = time;
        Ok(step)
    }

    /// A pass over what the model has not seen, with a draft behind it.
    fn pass<M: Model>(&mut self, model: &mut M, run: &mut Run) -> Result<(), DecodeError> {
        // All but the last token were verified, or are the prompt.
        let length = run.sequence().len();
        let seen = model.position().min(length - 1);
        model.truncate(seen).map_err(DecodeError::model)?;
        let pending = length - seen;
        // A prompt is long: a row for each of its tokens would cost more than a draft gains.
        self.counts = pending == 1;
        if self.counts {
            let mut time = run.stats().draft_time;
            timed(&mut time, || self.propose(model.context(), run));
            run.stats_mut().draft_time = time;
        }
        self.sequence.clear();
        self.sequence.extend_from_slice(&run.sequence()[seen..]);
        self.sequence.extend_from_slice(&self.draft.tokens);
        let sets = run.ahead(&self.draft.tokens);
        let start = Instant::now();
        let rows = self.forward(model, pending, sets.as_deref(), run)?;
        let took = start.elapsed();
        run.stats_mut().model_time += took;
        if self.counts {
            let tokens = 1 + self.draft.tokens.len();
            let wide = |sets: &[TokenSet]| sets.iter().take(tokens).filter(|set| Pass::is_wide(set)).count();
            let whole = sets.as_deref().map_or(tokens, wide);
            self.drafter.passed(Pass { tokens, whole }, took.as_secs_f64());
        }
        self.rows = Some(rows);
        self.next = 0;
        Ok(())
    }

    fn forward<M: Model>(
        &mut self,
        model: &mut M,
        pending: usize,
        sets: Option<&[TokenSet]>,
        run: &mut Run,
    ) -> Result<Logits, DecodeError> {
        run.stats_mut().passes += 1;
        if !self.draft.tokens.is_empty() {
            run.stats_mut().drafted += self.draft.tokens.len();
            match model.forward(&self.sequence, sets.map_or(Rows::All, Rows::Among)) {
                Ok(rows) => return Ok(rows),
                // What is wrong may be about a draft that the plain run would never see.
                Err(error) => tracing::debug!("a pass with a draft failed, and is made without: {error}"),
            }
            self.draft = Draft::default();
            run.stats_mut().passes += 1;
        }
        let rows = sets.map_or(Rows::Last, |sets| Rows::Among(&sets[..1]));
        model.forward(&self.sequence[..pending], rows).map_err(DecodeError::model)
    }

    /// Makes the draft of the next pass.
    fn propose(&mut self, context: usize, run: &Run) {
        let length = run.sequence().len();
        // The row behind the last token of a draft gives one more.
        let room = (context - length.min(context)).min(run.room().saturating_sub(1));
        self.sequence.clear();
        self.sequence.extend_from_slice(run.sequence());
        let noise = |position, token| run.sampler().noise(position, token);
        let temperature = run.sampler().sampling().temperature();
        let site = Site::new(run.constraint(), &mut self.sequence, temperature, &noise);
        let mut site = site.ahead(run.is_ahead());
        self.draft = self.drafter.draft(&mut site, room);
    }

    /// Accounts for the last pass.
    fn settle(&mut self) {
        if self.counts {
            self.drafter.verified(&self.draft, self.accepted, self.time.as_secs_f64());
        }
        self.draft = Draft::default();
        self.accepted = 0;
        self.counts = false;
        self.time = Duration::ZERO;
    }
}

/// Measures what passes cost that drafts may need: each twice, or once where passes are long. `ahead`: are masks known
/// before passes? The cache is empty then.
pub(super) fn calibrate<M: Model>(
    model: &mut M,
    drafter: &mut Drafter,
    token: TokenId,
    ahead: bool,
) -> Result<(), DecodeError> {
    /// Tokens in the cache meanwhile.
    const BEFORE: usize = 32;
    const LONG: Duration = Duration::from_millis(30);
    model.truncate(0).map_err(DecodeError::model)?;
    let before = BEFORE.min(model.context() / 2).max(1);
    model.forward(&vec![token; before], Rows::Last).map_err(DecodeError::model)?;
    let nothing = TokenSet::empty(model.vocabulary_size());
    for pass in drafter.unmeasured(ahead) {
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
        drafter.passed(pass, best.as_secs_f64());
    }
    model.truncate(0).map_err(DecodeError::model)
}

impl std::fmt::Debug for Speculation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Speculation")
            .field("draft", &self.draft)
            .field("accepted", &self.accepted)
            .finish_non_exhaustive()
    }
}
