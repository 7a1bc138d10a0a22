//! The measured cost of passes, by their number of tokens.
//!
//! Clocks decide here how long a draft is, and so only the time that a text takes, never the text.

/// Greatest number of tokens of a pass with a cost of its own.
const MOST: usize = 65;
/// Number of passes over the same number of tokens that are remembered.
const MEMORY: usize = 15;
/// Weight of the first pass: more than the passes it takes to find out that the machine's pace has changed,
/// see [`PassCost`](super::PassCost).
const FIRST: usize = 5;

/// Seconds of a pass over n tokens: L1 isotonic regression (pool adjacent violators) over the last passes,
/// with linear interpolation between measurements.
///
/// Disturbances only make a pass longer, now and then several times as long, so medians are used, not means.
/// And a pass over more tokens is no cheaper, so the curve rises: neighbours whose medians would fall are
/// pooled.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CostCurve {
    /// The last passes over each number of tokens from 1 on.
    passes: Vec<RecentPasses>,
    /// The curve at numbers of tokens that were measured, ascending in both.
    points: Vec<(usize, f64)>,
}

/// The last passes over the same number of tokens.
#[derive(Debug, Clone, Default, PartialEq)]
struct RecentPasses {
    seconds: Vec<f64>,
    /// Index of the oldest one, once the list is full.
    oldest: usize,
}

impl RecentPasses {
    /// Adds a pass, in place of the oldest one if all places are taken. The first one counts `FIRST` times.
    fn add(&mut self, seconds: f64) {
        if self.seconds.is_empty() {
            self.seconds = vec![seconds; FIRST];
        } else if self.seconds.len() < MEMORY {
            self.seconds.push(seconds);
        } else {
            self.seconds[self.oldest] = seconds;
            self.oldest = (self.oldest + 1) % MEMORY;
        }
    }
}

/// A pooled block: neighbouring numbers of tokens, up to `last`, with the same cost.
struct Level {
    last: usize,
    seconds: Vec<f64>,
    median: f64,
}

impl Level {
    /// Creates a block of these passes. If two are in the middle the shorter one is the median: the longer
    /// one may have been disturbed.
    fn new(last: usize, mut seconds: Vec<f64>) -> Self {
        seconds.sort_unstable_by(f64::total_cmp);
        let median = seconds[(seconds.len() - 1) / 2];
        Self { last, seconds, median }
    }
}

impl Default for CostCurve {
    fn default() -> Self {
        Self { passes: vec![RecentPasses::default(); MOST], points: Vec::new() }
    }
}

impl CostCurve {
    /// Numbers of tokens worth a measurement before the first draft: small ones, and both sides of where
    /// kernels that take six or eight rows at a time begin another round.
    pub(super) const PROBES: [usize; 9] = [1, 2, 4, 6, 7, 8, 9, 12, 16];

    /// Adds a measurement of a pass over `tokens`. Sorts the remembered passes, a few hundred.
    pub(super) fn observe(&mut self, tokens: usize, seconds: f64) {
        let Some(passes) = tokens.checked_sub(1).and_then(|at| self.passes.get_mut(at)) else { return };
        if !(seconds.is_finite() && seconds >= 0.0) {
            return;
        }
        passes.add(seconds);
        self.fit();
    }

    /// Fits the curve: pools adjacent violators.
    fn fit(&mut self) {
        let mut levels: Vec<Level> = Vec::new();
        self.points.clear();
        for (at, passes) in self.passes.iter().enumerate().filter(|(_, passes)| !passes.seconds.is_empty()) {
            self.points.push((at + 1, 0.0));
            let mut level = Level::new(at + 1, passes.seconds.clone());
            while let Some(mut before) = levels.pop_if(|before| before.median > level.median) {
                before.seconds.append(&mut level.seconds);
                level = Level::new(level.last, before.seconds);
            }
            levels.push(level);
        }
        let mut points = self.points.iter_mut().peekable();
        for level in levels {
            while let Some(point) = points.next_if(|point| point.0 <= level.last) {
                point.1 = level.median;
            }
        }
    }

    /// Is there no measurement?
    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Has a pass over this number of tokens been measured?
    pub(super) fn is_measured(&self, tokens: usize) -> bool {
        self.points.binary_search_by_key(&tokens, |point| point.0).is_ok()
    }

