//! Probabilities of a row: log-probabilities of the tokens that were drawn and of likely alternatives, the
//! mass that a mask keeps, and the part of a distribution that is worth learning from.
//!
//! The sum of the logs of the kept mass over a text, end of text included, is the text's importance weight:
//! masks sample the locally projected distribution, and the model conditioned on the language is that one
//! times the weight, normalised. Only the arithmetic of [`noise`] is used, so the numbers are the same on
//! every machine.
//!
//! Invariant: it only looks: logprobs depend on the model's row and the mask, and change no token.

use super::noise::{self, exp, for_each_logit};
use crate::ids::TokenId;
use crate::vocab::{Contents, TokenSet};

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

/// Returns the log of the probability that `row`, at `temperature`, gives the `allowed` tokens among all that
/// are `possible`. Minus infinity if it gives them none; NaN if the row has NaN or plus infinity. Two passes
/// over the row for each set.
pub(crate) fn log_kept(row: &[f32], allowed: &TokenSet, possible: &TokenSet, temperature: f64) -> f64 {
    let kept = log_mass(row, allowed, temperature);
    if kept == f64::NEG_INFINITY { kept } else { kept - log_mass(row, possible, temperature) }
}

/// Returns the log-sum-exp of some tokens' logits over the temperature.
pub(crate) fn log_mass(row: &[f32], tokens: &TokenSet, temperature: f64) -> f64 {
    let mut logits = Vec::with_capacity(row.len().min(tokens.len()));
    for_each_logit(row, tokens, |_, logit| logits.push(logit));
    log_sum(logits.iter().copied(), temperature)
}

/// Returns the log-sum-exp of logits over the temperature.
pub(crate) fn log_sum(logits: impl Iterator<Item = f32> + Clone, temperature: f64) -> f64 {
    let scaled = |logit: f32| f64::from(logit) / temperature;
    let largest = logits.clone().map(scaled).fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    let sum: f64 = logits.map(|logit| noise::exp(scaled(logit) - largest)).sum();
    if sum.is_finite() { largest + noise::ln(sum) } else { f64::NAN }
}

/// Greatest number of tokens selected.
const MOST: usize = 96;
/// Probability below which a token is left out.
const LEAST: f64 = 0.0005;
/// Distance below the largest logit at which a token's probability is certainly below [`LEAST`].
pub(in crate::decode) const FAR: f32 = 8.0;
/// Number of tokens in a word of a set.
const WORD: usize = 64;

/// Returns the likelier of the allowed tokens, with their probabilities among these. One pass over the
/// allowed logits, for the largest of each word's, and one over those of words where it is close to the
/// largest of all.
pub(crate) fn likely(row: &[f32], allowed: &TokenSet) -> Vec<(TokenId, f32)> {
    let tops = noise::tops(row, allowed);
    let top = tops.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !top.is_finite() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut sum = 0.0;
    let mut add = |token: usize, logit: f32| {
        if top - logit < FAR
            && let Ok(token) = u32::try_from(token)
        {
            let weight = exp(f64::from(logit - top));
            sum += weight;
            found.push((TokenId::new(token), weight));
        }
    };
    match allowed.contents() {
        Contents::Listed(tokens) => {
            let in_row = tokens.iter().filter_map(|token| Some((token.index(), *row.get(token.index())?)));
            in_row.for_each(|(token, logit)| add(token, logit));
        }
        Contents::Bits(words) => {
            let words = row.chunks(WORD).zip(words).zip(&tops).enumerate();
            for (index, ((logits, &word), _)) in words.filter(|(_, (_, word_top))| top - **word_top < FAR) {
                for (at, &logit) in logits.iter().enumerate().filter(|(at, _)| word >> at & 1 == 1) {
                    add(WORD * index + at, logit);
                }
            }
        }
    }
    shares(found, sum)
}

/// Returns what [`likely`] does, given the allowed tokens that are less than [`FAR`] below the largest logit,
/// ascending, and their logits.
pub(in crate::decode) fn likely_of(near: &[(TokenId, f32)]) -> Vec<(TokenId, f32)> {
    let top = near.iter().map(|(_, logit)| *logit).fold(f32::NEG_INFINITY, f32::max);
    let weights = near.iter().map(|&(token, logit)| (token, exp(f64::from(logit - top))));
    let found: Vec<(TokenId, f64)> = weights.collect();
    let sum = found.iter().map(|(_, weight)| weight).sum();
    shares(found, sum)
}

