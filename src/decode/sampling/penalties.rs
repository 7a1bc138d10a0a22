//! Changes of logits before a token is drawn: penalties that make repeated tokens less likely, and amounts
//! that are added to the logits of some tokens (`logit_bias` of OpenAI's API).
//!
//! Invariant: a changed row is a function of the row and, for penalties, of the tokens before it, whatever
//! the constraint: so rows of a draft can be judged one by one, and asking before masking stays exact.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use crate::ids::TokenId;

/// Number of tokens looked back on by default.
const DEFAULT_LAST: usize = 64;

/// Penalties on the logits of tokens that are among the last ones of the sequence, prompt included. They come
/// before temperature, cuts and mask. The default changes nothing.
///
/// For a token that occurs `n` times, the logit is divided by the repeat penalty if positive, multiplied by
/// it if negative (CTRL, arXiv 1909.05858); then the presence penalty, and `n` times the frequency penalty,
/// are subtracted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    repeat: f64,
    presence: f64,
    frequency: f64,
    last: usize,
}

/// An invalid number for [`Penalties`].
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PenaltyError {
    /// The repeat penalty is not in 0.01..=100.
    #[error("the repeat penalty is {0}; it must be between 0.01 and 100 (1 changes nothing)")]
    Repeat(f64),
    /// The presence penalty is not in -100..=100.
    #[error("the presence penalty is {0}; it must be between -100 and 100 (0 changes nothing)")]
    Presence(f64),
    /// The frequency penalty is not in -100..=100.
    #[error("the frequency penalty is {0}; it must be between -100 and 100 (0 changes nothing)")]
    Frequency(f64),
}

impl Penalties {
    /// Creates penalties that change nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { repeat: 1.0, presence: 0.0, frequency: 0.0, last: DEFAULT_LAST }
    }

    /// Divides positive logits by `factor` and multiplies negative ones by it; 1 changes nothing, more makes
    /// repetition less likely.
    ///
    /// # Errors
    /// If it is not in 0.01..=100.
    pub fn repeat(self, factor: f64) -> Result<Self, PenaltyError> {
        if !(0.01..=100.0).contains(&factor) {
            return Err(PenaltyError::Repeat(factor));
        }
        Ok(Self { repeat: factor, ..self })
    }

    /// Subtracts `amount` once from a logit, however often its token occurs.
    ///
    /// # Errors
    /// If it is not in -100..=100.
    pub fn presence(self, amount: f64) -> Result<Self, PenaltyError> {
        if !(-100.0..=100.0).contains(&amount) {
            return Err(PenaltyError::Presence(amount));
        }
        Ok(Self { presence: amount, ..self })
    }

    /// Subtracts `amount` from a logit for each occurrence of its token.
    ///
    /// # Errors
    /// If it is not in -100..=100.
    pub fn frequency(self, amount: f64) -> Result<Self, PenaltyError> {
        if !(-100.0..=100.0).contains(&amount) {
            return Err(PenaltyError::Frequency(amount));
        }
        Ok(Self { frequency: amount, ..self })
    }

    /// Looks back on `count` tokens; 0 means none, so that nothing is changed. Default: 64.
    #[must_use]
    pub fn last_tokens(self, count: usize) -> Self {
        Self { last: count, ..self }
    }

    /// Is nothing ever changed?
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.last == 0 || self.repeat == 1.0 && self.presence == 0.0 && self.frequency == 0.0
    }

    /// Repeat penalty, presence penalty and frequency penalty.
    #[must_use]
    pub fn amounts(&self) -> [f64; 3] {
        [self.repeat, self.presence, self.frequency]
    }

    /// Returns the row to draw from after `tokens`, the whole sequence so far, if the model's row is `row`.
    /// Copies the row if there are penalties.
    #[must_use]
    pub fn apply<'a>(&self, row: &'a [f32], tokens: &[TokenId]) -> Cow<'a, [f32]> {
        if self.is_none() {
            return Cow::Borrowed(row);
        }
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for token in &tokens[tokens.len().saturating_sub(self.last)..] {
            *counts.entry(token.index()).or_default() += 1;
        }
        let mut penalised = row.to_vec();
        for (index, count) in counts {
            if let Some(logit) = penalised.get_mut(index) {
                *logit = self.penalised(*logit, count);
            }
        }
        Cow::Owned(penalised)
    }

    /// Returns the penalised logit of a token that occurs `count` times.
    fn penalised(&self, logit: f32, count: u32) -> f32 {
        let logit = f64::from(logit);
        let repeated = if logit > 0.0 { logit / self.repeat } else { logit * self.repeat };
        #[expect(clippy::cast_possible_truncation, reason = "to the nearest of the logits' own type")]
        let penalised = (repeated - self.presence - f64::from(count) * self.frequency) as f32;
        penalised
    }
}

impl Default for Penalties {
    fn default() -> Self {
        Self::none()
    }
}

/// The greatest amount, as in OpenAI's API: past it a token is as good as always or never drawn.
const GREATEST: f32 = 100.0;

/// The logit of a token that is held back: what OpenAI's API says in place of minus infinity.
const HELD_BACK: f32 = -9999.0;

