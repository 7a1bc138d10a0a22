//! Drafts, and how long they should be.
//!
//! A pass over n tokens costs less than n passes, but more than one. With the measured curve of costs and the
//! estimated acceptance of each guess, a draft goes on while the tokens it gains are worth more than the time
//! it costs, at the pace that the run has otherwise. Where nothing is worth it there is no draft, and the run
//! is the plain one; where drafts do not even gain what guessing and learning take, nothing is guessed and
//! learnt either, for a while.

use super::{
    forced::ForcedText,
    median::Median,
    pass::{Pass, PassCost},
    propose::{Guess, Propose, Seen},
    rest::Rest,
    site::Site,
    without::{Part, Without},
    worth::{Cut, Offered, Worth, count},
};
use crate::{
    ids::TokenId,
    vocab::{Tokenizer, Vocabulary},
};

/// How long drafts are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum DraftLength {
    /// As long as pays.
    #[default]
    Auto,
    /// Up to so many tokens, each a guess of at least this acceptance; what passes cost is not asked.
    UpTo(Fixed),
}

/// A length and a threshold that are possible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fixed {
    tokens: usize,
    threshold: f64,
}

/// A draft length that is not possible.
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
    /// Most tokens of a draft.
    pub const MOST: usize = 64;

    /// Up to `tokens` tokens of at least this acceptance.
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
}

/// Tokens to be verified, each allowed after those before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// For each token, how likely it is to be accepted if all before it are.
    pub acceptance: Vec<f64>,
}

/// Makes drafts of what a proposer guesses, and keeps account of what they cost and gain.
#[derive(Debug)]
pub struct Drafter {
    proposer: Box<dyn Propose>,
    length: DraftLength,
    cost: PassCost,
    account: Account,
    /// The pass noted last, if it is not accounted for.
    passed: Option<Pass>,
    effort: Effort,
    rest: Rest,
    without: Without,
}

/// A draft of which some may be left out, as long as it is not [kept](Drafter::keep).
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Proposal {
    draft: Draft,
    /// For each token of the draft what it is worth, or nothing at all where its length is fixed.
    offered: Vec<Offered>,
    /// What the text's part of the pass is without a draft.
    first: Pass,
}

impl Proposal {
    /// The tokens of which only some may be worth it: none where the draft is of a fixed length.
    pub(crate) fn offered(&self) -> &[Offered] {
        &self.offered
    }

    /// How many tokens the draft has beside them.
    pub(crate) fn fixed(&self) -> usize {
        self.draft.tokens.len() - self.offered.len()
    }
}

/// What drafting takes beside the pass, where that is told.
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

impl Effort {
    /// Passes without a guess after which one is made all the same, as those before took too long.
    const PATIENCE: usize = 4;

    /// Is what guesses took long ago?
    fn is_stale(&self) -> bool {
        self.idle >= Self::PATIENCE
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

/// Running sums over the last passes.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    tokens: f64,
    seconds: f64,
    /// Draft tokens that were right, and how many should have been by their acceptance.
    right: f64,
    expected: f64,
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

    /// By how much acceptance is estimated too low or too high.
    fn correction(&self) -> f64 {
        ((self.right + Self::WEIGHT) / (self.expected + Self::WEIGHT)).min(1.2)
    }
}

impl Drafter {
    /// Drafts of `proposer`'s guesses.
    #[must_use]
    pub fn new(proposer: Box<dyn Propose>, length: DraftLength) -> Self {
        let (cost, account) = (PassCost::default(), Account::default());
        let (effort, rest) = (Effort::default(), Rest::default());
        let without = Without::default();
        Self { proposer, length, cost, account, passed: None, effort, rest, without }
    }

    /// Drafts of text that the grammar forces, [but for its spelling](ForcedText::with_spellings), as long as
    /// pays: for grammars of which nothing was learnt before. The tokenizer must be that of the vocabulary.
    #[must_use]
    pub fn of_forced_text(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Self {
        Self::new(Box::new(ForcedText::new(tokenizer, vocabulary).with_spellings()), DraftLength::Auto)
    }

    /// Sets what passes are thought to cost until measurements say otherwise, for instance from an earlier
    /// run with the same model.
    #[must_use]
    pub fn cost(self, cost: PassCost) -> Self {
        Self { cost, ..self }
    }

    /// Leaves parts out.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, without: Without) -> Self {
        Self { cost: self.cost.without(without), without, ..self }
    }

    /// What passes cost.
    #[must_use]
    pub fn pass_cost(&self) -> &PassCost {
        &self.cost
    }

