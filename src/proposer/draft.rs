//! Drafts: the guesses of a proposer, one after the other, as long as the planner expects them to pay.

use std::num::NonZeroUsize;

use super::planner::{Allocation, DraftBudget, DraftPlanner, Offered, Pass, PassCost};
use super::propose::{Guess, Propose, Seen, Site};
use crate::ids::TokenId;

/// The length of drafts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum DraftLength {
    /// Drafts are as long as pays.
    #[default]
    Auto,
    /// Up to this many tokens, each a guess of at least this acceptance; the cost of passes does not count.
    UpTo(Fixed),
}

/// A valid length and threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fixed {
    tokens: usize,
    threshold: f64,
}

/// An invalid draft length.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftLengthError {
    /// No tokens, or more than the bound.
    #[error("the length of drafts is {0}; it must be between 1 and {most}", most = DraftLength::MOST)]
    Tokens(usize),
    /// A threshold that is not a probability.
    #[error("the threshold of drafts is {0}; it must be between 0 and 1")]
    Threshold(f64),
}

impl DraftLength {
    /// Greatest number of tokens in a draft.
    pub const MOST: usize = 64;

    /// Sets a length of up to `tokens` tokens of at least this acceptance.
    ///
    /// # Errors
    /// If `tokens` is 0 or more than [`MOST`](Self::MOST), or the threshold is not between 0 and 1.
    pub fn up_to(tokens: usize, threshold: f64) -> Result<Self, DraftLengthError> {
        if !(1..=Self::MOST).contains(&tokens) {
            return Err(DraftLengthError::Tokens(tokens));
        }
        if !(0.0..=1.0).contains(&threshold) {
            return Err(DraftLengthError::Threshold(threshold));
        }
        Ok(Self::UpTo(Fixed { tokens, threshold }))
    }

    /// Sets another least acceptance, which only drafts of a fixed length have.
    ///
    /// # Errors
    /// If the threshold is not between 0 and 1.
    pub fn at_least(self, threshold: f64) -> Result<Self, DraftLengthError> {
        match self {
            Self::Auto => Ok(Self::Auto),
            Self::UpTo(Fixed { tokens, .. }) => Self::up_to(tokens, threshold),
        }
    }
}

/// Tokens to be verified, each allowed after those before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// For each token, the probability that it is accepted if all before it are.
    pub acceptance: Vec<f64>,
}

/// Makes drafts from the guesses of a proposer, and keeps account of their cost and gain.
#[derive(Debug)]
pub struct Drafter {
    proposer: Box<dyn Propose>,
    length: DraftLength,
    planner: DraftPlanner,
}

/// A draft that may still be shortened, as long as it is not [kept](Drafter::keep).
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Proposal {
    draft: Draft,
    /// The value of each token of the draft; empty if its length is fixed.
    offered: Vec<Offered>,
    /// The text's part of the pass without a draft.
    first: Pass,
}

impl Proposal {
    /// The tokens that may be cut off: none if the draft is of a fixed length.
    pub(crate) fn offered(&self) -> &[Offered] {
        &self.offered
    }

    /// Number of tokens that must stay.
    pub(crate) fn fixed(&self) -> usize {
        self.draft.tokens.len() - self.offered.len()
    }
}

impl Drafter {
    /// Drafts the guesses of `proposer`.
    #[must_use]
    pub fn new(proposer: Box<dyn Propose>, length: DraftLength) -> Self {
        Self { proposer, length, planner: DraftPlanner::default() }
    }

    /// Sets the expected cost of passes until measurements replace it, for instance from an earlier run with
    /// the same model.
    #[must_use]
    pub fn cost(mut self, cost: PassCost) -> Self {
        self.planner.cost = cost;
        self
    }

    /// Sets that passes take up to `tokens` tokens at the cost of one; see [`PassCost::set_at_once`]. A
    /// decoder sets what its model says.
    pub fn set_at_once(&mut self, tokens: NonZeroUsize) {
        self.planner.cost.set_at_once(tokens);
    }

    /// The cost of passes.
    #[must_use]
    pub fn pass_cost(&self) -> &PassCost {
        &self.planner.cost
    }

    /// Lists passes that are worth a measurement, in this order: none if costs do not count. `ahead` says
    /// whether masks are known before passes, so that some rows are not needed whole.
    #[must_use]
    pub fn unmeasured(&self, ahead: bool) -> Vec<Pass> {
        match self.length {
            DraftLength::Auto => self.planner.cost.unmeasured(ahead),
            DraftLength::UpTo(_) => Vec::new(),
        }
    }

    /// Records the measured time of a pass, in seconds.
    pub fn passed(&mut self, pass: Pass, seconds: f64) {
        self.planner.passed(pass, seconds);
    }

    /// Lets the proposer read the whole sequence so far, of which several tokens are new: a prompt. Nothing
    /// is guessed for the next pass.
    pub fn read(&mut self, tokens: &[TokenId]) {
        self.proposer.read(tokens);
    }

    /// Makes a draft for `site` of at most `room` tokens. Costs the proposer's time for each token.
    pub fn draft(&mut self, site: &mut Site<'_>, room: usize) -> Draft {
        let cost = std::mem::take(&mut self.planner.cost);
        let draft = self.draft_at(site, room, &cost);
        self.planner.cost = cost;
        draft
    }