    /// Returns the seconds of a pass over `tokens`. Without measurements each token costs a tenth of the
    /// first.
    pub(super) fn seconds(&self, tokens: usize) -> f64 {
        let tokens = tokens.max(1);
        let next = self.points.partition_point(|point| point.0 < tokens);
        let below = next.checked_sub(1).and_then(|before| self.points.get(before)).copied();
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
        let part = |n: usize, of: usize| n as f64 / of as f64;
        match (below, self.points.get(next).copied()) {
            (_, Some((to, high))) if to == tokens => high,
            (Some((at, low)), Some((to, high))) => low + (high - low) * part(tokens - at, to - at),
            (Some((at, low)), None) => low * (1.0 + 0.1 * part(tokens - at, 1)),
            (None, Some((to, high))) => high * part(9 + tokens, 9 + to),
            (None, None) => part(9 + tokens, 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn costs_between_measurements_are_interpolated() {
        let mut curve = CostCurve::default();
        assert!((curve.seconds(11) / curve.seconds(1) - 2.0).abs() < 1e-9);
        curve.observe(1, 1.0);
        curve.observe(5, 3.0);
        curve.observe(7, 2.0);
        for (tokens, seconds) in
            [(1, 1.0), (2, 1.25), (5, 2.0), (6, 2.0), (7, 2.0), (17, 4.0), (500, 2.0 * 50.3)]
        {
            assert!((curve.seconds(tokens) - seconds).abs() < 1e-9, "{tokens}: {}", curve.seconds(tokens));
        }
        assert!(curve.is_measured(5) && !curve.is_measured(6) && !curve.is_measured(0));
    }

    #[test]
    fn outliers_and_impossible_measurements_do_not_count() {
        let mut curve = CostCurve::default();
        (0..50).for_each(|_| curve.observe(2, 1.0));
        (0..5).for_each(|_| curve.observe(2, 1000.0));
        assert!((curve.seconds(2) - 1.0).abs() < 1e-9);
        curve.observe(2, f64::NAN);
        curve.observe(0, 5.0);
        curve.observe(10_000, 5.0);
        assert!((curve.seconds(2) - 1.0).abs() < 1e-9);
        curve.observe(3, -1.0);
        assert!(!curve.is_measured(3));
    }

    #[test]
    fn a_pass_may_take_no_time_that_a_clock_can_tell() {
        let mut curve = CostCurve::default();
        curve.observe(1, 0.0);
        assert!(curve.is_measured(1) && curve.seconds(1) == 0.0);
    }

    #[test]
    fn a_pass_over_more_tokens_is_not_cheaper() {
        // Measured: the pass over two tokens was disturbed, and that over four.
        let mut curve = CostCurve::default();
        for (tokens, seconds) in [(1, 1.0), (2, 4.03), (3, 1.31), (4, 2.89), (6, 1.4), (8, 1.6)] {
            curve.observe(tokens, seconds);
        }
        for (tokens, seconds) in [(1, 1.0), (2, 1.31), (3, 1.31), (4, 1.4), (6, 1.4), (8, 1.6)] {
            assert!((curve.seconds(tokens) - seconds).abs() < 1e-9, "{tokens}: {}", curve.seconds(tokens));
        }
        // One reading that is too low does not overrule many.
        let mut curve = CostCurve::default();
        (0..9).for_each(|_| curve.observe(3, 1.3));
        curve.observe(8, 0.2);
        assert!((curve.seconds(3) - 1.3).abs() < 1e-9 && (curve.seconds(8) - 1.3).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_cost_curve_never_falls(seen in prop::collection::vec((1..=20_usize, 0.0..10.0_f64), 1..200)) {
            let mut curve = CostCurve::default();
            seen.iter().for_each(|&(tokens, seconds)| curve.observe(tokens, seconds));
            let all: Vec<f64> = (1..=70).map(|tokens| curve.seconds(tokens)).collect();
            prop_assert!(all.is_sorted(), "{all:?}");
            let (least, most) = seen.iter().fold((f64::MAX, 0.0_f64), |(least, most), seen| {
                (least.min(seen.1), most.max(seen.1))
            });
            let last = seen.iter().map(|seen| seen.0).max().unwrap();
            let first = seen.iter().map(|seen| seen.0).min().unwrap();
            let measured = &all[first - 1..last];
            prop_assert!(measured.iter().all(|&seconds| least <= seconds && seconds <= most + 1e-9));
        }
    }
}