    /// Passes that would be worth a measurement, in this order: none where costs do not count. `ahead`: are
    /// masks known before passes, so that there are rows that are not wanted whole?
    #[must_use]
    pub fn unmeasured(&self, ahead: bool) -> Vec<Pass> {
        match self.length {
            DraftLength::Auto => self.cost.unmeasured(ahead),
            DraftLength::UpTo(_) => Vec::new(),
        }
    }

    /// Notes that a pass took so many seconds.
    pub fn passed(&mut self, pass: Pass, seconds: f64) {
        self.passed = Some(pass);
        self.cost.observe(pass, seconds);
    }

    /// Notes how long it took to guess the last draft, in seconds. What is never told is taken to cost
    /// nothing, and then guessing never rests.
    pub fn guessed(&mut self, seconds: f64) {
        if self.effort.guesses > 0 {
            if self.effort.is_stale() {
                self.effort.guess = None;
            }
            self.effort.idle = 0;
            Effort::add(&mut self.effort.guess, seconds / count(self.effort.guesses));
        }
    }

    /// Has the proposer read the whole sequence so far, of which several tokens are new: a prompt. Nothing is
    /// guessed for the next pass.
    pub fn read(&mut self, tokens: &[TokenId]) {
        self.proposer.read(tokens);
    }

    /// Notes how long it took to learn from a token, in seconds.
    pub fn learnt(&mut self, seconds: f64) {
        self.effort.learnt += 1;
        Effort::add(&mut self.effort.learning, seconds);
    }

    /// A draft for `site` of at most `room` tokens. Costs what the proposer takes for each token.
    pub fn draft(&mut self, site: &mut Site<'_>, room: usize) -> Draft {
        let cost = std::mem::take(&mut self.cost);
        let draft = self.draft_at(site, room, &cost);
        self.cost = cost;
        draft
    }

    /// As [`draft`](Self::draft), by costs that are measured elsewhere, for several drafters of one model.
    pub fn draft_at(&mut self, site: &mut Site<'_>, room: usize, cost: &PassCost) -> Draft {
        if self.is_resting() {
            self.skip();
            return Draft::default();
        }
        let pace = self.pace_by(cost.seconds(Pass::whole(1)));
        let worth = Worth { cost, pace, sequences: 1, at_once: 1, without: self.without };
        let proposal = self.offer(site, room, Pass::default(), &worth);
        let first = proposal.first;
        let Cut { kept, gains } = worth.cut(first, &[proposal.offered()]);
        self.keep(proposal, kept[0], gains[0], cost.seconds(first), &worth)
    }

    /// What could be drafted for `site` in a pass that is over `others` beside, up to `room` tokens: how much
    /// of it should be is to be told by [`keep`](Self::keep). Not while it [rests](Self::is_resting).
    pub(crate) fn offer(
        &mut self,
        site: &mut Site<'_>,
        room: usize,
        others: Pass,
        worth: &Worth<'_>,
    ) -> Proposal {
        self.effort.guesses = 0;
        let first = Pass { tokens: 1, whole: usize::from(site.is_wide()) };
        let (draft, offered) = match self.length {
            DraftLength::UpTo(Fixed { tokens, threshold }) => {
                (self.up_to(site, room.min(tokens), threshold), Vec::new())
            }
            DraftLength::Auto => self.paying(site, room.min(DraftLength::MOST), first + others, worth),
        };
        Proposal { draft, offered, first }
    }

    /// Is nothing to be guessed for the next pass, as it has not paid lately?
    pub(crate) fn is_resting(&self) -> bool {
        self.rest.is_resting()
    }

    /// Notes a pass for which nothing was guessed, while it [rests](Self::is_resting).
    pub(crate) fn skip(&mut self) {
        (self.effort.guesses, self.effort.learnt) = (0, 0);
        self.rest.pass();
    }

    /// Cuts what was proposed to so many of the offered tokens, which should gain so many seconds. `plain`:
    /// seconds of the pass without drafts.
    pub(crate) fn keep(
        &mut self,
        proposal: Proposal,
        kept: usize,
        gained: f64,
        plain: f64,
        worth: &Worth<'_>,
    ) -> Draft {
        let Proposal { mut draft, .. } = proposal;
        if self.length == DraftLength::Auto {
            draft.tokens.truncate(kept);
            draft.acceptance.truncate(kept);
            if let Some(spent) = self.effort.spent().filter(|_| !self.without.is(Part::Rest)) {
                let spent = if self.without.is(Part::Effort) { 0.0 } else { spent };
                self.rest.note(gained, spent / count(worth.at_once), plain / count(worth.sequences));
            }
        }
        draft
    }

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

