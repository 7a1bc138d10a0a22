//! What a pass costs whose rows are not all wanted whole.
//!
//! The logits of a row are a large part of a small model's pass, and hardly any work where few tokens may follow and
//! the model computes only theirs. So a pass costs what its tokens cost, and on top of that what its whole rows do.

use super::cost::CostCurve;
use crate::vocab::TokenSet;

/// What a pass is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pass {
    /// New tokens.
    pub tokens: usize,
    /// Rows of which all logits count, or [many](Self::is_wide).
    pub whole: usize,
}

impl Pass {
    /// A pass of which every row is wanted whole.
    #[must_use]
    pub fn whole(tokens: usize) -> Self {
        Self { tokens, whole: tokens }
    }

    /// Are these so many tokens that their row counts as whole?
    #[must_use]
    pub fn is_wide(set: &TokenSet) -> bool {
        /// A set of fewer than one token in so many is not wide. They may be far apart, and logits are computed sixteen
        /// at a time.
        const NARROW: usize = 32;
        set.len() * NARROW > set.size()
    }
}

impl std::ops::Add for Pass {
    type Output = Self;

    /// The pass over both.
    fn add(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, whole: self.whole + other.whole }
    }
}

/// Seconds of passes, as measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PassCost {
    /// Of passes without whole rows, by tokens.
    tokens: CostCurve,
    /// What is added, by whole rows.
    rows: CostCurve,
}

impl PassCost {
    /// Notes that a pass took so long.
    pub fn observe(&mut self, pass: Pass, seconds: f64) {
        let Pass { tokens, whole } = pass;
        if whole == 0 || self.tokens.is_empty() {
            // As long as nothing is known of passes without whole rows, these are taken to cost nothing.
            self.tokens.observe(tokens, seconds);
        } else {
            self.rows.observe(whole, (seconds - self.tokens.seconds(tokens)).max(0.0));
        }
    }

    /// Seconds of a pass.
    #[must_use]
    pub fn seconds(&self, pass: Pass) -> f64 {
        let rows = if pass.whole == 0 || self.rows.is_empty() { 0.0 } else { self.rows.seconds(pass.whole) };
        self.tokens.seconds(pass.tokens) + rows
    }

    /// How many times the cost of a pass of one token, whose row is whole, a pass costs.
    #[must_use]
    pub fn relative(&self, pass: Pass) -> f64 {
        self.seconds(pass) / self.seconds(Pass::whole(1)).max(1e-9)
    }

    /// Passes worth a measurement before the first draft, in this order. `ahead`: are there passes with rows that are
    /// not wanted whole?
    #[must_use]
    pub fn unmeasured(&self, ahead: bool) -> Vec<Pass> {
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
    fn without_narrow_rows_a_pass_costs_what_its_tokens_do() {
        let mut cost = PassCost::default();
        cost.observe(Pass::whole(1), 2.0);
        cost.observe(Pass::whole(1), 4.0);
        assert!((2.0..=4.0).contains(&cost.seconds(Pass::whole(1))), "{cost:?}");
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
