//! The measured cost of passes, by their number of tokens, and of passes whose rows are not all needed whole.
//!
//! The logits of a row are a large part of a small model's pass, and hardly any work if few tokens may follow
//! and the model computes only theirs. So the cost of a pass is that of its tokens plus that of its whole
//! rows. Clocks decide here how long a draft is, and so only the time that a text takes, never the text.

use std::num::NonZeroUsize;

use crate::vocab::TokenSet;

/// The tokens and rows of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pass {
    /// New tokens.
    pub tokens: usize,
    /// Number of rows of which all logits are needed, or [many](Self::is_wide).
    pub whole: usize,
}

impl Pass {
    /// Creates a pass of which every row is needed whole.
    #[must_use]
    pub fn whole(tokens: usize) -> Self {
        Self { tokens, whole: tokens }
    }

    /// Are these enough tokens for their row to count as whole?
    #[must_use]
    pub fn is_wide(set: &TokenSet) -> bool {
        /// A set is not wide if it has fewer than one token in this many. They may be far apart, and logits
        /// are computed sixteen at a time.
        const NARROW: usize = 32;
        set.len() * NARROW > set.size()
    }
}

impl std::ops::Add for Pass {
    type Output = Self;

    /// Returns the pass over both.
    fn add(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, whole: self.whole + other.whole }
    }
}

/// Measured seconds of passes, relative to the machine's pace at the start.
///
/// A shared machine is fast or slow for many passes in turn, and all passes of some size may fall into slow
/// times. So each pass is divided by its expected time; the median of the last such ratios is the machine's
/// pace, and is factored out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PassCost {
    /// Cost of passes without whole rows, by tokens.
    tokens: CostCurve,
    /// Cost added by whole rows, by their number.
    rows: CostCurve,
    /// The factor by which passes take longer now than at first.
    pace: Median,
    /// Tokens that cost as much as one, if there are more than that: then the curve of tokens has the cost of
    /// a step of so many, and nothing else is needed.
    at_once: Option<NonZeroUsize>,
}

impl PassCost {
    /// Sets that passes take up to `tokens` tokens, and their whole rows, at the cost of one token, and
    /// longer ones as many times that as they need: those of a card that computes padding all the same. With
    /// 1, the default, costs are measured for each number of tokens. A change forgets what was measured.
    pub fn set_at_once(&mut self, tokens: NonZeroUsize) {
        let at_once = Some(tokens).filter(|tokens| *tokens > NonZeroUsize::MIN);
        if self.at_once != at_once {
            *self = Self { at_once, ..Self::default() };
        }
    }

    /// Number of steps of a pass, each at the cost of one token; `None` where tokens have costs of their own.
    fn steps(&self, pass: Pass) -> Option<f64> {
        let steps = pass.tokens.max(1).div_ceil(self.at_once?.get());
        #[expect(clippy::cast_precision_loss, reason = "counts of steps")]
        Some(steps as f64)
    }

    /// Adds a measured time of a pass.
    pub fn observe(&mut self, pass: Pass, seconds: f64) {
        let Pass { tokens, whole } = pass;
        if let Some(steps) = self.steps(pass) {
            // The first passes may be many times as long as later ones, which are recorded and replayed; so
            // nothing is told in relation to them.
            return self.tokens.observe(1, seconds / steps);
        }
        let times = seconds / self.seconds(pass);
        if self.is_measured(pass) && times.is_finite() && times > 0.0 {
            self.pace.add(times);
        }
        let seconds = seconds / self.pace.value();
        if whole == 0 || self.tokens.is_empty() {
            // As long as nothing is known of passes without whole rows, these are taken to cost nothing.
            self.tokens.observe(tokens, seconds);
        } else if !self.rows.is_measured(whole) {
            self.rows.observe(whole, (seconds - self.tokens.seconds(tokens)).max(0.0));
        } else if !self.tokens.is_measured(tokens) {
            self.tokens.observe(tokens, (seconds - self.rows.seconds(whole)).max(0.0));
        } else {
            // Tokens and rows may each have cost what is too much, or too little.
            let (of_tokens, of_rows) = (self.tokens.seconds(tokens), self.rows.seconds(whole));
            let each = (seconds - of_tokens - of_rows) / 2.0;
            self.tokens.observe(tokens, (of_tokens + each).max(0.0));
            self.rows.observe(whole, (of_rows + each).max(0.0));
        }
    }

