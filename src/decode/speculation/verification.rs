//! Speculative verification of one run, apart from the model: prepares passes over drafts, and takes their
//! rows one by one for as long as the token drawn is the one drafted. Here the run meets its drafter, which
//! sees places of the text and the noise of its draws.
//!
//! A run goes through four phases, each a type whose methods consume it, so that calls in a wrong order do
//! not compile:
//!
//! ```text
//! Between -- offer --> Offer -- keep --> Ready -- made --> Rows -- take --> Phase: Rows again, or Between
//!    +---------------- prepare ------------^
//! ```
//!
//! Invariant: verification is lossless. A row is used only while all tokens that its pass has seen are tokens
//! of the run, and tokens are drawn from rows in the same way as without drafts. So the tokens are those of
//! the plain run, whatever a proposer guesses, if the model computes the same bits for a row in every pass;
//! domino's own runner does. Measured times decide how long drafts are, and never what is drawn.

use std::time::Duration;

use crate::decode::run::{PassRow, PassRows, Step, TextRun};
use crate::decode::{error::DecodeError, sampling::logprobs::likely_of, stats::timed};
use crate::proposer::{Draft, DraftBudget, Drafter, Offered, Pass, Proposal, Seen, Site};
use crate::{Constraint, clock::Instant, ids::TokenId, model::Rows as Wanted, vocab::TokenSet};

/// Phase between two passes: holds the last one, which is still to be accounted for.
pub(in crate::decode) struct Between {
    input: PassInput,
    account: Account,
    /// Size of a pass like the last one: with a draft as long, but without a prompt.
    usual: Pass,
    /// See [`first`](Self::first).
    first: Pass,
}

/// Phase with a draft on offer: its length in the next pass is still open.
pub(in crate::decode) struct Offer {
    input: PassInput,
    proposal: Option<Proposal>,
    counts: bool,
    first: Pass,
}

/// Phase in which the next pass is fixed.
pub(in crate::decode) struct Ready {
    input: PassInput,
    draft: Draft,
    counts: bool,
    /// The needed tokens of the rows, if they were [computed](Self::narrow) and not all are.
    sets: Option<Vec<TokenSet>>,
}

/// Phase after the pass: there is a row about the next token.
pub(in crate::decode) struct PassMade {
    /// The phase that follows if the other rows are dropped.
    between: Between,
    rows: PassRows,
}

/// The phase of a run after a token was taken.
pub(in crate::decode) enum Phase {
    /// The next token's row is still to be made.
    Between(Between),
    /// There is a row about the next token.
    Rows(PassMade),
}

/// The tokens of a pass. Its memory is reused from pass to pass.
#[derive(Default)]
struct PassInput {
    /// Tokens that the model has not seen, then the draft.
    tokens: Vec<TokenId>,
    /// Number of tokens that are not of the draft.
    pending: usize,
    /// Scratch: the sequence.
    sequence: Vec<TokenId>,
}

/// The account of a pass and its draft.
#[derive(Default)]
struct Account {
    draft: Draft,
    accepted: usize,
    /// Time since the pass began, without what the caller did between steps.
    time: Duration,
    /// Was the pass over one token and its draft, so that its time tells the gain of drafts? A prompt's does
    /// not.
    counts: bool,
}

impl Default for Between {
    fn default() -> Self {
        let (usual, first) = (Pass::whole(1), Pass::whole(1));
        Self { input: PassInput::default(), account: Account::default(), usual, first }
    }
}

impl Between {
    /// Settles the last pass and prepares the next one, over the tokens of the run after the first `seen`,
    /// with a draft behind them. `context` is the number of tokens that the model can hold.
    pub(super) fn prepare(
        self,
        drafter: &mut Drafter,
        run: &mut TextRun,
        seen: usize,
        context: usize,
    ) -> Ready {
        let (input, draft, counts) = self.begin(Some(drafter), run, seen, context, Drafter::draft);
        Ready::new(input, draft.unwrap_or_default(), counts, run)
    }

