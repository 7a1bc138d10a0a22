//! Calibration: how often guesses of each kind were right, over all and of late.

use super::counts::LEVELS;
use crate::store::{PayloadReader, PayloadWriter, StoreError};

/// Margins between kinds, in nats.
const MARGINS: [f64; 7] = [0.2, 0.5, 1.0, 1.8, 3.0, 5.0, 8.0];
/// Expected acceptance of guesses with these margins before any was seen.
pub(crate) const EXPECTED: [f64; MARGINS.len() + 1] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9];
/// Numbers of observations between kinds of support.
const SUPPORTS: [f32; 2] = [1.5, 6.0];
const KINDS: usize = 2 * LEVELS * (SUPPORTS.len() + 1) * (MARGINS.len() + 1);
/// Number of guesses that the prior of a margin counts for.
const WEIGHT: f64 = 4.0;

/// Returns the kind of a margin, from 0: an index of [`EXPECTED`].
pub(crate) fn kind_of_margin(margin: f64) -> usize {
    MARGINS.iter().filter(|&&end| margin >= end).count()
}

/// The kind of a guess: how draws are made, how rich the known context is and how well known, and by how much
/// the guess is ahead of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GuessKind {
    greedy: bool,
    level: usize,
    support: usize,
    margin: usize,
}

impl GuessKind {
    pub(super) fn new(greedy: bool, level: usize, support: f32, margin: f64) -> Self {
        let support = SUPPORTS.iter().filter(|&&end| support >= end).count();
        Self { greedy, level: level.min(LEVELS - 1), support, margin: kind_of_margin(margin) }
    }

    fn index(self) -> usize {
        let place = usize::from(self.greedy) * LEVELS + self.level;
        (place * (SUPPORTS.len() + 1) + self.support) * (MARGINS.len() + 1) + self.margin
    }
}

/// Numbers of guesses of a kind, and of right ones among them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tally {
    tried: u32,
    right: u32,
}

/// Tallies by kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calibration {
    tallies: Vec<Tally>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { tallies: vec![Tally::default(); KINDS] }
    }
}

impl Calibration {
    /// Counts a guess of a kind.
    pub(super) fn add(&mut self, kind: GuessKind, right: bool) {
        let tally = &mut self.tallies[kind.index()];
        tally.tried = tally.tried.saturating_add(1);
        tally.right = tally.right.saturating_add(u32::from(right));
    }

    /// Estimates the acceptance of guesses of a kind: the kind's rate, shrunk towards that of all guesses
    /// with this margin if the kind is rare.
    pub(super) fn acceptance(&self, kind: GuessKind) -> f64 {
        let mut alike = (WEIGHT, WEIGHT * EXPECTED[kind.margin]);
        for level in 0..LEVELS {
            for support in 0..=SUPPORTS.len() {
                let tally = self.tallies[GuessKind { level, support, ..kind }.index()];
                alike = (alike.0 + f64::from(tally.tried), alike.1 + f64::from(tally.right));
            }
        }
        let tally = self.tallies[kind.index()];
        (f64::from(tally.right) + WEIGHT * alike.1 / alike.0) / (f64::from(tally.tried) + WEIGHT)
    }

    /// Returns the number of guesses in all, and of right ones among them.
    pub(super) fn total(&self) -> (u64, u64) {
        let add =
            |(tried, right), tally: &Tally| (tried + u64::from(tally.tried), right + u64::from(tally.right));
        self.tallies.iter().fold((0, 0), add)
    }

    /// Adds all that `other` has seen.
    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.tallies.iter_mut().zip(&other.tallies) {
            own.tried = own.tried.saturating_add(other.tried);
            own.right = own.right.saturating_add(other.right);
        }
    }

    pub(super) fn write(&self, writer: &mut PayloadWriter) {
        writer.u32s(
            self.tallies.iter().flat_map(|tally| [tally.tried, tally.right]).collect::<Vec<_>>().into_iter(),
        );
    }

    /// Reads the tallies that [`write`](Self::write) wrote.
    pub(super) fn read(reader: &mut PayloadReader<'_>) -> Result<Self, StoreError> {
        let numbers = reader.u32s()?;
        let (pairs, rest) = numbers.as_chunks();
        let tallies: Vec<Tally> = pairs.iter().map(|&[tried, right]| Tally { tried, right }).collect();
        let sound = rest.is_empty() && tallies.len() == KINDS;
        if !sound || tallies.iter().any(|tally| tally.right > tally.tried) {
            return Err(StoreError::malformed("tallies of guesses that cannot be"));
        }
        Ok(Self { tallies })
    }
}

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
    fn acceptance_rates_are_those_seen() {
        let mut calibration = Calibration::default();
        let (sure, unsure) = (GuessKind::new(false, 3, 9.0, 4.0), GuessKind::new(false, 3, 9.0, 0.1));
        assert!(calibration.acceptance(unsure) < calibration.acceptance(sure));
        for n in 0..1000 {
            calibration.add(sure, n % 10 > 0);
            calibration.add(unsure, n % 4 == 0);
        }
        assert!((calibration.acceptance(sure) - 0.9).abs() < 0.01);
        assert!((calibration.acceptance(unsure) - 0.25).abs() < 0.01);
        // A kind that was not met is thought of as those like it.
        let other = GuessKind::new(false, 1, 0.5, 0.1);
        assert!((calibration.acceptance(other) - 0.25).abs() < 0.01);
        assert_eq!(calibration.total(), (2000, 1150));
    }
    #[test]
    fn a_kind_of_guess_ends_below_its_bound() {
        let margin = |margin: f64| GuessKind::new(true, 0, 1.0, margin);
        for end in MARGINS {
            assert!(margin(end) == margin(end + 0.01) && margin(end) != margin(end - 0.01), "{end}");
        }
        let support = |support: f32| GuessKind::new(true, 0, support, 1.0);
        for end in SUPPORTS {
            assert!(support(end) == support(end + 0.01) && support(end) != support(end - 0.01), "{end}");
        }
    }
}

#[cfg(test)]
mod rate_tests {
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
