//! The count-based proposer (paper, 3.6).

use std::sync::Arc;

use super::{
    calibration::GuessKind,
    counts::{Counts, Mixture},
    keys::Keys,
    prior::{Prior, weights},
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
    /// From each token of a text, and from the model's probabilities for it, until the text ends: its prior stays as it
    /// is. For one text at a time.
    Text,
    /// From each token generated, and from the model's probabilities for it, for good.
    Online,
}

/// What a [`CountProposer`] counts, and how it guesses. The default has all three; without any it is the
/// paper's proposer (3.6): the likeliest token at such a place of the grammar, by how often it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counting {
    /// Contexts of up to six tokens before beside the place, with back-off; otherwise the place (alpha, beta)
    /// alone.
    pub tokens_before: bool,
    /// The model's probabilities count, otherwise the token that came.
    pub soft: bool,
    /// Guesses have the noise of the draw, and their acceptance is calibrated; otherwise the likeliest token is
    /// guessed, and its acceptance is its share.
    pub coupled: bool,
}

impl Counting {
    /// The paper's (3.6): the token that came most often at such a place of the grammar.
    #[must_use]
    pub fn paper() -> Self {
        Self { tokens_before: false, soft: false, coupled: false }
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self { tokens_before: true, soft: true, coupled: true }
    }
}

/// Guesses by what came before at such a place of the grammar, after such tokens.
#[derive(Debug)]
pub struct CountProposer {
    prior: Arc<Prior>,
    learning: Learning,
    counting: Counting,
    /// What came in the text at hand.
    text: Counts,
    /// Length of that text when it was last looked at, and its last tokens.
    length: usize,
    last: Vec<TokenId>,
    mixture: Mixture,
}

impl CountProposer {
    /// What came in the text at hand counts for so many times as much as what came in others.
    const OWN: f32 = 2.0;

    /// A proposer that begins with a prior, which may be [empty](Prior::new).
    #[must_use]
    pub fn new(prior: Prior, learning: Learning) -> Self {
        Self::with(Arc::new(prior), learning, Counting::default())
    }

    /// The same, counting and guessing otherwise. Its prior should have been learnt so.
    #[must_use]
    pub fn counting(self, counting: Counting) -> Self {
        Self { counting, ..self }
    }

    fn with(prior: Arc<Prior>, learning: Learning, counting: Counting) -> Self {
        Self {
            prior,
            learning,
            counting,
            text: Counts::default(),
            length: 0,
            last: Vec::new(),
            mixture: Mixture::default(),
        }
    }

    /// Another one with the same prior, which is not copied, for another text.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::with(Arc::clone(&self.prior), self.learning, self.counting)
    }

    /// What it knows, but for what it forgets with the text.
    #[must_use]
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The tokens that may come at a site, each with its share of the counts. Shares of tokens that may not
    /// come are left out.
    #[cfg(feature = "experiments")]
    pub(crate) fn shares(&mut self, site: &mut Site<'_>) -> Vec<(TokenId, f64)> {
        self.mix(&self.keys(site));
        let candidates = self.mixture.candidates.iter().copied().filter(|token| site.allows(*token));
        candidates.map(|token| (token, self.mixture.share(token))).filter(|(_, share)| *share > 0.0).collect()
    }

    /// Goes on to where `token` follows `tokens`: some may have come unseen since the last one, or it is another text.
    fn follow(&mut self, tokens: &[TokenId], token: TokenId) {
        /// Tokens by which a text is known again.
        const KNOWN: usize = 8;
        if tokens.get(..self.length).is_none_or(|before| !before.ends_with(&self.last)) {
            self.text = Counts::default();
        }
        self.length = tokens.len() + 1;
        self.last.clear();
        self.last.extend_from_slice(&tokens[tokens.len().saturating_sub(KNOWN - 1)..]);
        self.last.push(token);
    }

    /// Works out what the contexts say.
    fn mix(&mut self, keys: &Keys) {
        self.mixture.fill(&[(&self.prior.counts, 1.0), (&self.text, Self::OWN)], keys);
    }

    /// The contexts that count.
    fn keys(&self, site: &Site<'_>) -> Keys {
        let keys = Keys::at(site);
        if self.counting.tokens_before { keys } else { keys.of_place() }
    }

    /// The guess and its kind: by Gumbel-max with the draw's noise if coupled, otherwise the likeliest token.
    fn best(&mut self, site: &mut Site<'_>) -> Option<(TokenId, GuessKind)> {
        /// Candidates that turn out not to be allowed, after which there is no guess.
        const TRIES: usize = 6;
        self.mix(&self.keys(site));
        let mut refused = Vec::new();
        while refused.len() < TRIES {
            let mut best: Option<(TokenId, f64)> = None;
            let mut next = f64::NEG_INFINITY;
            for &token in &self.mixture.candidates {
                let share = self.mixture.share(token);
                let score = if self.counting.coupled { site.score(token, share) } else { share.ln() };
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
        let acceptance = match self.counting.coupled {
            true => self.prior.calibration.acceptance(kind),
            false => self.mixture.share(token),
        };
        Some(Guess { token, acceptance })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        self.follow(site.tokens(), seen.token);
        let keys = self.keys(site);
        match self.learning {
            Learning::Fixed => {}
            Learning::Text => self.text.add(&keys, &weights(seen, self.prior.size())),
            Learning::Online => {
                // What would have been guessed before this was learnt: so acceptance is that of what is still to come.
                let guess = self.best(site);
                let prior = Arc::make_mut(&mut self.prior);
                if let Some((token, kind)) = guess {
                    prior.calibration.add(kind, token == seen.token);
                }
                prior.learn(&keys, seen);
            }
        }
    }

    fn learns(&self) -> bool {
        self.learning != Learning::Fixed
    }

    fn wants_likely(&self) -> bool {
        self.learns() && self.counting.soft
    }

    fn may_miss(&self) -> bool {
        self.learning == Learning::Text
    }
}