    /// Does the first half of [`prepare`](Self::prepare) if other runs share the pass, which is over `others`
    /// besides: the length of the draft is decided once all are offered.
    pub(in crate::decode) fn offer(
        self,
        drafter: Option<&mut Drafter>,
        run: &mut TextRun,
        seen: usize,
        context: usize,
        (others, worth): (Pass, &DraftBudget<'_>),
    ) -> Offer {
        let first = self.first;
        let (input, proposal, counts) = self.begin(drafter, run, seen, context, |drafter, site, room| {
            drafter.offer(site, room, others, worth)
        });
        Offer { input, proposal, counts, first }
    }

    /// Settles the last pass, and guesses for the next one, if there is something to guess for. Also returns
    /// whether the next pass counts.
    fn begin<T>(
        self,
        drafter: Option<&mut Drafter>,
        run: &mut TextRun,
        seen: usize,
        context: usize,
        propose: impl FnOnce(&mut Drafter, &mut Site<'_>, usize) -> T,
    ) -> (PassInput, Option<T>, bool) {
        let Self { mut input, account, .. } = self;
        input.begin(&run.sequence()[seen..]);
        // A prompt is long: a row for each of its tokens would cost more than a draft gains.
        let one = input.pending == 1;
        let mut proposed = None;
        if let Some(drafter) = drafter {
            account.settle(drafter);
            if !one {
                let mut time = Duration::ZERO;
                timed(&mut time, || drafter.read(run.sequence()));
                run.stats.draft_time += time;
            } else if drafter.is_resting() {
                drafter.skip();
            } else {
                let start = Instant::now();
                proposed =
                    Some(ask(run, context, &mut input.sequence, |site, room| propose(drafter, site, room)));
                run.stats.draft_time += start.elapsed();
            }
        }
        (input, proposed, one)
    }

    /// Accounts for the last pass, if another one will not follow soon.
    fn settle(self, drafter: &mut Drafter) -> Self {
        self.account.settle(drafter);
        Self { input: self.input, ..Self::default() }
    }

    /// Size of a pass like the last one: with a draft as long, but without a prompt.
    pub(in crate::decode) fn usual(&self) -> Pass {
        self.usual
    }

    /// Size of a pass without a draft, with a row as wide as the first one of the last pass.
    pub(in crate::decode) fn first(&self) -> Pass {
        self.first
    }
}

impl Offer {
    /// The offered tokens, which may still be cut; those of a draft of fixed length are not among them.
    pub(in crate::decode) fn tokens(&self) -> &[Offered] {
        self.proposal.as_ref().map(Proposal::offered).unwrap_or_default()
    }

    /// Size of the next pass without the offered tokens.
    pub(in crate::decode) fn plain(&self) -> Pass {
        let fixed = self.proposal.as_ref().map_or(0, Proposal::fixed);
        Pass { tokens: self.input.tokens.len(), ..self.first } + Pass::whole(fixed)
    }

    /// Keeps the first `kept` of the offered tokens; `gained` is the time in seconds that they should save,
    /// and `plain` the time of the shared pass without drafts. `drafter` is the one that offered.
    pub(in crate::decode) fn keep(
        self,
        drafter: Option<&mut Drafter>,
        run: &mut TextRun,
        (kept, gained): (usize, f64),
        plain: f64,
        worth: &DraftBudget<'_>,
    ) -> Ready {
        let Self { input, proposal, counts, .. } = self;
        let both = drafter.zip(proposal);
        let draft = both.map(|(drafter, proposal)| drafter.keep(proposal, kept, gained, plain, worth));
        let mut ready = Ready::new(input, draft.unwrap_or_default(), counts, run);
        ready.narrow(run);
        ready
    }
}

impl Ready {
    fn new(mut input: PassInput, draft: Draft, counts: bool, run: &mut TextRun) -> Self {
        run.stats.drafted += draft.tokens.len();
        input.tokens.extend_from_slice(&draft.tokens);
        Self { input, draft, counts, sets: None }
    }

    /// Makes the masks, so that the pass need not compute whole rows.
    pub(super) fn narrow(&mut self, run: &mut TextRun) {
        self.sets = run.ahead(&self.draft.tokens);
    }

    /// Makes the masks that will be applied to whole rows, so that they are ready by then.
    pub(super) fn masks(&self, run: &mut TextRun) -> Option<Vec<TokenSet>> {
        run.ahead(&self.draft.tokens)
    }

    /// The tokens of the pass.
    pub(in crate::decode) fn tokens(&self) -> &[TokenId] {
        &self.input.tokens
    }

    /// The rows that the pass should return.
    pub(in crate::decode) fn wanted(&self) -> Wanted<'_> {
        match &self.sets {
            Some(sets) => Wanted::Among(sets),
            None if self.draft.tokens.is_empty() => Wanted::Last,
            None => Wanted::All,
        }
    }

    /// Size of the pass.
    pub(in crate::decode) fn size(&self) -> Pass {
        let wide = |sets: &Vec<TokenSet>| sets.iter().filter(|set| Pass::is_wide(set)).count();
        let rows = 1 + self.draft.tokens.len();
        Pass { tokens: self.input.tokens.len(), whole: self.sets.as_ref().map_or(rows, wide) }
    }

    /// Size of the pass, with a prompt counted as a token.
    pub(in crate::decode) fn usual(&self) -> Pass {
        if self.counts { self.size() } else { Pass::whole(1) }
    }

    /// Size of the pass without a draft and a prompt.
    pub(in crate::decode) fn first(&self) -> Pass {
        let wide = self.sets.as_ref().is_none_or(|sets| sets.first().is_none_or(Pass::is_wide));
        Pass { tokens: 1, whole: usize::from(wide) }
    }

    /// Is the pass over more than one token that was there already, as of a prompt?
    pub(in crate::decode) fn has_read_prompt(&self) -> bool {
        self.input.pending > 1
    }

    /// Does the time of the pass tell the cost of drafts?
    pub(in crate::decode) fn counts(&self) -> bool {
        self.counts
    }

    /// Is there a draft that can be left out?
    pub(in crate::decode) fn has_draft(&self) -> bool {
        !self.draft.tokens.is_empty()
    }

    /// Drops the draft: an error of a pass may be about tokens that the plain run would never see.
    pub(in crate::decode) fn drop_draft(&mut self) {
        self.input.tokens.truncate(self.input.pending);
        self.draft = Draft::default();
        if let Some(sets) = &mut self.sets {
            sets.truncate(1);
        }
    }

    /// Records that the pass was made, and its time.
    pub(in crate::decode) fn made(self, rows: PassRows, run: &mut TextRun, took: Duration) -> PassMade {
        run.stats.passes += 1;
        run.stats.model_time += took;
        let (usual, first) = (self.usual(), self.first());
        let account = Account { draft: self.draft, counts: self.counts, ..Account::default() };
        PassMade { between: Between { input: self.input, account, usual, first }, rows }
    }
}

impl PassMade {
    /// Adds further time to the pass.
    pub(in crate::decode) fn spend(&mut self, time: Duration) {
        self.between.account.time += time;
    }

