//! The draft controller: how long drafts should be, by the cost of passes and the gain of drafts so far.
//!
//! A pass over n tokens costs less than n passes, but more than one. With the measured cost curve and the
//! estimated acceptance of each guess, a draft continues while the tokens it gains are worth more than the
//! time it costs, at the present pace of the run. If nothing pays there is no draft, and the run is the plain
//! one; and while nothing pays, guessing and learning pause for 4 to 64 passes (exponential back-off). The
//! time of a guess does not count: a proposer that takes long weighs its own time, by
//! [`Site::worth`](super::Site::worth).
//!
//! The budget of drafts keeps the drafted tokens that are worth more than they add to the cost of the pass. A
//! drafted token has a probability that it and all before it are right. Its cost depends on what else the
//! pass is over: kernels take several rows at a time, so that one token may be expensive and the next ones
//! free. So all drafts of a pass are cut together.
//!
//! Each part was measured beside the whole without it (`experiments/records/2026-11-25-ablation`).

mod pass;

pub(crate) use pass::Median;
pub use pass::{Pass, PassCost};

use super::draft::Draft;
use crate::ids::as_f64;

/// The controller of one drafter, with its account of passes and drafts.
#[derive(Debug, Default)]
pub(super) struct DraftPlanner {
    /// The expected cost of passes.
    pub(super) cost: PassCost,
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
    /// The tokens it has so far.
    pub(super) offered: Vec<Offered>,
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

/// The state of the back-off.
///
/// Each pause is twice as long as the one before it, up to a bound: if drafts never pay, hardly anything is
/// tried any more; if they begin to, that is found out soon after.
#[derive(Debug, Clone)]
struct DraftBackoff {
    /// Decaying sums over the last passes, in seconds: the expected gain of drafts, and the time that the
    /// passes would have taken without drafts.
    gained: f64,
    passes: f64,
    /// Number of passes to be tried before drafts are judged.
    trial: usize,
    /// Number of passes left of this pause.
    left: usize,
    /// Length of the next pause.
    next: usize,
}

impl Default for DraftBackoff {
    fn default() -> Self {
        Self { gained: 0.0, passes: 0.0, trial: Self::FIRST_TRIAL, left: 0, next: Self::SHORTEST }
    }
}

impl DraftBackoff {
    /// Length of a pause, at first and at most.
    const SHORTEST: usize = 4;
    const LONGEST: usize = 64;
    /// Least number of passes before the first pause, and between pauses.
    const FIRST_TRIAL: usize = 4;
    const TRIAL: usize = 2;
    /// Decay of the sums per pass: a window of about 20.
    const KEEP: f64 = 0.95;
    /// Shares of a pass: drafts must gain the first to be worth the trouble; the second makes the next pause
    /// a short one again.
    const WORTH: f64 = 0.02;
    const CLEAR: f64 = 0.05;

    /// Is drafting paused?
    fn is_resting(&self) -> bool {
        self.left > 0
    }

    /// Counts a pass of the pause.
    fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Records, in seconds, the expected gain of a draft of any length, and the time of the pass without it.
    fn note(&mut self, gained: f64, pass: f64) {
        self.gained = Self::KEEP * self.gained + gained;
        self.passes = Self::KEEP * self.passes + pass;
        self.trial = self.trial.saturating_sub(1);
        if self.trial > 0 {
            return;
        }
        if self.gained < Self::WORTH * self.passes {
            let next = (2 * self.next).min(Self::LONGEST);
            *self = Self { left: self.next, next, trial: Self::TRIAL, ..Self::default() };
        } else if self.gained >= Self::CLEAR * self.passes {
            self.next = Self::SHORTEST;
        }
    }
}

/// A token that could be drafted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offered {
    /// Probability that it and all before it are right.
    pub(crate) reached: f64,
    /// Will the row behind it be needed whole?
    pub(crate) wide: bool,
}

impl Offered {
    /// The token's part of a pass.
    fn pass(self) -> Pass {
        Pass { tokens: 1, whole: usize::from(self.wide) }
    }
}

/// The prices by which tokens of a pass are valued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftBudget<'a> {
    /// The cost of passes.
    pub(crate) cost: &'a PassCost,
    /// Tokens a second of all sequences that share the pass.
    pub(crate) pace: f64,
    /// Number of sequences that share the pass.
    pub(crate) sequences: usize,
    /// Number of sequences that are drafted for in parallel.
    pub(crate) at_once: usize,
}

/// The recent speedup over passes without drafts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Speedup {
    tokens: f64,
    cost: f64,
}

impl Speedup {
    /// Records the tokens of a pass per sequence, and its cost relative to the pass without drafts.
    pub(crate) fn note(&mut self, tokens: f64, cost: f64) {
        /// Decay of the sums per pass: a window of about 50.
        const KEEP: f64 = 0.98;
        if tokens.is_finite() && cost.is_finite() {
            self.tokens = KEEP * self.tokens + tokens;
            self.cost = KEEP * self.cost + cost;
        }
    }

    /// Returns the speedup as a factor.
    pub(crate) fn times(self) -> f64 {
        /// Number of passes without drafts that count as prior observations.
        const WEIGHT: f64 = 4.0;
        (self.tokens + WEIGHT) / (self.cost + WEIGHT)
    }
}

/// The lengths to which the drafts of a pass are cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Allocation {
    /// Number of tokens kept of each draft.
    pub(crate) kept: Vec<usize>,
    /// Expected gain of each draft, in seconds.
    pub(crate) gains: Vec<f64>,
}

