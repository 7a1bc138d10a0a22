//! A draft and the rows of its pass, apart from the model: what a pass should be over, and its rows taken one by one for
//! as long as what is drawn is what was drafted.
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
    constraint::Constraint,
    ids::TokenId,
    model::{Logits, Rows},
    proposer::{Draft, Drafter, Offered, Pass, Seen, Site, Worth},
    vocab::TokenSet,
};

/// What a run's passes are over, and where it is in the rows of the last one.
#[derive(Default)]
pub(super) struct Verification {
    /// The rows of the last pass, as far as they can be of use.
    rows: Option<Logits>,
    /// The row about the next token.
    next: usize,
    draft: Draft,
    /// Is it yet to be said how much of the draft is kept?
    offered: bool,
    accepted: usize,
    /// Was the last pass over one token and its draft, so that its time says what drafts gain? A prompt's does not.
    counts: bool,
    /// Time since the last pass began, without what the caller did between steps.
    time: Duration,
    /// What the last pass was over, or the next one is: tokens that the model has not seen, then the draft.
    tokens: Vec<TokenId>,
    /// How many of them are not of the draft.
    pending: usize,
    /// What counts of its rows, if not all does.
    sets: Option<Vec<TokenSet>>,
    /// Scratch: the sequence.
    sequence: Vec<TokenId>,
}

impl Verification {
    /// Is the next token's row yet to be made?
    pub(super) fn needs_pass(&self) -> bool {
        self.rows.is_none()
    }

    /// Settles the last pass and prepares the next one, over what a model that holds `seen` tokens of the run has not seen,
    /// with a draft behind it. `context`: tokens that the model can hold.
    pub(super) fn prepare(&mut self, drafter: &mut Drafter, run: &mut Run, seen: usize, context: usize) {
        self.begin(Some(&mut *drafter), run, seen, context, Drafter::draft);
        self.offered = false;
        self.ready(run);
    }

