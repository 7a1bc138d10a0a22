//! Budget of drafts: keeps the drafted tokens that are worth more than they add to the cost of the pass.
//!
//! A drafted token has a probability that it and all before it are right. Its cost depends on what else the
//! pass is over: kernels take several rows at a time, so that one token may be expensive and the next ones
//! free. So all drafts of a pass are cut together.

use super::pass::{Pass, PassCost};
use crate::ids::as_f64;

/// A token that could be drafted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offered {
    /// Probability that it and all before it are right.
    pub(crate) reached: f64,
    /// Will the row behind it be needed whole?
    pub(crate) wide: bool,
}

impl Offered {
    /// The token's part of a pass.
    pub(super) fn pass(self) -> Pass {
        Pass { tokens: 1, whole: usize::from(self.wide) }
    }
}

/// The prices by which tokens of a pass are valued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftBudget<'a> {
    /// The cost of passes.
    pub(crate) cost: &'a PassCost,
    /// Tokens a second of all sequences that share the pass.
    pub(crate) pace: f64,
    /// Number of sequences that share the pass.
    pub(crate) sequences: usize,
    /// Number of sequences that are drafted for in parallel.
    pub(crate) at_once: usize,
}

/// The recent speedup over passes without drafts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Speedup {
    tokens: f64,
    cost: f64,
}

impl Speedup {
    /// Records the tokens of a pass per sequence, and its cost relative to the pass without drafts.
    pub(crate) fn note(&mut self, tokens: f64, cost: f64) {
        /// Decay of the sums per pass: a window of about 50.
        const KEEP: f64 = 0.98;
        if tokens.is_finite() && cost.is_finite() {
            self.tokens = KEEP * self.tokens + tokens;
            self.cost = KEEP * self.cost + cost;
        }
    }

    /// Returns the speedup as a factor.
    pub(crate) fn times(self) -> f64 {
        /// Number of passes without drafts that count as prior observations.
        const WEIGHT: f64 = 4.0;
        (self.tokens + WEIGHT) / (self.cost + WEIGHT)
    }
}

/// The lengths to which the drafts of a pass are cut.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Allocation {
    /// Number of tokens kept of each draft.
    pub(crate) kept: Vec<usize>,
    /// Expected gain of each draft, in seconds.
    pub(crate) gains: Vec<f64>,
}

impl DraftBudget<'_> {
    /// Price of adding `more` to a pass, in tokens at the present pace.
    pub(super) fn price(&self, pass: Pass, more: Pass) -> f64 {
        self.pace * (self.cost.seconds(pass + more) - self.cost.seconds(pass))
    }

    /// Can extending a draft by up to `room` tokens make it better than its best so far, which is `behind`
    /// tokens ahead? An upper bound: assumes that every further token is as likely to be reached as the last
    /// one.
    pub(super) fn could_gain(&self, pass: Pass, reached: f64, behind: f64, room: usize) -> bool {
        (1..=room)
            .any(|tokens| as_f64(tokens) * reached - self.price(pass, Pass { tokens, whole: 0 }) > behind)
    }

    /// Cuts the drafts of a pass that is over `plain` without them, greedily: takes tokens in order of their
    /// probability of being reached, and keeps the best prefix of that order, the one with the most expected
    /// tokens less their price. That is optimal if all rows or none are wide. `O(n log n)` in the tokens.
    pub(crate) fn cut(&self, plain: Pass, drafts: &[&[Offered]]) -> Allocation {
        let all = drafts.iter().enumerate();
        let mut all: Vec<(usize, &Offered)> =
            all.flat_map(|(draft, offered)| offered.iter().map(move |token| (draft, token))).collect();
        // Chances fall along a draft, and sorting keeps the order of equal ones.
        all.sort_by(|one, other| other.1.reached.total_cmp(&one.1.reached));
        let (mut kept, mut best) = (vec![0; drafts.len()], vec![0; drafts.len()]);
        let (mut pass, mut now, mut most) = (plain, 0.0, 0.0);
        for (draft, token) in all {
            now += token.reached - self.price(pass, token.pass());
            pass = pass + token.pass();
            kept[draft] += 1;
            if now > most {
                most = now;
                best.clone_from(&kept);
            }
        }
        Allocation { gains: self.gains(plain, drafts, &best), kept: best }
    }

    /// Returns the expected gain of each draft in seconds, if this much of each is kept; costs are split by
    /// the tokens and rows that it adds.
    fn gains(&self, plain: Pass, drafts: &[&[Offered]], kept: &[usize]) -> Vec<f64> {
        let kept: Vec<&[Offered]> =
            drafts.iter().zip(kept).map(|(draft, &kept)| &draft[..kept.min(draft.len())]).collect();
        let sum = |tokens: &[Offered]| tokens.iter().fold(Pass::default(), |sum, token| sum + token.pass());
        let all = kept.iter().fold(Pass::default(), |all, tokens| all + sum(tokens));
        let narrow = Pass { whole: 0, ..all };
        let of_tokens = self.price(plain, narrow) / as_f64(all.tokens.max(1));
        let of_rows = self.price(plain + narrow, Pass { tokens: 0, ..all }) / as_f64(all.whole.max(1));
        let gain = |tokens: &&[Offered]| {
            let Pass { tokens: added, whole } = sum(tokens);
            let reached: f64 = tokens.iter().map(|token| token.reached).sum();
            (reached - of_tokens * as_f64(added) - of_rows * as_f64(whole)) / self.pace.max(1e-12)
        };
        kept.iter().map(gain).collect()
    }
}

#[cfg(test)]
mod tests;