    /// Takes the next token from its row. Another row follows only if the token is the drafted one.
    pub(in crate::decode) fn take(
        mut self,
        drafter: Option<&mut Drafter>,
        run: &mut TextRun,
    ) -> (Result<Option<Step>, DecodeError>, Phase) {
        let Between { input, account, .. } = &mut self.between;
        let accepted = account.accepted;
        let row = self.rows.row(accepted);
        let step = match drafter {
            Some(drafter) if drafter.learns() => observed(drafter, run, row, &mut input.sequence),
            _ => row.take(run),
        };
        let token = step.as_ref().ok().copied().flatten().map(|step| step.token);
        if token.is_some() && token.as_ref() == account.draft.tokens.get(accepted) {
            account.accepted += 1;
            run.stats.accepted += 1;
            (step, Phase::Rows(self))
        } else {
            (step, Phase::Between(self.between))
        }
    }
}

impl Phase {
    /// Adds further time to the last pass.
    pub(super) fn spend(&mut self, time: Duration) {
        let (Self::Between(between) | Self::Rows(PassMade { between, .. })) = self;
        between.account.time += time;
    }

    /// Accounts for the last pass of a run that has ended, whatever rows are left.
    pub(super) fn settle(self, drafter: &mut Drafter) -> Between {
        let (Self::Between(between) | Self::Rows(PassMade { between, .. })) = self;
        between.settle(drafter)
    }