    /// A draft that goes on as long as it could become better in such a pass, by what it is worth.
    fn paying(
        &mut self,
        site: &mut Site<'_>,
        room: usize,
        mut pass: Pass,
        worth: &Worth<'_>,
    ) -> (Draft, Vec<Offered>) {
        /// Chances of being reached below which a token is not worth a guess.
        const LEAST: f64 = 0.03;
        let (mut draft, mut all) = (Draft::default(), Vec::new());
        let mut guess = self.effort.guess() / count(worth.at_once);
        if self.without.is(Part::Effort) {
            guess = 0.0;
        }
        let correction = if self.without.is(Part::Correction) { 1.0 } else { self.account.correction() };
        let unbound = self.without.is(Part::Bound);
        let (mut reached, mut now, mut most) = (1.0, 0.0, 0.0_f64);
        let stale = self.effort.is_stale() && room > 0;
        while stale && self.effort.guesses == 0
            || unbound && draft.tokens.len() < room
            || worth.could_gain(pass, reached, most - now, guess, room - draft.tokens.len())
        {
            self.effort.guesses += 1;
            site.set_worth(Some(reached / worth.pace * count(worth.at_once)));
            let Some(guess) = self.guess(site) else { break };
            reached *= (guess.acceptance * correction).min(1.0);
            if reached < LEAST || !site.push(guess.token) {
                break;
            }
            let offered = Offered { reached, wide: site.is_wide() };
            draft.tokens.push(guess.token);
            draft.acceptance.push(guess.acceptance);
            all.push(offered);
            now += reached - worth.price(pass, offered.pass());
            pass = pass + offered.pass();
            most = most.max(now);
        }
        self.effort.idle += usize::from(self.effort.guesses == 0);
        (draft, all)
    }

    /// The proposer's guess, with an acceptance that is a probability.
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let Guess { token, acceptance } = self.proposer.guess(site)?;
        let acceptance = if acceptance.is_nan() { 0.0 } else { acceptance.clamp(0.0, 1.0) };
        Some(Guess { token, acceptance })
    }

    /// Tokens a second of passes lately; at first those of a run without drafts.
    #[must_use]
    pub fn pace(&self) -> f64 {
        self.pace_by(self.cost.seconds(Pass::whole(1)))
    }

    /// Where a pass without a draft takes so many seconds.
    fn pace_by(&self, pass: f64) -> f64 {
        /// Passes of one token that are thought to have come before the first.
        const WEIGHT: f64 = 4.0;
        if self.without.is(Part::TextPace) {
            return 1.0 / pass;
        }
        let Account { tokens, seconds, .. } = self.account;
        (tokens + WEIGHT) / (seconds + WEIGHT * pass)
    }

    /// Notes how a draft went: how many of its tokens were accepted, and how many seconds the pass and all
    /// that belongs to it took. If the pass [was noted](Self::passed), what such passes cost counts in its
    /// place: what a draft is to gain is weighed against that, and neither should hang on what disturbed a
    /// pass.
    pub fn verified(&mut self, draft: &Draft, accepted: usize, seconds: f64) {
        let seconds = self.passed.take().map_or(seconds, |pass| self.cost.seconds(pass));
        let judged = draft.acceptance.iter().take(accepted + 1);
        let Account { tokens, seconds: before, right, expected } = &mut self.account;
        *tokens = *tokens * Account::KEEP + count(accepted + 1);
        *before = *before * Account::KEEP + seconds;
        let keep = if draft.tokens.is_empty() { Account::KEEP_UNKNOWN } else { Account::KEEP_DRAFTED };
        *expected = *expected * keep + judged.sum::<f64>();
        *right = *right * keep + count(accepted);
    }

    /// Does the proposer want to see what came? Not while it rests, if it may miss tokens.
    #[must_use]
    pub fn learns(&self) -> bool {
        self.proposer.learns() && !(self.is_resting() && self.proposer.may_miss())
    }

    /// Does it want to see the model's probabilities?
    #[must_use]
    pub fn wants_likely(&self) -> bool {
        self.proposer.wants_likely()
    }

    /// Does the proposer draft other texts as well?
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.proposer.is_shared()
    }

    /// Shows the proposer what came at a site.
    pub fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        self.proposer.observe(site, seen);
    }
}