    /// The beginning of [`prepare`](Self::prepare) where other runs share the pass, which is over `others` beside: the
    /// draft is only [offered](Self::offered), and the pass is not there before it [is kept](Self::keep).
    pub(super) fn offer(
        &mut self,
        drafter: Option<&mut Drafter>,
        run: &mut Run,
        seen: usize,
        context: usize,
        (others, worth): (Pass, &Worth<'_>),
    ) {
        self.begin(drafter, run, seen, context, |drafter, site, room| {
            drafter.offer(site, room, others, worth)
        });
    }

    /// The tokens that were offered, of which only some may be worth it; those of a draft of fixed length are not among them.
    pub(super) fn offered<'a>(&self, drafter: Option<&'a Drafter>) -> &'a [Offered] {
        drafter.filter(|_| self.offered).map(Drafter::offered).unwrap_or_default()
    }

    /// Keeps so many of the tokens that were offered, which should gain so many seconds. `plain`: seconds of the shared pass
    /// without drafts.
    pub(super) fn keep(
        &mut self,
        drafter: Option<&mut Drafter>,
        (kept, gained): (usize, f64),
        plain: f64,
        worth: &Worth<'_>,
    ) {
        if let Some(drafter) = drafter.filter(|_| std::mem::take(&mut self.offered)) {
            drafter.keep(&mut self.draft, kept, gained, plain, worth);
        }
    }

    /// Makes the pass of what there is.
    pub(super) fn ready(&mut self, run: &mut Run) {
        run.stats_mut().drafted += self.draft.tokens.len();
        self.tokens.extend_from_slice(&self.draft.tokens);
        self.sets = run.ahead(&self.draft.tokens);
    }

    /// Settles the last pass, and guesses for the next one.
    fn begin(
        &mut self,
        drafter: Option<&mut Drafter>,
        run: &mut Run,
        seen: usize,
        context: usize,
        propose: impl FnOnce(&mut Drafter, &mut Site<'_>, usize) -> Draft,
    ) {
        let pending = &run.sequence()[seen..];
        self.tokens.clear();
        self.tokens.extend_from_slice(pending);
        self.pending = pending.len();
        // A prompt is long: a row for each of its tokens would cost more than a draft gains.
        let one = pending.len() == 1;
        self.offered = false;
        if let Some(drafter) = drafter {
            self.settle(drafter);
            if !one {
                let mut time = Duration::ZERO;
                timed(&mut time, || drafter.read(run.sequence()));
                run.stats_mut().draft_time += time;
            } else if drafter.is_resting() {
                drafter.skip();
            } else {
                let start = Instant::now();
                self.propose(drafter, context, run, propose);
                let took = start.elapsed();
                drafter.guessed(took.as_secs_f64());
                run.stats_mut().draft_time += took;
            }
        }
        self.counts = one;
    }

    /// What the next pass is over.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The draft of that pass, what was refused of it included.
    pub(super) fn drafted(&self) -> &[TokenId] {
        self.tokens.get(self.pending..).unwrap_or_default()
    }

    /// The rows it should give.
    pub(super) fn wanted(&self) -> Rows<'_> {
        match &self.sets {
            Some(sets) => Rows::Among(sets),
            None if self.draft.tokens.is_empty() => Rows::Last,
            None => Rows::All,
        }
    }

    /// How much work that is.
    pub(super) fn size(&self) -> Pass {
        let wide = |sets: &Vec<TokenSet>| sets.iter().filter(|set| Pass::is_wide(set)).count();
        let rows = 1 + self.draft.tokens.len();
        Pass { tokens: self.tokens.len(), whole: self.sets.as_ref().map_or(rows, wide) }
    }

    /// How much work a pass like the last one would be: with a draft as long, but not with a prompt.
    pub(super) fn usual(&self) -> Pass {
        if self.counts { self.size() } else { Pass::whole(1) }
    }

    /// How much a pass without a draft would be, its row taken to be as wide as the last pass' first one.
    pub(super) fn first(&self) -> Pass {
        let wide = self.sets.as_ref().is_none_or(|sets| sets.first().is_none_or(Pass::is_wide));
        Pass { tokens: 1, whole: usize::from(wide) }
    }

    /// How much the next pass is without what was offered.
    pub(super) fn plain(&self, offered: &[Offered]) -> Pass {
        let drafted = self.draft.tokens.len().saturating_sub(offered.len());
        Pass { tokens: self.tokens.len(), ..self.first() } + Pass::whole(drafted)
    }

    /// Does the time of its pass say what drafts cost?
    pub(super) fn counts(&self) -> bool {
        self.counts
    }

    /// Is there a draft that can be left out?
    pub(super) fn has_draft(&self) -> bool {
        !self.draft.tokens.is_empty()
    }

    /// Leaves the draft out: what is wrong with a pass may be about tokens that the plain run would never see.
    pub(super) fn drop_draft(&mut self) {
        self.tokens.truncate(self.tokens.len() - self.draft.tokens.len());
        self.draft = Draft::default();
        if let Some(sets) = &mut self.sets {
            sets.truncate(1);
        }
    }

    /// Notes that the pass was made.
    pub(super) fn made(&mut self, rows: Logits, run: &mut Run, took: Duration) {
        run.stats_mut().passes += 1;
        run.stats_mut().model_time += took;
        self.rows = Some(rows);
        self.next = 0;
    }

    /// Notes that what belongs to the last pass took so much longer.
    pub(super) fn spend(&mut self, time: Duration) {
        self.time += time;
    }

    /// Takes the next token from its row; after that another row is there only if the token is the drafted one.
    pub(super) fn take(
        &mut self,
        drafter: Option<&mut Drafter>,
        run: &mut Run,
    ) -> Result<Option<Step>, DecodeError> {
        let row = self.rows.as_ref().and_then(|rows| rows.row(self.next)).unwrap_or_default();
        let step = match drafter {
            Some(drafter) if drafter.learns() => observed(drafter, run, row, &mut self.sequence)?,
            _ => run.take(row)?,
        };
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

    /// Makes the draft of the next pass.
    fn propose(
        &mut self,
        drafter: &mut Drafter,
        context: usize,
        run: &Run,
        propose: impl FnOnce(&mut Drafter, &mut Site<'_>, usize) -> Draft,
    ) {
        let length = run.sequence().len();
        // The row behind the last token of a draft gives one more.
        let room = (context - length.min(context)).min(run.room().saturating_sub(1));
        self.sequence.clear();
        self.sequence.extend_from_slice(run.sequence());
        let noise = |position, token| run.sampler().noise(position, token);
        let draw =
            |row: &[f32], tokens: &[TokenId], allowed: Option<&TokenSet>| run.foresee(row, tokens, allowed);
        let temperature = run.sampler().sampling().temperature();
        let site = Site::new(run.constraint(), &mut self.sequence, temperature, &noise);
        let mut site = site.ahead(run.is_ahead()).drawing(&draw);
        self.draft = propose(drafter, &mut site, room);
        self.offered = true;
    }

    /// Accounts for the last pass.
    pub(super) fn settle(&mut self, drafter: &mut Drafter) {
        if self.counts {
            drafter.verified(&self.draft, self.accepted, self.time.as_secs_f64());
        }
        self.draft = Draft::default();
        self.accepted = 0;
        self.counts = false;
        self.time = Duration::ZERO;
    }
}

/// Takes the next token and shows it to the proposer.
fn observed(
    drafter: &mut Drafter,
    run: &mut Run,
    row: &[f32],
    sequence: &mut Vec<TokenId>,
) -> Result<Option<Step>, DecodeError> {
    let start = Instant::now();
    let before = run.constraint().map(Constraint::fork);
    let length = run.sequence().len();
    // Where there is no mask to be had, the run may need none: only the proposer goes without.
    let likely = if drafter.wants_likely() { run.likely(row).ok() } else { None };
    let looked = start.elapsed();
    let step = run.take(row)?;
    let mut time = Duration::ZERO;
    timed(&mut time, || {
        sequence.clear();
        sequence.extend_from_slice(&run.sequence()[..length]);
        let noise = |position, token| run.sampler().noise(position, token);
        let temperature = run.sampler().sampling().temperature();
        let mut site = Site::new(before.as_ref(), sequence, temperature, &noise);
        let ended = || run.end_of_text();
        if let Some(token) = step.map(|step| step.token).or_else(ended) {
            drafter.observe(&mut site, Seen::new(token, likely.as_deref()));
        }
    });
    run.stats_mut().draft_time += time;
    drafter.learnt((looked + time).as_secs_f64());
    Ok(step)
}

impl std::fmt::Debug for Verification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verification")
            .field("draft", &self.draft)
            .field("accepted", &self.accepted)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        decode::{DecodeOptions, choice::possible},
        proposer::{DraftLength, Lookup},
        vocab::Vocabulary,
    };

    /// By the pace of a drafter, which is that of four passes of a second each and of those noted.
    #[test]
    fn a_pass_takes_all_that_was_spent_on_it() {
        let builder = Vocabulary::builder().token(TokenId::new(0), "a");
        let vocabulary = builder.end_of_text(TokenId::new(1)).build().unwrap();
        let all = Arc::new(possible(&vocabulary));
        let mut run = Run::new(&[TokenId::new(0)], vocabulary, all, None, &DecodeOptions::default());
        let mut drafter = Drafter::new(Box::new(Lookup::default()), DraftLength::Auto);
        let mut verification = Verification::default();
        verification.prepare(&mut drafter, &mut run, 0, 8);
        verification.spend(Duration::from_secs(2));
        verification.spend(Duration::from_secs(3));
        verification.settle(&mut drafter);
        assert!((drafter.pace() - 5.0 / 9.0).abs() < 1e-12, "{}", drafter.pace());
        // The next pass begins at nothing.
        verification.prepare(&mut drafter, &mut run, 0, 8);
        verification.settle(&mut drafter);
        let expected = (0.98 + 1.0 + 4.0) / (0.98 * 5.0 + 4.0);
        assert!((drafter.pace() - expected).abs() < 1e-12, "{}", drafter.pace());
    }
}