    /// Have such passes been measured?
    fn is_measured(&self, Pass { tokens, whole }: Pass) -> bool {
        self.tokens.is_measured(tokens)
            && (whole == 0 || self.rows.is_empty() || self.rows.is_measured(whole))
    }

    /// Returns the seconds of a pass.
    #[must_use]
    pub fn seconds(&self, pass: Pass) -> f64 {
        if let Some(steps) = self.steps(pass) {
            return steps * self.tokens.seconds(1);
        }
        let rows = if pass.whole == 0 || self.rows.is_empty() { 0.0 } else { self.rows.seconds(pass.whole) };
        self.tokens.seconds(pass.tokens) + rows
    }

    /// Returns the cost of a pass relative to that of a pass of one token with a whole row.
    #[must_use]
    pub fn relative(&self, pass: Pass) -> f64 {
        self.seconds(pass) / self.seconds(Pass::whole(1)).max(1e-9)
    }

    /// Lists passes worth a measurement before the first draft, in this order. `ahead` says whether there are
    /// passes with rows that are not needed whole.
    #[must_use]
    pub fn unmeasured(&self, ahead: bool) -> Vec<Pass> {
        if self.at_once.is_some() {
            return Some(Pass::whole(1)).filter(|_| !self.tokens.is_measured(1)).into_iter().collect();
        }
        let missing = |curve: &CostCurve| {
            let curve = curve.clone();
            CostCurve::PROBES.into_iter().filter(move |&count| !curve.is_measured(count))
        };
        if !ahead {
            return missing(&self.tokens).map(Pass::whole).collect();
        }
        let tokens = missing(&self.tokens).map(|tokens| Pass { tokens, whole: 0 });
        tokens.chain(missing(&self.rows).map(Pass::whole)).collect()
    }
}

/// Greatest number of tokens of a pass with a cost of its own.
const MOST: usize = 65;
/// Number of passes over the same number of tokens that are remembered.
const MEMORY: usize = 15;
/// Weight of the first pass: more than the passes it takes to find out that the machine's pace has changed,
/// see [`PassCost`].
const FIRST: usize = 5;

/// Seconds of a pass over n tokens: L1 isotonic regression (pool adjacent violators) over the last passes,
/// with linear interpolation between measurements.
///
/// Disturbances only make a pass longer, now and then several times as long, so medians are used, not means.
/// And a pass over more tokens is no cheaper, so the curve rises: neighbours whose medians would fall are
/// pooled.
#[derive(Debug, Clone, PartialEq)]
struct CostCurve {
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
    const PROBES: [usize; 9] = [1, 2, 4, 6, 7, 8, 9, 12, 16];

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
    fn is_measured(&self, tokens: usize) -> bool {
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

/// Number of measurements in the window.
const MEDIAN_OF: usize = 7;

/// The last few measurements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Median {
    last: [f64; MEDIAN_OF],
    next: usize,
}

impl Default for Median {
    fn default() -> Self {
        Self::of(1.0)
    }
}

impl Median {
    /// Creates a median of equal measurements.
    pub(crate) fn of(value: f64) -> Self {
        Self { last: [value; MEDIAN_OF], next: 0 }
    }

    /// Adds a measurement.
    pub(crate) fn add(&mut self, value: f64) {
        self.last[self.next] = value;
        self.next = (self.next + 1) % MEDIAN_OF;
    }

    /// Returns the median.
    pub(crate) fn value(&self) -> f64 {
        let mut sorted = self.last;
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[MEDIAN_OF / 2]
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod cost_tests {
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

#[cfg(test)]
mod median_tests {
    use super::*;

    #[test]
    fn a_running_median_ignores_a_few_outliers() {
        let mut median = Median::of(1.0);
        (0..3).for_each(|_| median.add(100.0));
        assert!((median.value() - 1.0).abs() < 1e-9);
        (0..4).for_each(|_| median.add(2.0));
        assert!((median.value() - 2.0).abs() < 1e-9, "{median:?}");
    }
}
