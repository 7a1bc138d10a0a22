//! Selects the part of a distribution that is worth learning from.

use super::{gumbel_argmax, noise::exp};
use crate::{
    ids::TokenId,
    vocab::{Contents, TokenSet},
};

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
    let tops = gumbel_argmax::tops(row, allowed);
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