impl DraftBudget<'_> {
    /// Price of adding `more` to a pass, in tokens at the present pace.
    fn price(&self, pass: Pass, more: Pass) -> f64 {
        self.pace * (self.cost.seconds(pass + more) - self.cost.seconds(pass))
    }

    /// Can extending a draft by up to `room` tokens make it better than its best so far, which is `behind`
    /// tokens ahead? An upper bound: assumes that every further token is as likely to be reached as the last
    /// one.
    fn could_gain(&self, pass: Pass, reached: f64, behind: f64, room: usize) -> bool {
        (1..=room)
            .any(|tokens| as_f64(tokens) * reached - self.price(pass, Pass { tokens, whole: 0 }) > behind)
    }

    /// Cuts the drafts of a pass that is over `plain` without them, greedily: takes tokens in order of their
    /// probability of being reached, and keeps the best prefix of that order, the one with the most expected
    /// tokens less their price. That is optimal if all rows or none are wide. `O(n log n)` in the tokens.
    pub(crate) fn cut(&self, plain: Pass, drafts: &[&[Offered]]) -> Allocation {
        let all = drafts.iter().enumerate();
        let mut all: Vec<(usize, &Offered)> =
            all.flat_map(|(draft, offered)| offered.iter().map(move |token| (draft, token))).collect();
        // Chances fall along a draft, and sorting keeps the order of equal ones.
        all.sort_by(|one, other| other.1.reached.total_cmp(&one.1.reached));
        let (mut kept, mut best) = (vec![0; drafts.len()], vec![0; drafts.len()]);
        let (mut pass, mut now, mut most) = (plain, 0.0, 0.0);
        for (draft, token) in all {
            now += token.reached - self.price(pass, token.pass());
            pass = pass + token.pass();
            kept[draft] += 1;
            if now > most {
                most = now;
                best.clone_from(&kept);
            }
        }
        Allocation { gains: self.gains(plain, drafts, &best), kept: best }
    }

    /// Returns the expected gain of each draft in seconds, if this much of each is kept; costs are split by
    /// the tokens and rows that it adds.
    fn gains(&self, plain: Pass, drafts: &[&[Offered]], kept: &[usize]) -> Vec<f64> {
        let kept: Vec<&[Offered]> =
            drafts.iter().zip(kept).map(|(draft, &kept)| &draft[..kept.min(draft.len())]).collect();
        let sum = |tokens: &[Offered]| tokens.iter().fold(Pass::default(), |sum, token| sum + token.pass());
        let all = kept.iter().fold(Pass::default(), |all, tokens| all + sum(tokens));
        let narrow = Pass { whole: 0, ..all };
        let of_tokens = self.price(plain, narrow) / as_f64(all.tokens.max(1));
        let of_rows = self.price(plain + narrow, Pass { tokens: 0, ..all }) / as_f64(all.whole.max(1));
        let gain = |tokens: &&[Offered]| {
            let Pass { tokens: added, whole } = sum(tokens);
            let reached: f64 = tokens.iter().map(|token| token.reached).sum();
            (reached - of_tokens * as_f64(added) - of_rows * as_f64(whole)) / self.pace.max(1e-12)
        };
        kept.iter().map(gain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists the passes that have a draft, if drafts gain this time in each.
    fn awake(rest: &mut DraftBackoff, passes: usize, gained: f64) -> Vec<bool> {
        let pass = |_| {
            let awake = !rest.is_resting();
            if awake {
                rest.note(gained, 1.0)
            } else {
                rest.pass()
            }
            awake
        };
        (0..passes).map(pass).collect()
    }

    fn share(awake: &[bool]) -> f64 {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap());
        count(awake.iter().filter(|awake| **awake).count()) / count(awake.len())
    }

    #[test]
    fn drafting_that_never_pays_is_seldom_tried() {
        for gained in [0.0, 0.01, 0.019] {
            let mut rest = DraftBackoff::default();
            let first = awake(&mut rest, 100, gained);
            assert!(share(&first) < 0.13 && !first[4], "{first:?}");
            assert!(share(&awake(&mut rest, 1000, gained)) < 0.035);
        }
    }

    #[test]
    fn drafting_that_pays_is_never_paused() {
        for gained in [0.03, 0.1, 2.0] {
            assert!(awake(&mut DraftBackoff::default(), 1000, gained).iter().all(|awake| *awake));
        }
    }

    #[test]
    fn drafting_that_begins_to_pay_is_resumed() {
        let mut rest = DraftBackoff::default();
        awake(&mut rest, 1000, 0.0);
        let after = awake(&mut rest, 200, 0.5);
        let woken = after.iter().position(|awake| *awake).unwrap();
        assert!(woken <= DraftBackoff::LONGEST && after[woken..].iter().all(|awake| *awake), "{after:?}");
    }

    #[test]
    fn drafting_that_has_paid_is_paused_for_a_short_time_only() {
        // What gains hardly anything does not make the next rest a short one.
        for (gained, expected) in [(0.5, DraftBackoff::SHORTEST), (0.03, DraftBackoff::LONGEST)] {
            let mut rest = DraftBackoff::default();
            awake(&mut rest, 1000, 0.0);
            awake(&mut rest, 200, gained);
            assert!(!rest.is_resting());
            // Earlier gains are forgotten in time.
            let then = awake(&mut rest, 200, 0.0);
            let slept = then.iter().position(|awake| !*awake).unwrap();
            let length = then[slept..].iter().take_while(|awake| !**awake).count();
            assert_eq!(length, expected, "{gained}");
        }
    }
}

#[cfg(test)]
mod budget_tests;
