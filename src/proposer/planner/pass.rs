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
mod tests {
    use super::*;
    use crate::ids::TokenId;

    #[test]
    fn rows_come_on_top_of_tokens() {
        let mut cost = PassCost::default();
        assert!((cost.relative(Pass::whole(11)) - 2.0).abs() < 1e-9);
        assert_eq!(cost.unmeasured(true).len(), 2 * CostCurve::PROBES.len());
        for (tokens, whole, seconds) in [(1, 0, 1.0), (5, 0, 1.4), (1, 1, 3.0), (5, 5, 3.8)] {
            cost.observe(Pass { tokens, whole }, seconds);
        }
        for (tokens, whole, seconds) in [(1, 1, 3.0), (3, 0, 1.2), (5, 1, 3.4), (5, 3, 3.6), (5, 5, 3.8)] {
            let got = cost.seconds(Pass { tokens, whole });
            assert!((got - seconds).abs() < 1e-9, "{tokens} {whole}: {got}");
        }
        assert!(!cost.unmeasured(true).contains(&Pass { tokens: 1, whole: 0 }));
        assert!(!cost.unmeasured(true).contains(&Pass::whole(1)));
        assert!(cost.unmeasured(false).contains(&Pass::whole(2)));
    }

    #[test]
    fn the_cost_of_a_whole_pass_is_that_of_its_tokens() {
        let mut cost = PassCost::default();
        cost.observe(Pass::whole(1), 2.0);
        cost.observe(Pass::whole(1), 4.0);
        assert!((2.0..=4.0).contains(&cost.seconds(Pass::whole(1))), "{cost:?}");
    }

    #[test]
    fn tokens_and_rows_are_told_apart_by_passes_over_both() {
        // What was measured first, without whole rows, is half of what tokens come to cost.
        let mut cost = PassCost::default();
        for tokens in [1, 8, 16] {
            cost.observe(Pass { tokens, whole: 0 }, 1.0 + 0.05 * f64::from(tokens as u32));
            cost.observe(Pass::whole(tokens), 1.0 + 0.15 * f64::from(tokens as u32));
        }
        let seconds = |tokens: u32, whole: u32| 1.0 + 0.1 * f64::from(tokens) + 0.1 * f64::from(whole);
        let sizes = [(8, 4), (16, 6), (12, 8), (9, 3), (8, 7), (14, 4), (16, 8), (8, 2), (12, 5)];
        for _ in 0..60 {
            for (tokens, whole) in sizes {
                let pass = Pass { tokens: tokens as usize, whole: whole as usize };
                cost.observe(pass, seconds(tokens, whole));
            }
        }
        for (tokens, whole) in sizes {
            let got = cost.seconds(Pass { tokens: tokens as usize, whole: whole as usize })
                / cost.seconds(Pass { tokens: 8, whole: 4 });
            let expected = seconds(tokens, whole) / seconds(8, 4);
            assert!((got / expected - 1.0).abs() < 0.05, "{tokens} {whole}: {got} {expected}");
        }
    }

    #[test]
    fn a_slow_machine_is_not_an_expensive_pass() {
        let [short, long] = [1, 4].map(|tokens| Pass { tokens, whole: 0 });
        let mut cost = PassCost::default();
        cost.observe(short, 1.0);
        cost.observe(long, 1.3);
        // Long passes only, while all takes twice as long; then both.
        (0..40).for_each(|_| cost.observe(long, 2.6));
        assert!((cost.seconds(long) / cost.seconds(short) - 1.3).abs() < 1e-9, "{cost:?}");
        for _ in 0..40 {
            cost.observe(short, 2.0);
            cost.observe(long, 2.6);
        }
        assert!((cost.seconds(long) / cost.seconds(short) - 1.3).abs() < 1e-9, "{cost:?}");
        // At first mistaken, and times that scatter.
        for round in 0..60 {
            for (at, pass) in [short, long].into_iter().enumerate() {
                cost.observe(pass, 3.0 + 0.05 * f64::from((7 * round + 3 * at as u32) % 5));
            }
        }
        assert!((cost.seconds(long) / cost.seconds(short) - 1.0).abs() < 0.07, "{cost:?}");
    }

    #[test]
    fn tokens_taken_at_once_cost_as_much_as_one() {
        let sixteen = NonZeroUsize::new(16).unwrap();
        let mut cost = PassCost::default();
        cost.observe(Pass::whole(1), 7.0);
        cost.set_at_once(sixteen);
        assert_eq!(cost.unmeasured(true), [Pass::whole(1)]);
        assert!((cost.relative(Pass::whole(16)) - 1.0).abs() < 1e-9, "what was measured is forgotten");
        // The first pass is made kernel by kernel, and then recorded; most later ones are replays.
        for (tokens, seconds) in [(1, 90.0), (9, 30.0), (1, 2.0), (16, 2.0), (5, 2.0), (17, 4.0), (40, 6.0)] {
            cost.observe(Pass { tokens, whole: tokens / 2 }, seconds);
            cost.set_at_once(sixteen);
        }
        (0..4).for_each(|_| cost.observe(Pass::whole(3), 2.0));
        for (tokens, whole, seconds) in
            [(0, 0, 2.0), (1, 0, 2.0), (1, 1, 2.0), (16, 16, 2.0), (17, 1, 4.0), (32, 3, 4.0), (65, 65, 10.0)]
        {
            let got = cost.seconds(Pass { tokens, whole });
            assert!((got - seconds).abs() < 1e-9, "{tokens} {whole}: {got}");
        }
        assert!(cost.unmeasured(true).is_empty() && cost.unmeasured(false).is_empty());
        cost.set_at_once(NonZeroUsize::MIN);
        assert_eq!(cost, PassCost::default());
    }

    #[test]
    fn wide_sets_have_more_than_a_thirty_second() {
        let mut set = TokenSet::empty(320);
        (0..10).map(TokenId::new).for_each(|token| set.insert(token));
        assert!(!Pass::is_wide(&set));
        set.insert(TokenId::new(300));
        assert!(Pass::is_wide(&set));
    }
}
