//! Combines several proposers: for each token the most promising guess wins.

use crate::{
    ids::TokenId,
    proposer::{
        propose::{Guess, Propose, Seen},
        site::Site,
    },
};

/// Asks all of its proposers for each token and takes the guess most likely to be accepted. An earlier
/// proposer's guess wins over a later one's that is only a little more confident, since the larger of two
/// estimates is more often too large.
#[derive(Debug)]
pub struct BestOf {
    proposers: Vec<Box<dyn Propose>>,
    expensive: Option<Box<dyn Propose>>,
}

impl BestOf {
    /// Acceptance at which no other proposer is asked.
    const SURE: f64 = 0.97;
    /// Margin by which a less trusted proposer must be more confident.
    const SURER: f64 = 0.2;

    /// Combines these proposers, the most trusted first.
    #[must_use]
    pub fn new(proposers: Vec<Box<dyn Propose>>) -> Self {
        Self { proposers, expensive: None }
    }

    /// Adds an expensive proposer, which is trusted most and asked only where none of the others is sure. Its
    /// guess is worth only what it [adds](Site::worth) to theirs.
    #[must_use]
    pub fn with_expensive(self, expensive: Box<dyn Propose>) -> Self {
        Self { expensive: Some(expensive), ..self }
    }

    fn all(&self) -> impl Iterator<Item = &Box<dyn Propose>> {
        self.proposers.iter().chain(&self.expensive)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Propose>> {
        self.proposers.iter_mut().chain(&mut self.expensive)
    }

    /// Returns the best guess of all but the expensive proposer.
    fn cheap(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let mut best: Option<Guess> = None;
        for proposer in &mut self.proposers {
            let Some(guess) = proposer.guess(site) else { continue };
            if best.is_none_or(|best| guess.acceptance > best.acceptance + Self::SURER) {
                best = Some(guess);
            }
            if guess.acceptance >= Self::SURE {
                break;
            }
        }
        best
    }
}

impl Propose for BestOf {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let cheap = self.cheap(site);
        let acceptance = cheap.map_or(0.0, |guess| guess.acceptance);
        let Some(expensive) = self.expensive.as_mut().filter(|_| acceptance < Self::SURE) else {
            return cheap;
        };
        let worth = site.worth();
        site.set_worth(worth.map(|seconds| seconds * (1.0 - acceptance)));
        let guess = expensive.guess(site);
        site.set_worth(worth);
        guess.filter(|guess| acceptance <= guess.acceptance + Self::SURER).or(cheap)
    }

    fn read(&mut self, tokens: &[TokenId]) {
        self.all_mut().for_each(|proposer| proposer.read(tokens));
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        for proposer in self.all_mut().filter(|proposer| proposer.learns()) {
            proposer.observe(site, seen);
        }
    }

    fn learns(&self) -> bool {
        self.all().any(|proposer| proposer.learns())
    }

    fn wants_likely(&self) -> bool {
        self.all().any(|proposer| proposer.wants_likely())
    }

    fn may_miss(&self) -> bool {
        self.all().filter(|proposer| proposer.learns()).all(|proposer| proposer.may_miss())
    }

    fn is_shared(&self) -> bool {
        self.all().any(|proposer| proposer.is_shared())
    }
}
