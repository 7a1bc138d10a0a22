//! How long drafts should be, by what passes cost and what drafts have gained: the draft controller.
//!
//! A pass over n tokens costs less than n passes, but more than one. With the measured curve of costs and the
//! estimated acceptance of each guess, a draft goes on while the tokens it gains are worth more than the time
//! it costs, at the pace that the run has otherwise. Where nothing is worth it there is no draft, and the run
//! is the plain one; where drafts do not even gain what guessing and learning take, nothing is guessed and
//! learnt either, for a while.
//!
//! Each part was measured beside the whole without it (`experiments/ablation`).

mod cost;
mod pass;
mod rest;
mod worth;

pub use pass::{Pass, PassCost};
pub(crate) use worth::{Cut, Offered, Speedup, Worth, count};

use super::{draft::Draft, median::Median};
use rest::Rest;

/// What one drafter knows of its passes and drafts, and decides by it.
#[derive(Debug, Default)]
pub(super) struct DraftPlanner {
    cost: PassCost,
    account: Account,
    /// The pass noted last, if it is not accounted for.
    passed: Option<Pass>,
    effort: Effort,
    rest: Rest,
}

/// A draft that grows as long as it could become better.
#[derive(Debug)]
pub(super) struct Growth<'a> {
    worth: &'a Worth<'a>,
    /// What the pass is over, the draft included.
    pass: Pass,
    /// How likely all of it is right.
    reached: f64,
    /// What it is worth, and was at best, in tokens.
    now: f64,
    most: f64,
    offered: Vec<Offered>,
}

/// The time that drafting takes beside the pass: running medians of guessing and learning, where the caller
/// measures them.
#[derive(Debug, Default)]
struct Effort {
    /// Guesses for the last draft, and tokens learnt from since then.
    guesses: usize,
    learnt: usize,
    /// Seconds of each.
    guess: Option<Median>,
    learning: Option<Median>,
    /// Passes since the last guess for which there could have been one.
    idle: usize,
}

/// Running sums over the last passes.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    tokens: f64,
    seconds: f64,
    /// Draft tokens that were right, and how many should have been by their acceptance.
    right: f64,
    expected: f64,
}

impl DraftPlanner {
    /// Sets what passes are thought to cost.
    pub(super) fn set_cost(&mut self, cost: PassCost) {
        self.cost = cost;
    }

    /// What passes cost.
    pub(super) fn cost(&self) -> &PassCost {
        &self.cost
    }

    /// Takes what passes cost, to be [set](Self::set_cost) again.
    pub(super) fn take_cost(&mut self) -> PassCost {
        std::mem::take(&mut self.cost)
    }

    /// Notes the measured time of a pass, in seconds.
    pub(super) fn passed(&mut self, pass: Pass, seconds: f64) {
        self.passed = Some(pass);
        self.cost.observe(pass, seconds);
    }

    /// Notes how long the guesses of the last draft took, in seconds.
    pub(super) fn guessed(&mut self, seconds: f64) {
        self.effort.guessed(seconds);
    }

    /// Notes how long it took to learn from a token, in seconds.
    pub(super) fn learnt(&mut self, seconds: f64) {
        self.effort.learnt += 1;
        Effort::add(&mut self.effort.learning, seconds);
    }

    /// Is nothing to be guessed for the next pass, as it has not paid lately?
    pub(super) fn is_resting(&self) -> bool {
        self.rest.is_resting()
    }

    /// Notes a pass for which nothing was guessed, while it [rests](Self::is_resting).
    pub(super) fn skip(&mut self) {
        (self.effort.guesses, self.effort.learnt) = (0, 0);
        self.rest.pass();
    }

    /// Notes that another draft begins.
    pub(super) fn begin(&mut self) {
        self.effort.guesses = 0;
    }

    /// The empty draft of a pass that is over `pass` without it.
    pub(super) fn growth<'a>(&self, pass: Pass, worth: &'a Worth<'a>) -> Growth<'a> {
        Growth { worth, pass, reached: 1.0, now: 0.0, most: 0.0, offered: Vec::new() }
    }

    /// Is another guess worth its time? `room`: how many more tokens the draft may have. If the last measured
    /// guesses are [old](Effort::is_stale), one guess is made to measure again. A guess that goes on is counted.
    pub(super) fn goes_on(&mut self, growth: &Growth<'_>, room: usize) -> bool {
        let Growth { worth, pass, reached, now, most, .. } = *growth;
        let guess = self.effort.guess() / count(worth.at_once);
        let stale = self.effort.is_stale() && self.effort.guesses == 0 && room > 0;
        let goes_on = stale || worth.could_gain(pass, reached, most - now, guess, room);
        self.effort.guesses += usize::from(goes_on);
        goes_on
    }

    /// By how much acceptance is estimated too low or too high.
    pub(super) fn correction(&self) -> f64 {
        self.account.correction()
    }

    /// Notes that a draft has grown as far as it does.
    pub(super) fn grown(&mut self) {
        self.effort.idle += usize::from(self.effort.guesses == 0);
    }

