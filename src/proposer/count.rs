//! The count-based proposer (paper, 3.6).

use super::{
    calibration::GuessKind,
    counts::Mixture,
    keys::Keys,
    prior::Prior,
    propose::{Guess, Propose, Seen},
    site::Site,
};
use crate::ids::TokenId;

/// Does a proposer learn while it is used?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Learning {
    /// No: its prior stays as it is.
    #[default]
    Fixed,
    /// From each token generated, and from the model's probabilities for it.
    Online,
}

/// Guesses by what came before at such a place of the grammar, after such tokens.
#[derive(Debug)]
pub struct CountProposer {
    prior: Prior,
    learning: Learning,
    mixture: Mixture,
}

impl CountProposer {
    /// A proposer that begins with a prior, which may be [empty](Prior::new).
    #[must_use]
    pub fn new(prior: Prior, learning: Learning) -> Self {
        Self { prior, learning, mixture: Mixture::default() }
    }

    /// What it knows.
    #[must_use]
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The candidate that a draw with our probabilities takes, and of what kind this guess is.
    fn best(&mut self, site: &mut Site<'_>) -> Option<(TokenId, GuessKind)> {
        /// Candidates that turn out not to be allowed, after which there is no guess.
        const TRIES: usize = 6;
        let keys = Keys::at(site);
        self.mixture.fill(&self.prior.counts, &keys);
        let mut refused = Vec::new();
        while refused.len() < TRIES {
            let mut best: Option<(TokenId, f64)> = None;
            let mut next = f64::NEG_INFINITY;
            for &token in &self.mixture.candidates {
                let score = site.score(token, self.mixture.share(token));
                if best.is_none_or(|(_, most)| score > most) && !refused.contains(&token) {
                    next = best.map_or(next, |(_, score)| score);
                    best = Some((token, score));
                } else if !refused.contains(&token) {
                    next = next.max(score);
                }
            }
            let (token, score) = best?;
            if site.allows(token) {
                let Mixture { level, support, .. } = self.mixture;
                return Some((token, GuessKind::new(site.is_greedy(), level, support, score - next)));
            }
            refused.push(token);
        }
        None
    }
}

impl Propose for CountProposer {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let (token, kind) = self.best(site)?;
        Some(Guess { token, acceptance: self.prior.calibration.acceptance(kind) })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        // What would have been guessed before this was learnt: so acceptance is that of what is still to come.
        if let Some((token, kind)) = self.best(site) {
            self.prior.calibration.add(kind, token == seen.token);
        }
        self.prior.learn(&Keys::at(site), seen);
    }

    fn learns(&self) -> bool {
        self.learning == Learning::Online
    }

    fn wants_likely(&self) -> bool {
        self.learns()
    }
}
