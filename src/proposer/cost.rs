//! What a pass over n tokens costs, as measured.
//!
//! Clocks decide here how long a draft is, and with that only the time a text takes, never the text.

/// Most tokens of one pass that are told apart.
const MOST: usize = 65;
/// Passes that the running mean looks back on.
const MEMORY: f64 = 24.0;

/// Seconds of a pass over n tokens: running means where there are measurements, straight lines between them.
#[derive(Debug, Clone, PartialEq)]
pub struct CostCurve {
    /// For each number of tokens from 1 on: the mean, and how many passes it stands for.
    means: Vec<(f64, f64)>,
}

impl Default for CostCurve {
    fn default() -> Self {
        Self { means: vec![(0.0, 0.0); MOST] }
    }
}

impl CostCurve {
    /// Numbers of tokens worth a measurement before the first draft: small ones, and both sides of where kernels that
    /// take six or eight rows at a time begin another round.
    pub const PROBES: [usize; 9] = [1, 2, 4, 6, 7, 8, 9, 12, 16];

    /// Notes that a pass over `tokens` took so long. One that took far longer than the others of its kind was
    /// interrupted, and counts as twice the mean.
    pub fn observe(&mut self, tokens: usize, seconds: f64) {
        let Some((mean, passes)) = tokens.checked_sub(1).and_then(|at| self.means.get_mut(at)) else {
            return;
        };
        if !(seconds.is_finite() && seconds >= 0.0) {
            return;
        }
        let seconds = if *passes > 0.0 { seconds.min(2.0 * *mean) } else { seconds };
        *passes = (*passes + 1.0).min(MEMORY);
        *mean += (seconds - *mean) / *passes;
    }

    /// Was nothing measured?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.means.iter().all(|(_, passes)| *passes == 0.0)
    }

    /// Has a pass over so many tokens been measured?
    #[must_use]
    pub fn is_measured(&self, tokens: usize) -> bool {
        tokens.checked_sub(1).and_then(|at| self.means.get(at)).is_some_and(|(_, passes)| *passes > 0.0)
    }

    /// Seconds of a pass over `tokens`. Without measurements each token costs a tenth
    /// of the first.
    #[must_use]
    pub fn seconds(&self, tokens: usize) -> f64 {
        let known =
            |n: usize| self.means.get(n - 1).filter(|(_, passes)| *passes > 0.0).map(|(mean, _)| *mean);
        let tokens = tokens.max(1);
        let below = (1..=tokens.min(MOST)).rev().find_map(|n| Some((n, known(n)?)));
        let above = (tokens..=MOST).find_map(|n| Some((n, known(n)?)));
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
        let part = |n: usize, of: usize| n as f64 / of as f64;
        match (below, above) {
            (Some((_, low)), Some((_, high))) if high <= low => low,
            (Some((at, low)), Some((to, high))) => low + (high - low) * part(tokens - at, to - at),
            (Some((at, low)), None) => low * (1.0 + 0.1 * part(tokens - at, 1)),
            (None, Some((to, high))) => high * part(9 + tokens, 9 + to),
            (None, None) => part(9 + tokens, 10),
        }
    }

    /// How many times the cost of one token a pass over `tokens` costs.
    #[must_use]
    pub fn relative(&self, tokens: usize) -> f64 {
        self.seconds(tokens) / self.seconds(1).max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_between_measurements() {
        let mut curve = CostCurve::default();
        assert!((curve.relative(11) - 2.0).abs() < 1e-9);
        curve.observe(1, 1.0);
        curve.observe(5, 3.0);
        curve.observe(7, 2.0);
        for (tokens, seconds) in
            [(1, 1.0), (2, 1.5), (5, 3.0), (6, 3.0), (7, 2.0), (17, 4.0), (500, 2.0 * 50.3)]
        {
            assert!((curve.seconds(tokens) - seconds).abs() < 1e-9, "{tokens}: {}", curve.seconds(tokens));
        }
        assert!(curve.is_measured(5) && !curve.is_measured(6) && !curve.is_measured(0));
    }

    #[test]
    fn interruptions_count_little() {
        let mut curve = CostCurve::default();
        (0..50).for_each(|_| curve.observe(2, 1.0));
        curve.observe(2, 1000.0);
        assert!(curve.seconds(2) < 1.1);
        curve.observe(2, f64::NAN);
        curve.observe(0, 5.0);
        curve.observe(10_000, 5.0);
        assert!(curve.seconds(2) < 1.1);
    }
}
