//! The probability mass that a mask keeps.
//!
//! The sum of its logs over a text, end of text included, is the text's importance weight: masks sample the
//! locally projected distribution, and the model conditioned on the language is that one times the weight,
//! normalised. Only the arithmetic of [`noise`] is used, so the numbers are the same on every machine.

use super::{gumbel_argmax::for_each_logit, noise};
use crate::vocab::TokenSet;

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

#[cfg(test)]
mod tests {
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