    /// Makes a draft like [`draft`](Self::draft), by costs that are measured elsewhere, for several drafters
    /// of one model.
    pub fn draft_at(&mut self, site: &mut Site<'_>, room: usize, cost: &PassCost) -> Draft {
        if self.is_resting() {
            self.skip();
            return Draft::default();
        }
        let pace = self.planner.pace(cost.seconds(Pass::whole(1)));
        let worth = DraftBudget { cost, pace, sequences: 1, at_once: 1 };
        let proposal = self.offer(site, room, Pass::default(), &worth);
        let first = proposal.first;
        let Allocation { kept, gains } = worth.cut(first, &[proposal.offered()]);
        self.keep(proposal, kept[0], gains[0], cost.seconds(first), &worth)
    }

    /// Offers a draft for `site` in a pass that is over `others` besides, of up to `room` tokens;
    /// [`keep`](Self::keep) sets its final length. Not while it [rests](Self::is_resting).
    pub(crate) fn offer(
        &mut self,
        site: &mut Site<'_>,
        room: usize,
        others: Pass,
        worth: &DraftBudget<'_>,
    ) -> Proposal {
        let first = Pass { tokens: 1, whole: usize::from(site.is_wide()) };
        let (draft, offered) = match self.length {
            DraftLength::UpTo(Fixed { tokens, threshold }) => {
                (self.up_to(site, room.min(tokens), threshold), Vec::new())
            }
            DraftLength::Auto => self.paying(site, room.min(DraftLength::MOST), first + others, worth),
        };
        Proposal { draft, offered, first }
    }

    /// Is drafting paused for the next pass, as it has not paid lately?
    pub(crate) fn is_resting(&self) -> bool {
        self.planner.is_resting()
    }

    /// Records a pass without guesses, while it [rests](Self::is_resting).
    pub(crate) fn skip(&mut self) {
        self.planner.skip();
    }

    /// Keeps the first `kept` offered tokens; `gained` is the time in seconds that they should save, and
    /// `plain` that of the pass without drafts. A draft of fixed length stays as it is.
    pub(crate) fn keep(
        &mut self,
        proposal: Proposal,
        kept: usize,
        gained: f64,
        plain: f64,
        worth: &DraftBudget<'_>,
    ) -> Draft {
        let Proposal { mut draft, .. } = proposal;
        if self.length == DraftLength::Auto {
            draft.tokens.truncate(kept);
            draft.acceptance.truncate(kept);
            self.planner.kept(gained, plain, worth);
        }
        draft
    }

    /// Makes a draft of at most `room` tokens, each accepted with at least the `threshold` as probability.
    fn up_to(&mut self, site: &mut Site<'_>, room: usize, threshold: f64) -> Draft {
        let mut draft = Draft::default();
        while draft.tokens.len() < room {
            let Some(guess) = self.guess(site).filter(|guess| guess.acceptance >= threshold) else { break };
            if !site.push(guess.token) {
                break;
            }
            draft.tokens.push(guess.token);
            draft.acceptance.push(guess.acceptance);
        }
        draft
    }

    /// Makes a draft that goes on as long as it could still become better in such a pass.
    fn paying(
        &mut self,
        site: &mut Site<'_>,
        room: usize,
        pass: Pass,
        worth: &DraftBudget<'_>,
    ) -> (Draft, Vec<Offered>) {
        let mut draft = Draft::default();
        let mut growth = self.planner.growth(pass, worth);
        while growth.goes_on(room - draft.tokens.len()) {
            site.set_worth(Some(growth.seconds()));
            let Some(guess) = self.guess(site) else { break };
            if !growth.reaches(guess.acceptance * self.planner.correction()) || !site.push(guess.token) {
                break;
            }
            growth.push(site.is_wide());
            draft.tokens.push(guess.token);
            draft.acceptance.push(guess.acceptance);
        }
        (draft, growth.offered)
    }

    /// Returns the proposer's guess, with an acceptance clamped to a probability.
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let Guess { token, acceptance } = self.proposer.guess(site)?;
        let acceptance = if acceptance.is_nan() { 0.0 } else { acceptance.clamp(0.0, 1.0) };
        Some(Guess { token, acceptance })
    }

    /// Returns the tokens a second of recent passes; at first those of a run without drafts.
    #[must_use]
    pub fn pace(&self) -> f64 {
        self.planner.pace(self.planner.cost.seconds(Pass::whole(1)))
    }

    /// Records the outcome of a draft: how many of its tokens were accepted, and the seconds of the pass with
    /// all that belongs to it. If the pass [was recorded](Self::passed), the fitted cost of such passes
    /// replaces the seconds: the expected gain of a draft is compared with it, and neither should depend on a
    /// disturbed pass.
    pub fn verified(&mut self, draft: &Draft, accepted: usize, seconds: f64) {
        self.planner.verified(draft, accepted, seconds);
    }

    /// Does the proposer want to see what came? Not while it rests, if it may miss tokens.
    #[must_use]
    pub fn learns(&self) -> bool {
        self.proposer.learns() && !(self.is_resting() && self.proposer.may_miss())
    }

    /// Does the proposer want to see the model's probabilities?
    #[must_use]
    pub fn wants_likely(&self) -> bool {
        self.proposer.wants_likely()
    }

    /// Does the proposer draft other texts as well?
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.proposer.is_shared()
    }

    /// Shows the proposer the token that came at a site.
    pub fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        self.proposer.observe(site, seen);
    }
}
