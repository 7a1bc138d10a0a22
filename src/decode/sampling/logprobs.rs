//! Log-probabilities of the tokens that were drawn, and of likely alternatives.
//!
//! Invariant: it only looks: logprobs depend on the model's row and the mask, and change no token.

use super::gumbel_argmax::for_each_logit;
use crate::{ids::TokenId, vocab::TokenSet};

/// Natural logarithms of probabilities at one position.
///
/// The model's distribution is that of its logits as they are: temperature 1, all ids, without penalties and
/// cuts. The constrained one is the same over the allowed tokens only: how much more likely a token is there
/// says how much of the model's probability the constraint refuses.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Logprobs {
    /// The token that was taken.
    pub taken: TokenLogprobs,
    /// The model's likeliest tokens, likeliest first, ties by lower id; those at minus infinity are left out.
    pub top: Vec<TokenLogprobs>,
    /// The likeliest allowed tokens. Empty without a constraint.
    pub top_allowed: Vec<TokenLogprobs>,
    /// Probability mass that the constraint keeps, as a log: that of all allowed tokens together. `None`
    /// without a constraint. Its sum over a text is the text's importance weight under the conditional
    /// distribution (at temperature 1), as masks sample the locally projected one.
    pub kept: Option<f64>,
}

/// The log-probabilities of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TokenLogprobs {
    /// The token.
    pub token: TokenId,
    /// Log-probability under the model's own distribution.
    pub model: f64,
    /// Log-probability under the constrained distribution; `None` if the token is refused, or nothing
    /// constrains.
    pub constrained: Option<f64>,
}

impl Logprobs {
    /// Computes those of a `row` whose draw was `taken`, with `count` alternatives; `allowed` is the mask
    /// under a constraint. Some passes over the row. The row has been drawn from, so its numbers are sound.
    pub(in crate::decode) fn new(
        row: &[f32],
        taken: TokenId,
        allowed: Option<&TokenSet>,
        count: usize,
    ) -> Self {
        let all = LogSum::new(row.iter().copied());
        let within = allowed.map(|allowed| {
            let mut logits = Vec::new();
            for_each_logit(row, allowed, |_, logit| logits.push(logit));
            LogSum::new(logits.iter().copied())
        });
        let of = |token: TokenId, logit: f32| {
            let logit = f64::from(logit);
            let constrained = within.filter(|_| allowed.is_some_and(|allowed| allowed.contains(token)));
            TokenLogprobs {
                token,
                model: all.share(logit),
                constrained: constrained.map(|sum| sum.share(logit)),
            }
        };
        let mut top = Likeliest::new(count);
        for (index, &logit) in row.iter().enumerate() {
            if let Some(token) = TokenId::from_index(index) {
                top.enter(token, logit);
            }
        }
        let mut top_allowed = Likeliest::new(count);
        if let Some(allowed) = allowed {
            for_each_logit(row, allowed, |token, logit| top_allowed.enter(token, logit));
        }
        let list = |likeliest: Likeliest| {
            likeliest.found.into_iter().map(|(token, logit)| of(token, logit)).collect()
        };
        let logit = row.get(taken.index()).copied().unwrap_or(f32::NEG_INFINITY);
        let kept = within.map(|within| all.share(within.largest) + within.ratio);
        Self { taken: of(taken, logit), top: list(top), top_allowed: list(top_allowed), kept }
    }
}

/// A log-sum-exp, in two parts: beside a large logit the second would be lost.
#[derive(Clone, Copy)]
struct LogSum {
    largest: f64,
    /// Logarithm of the ratio of the sum to the largest number.
    ratio: f64,
}

impl LogSum {
    fn new(logits: impl Iterator<Item = f32> + Clone) -> Self {
        let largest = f64::from(logits.clone().fold(f32::NEG_INFINITY, f32::max));
        let ratio = logits.map(|logit| (f64::from(logit) - largest).exp()).sum::<f64>().ln();
        Self { largest, ratio }
    }

    /// Returns the log of a logit's share in the sum. At least one logit of the sum is finite.
    fn share(self, logit: f64) -> f64 {
        logit - self.largest - self.ratio
    }
}

/// The likeliest tokens among those that entered, lowest id first.
struct Likeliest {
    count: usize,
    /// The tokens, likeliest first.
    found: Vec<(TokenId, f32)>,
}

impl Likeliest {
    fn new(count: usize) -> Self {
        Self { count, found: Vec::new() }
    }

    /// Adds a token if it is among the likeliest so far; of equals, the earlier one goes first.
    fn enter(&mut self, token: TokenId, logit: f32) {
        let full = self.found.len() >= self.count;
        if logit == f32::NEG_INFINITY || full && self.found.last().is_none_or(|&(_, least)| logit <= least) {
            return;
        }
        if full {
            self.found.pop();
        }
        let place = self.found.partition_point(|&(_, other)| other >= logit);
        self.found.insert(place, (token, logit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(size: usize, tokens: &[u32]) -> TokenSet {
        let mut set = TokenSet::empty(size);
        tokens.iter().for_each(|&token| set.insert(TokenId::new(token)));
        set
    }

    fn ids(list: &[TokenLogprobs]) -> Vec<u32> {
        list.iter().map(|entry| entry.token.raw()).collect()
    }

    #[test]
    fn probabilities_are_shares_of_all_and_of_the_allowed() {
        // Probabilities 1/2, 1/4, 1/8, 1/8, 0.
        let row = [4.0_f32.ln(), 2.0_f32.ln(), 0.0, 0.0, f32::NEG_INFINITY];
        let found = Logprobs::new(&row, TokenId::new(2), Some(&set(5, &[1, 2, 4])), 3);
        assert!((found.taken.model - 0.125_f64.ln()).abs() < 1e-6);
        assert!((found.taken.constrained.unwrap() - (1.0_f64 / 3.0).ln()).abs() < 1e-6);
        assert_eq!(ids(&found.top), [0, 1, 2]);
        assert_eq!(ids(&found.top_allowed), [1, 2]);
        assert_eq!(found.top[0].constrained, None);
        assert!((found.top_allowed[0].constrained.unwrap() - (2.0_f64 / 3.0).ln()).abs() < 1e-6);
        assert!((found.kept.unwrap() - 0.375_f64.ln()).abs() < 1e-6);
        let free = Logprobs::new(&row, TokenId::new(4), None, 9);
        assert_eq!((free.taken.model, free.taken.constrained), (f64::NEG_INFINITY, None));
        assert_eq!((ids(&free.top), free.top_allowed.len(), free.kept), (vec![0, 1, 2, 3], 0, None));
        assert!(Logprobs::new(&row, TokenId::new(0), None, 0).top.is_empty());
    }

    #[test]
    fn large_logits_do_not_overflow() {
        let found = Logprobs::new(&[3e38, 3e38, -3e38], TokenId::new(0), None, 1);
        assert!((found.taken.model - 0.5_f64.ln()).abs() < 1e-6);
    }
}