    /// The draft of the last pass, with refused tokens.
    pub(super) fn drafted(&self) -> &[TokenId] {
        let (Self::Between(Between { input, .. })
        | Self::Rows(PassMade { between: Between { input, .. }, .. })) = self;
        input.tokens.get(input.pending..).unwrap_or_default()
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self::Between(Between::default())
    }
}

impl PassInput {
    fn begin(&mut self, pending: &[TokenId]) {
        self.tokens.clear();
        self.tokens.extend_from_slice(pending);
        self.pending = pending.len();
    }
}

impl Account {
    /// Tells the drafter the outcome of its draft.
    fn settle(self, drafter: &mut Drafter) {
        if self.counts {
            drafter.verified(&self.draft, self.accepted, self.time.as_secs_f64());
        }
    }
}

/// Calls `propose` with the run's present place and the number of tokens that a draft may have there. Drafts
/// end at the run's limit of tokens, and at `context`, the number of tokens that the model can hold.
/// `sequence` is scratch.
pub(super) fn ask<T>(
    run: &TextRun,
    context: usize,
    sequence: &mut Vec<TokenId>,
    propose: impl FnOnce(&mut Site<'_>, usize) -> T,
) -> T {
    let length = run.sequence().len();
    // The row behind the last token of a draft gives one more.
    let room = (context - length.min(context)).min(run.room().saturating_sub(1));
    sequence.clear();
    sequence.extend_from_slice(run.sequence());
    let noise = |position, token| run.chooser.sampler.noise(position, token);
    let draw = |row: &[f32], tokens: &[TokenId], allowed: Option<&TokenSet>| {
        run.chooser.foresee(row, tokens, allowed)
    };
    let temperature = run.chooser.sampler.sampling().temperature();
    let site = Site::new(run.constraint(), sequence, temperature, &noise);
    let mut site = site.ahead(run.is_ahead()).drawing(&draw);
    propose(&mut site, room)
}

/// Takes the next token and shows it to the proposer.
pub(super) fn observed(
    drafter: &mut Drafter,
    run: &mut TextRun,
    row: PassRow<'_>,
    sequence: &mut Vec<TokenId>,
) -> Result<Option<Step>, DecodeError> {
    let before = run.constraint().map(Constraint::fork);
    let length = run.sequence().len();
    // Where there is no mask to be had, the run may need none: only the proposer goes without.
    let (row, likely) = match row.listed() {
        _ if !drafter.wants_likely() => (row, None),
        Some(near) => (row, Some(likely_of(near))),
        None => {
            let row = row.bring(run)?;
            let likely = match &row {
                PassRow::Here(row) => run.likely(row).ok(),
                PassRow::There(_) => None,
            };
            (row, likely)
        }
    };
    let step = row.take(run)?;
    let mut time = Duration::ZERO;
    timed(&mut time, || {
        sequence.clear();
        sequence.extend_from_slice(&run.sequence()[..length]);
        let noise = |position, token| run.chooser.sampler.noise(position, token);
        let temperature = run.chooser.sampler.sampling().temperature();
        let mut site = Site::new(before.as_ref(), sequence, temperature, &noise);
        let ended = || run.end_of_text();
        if let Some(token) = step.map(|step| step.token).or_else(ended) {
            drafter.observe(&mut site, Seen::new(token, likely.as_deref()));
        }
    });
    run.stats.draft_time += time;
    Ok(step)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        decode::{DecodeOptions, sampling::choice::possible},
        model::Logits,
        proposer::{DraftLength, Lookup},
        vocab::Vocabulary,
    };

    /// Tests the account by the pace of a drafter: four passes of a second each, and those recorded.
    #[test]
    fn the_time_of_a_pass_is_all_that_was_spent_on_it() {
        let builder = Vocabulary::builder().token(TokenId::new(0), "a");
        let vocabulary = builder.end_of_text(TokenId::new(1)).build().unwrap();
        let all = Arc::new(possible(&vocabulary));
        let mut run = TextRun::new(&[TokenId::new(0)], vocabulary, all, None, &DecodeOptions::default());
        let mut drafter = Drafter::new(Box::new(Lookup::default()), DraftLength::Auto);
        let rows = || PassRows::Here(Logits::new(vec![0.0; 2], 2));
        let ready = Between::default().prepare(&mut drafter, &mut run, 0, 8);
        let mut phase = Phase::Rows(ready.made(rows(), &mut run, Duration::ZERO));
        phase.spend(Duration::from_secs(2));
        phase.spend(Duration::from_secs(3));
        let between = phase.settle(&mut drafter);
        assert!((drafter.pace() - 5.0 / 9.0).abs() < 1e-12, "{}", drafter.pace());
        // The next pass begins at nothing.
        let ready = between.prepare(&mut drafter, &mut run, 0, 8);
        Phase::Rows(ready.made(rows(), &mut run, Duration::ZERO)).settle(&mut drafter);
        let expected = (0.98 + 1.0 + 4.0) / (0.98 * 5.0 + 4.0);
        assert!((drafter.pace() - expected).abs() < 1e-12, "{}", drafter.pace());
    }
}
