//! Draws a token from a row of logits: settings, penalties, Gumbel noise, and what the probabilities were.
//!
//! Invariant: a [`Sampling`] is valid: every number is in its range.

pub(super) mod choice;
pub(super) mod logprobs;
pub(super) mod noise;
pub(super) mod penalties;
pub(super) mod sampler;

/// Settings of a draw: from the softmax of the logits divided by the temperature, cut to its likelier part by
/// top-k, top-p and min-p, in this order. The default is greedy.
///
/// A constraint's mask comes first: the cuts are made in the distribution over the allowed tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// The temperature; 0 means greedy.
    temperature: f64,
    top_k: Option<usize>,
    top_p: f64,
    min_p: f64,
}

/// An invalid number for [`Sampling`].
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// The temperature is neither 0 nor in 0.000001..=1000000.
    #[error("the temperature is {0}; it must be 0 (greedy) or between 0.000001 and 1000000")]
    Temperature(f64),
    /// Top-k of no token.
    #[error("top-k is 0; it must keep at least 1 token")]
    TopK,
    /// Top-p that is not above 0 and at most 1.
    #[error("top-p is {0}; it must be above 0 and at most 1")]
    TopP(f64),
    /// Min-p that is not in 0..=1.
    #[error("min-p is {0}; it must be between 0 and 1")]
    MinP(f64),
}

impl Sampling {
    /// Always takes the token with the largest logit; ties by lower id.
    #[must_use]
    pub const fn greedy() -> Self {
        Self { temperature: 0.0, top_k: None, top_p: 1.0, min_p: 0.0 }
    }

    /// Sampling at `temperature`: 1 is the model's own distribution, 0 is greedy.
    ///
    /// # Errors
    /// If it is negative, not a number, infinite, or so small or large that logits lose their meaning.
    ///
    /// # Examples
    /// ```
    /// use domino::decode::Sampling;
    /// let sampling = Sampling::with_temperature(0.7)?.top_p(0.95)?;
    /// assert!(Sampling::with_temperature(-1.0).is_err());
    /// # Ok::<(), domino::decode::SamplingError>(())
    /// ```
    pub fn with_temperature(temperature: f64) -> Result<Self, SamplingError> {
        if temperature != 0.0 && !(1e-6..=1e6).contains(&temperature) {
            return Err(SamplingError::Temperature(temperature));
        }
        Ok(Self { temperature, ..Self::greedy() })
    }

    /// Keeps the `k` likeliest tokens; ties by lower id.
    ///
    /// # Errors
    /// If `k` is 0.
    pub fn top_k(self, k: usize) -> Result<Self, SamplingError> {
        if k == 0 {
            return Err(SamplingError::TopK);
        }
        Ok(Self { top_k: Some(k), ..self })
    }

    /// Keeps the fewest likeliest tokens that together have probability `p` or more. 1 keeps all.
    ///
    /// # Errors
    /// If `p` is not above 0 and at most 1.
    pub fn top_p(self, p: f64) -> Result<Self, SamplingError> {
        if !(p > 0.0 && p <= 1.0) {
            return Err(SamplingError::TopP(p));
        }
        Ok(Self { top_p: p, ..self })
    }

    /// Keeps the tokens that are at least `p` times as likely as the likeliest. 0 keeps all.
    ///
    /// # Errors
    /// If `p` is not in 0..=1.
    pub fn min_p(self, p: f64) -> Result<Self, SamplingError> {
        if !(0.0..=1.0).contains(&p) {
            return Err(SamplingError::MinP(p));
        }
        Ok(Self { min_p: p, ..self })
    }

    /// The temperature; 0 when greedy.
    #[must_use]
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// Is the likeliest token always taken?
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Are tokens cut off? If not, a token drawn without a mask that turns out to be allowed is the token
    /// that would have been drawn with it. Greedy draws cut nothing that they could take.
    #[must_use]
    pub fn cuts(&self) -> bool {
        !self.is_greedy() && (self.top_k.is_some() || self.top_p < 1.0 || self.min_p > 0.0)
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self::greedy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        for bad in [-1.0, -0.1, f64::NAN, f64::INFINITY, 1e-7, 1e7, f64::MIN_POSITIVE] {
            assert!(matches!(Sampling::with_temperature(bad), Err(SamplingError::Temperature(_))), "{bad}");
        }
        let plain = Sampling::with_temperature(1.0).unwrap();
        for bad in [0.0, -0.5, 1.1, f64::NAN] {
            assert!(matches!(plain.top_p(bad), Err(SamplingError::TopP(_))), "{bad}");
        }
        for bad in [-0.5, 1.1, f64::NAN] {
            assert!(matches!(plain.min_p(bad), Err(SamplingError::MinP(_))), "{bad}");
        }
        assert_eq!(plain.top_k(0), Err(SamplingError::TopK));
    }

    #[test]
    fn only_effective_cuts_of_a_sampled_distribution_count() {
        let plain = Sampling::with_temperature(1.0).unwrap();
        assert!(!plain.cuts() && !plain.top_p(1.0).unwrap().min_p(0.0).unwrap().cuts());
        assert!(plain.top_k(5).unwrap().cuts() && plain.min_p(0.1).unwrap().cuts());
        assert!(!Sampling::greedy().top_p(0.5).unwrap().cuts());
        assert!(Sampling::with_temperature(-0.0).unwrap().is_greedy());
    }
}
