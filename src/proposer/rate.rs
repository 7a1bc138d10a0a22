//! The recent rate of right guesses of a kind.

/// A rate of right guesses with a window of some 256 of them, and a prior expectation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    tried: f64,
    right: f64,
}

impl Rate {
    /// Number of guesses that the expectation counts for.
    const WEIGHT: f64 = 8.0;
    /// Number of guesses in the window.
    const MEMORY: f64 = 256.0;

    /// Creates a rate with an expectation.
    pub(crate) const fn expecting(rate: f64) -> Self {
        Self { tried: Self::WEIGHT, right: Self::WEIGHT * rate }
    }

    /// Returns the share of right guesses.
    pub(crate) fn value(self) -> f64 {
        self.right / self.tried
    }

    /// Adds a guess.
    pub(crate) fn note(&mut self, right: bool) {
        let keep = (Self::MEMORY / (self.tried + 1.0)).min(1.0);
        self.tried = (self.tried + 1.0) * keep;
        self.right = (self.right + f64::from(u8::from(right))) * keep;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_begin_as_expected_and_follow_observations() {
        let mut rate = Rate::expecting(0.25);
        assert!((rate.value() - 0.25).abs() < 1e-12);
        (0..8).for_each(|_| rate.note(true));
        assert!((rate.value() - 10.0 / 16.0).abs() < 1e-12);
        // What was long ago fades.
        (0..2000).for_each(|_| rate.note(true));
        (0..256).for_each(|_| rate.note(false));
        assert!((0.3..0.45).contains(&rate.value()), "{rate:?}");
    }
}