    /// Notes what the kept part of a draft should gain, and `plain`, the time of the pass without drafts; both
    /// in seconds. [`Rest`] weighs them against the time spent on guesses.
    pub(super) fn kept(&mut self, gained: f64, plain: f64, worth: &Worth<'_>) {
        if let Some(spent) = self.effort.spent() {
            self.rest.note(gained, spent / count(worth.at_once), plain / count(worth.sequences));
        }
    }

    /// Tokens a second of passes lately, where one without a draft takes so many seconds; at first those of a
    /// run without drafts.
    pub(super) fn pace(&self, pass: f64) -> f64 {
        /// Passes of one token that are thought to have come before the first.
        const WEIGHT: f64 = 4.0;
        let Account { tokens, seconds, .. } = self.account;
        (tokens + WEIGHT) / (seconds + WEIGHT * pass)
    }

    /// Notes how a draft went. If its pass was [noted](Self::passed), what such passes cost counts in place
    /// of the seconds: what a draft is to gain is weighed against that, and neither should hang on what
    /// disturbed a pass.
    pub(super) fn verified(&mut self, draft: &Draft, accepted: usize, seconds: f64) {
        let seconds = self.passed.take().map_or(seconds, |pass| self.cost.seconds(pass));
        self.account.add(draft, accepted, seconds);
    }
}

impl Growth<'_> {
    /// Chances of being reached below which a token is not worth a guess.
    const LEAST: f64 = 0.03;

    /// Seconds that a guess which is surely right would be worth.
    pub(super) fn seconds(&self) -> f64 {
        self.reached / self.worth.pace * count(self.worth.at_once)
    }

    /// Is a token of this acceptance likely enough to be reached? It is to be [pushed](Self::push) then.
    pub(super) fn reaches(&mut self, acceptance: f64) -> bool {
        self.reached *= acceptance.min(1.0);
        self.reached >= Self::LEAST
    }

    /// Adds the token, behind which the row is wanted whole or not.
    pub(super) fn push(&mut self, wide: bool) {
        let offered = Offered { reached: self.reached, wide };
        self.now += self.reached - self.worth.price(self.pass, offered.pass());
        self.pass = self.pass + offered.pass();
        self.most = self.most.max(self.now);
        self.offered.push(offered);
    }

    /// Its tokens.
    pub(super) fn into_offered(self) -> Vec<Offered> {
        self.offered
    }
}

impl Effort {
    /// Passes without a guess after which one is made all the same, as those before took too long.
    const PATIENCE: usize = 4;

    /// Is what guesses took long ago?
    fn is_stale(&self) -> bool {
        self.idle >= Self::PATIENCE
    }

    fn guessed(&mut self, seconds: f64) {
        if self.guesses > 0 {
            if self.is_stale() {
                self.guess = None;
            }
            self.idle = 0;
            Self::add(&mut self.guess, seconds / count(self.guesses));
        }
    }

    fn add(to: &mut Option<Median>, seconds: f64) {
        if seconds.is_finite() && seconds >= 0.0 {
            to.get_or_insert_with(|| Median::of(seconds)).add(seconds);
        }
    }

    fn of(each: Option<&Median>) -> f64 {
        each.map_or(0.0, Median::value)
    }

    /// Seconds that a guess takes.
    fn guess(&self) -> f64 {
        Self::of(self.guess.as_ref())
    }

    /// What the last draft and the tokens before it took; nothing if nothing was told.
    fn spent(&mut self) -> Option<f64> {
        let learnt = count(std::mem::take(&mut self.learnt)) * Self::of(self.learning.as_ref());
        let known = self.guess.is_some() || self.learning.is_some();
        known.then(|| count(self.guesses) * self.guess() + learnt)
    }
}

impl Account {
    /// What the sums of tokens and seconds keep from one pass to the next: they look back on about 50.
    const KEEP: f64 = 0.98;
    /// What the sums about drafts keep from one pass with a draft to the next.
    const KEEP_DRAFTED: f64 = 0.99;
    /// What they keep where there was none. Then nothing is found out, and what was found out fades slowly,
    /// so that drafts are tried again, seldom.
    const KEEP_UNKNOWN: f64 = 0.998;
    /// Draft tokens as expected that are thought to have come before the first.
    const WEIGHT: f64 = 5.0;

    fn add(&mut self, draft: &Draft, accepted: usize, seconds: f64) {
        self.tokens = self.tokens * Self::KEEP + count(accepted + 1);
        self.seconds = self.seconds * Self::KEEP + seconds;
        let keep = if draft.tokens.is_empty() { Self::KEEP_UNKNOWN } else { Self::KEEP_DRAFTED };
        self.expected = self.expected * keep + draft.acceptance.iter().take(accepted + 1).sum::<f64>();
        self.right = self.right * keep + count(accepted);
    }

    /// By how much acceptance is estimated too low or too high.
    fn correction(&self) -> f64 {
        ((self.right + Self::WEIGHT) / (self.expected + Self::WEIGHT)).min(1.2)
    }
}
