//! The part of a distribution that is worth learning from.

use super::{noise::exp, sampler::for_each_logit};
use crate::{ids::TokenId, vocab::TokenSet};

/// Most tokens that are told.
const MOST: usize = 96;
/// Probability below which a token is not told.
const LEAST: f64 = 0.0005;
/// How far below the largest a logit is left out of the sum: together such logits are not a hundredth of it, in any
/// vocabulary there is.
const FAR: f32 = 16.0;

/// The likelier ones of the allowed tokens, with their probabilities among these. Two passes over the allowed logits, the
/// cheaper the fewer are close to the largest.
pub(super) fn likely(row: &[f32], allowed: &TokenSet) -> Vec<(TokenId, f32)> {
    let mut largest = f32::NEG_INFINITY;
    for_each_logit(row, allowed, |_, logit| largest = largest.max(logit));
    if !largest.is_finite() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut sum = 0.0;
    for_each_logit(row, allowed, |token, logit| {
        if largest - logit < FAR {
            let weight = exp(f64::from(logit - largest));
            sum += weight;
            found.push((token, weight));
        }
    });
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

    #[test]
    fn the_likelier_allowed_tokens() {
        let row = [9.0, 0.0, 2.0_f32.ln(), -20.0, f32::NEG_INFINITY, 0.0];
        let mut allowed = TokenSet::empty(5);
        (1..5).map(TokenId::new).for_each(|token| allowed.insert(token));
        let found = likely(&row, &allowed);
        assert_eq!(found.iter().map(|(token, _)| token.raw()).collect::<Vec<_>>(), [1, 2]);
        assert!((found[0].1 - 1.0 / 3.0).abs() < 1e-6 && (found[1].1 - 2.0 / 3.0).abs() < 1e-6);
        assert!(likely(&[f32::NEG_INFINITY; 5], &allowed).is_empty());
        assert!(likely(&row, &TokenSet::empty(5)).is_empty());
        let even = likely(&[1.0; 300], &{
            let mut all = TokenSet::empty(300);
            (0..300).map(TokenId::new).for_each(|token| all.insert(token));
            all
        });
        assert_eq!(even.len(), MOST);
    }
}
