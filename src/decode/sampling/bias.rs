//! Amounts that are added to the logits of some tokens (`logit_bias` of OpenAI's API).
//!
//! Invariant: a row is changed as a function of the row alone, so that rows of a draft can be judged one by
//! one, and asking before masking stays exact.

use std::{borrow::Cow, sync::Arc};

use crate::ids::TokenId;

/// The greatest amount, as in OpenAI's API: past it a token is as good as always or never drawn.
const GREATEST: f32 = 100.0;

/// Amounts that are added to the logits of some tokens, before penalties, temperature, cuts and mask. The
/// default changes nothing. A mask goes before it: a token that may not follow is not drawn. Cloning shares
/// the list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogitBias {
    amounts: Arc<[(TokenId, f32)]>,
}

/// An amount of a [`LogitBias`] that is not in -100..=100.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the bias of token {token} is {amount}; it must be between -100 and 100 (0 changes nothing)")]
#[non_exhaustive]
pub struct LogitBiasError {
    /// The token.
    pub token: TokenId,
    /// The amount.
    pub amount: f32,
}

impl LogitBias {
    /// Makes a bias of amounts; those of a token that comes twice are added up.
    ///
    /// # Errors
    /// If an amount is not in -100..=100.
    pub fn new(amounts: impl IntoIterator<Item = (TokenId, f32)>) -> Result<Self, LogitBiasError> {
        let checked = |(token, amount): (TokenId, f32)| match amount.abs() <= GREATEST {
            true => Ok((token, amount)),
            false => Err(LogitBiasError { token, amount }),
        };
        Ok(Self { amounts: amounts.into_iter().map(checked).collect::<Result<_, _>>()? })
    }

    /// Is nothing changed?
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.amounts.is_empty()
    }

    /// The tokens that have an amount.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> {
        self.amounts.iter().map(|&(token, _)| token)
    }

    /// Returns the row with the amounts added. Tokens past the row are left out. Copies the row if there are
    /// amounts.
    #[must_use]
    pub fn apply<'a>(&self, row: &'a [f32]) -> Cow<'a, [f32]> {
        if self.is_none() {
            return Cow::Borrowed(row);
        }
        let mut biased = row.to_vec();
        for (token, amount) in &*self.amounts {
            if let Some(logit) = biased.get_mut(token.index()) {
                *logit += amount;
            }
        }
        Cow::Owned(biased)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_added_to_the_logits_of_their_tokens() {
        let row = [1.0, 2.0, f32::NEG_INFINITY];
        let token = TokenId::new;
        let amounts =
            [(token(0), 0.5), (token(1), -100.0), (token(2), 100.0), (token(0), 1.0), (token(9), 3.0)];
        let bias = LogitBias::new(amounts).unwrap();
        assert_eq!(*bias.apply(&row), [2.5, -98.0, f32::NEG_INFINITY]);
        assert_eq!(*LogitBias::default().apply(&row), row);
        assert!(LogitBias::default().is_none() && !bias.is_none());
        for amount in [100.5, -101.0, f32::NAN, f32::INFINITY] {
            assert_eq!(LogitBias::new([(token(1), amount)]).unwrap_err().token, token(1), "{amount}");
        }
    }
}
