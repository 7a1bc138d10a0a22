//! Several proposers, of which for each token one is heard.

use super::{
    propose::{Guess, Propose, Seen},
    site::Site,
};

/// Asks all of its proposers for each token and takes the guess most likely to be accepted: of drafts that begin alike,
/// the one that gains most. An earlier proposer's guess goes before a later one's that is only a little surer: of two
/// estimates the larger one is more often too large.
#[derive(Debug)]
pub struct BestOf {
    proposers: Vec<Box<dyn Propose>>,
}

impl BestOf {
    /// The best of these, the most trusted first.
    #[must_use]
    pub fn new(proposers: Vec<Box<dyn Propose>>) -> Self {
        Self { proposers }
    }
}

impl Propose for BestOf {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        /// Nothing that another says could gain more.
        const SURE: f64 = 0.97;
        /// By how much a later one must be surer.
        const SURER: f64 = 0.2;
        let mut best: Option<Guess> = None;
        for proposer in &mut self.proposers {
            let Some(guess) = proposer.guess(site) else { continue };
            if best.is_none_or(|best| guess.acceptance > best.acceptance + SURER) {
                best = Some(guess);
            }
            if guess.acceptance >= SURE {
                break;
            }
        }
        best
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        for proposer in self.proposers.iter_mut().filter(|proposer| proposer.learns()) {
            proposer.observe(site, seen);
        }
    }

    fn learns(&self) -> bool {
        self.proposers.iter().any(|proposer| proposer.learns())
    }

    fn wants_likely(&self) -> bool {
        self.proposers.iter().any(|proposer| proposer.wants_likely())
    }

    fn may_miss(&self) -> bool {
        self.proposers.iter().filter(|proposer| proposer.learns()).all(|proposer| proposer.may_miss())
    }

    fn is_shared(&self) -> bool {
        self.proposers.iter().any(|proposer| proposer.is_shared())
    }
}
