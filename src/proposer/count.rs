//! The count-based proposer (paper, 3.6): an n-gram model with back-off over places in the grammar.

use std::sync::Arc;

use super::calibration::GuessKind;
use super::counts::{ContextKeys, Counts, Mixture};
use super::prior::{Prior, weights};
use super::propose::{Guess, Propose, Seen, Site};
use crate::ids::TokenId;

/// Does a proposer learn while it is used?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Learning {
    /// The proposer learns nothing: its prior stays as it is.
    #[default]
    Fixed,
    /// The proposer learns from each token of a text, and the model's probabilities for it, until the text
    /// ends: its prior stays as it is. For one text at a time.
    PerText,
    /// The proposer learns from each generated token, and the model's probabilities for it, permanently.
    Online,
}

/// The way a [`CountProposer`] counts and guesses. The default has all three; without any it is the paper's
/// proposer (3.6): the most frequent token at such a place of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counting {
    /// Contexts are n-grams of up to six earlier tokens besides the place, with back-off; otherwise the place
    /// (alpha, beta) alone.
    pub tokens_before: bool,
    /// The model's probabilities are counted, otherwise the token that came.
    pub soft: bool,
    /// Guesses share the noise of the draw (Gumbel-max), and their acceptance is calibrated; otherwise the
    /// likeliest token is guessed, and its acceptance is its share.
    pub coupled: bool,
}

impl Counting {
    /// The paper's way (3.6): the most frequent token at such a place of the grammar.
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
    /// Counts of the text at hand.
    text: Counts,
    /// Length of that text when it was last looked at, and its last tokens.
    length: usize,
    last: Vec<TokenId>,
    mixture: Mixture,
}

impl CountProposer {
    /// Weight of counts of the text at hand, relative to those of other texts.
    const OWN: f32 = 2.0;

    /// Creates a proposer that starts from a prior, which may be [empty](Prior::new).
    #[must_use]
    pub fn new(prior: Prior, learning: Learning) -> Self {
        Self::with(Arc::new(prior), learning, Counting::default())
    }

    /// Sets another way of counting and guessing. The prior should have been learnt in the same way.
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

    /// Creates another proposer with the same prior, which is not copied, for another text.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::with(Arc::clone(&self.prior), self.learning, self.counting)
    }

    /// Returns its knowledge, except for what it forgets with the text.
    #[must_use]
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// Returns the tokens that may come at a site, each with its share of the counts. Tokens that may not
    /// come are left out.
    #[cfg(feature = "experiments")]
    pub(crate) fn shares(&mut self, site: &mut Site<'_>) -> Vec<(TokenId, f64)> {
        self.mix(&self.keys(site));
        let candidates = self.mixture.candidates.iter().copied().filter(|token| site.allows(*token));
        candidates.map(|token| (token, self.mixture.share(token))).filter(|(_, share)| *share > 0.0).collect()
    }

    /// Continues to where `token` follows `tokens`: some may have come unseen since the last one, or it is
    /// another text.
    fn follow(&mut self, tokens: &[TokenId], token: TokenId) {
        /// Number of tokens by which a text is recognised.
        const KNOWN: usize = 8;
        if tokens.get(..self.length).is_none_or(|before| !before.ends_with(&self.last)) {
            self.text = Counts::default();
        }
        self.length = tokens.len() + 1;
        self.last.clear();
        self.last.extend_from_slice(&tokens[tokens.len().saturating_sub(KNOWN - 1)..]);
        self.last.push(token);
    }

    /// Computes the mixture of the contexts.
    fn mix(&mut self, keys: &ContextKeys) {
        self.mixture.fill(&[(&self.prior.counts, 1.0), (&self.text, Self::OWN)], keys);
    }

    /// Returns the contexts that count.
    fn keys(&self, site: &Site<'_>) -> ContextKeys {
        let keys = ContextKeys::at(site);
        if self.counting.tokens_before { keys } else { keys.of_place() }
    }

    /// Returns the guess and its kind: by Gumbel-max with the draw's noise if coupled, otherwise the
    /// likeliest token.
    fn best(&mut self, site: &mut Site<'_>) -> Option<(TokenId, GuessKind)> {
        /// Number of refused candidates after which there is no guess.
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
        if site.is_thinking() {
            return None;
        }
        let (token, kind) = self.best(site)?;
        let acceptance = match self.counting.coupled {
            true => self.prior.calibration.acceptance(kind),
            false => self.mixture.share(token),
        };
        Some(Guess { token, acceptance })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        self.follow(site.tokens(), seen.token);
        if site.is_thinking() {
            return;
        }
        let keys = self.keys(site);
        match self.learning {
            Learning::Fixed => {}
            Learning::PerText => self.text.add(&keys, &weights(seen, self.prior.size())),
            Learning::Online => {
                // The guess before this is learnt: so acceptance is that of what is still to come.
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
        self.learning == Learning::PerText
    }
}