/// Amounts that are added to the logits of some tokens, before penalties, temperature, cuts and mask. The
/// default changes nothing. A mask goes before it: a token that may not follow is not drawn. Cloning shares
/// the list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogitBias {
    amounts: Arc<[(TokenId, f32)]>,
    /// Tokens that are held back before this position of the sequence.
    late: Option<(usize, Arc<[TokenId]>)>,
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
        Ok(Self { amounts: amounts.into_iter().map(checked).collect::<Result<_, _>>()?, late: None })
    }

    /// Holds tokens back, such as those that end a text, for as long as a sequence has fewer than `length`
    /// tokens, prompt included, whatever their amounts. Where a mask leaves nothing else, they come.
    #[must_use]
    pub fn held_back(mut self, tokens: &[TokenId], length: usize) -> Self {
        self.late = Some((length, tokens.into()));
        self
    }

    /// The same behind a prompt of this many tokens, which are not counted then.
    #[must_use]
    pub fn behind(mut self, prompt: usize) -> Self {
        if let Some((length, _)) = &mut self.late {
            *length = length.saturating_add(prompt);
        }
        self
    }

    /// Is nothing changed?
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.amounts.is_empty() && self.late.is_none()
    }

    /// The tokens that have an amount.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> {
        self.amounts.iter().map(|&(token, _)| token)
    }

    /// Returns the row of the token at `position` of a sequence with the amounts added. Tokens past the row
    /// are left out. Copies the row if there are amounts.
    #[must_use]
    pub fn apply<'a>(&self, row: &'a [f32], position: usize) -> Cow<'a, [f32]> {
        let late = self.late.iter().filter(|(length, _)| position < *length);
        let mut late = late.flat_map(|(_, tokens)| tokens.iter()).peekable();
        if self.amounts.is_empty() && late.peek().is_none() {
            return Cow::Borrowed(row);
        }
        let mut biased = row.to_vec();
        for (token, amount) in &*self.amounts {
            if let Some(logit) = biased.get_mut(token.index()) {
                *logit += amount;
            }
        }
        for token in late {
            if let Some(logit) = biased.get_mut(token.index()) {
                *logit = HELD_BACK;
            }
        }
        Cow::Owned(biased)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn penalised(penalties: Penalties, row: &[f32], tokens: &[u32]) -> Vec<f32> {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId::new).collect();
        penalties.apply(row, &tokens).into_owned()
    }

    #[test]
    fn each_penalty_changes_the_row_as_documented() {
        let row = [2.0, -2.0, 4.0, f32::NEG_INFINITY];
        let none = Penalties::none();
        assert_eq!(penalised(none, &row, &[0, 1, 2]), row);
        let repeat = none.repeat(2.0).unwrap();
        assert_eq!(penalised(repeat, &row, &[0, 1, 0, 3]), [1.0, -4.0, 4.0, f32::NEG_INFINITY]);
        let presence = none.presence(0.5).unwrap();
        assert_eq!(penalised(presence, &row, &[0, 1, 0]), [1.5, -2.5, 4.0, f32::NEG_INFINITY]);
        let frequency = none.frequency(0.5).unwrap();
        assert_eq!(penalised(frequency, &row, &[0, 1, 0]), [1.0, -2.5, 4.0, f32::NEG_INFINITY]);
        let all = repeat.presence(1.0).unwrap().frequency(0.25).unwrap();
        assert_eq!(penalised(all, &row, &[2, 2]), [2.0, -2.0, 0.5, f32::NEG_INFINITY]);
    }

    #[test]
    fn penalties_count_the_last_tokens_only() {
        let row = [2.0, 2.0, 2.0];
        let penalties = Penalties::none().presence(1.0).unwrap();
        assert_eq!(penalised(penalties.last_tokens(2), &row, &[0, 1, 2]), [2.0, 1.0, 1.0]);
        assert_eq!(penalised(penalties.last_tokens(0), &row, &[0, 1, 2]), row);
        // Tokens past the row have no logit.
        assert_eq!(penalised(penalties, &row, &[7]), row);
    }

    #[test]
    fn penalties_out_of_range_are_refused() {
        for bad in [0.0, -1.0, 101.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Penalties::none().repeat(bad), Err(PenaltyError::Repeat(_))), "{bad}");
        }
        for bad in [-100.5, f64::NAN, f64::INFINITY] {
            assert!(matches!(Penalties::none().presence(bad), Err(PenaltyError::Presence(_))), "{bad}");
            assert!(matches!(Penalties::none().frequency(bad), Err(PenaltyError::Frequency(_))), "{bad}");
        }
    }
}

#[cfg(test)]
mod bias_tests {
    use super::*;

    #[test]
    fn amounts_are_added_to_the_logits_of_their_tokens() {
        let row = [1.0, 2.0, f32::NEG_INFINITY];
        let token = TokenId::new;
        let amounts =
            [(token(0), 0.5), (token(1), -100.0), (token(2), 100.0), (token(0), 1.0), (token(9), 3.0)];
        let bias = LogitBias::new(amounts).unwrap();
        assert_eq!(*bias.apply(&row, 0), [2.5, -98.0, f32::NEG_INFINITY]);
        let late = LogitBias::default().held_back(&[TokenId::new(0)], 2);
        assert_eq!((late.apply(&row, 1)[0], late.apply(&row, 2)[0]), (HELD_BACK, row[0]));
        assert_eq!(late.clone().behind(1).apply(&row, 2)[0], HELD_BACK);
        assert!(!late.is_none());
        assert_eq!(*LogitBias::default().apply(&row, 0), row);
        assert!(LogitBias::default().is_none() && !bias.is_none());
        for amount in [100.5, -101.0, f32::NAN, f32::INFINITY] {
            assert_eq!(LogitBias::new([(token(1), amount)]).unwrap_err().token, token(1), "{amount}");
        }
    }
}