/// Returns the shares of a `sum` that tokens have by their weights, without small ones.
fn shares(mut found: Vec<(TokenId, f64)>, sum: f64) -> Vec<(TokenId, f32)> {
    found.retain(|(_, weight)| *weight >= LEAST * sum);
    if found.len() > MOST {
        found.select_nth_unstable_by(MOST, |one, other| other.1.total_cmp(&one.1));
        found.truncate(MOST);
        found.sort_unstable_by_key(|&(token, _)| token);
    }
    #[expect(clippy::cast_possible_truncation, reason = "probabilities, to the nearest")]
    let told = |(token, weight): (TokenId, f64)| (token, (weight / sum) as f32);
    found.into_iter().map(told).collect()
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

#[cfg(test)]
mod kept_mass_tests {
    use super::*;
    use crate::ids::TokenId;

    fn set(tokens: &[u32]) -> TokenSet {
        let mut set = TokenSet::empty(5);
        tokens.iter().for_each(|&token| set.insert(TokenId::new(token)));
        set
    }

    #[test]
    fn the_kept_mass_is_a_share_at_the_temperature() {
        let row = [4.0_f32.ln(), 2.0_f32.ln(), 0.0, 9.0, f32::NEG_INFINITY];
        let possible = set(&[0, 1, 2, 4]);
        let close = |found: f64, share: f64| assert!((found.exp() - share).abs() < 1e-6, "{found} {share}");
        close(log_kept(&row, &set(&[0, 2]), &possible, 1.0), 5.0 / 7.0);
        close(log_kept(&row, &set(&[1]), &possible, 0.5), 4.0 / 21.0);
        close(log_kept(&row, &possible, &possible, 2.0), 1.0);
        for nothing in [&[][..], &[4]] {
            assert_eq!(log_kept(&row, &set(nothing), &possible, 1.0), f64::NEG_INFINITY);
        }
        for wrong in [f32::NAN, f32::INFINITY] {
            assert!(log_kept(&[1.0, wrong], &set(&[0, 1]), &set(&[0, 1]), 1.0).is_nan());
        }
    }
}

#[cfg(test)]
mod likely_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_likelier_allowed_tokens_are_selected() {
        let row = [9.0, 0.0, 2.0_f32.ln(), -20.0, f32::NEG_INFINITY, 0.0];
        let mut allowed = TokenSet::empty(5);
        (1..5).map(TokenId::new).for_each(|token| allowed.insert(token));
        let found = likely(&row, &allowed);
        assert_eq!(found.iter().map(|(token, _)| token.raw()).collect::<Vec<_>>(), [1, 2]);
        assert!((found[0].1 - 1.0 / 3.0).abs() < 1e-6 && (found[1].1 - 2.0 / 3.0).abs() < 1e-6);
        assert!(likely(&[f32::NEG_INFINITY; 5], &allowed).is_empty());
        assert!(likely(&row, &TokenSet::empty(5)).is_empty());
        assert!(likely_of(&[]).is_empty());
        let even = likely(&[1.0; 300], &{
            let mut all = TokenSet::empty(300);
            (0..300).map(TokenId::new).for_each(|token| all.insert(token));
            all
        });
        assert_eq!(even.len(), MOST);
    }

    proptest! {
        /// Compares with the definition.
        #[test]
        fn likely_tokens_are_those_of_the_definition(
            row in prop::collection::vec(prop_oneof![-30.0..5.0_f32, Just(f32::NEG_INFINITY)], 1..300),
            bits in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 5),
        ) {
            let mut allowed = TokenSet::empty(row.len());
            let is_allowed = |at: &usize| bits[at / 64] >> (at % 64) & 1 == 1;
            let tokens: Vec<usize> = (0..row.len()).filter(is_allowed).collect();
            tokens.iter().for_each(|&at| allowed.insert(TokenId::new(u32::try_from(at).unwrap())));
            let top = tokens.iter().map(|&at| row[at]).fold(f32::NEG_INFINITY, f32::max);
            let near: Vec<usize> = tokens.into_iter().filter(|&at| top - row[at] < FAR).collect();
            let weight = |at: usize| f64::from(row[at] - top).exp();
            let sum: f64 = near.iter().map(|&at| weight(at)).sum();
            let found = likely(&row, &allowed);
            // A list of the near tokens alone gives the same bits.
            let listed: Vec<(TokenId, f32)> =
                near.iter().map(|&at| (TokenId::from_index(at).unwrap(), row[at])).collect();
            prop_assert_eq!(&likely_of(&listed), &found);
            prop_assert!(found.is_sorted_by_key(|(token, _)| *token) && found.len() <= MOST);
            for (token, share) in &found {
                prop_assert!(near.contains(&token.index()));
                prop_assert!((f64::from(*share) - weight(token.index()) / sum).abs() < 1e-6);
            }
            let told: f64 = near.iter().map(|&at| weight(at) / sum).filter(|share| *share > 0.0006).sum();
            let sum: f64 = found.iter().map(|(_, share)| f64::from(*share)).sum();
            prop_assert!(near.len() > MOST || sum > told - 1e-4, "{sum} {told}");
        }
    }
}
