//! The draft controller: how long drafts should be, by the cost of passes and the gain of drafts so far.
//!
//! A pass over n tokens costs less than n passes, but more than one. With the measured cost curve and the
//! estimated acceptance of each guess, a draft continues while the tokens it gains are worth more than the
//! time it costs, at the present pace of the run. If nothing pays there is no draft, and the run is the plain
//! one; and while nothing pays, guessing and learning pause (exponential back-off). The time of a guess does
//! not count: a proposer that takes long weighs its own time, by [`Site::worth`](super::Site::worth).
//!
//! Each part was measured beside the whole without it (`experiments/records/2026-11-25-ablation`).

mod backoff;
mod budget;
mod cost;
mod pass;

pub(crate) use budget::{Allocation, DraftBudget, Offered, Speedup};
pub use pass::{Pass, PassCost};

use std::num::NonZeroUsize;

use super::draft::Draft;
use crate::ids::as_f64;
use backoff::DraftBackoff;

/// The controller of one drafter, with its account of passes and drafts.
#[derive(Debug, Default)]
pub(super) struct DraftPlanner {
    cost: PassCost,
    account: Account,
    /// The pass recorded last, if it is not accounted for.
    passed: Option<Pass>,
    rest: DraftBackoff,
}

/// A draft that grows as long as it could become better.
#[derive(Debug)]
pub(super) struct GrowingDraft<'a> {
    worth: &'a DraftBudget<'a>,
    /// The pass, with the draft included.
    pass: Pass,
    /// Probability that all of it is right.
    reached: f64,
    /// Net value of the draft in tokens, now and at its best.
    now: f64,
    most: f64,
    offered: Vec<Offered>,
}

/// Exponentially decaying sums over the last passes.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    tokens: f64,
    seconds: f64,
    /// Numbers of draft tokens that were right, and that should have been by their acceptance.
    right: f64,
    expected: f64,
}

impl DraftPlanner {
    /// Sets the expected cost of passes.
    pub(super) fn set_cost(&mut self, cost: PassCost) {
        self.cost = cost;
    }

    /// Sets that passes take so many tokens at the cost of one.
    pub(super) fn set_at_once(&mut self, tokens: NonZeroUsize) {
        self.cost.set_at_once(tokens);
    }

    /// The cost of passes.
    pub(super) fn cost(&self) -> &PassCost {
        &self.cost
    }

    /// Takes the cost of passes, to be [set](Self::set_cost) again.
    pub(super) fn take_cost(&mut self) -> PassCost {
        std::mem::take(&mut self.cost)
    }

    /// Records the measured time of a pass, in seconds.
    pub(super) fn passed(&mut self, pass: Pass, seconds: f64) {
        self.passed = Some(pass);
        self.cost.observe(pass, seconds);
    }

    /// Is drafting paused for the next pass, as it has not paid lately?
    pub(super) fn is_resting(&self) -> bool {
        self.rest.is_resting()
    }

    /// Records a pass without guesses, while it [rests](Self::is_resting).
    pub(super) fn skip(&mut self) {
        self.rest.pass();
    }

    /// Creates the empty draft of a pass that is over `pass` without it.
    pub(super) fn growth<'a>(&self, pass: Pass, worth: &'a DraftBudget<'a>) -> GrowingDraft<'a> {
        GrowingDraft { worth, pass, reached: 1.0, now: 0.0, most: 0.0, offered: Vec::new() }
    }

    /// Returns the factor by which acceptance is estimated too low or too high.
    pub(super) fn correction(&self) -> f64 {
        self.account.correction()
    }

    /// Records the expected gain of the kept part of a draft, and `plain`, the time of the pass without
    /// drafts; both in seconds. [`DraftBackoff`] compares the two.
    pub(super) fn kept(&mut self, gained: f64, plain: f64, worth: &DraftBudget<'_>) {
        self.rest.note(gained, plain / as_f64(worth.sequences));
    }

    /// Returns the tokens a second of recent passes, if one without a draft takes `pass` seconds; at first
    /// those of a run without drafts.
    pub(super) fn pace(&self, pass: f64) -> f64 {
        /// Number of passes of one token that count as prior observations.
        const WEIGHT: f64 = 4.0;
        let Account { tokens, seconds, .. } = self.account;
        (tokens + WEIGHT) / (seconds + WEIGHT * pass)
    }

    /// Records the outcome of a draft. If its pass was [recorded](Self::passed), the fitted cost of such
    /// passes replaces the seconds: the expected gain of a draft is compared with it, and neither should
    /// depend on a disturbed pass.
    pub(super) fn verified(&mut self, draft: &Draft, accepted: usize, seconds: f64) {
        let seconds = self.passed.take().map_or(seconds, |pass| self.cost.seconds(pass));
        self.account.add(draft, accepted, seconds);
    }
}

impl GrowingDraft<'_> {
    /// Probability of being reached below which a token is not worth a guess.
    const LEAST: f64 = 0.03;

    /// Can the draft still become better by up to `room` further tokens?
    pub(super) fn goes_on(&self, room: usize) -> bool {
        self.worth.could_gain(self.pass, self.reached, self.most - self.now, room)
    }

    /// Returns the seconds that a surely right guess would be worth.
    pub(super) fn seconds(&self) -> f64 {
        self.reached / self.worth.pace * as_f64(self.worth.at_once)
    }

    /// Is a token of this acceptance likely enough to be reached? If so it must be [pushed](Self::push).
    pub(super) fn reaches(&mut self, acceptance: f64) -> bool {
        self.reached *= acceptance.min(1.0);
        self.reached >= Self::LEAST
    }

    /// Adds the token; `wide` says whether the row behind it is needed whole.
    pub(super) fn push(&mut self, wide: bool) {
        let offered = Offered { reached: self.reached, wide };
        self.now += self.reached - self.worth.price(self.pass, offered.pass());
        self.pass = self.pass + offered.pass();
        self.most = self.most.max(self.now);
        self.offered.push(offered);
    }

    /// Returns its tokens.
    pub(super) fn into_offered(self) -> Vec<Offered> {
        self.offered
    }
}

impl Account {
    /// Decay of the sums of tokens and seconds per pass: a window of about 50.
    const KEEP: f64 = 0.98;
    /// Decay of the sums about drafts per pass with a draft.
    const KEEP_DRAFTED: f64 = 0.99;
    /// Decay of the same sums per pass without a draft. Such passes say nothing, and old evidence fades
    /// slowly, so that drafts are tried again, rarely.
    const KEEP_UNKNOWN: f64 = 0.998;
    /// Number of draft tokens that count as prior observations, right as expected.
    const WEIGHT: f64 = 5.0;

    fn add(&mut self, draft: &Draft, accepted: usize, seconds: f64) {
        self.tokens = self.tokens * Self::KEEP + as_f64(accepted + 1);
        self.seconds = self.seconds * Self::KEEP + seconds;
        let keep = if draft.tokens.is_empty() { Self::KEEP_UNKNOWN } else { Self::KEEP_DRAFTED };
        self.expected = self.expected * keep + draft.acceptance.iter().take(accepted + 1).sum::<f64>();
        self.right = self.right * keep + as_f64(accepted);
    }

    /// Returns the factor by which acceptance is estimated too low or too high.
    fn correction(&self) -> f64 {
        ((self.right + Self::WEIGHT) / (self.expected + Self::WEIGHT)).min(1.2)
    }
}
