//! The cost of a pass whose rows are not all needed whole.
//!
//! The logits of a row are a large part of a small model's pass, and hardly any work if few tokens may follow
//! and the model computes only theirs. So the cost of a pass is that of its tokens plus that of its whole
//! rows.

use std::num::NonZeroUsize;

use super::cost::CostCurve;
use crate::{proposer::median::Median, vocab::TokenSet};

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
    pace: Pace,
    /// Tokens that cost as much as one, if there are more than that: then the curve of tokens has the cost of
    /// a step of so many, and nothing else is needed.
    at_once: Option<NonZeroUsize>,
}

/// The machine's pace: by what factor passes take longer now than at first (a running median).
#[derive(Debug, Clone, PartialEq)]
struct Pace(Median);

impl Default for Pace {
    fn default() -> Self {
        Self(Median::of(1.0))
    }
}

impl Pace {
    fn add(&mut self, times: f64) {
        if times.is_finite() && times > 0.0 {
            self.0.add(times);
        }
    }
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
        if self.is_measured(pass) {
            self.pace.add(seconds / self.seconds(pass));
        }
        let seconds = seconds / self.pace.0.value();
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

#[cfg(test)]
mod tests;
