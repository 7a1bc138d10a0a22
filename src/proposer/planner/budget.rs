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
    /// one. `guess` is the time of a guess in seconds.
    pub(super) fn could_gain(&self, pass: Pass, reached: f64, behind: f64, guess: f64, room: usize) -> bool {
        (1..=room).any(|tokens| {
            let price = self.price(pass, Pass { tokens, whole: 0 });
            as_f64(tokens) * (reached - self.pace * guess) - price > behind
        })
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

    /// Cuts each draft as if it were the only one in the pass; otherwise as [`cut`](Self::cut).
    pub(crate) fn cut_apart(&self, plain: Pass, drafts: &[&[Offered]]) -> Allocation {
        let alone = drafts.iter().map(|draft| self.cut(plain, &[draft]));
        let (kept, gains) = alone.map(|cut| (cut.kept[0], cut.gains[0])).unzip();
        Allocation { kept, gains }
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Creates rising cost curves of tokens and of whole rows from increments.
    fn cost(tokens: &[f64], rows: &[f64]) -> PassCost {
        let mut cost = PassCost::default();
        let mut sum = 1.0;
        for (number, more) in (1..).zip(tokens) {
            sum += more;
            cost.observe(Pass { tokens: number, whole: 0 }, sum);
        }
        let mut whole = 0.0;
        for (number, more) in (1..).zip(rows) {
            whole += more;
            cost.observe(
                Pass { tokens: 1, whole: number },
                cost.seconds(Pass { tokens: 1, whole: 0 }) + whole,
            );
        }
        cost
    }

    /// Returns the expected tokens of keeping this much of each draft, less their price.
    fn net(worth: &DraftBudget<'_>, plain: Pass, drafts: &[Vec<Offered>], kept: &[usize]) -> f64 {
        let all = || drafts.iter().zip(kept).flat_map(|(draft, &kept)| &draft[..kept]);
        let added = all().fold(Pass::default(), |added, token| added + token.pass());
        all().map(|token| token.reached).sum::<f64>() - worth.price(plain, added)
    }

    /// Returns the best result over all lengths.
    fn best(worth: &DraftBudget<'_>, plain: Pass, drafts: &[Vec<Offered>]) -> f64 {
        let mut kept = vec![0; drafts.len()];
        let mut most = 0.0_f64;
        loop {
            most = most.max(net(worth, plain, drafts, &kept));
            let Some(at) = (0..drafts.len()).find(|&at| kept[at] < drafts[at].len()) else { return most };
            kept[at] += 1;
            kept[..at].fill(0);
        }
    }

    fn drafts(wide: impl Strategy<Value = bool>) -> impl Strategy<Value = Vec<Vec<Offered>>> {
        let draft = prop::collection::vec((0.2..1.0_f64, wide), 0..5).prop_map(|tokens| {
            let mut reached = 1.0;
            let offered = tokens.into_iter().map(|(acceptance, wide)| {
                reached *= acceptance;
                Offered { reached, wide }
            });
            offered.collect()
        });
        prop::collection::vec(draft, 0..5)
    }

    fn cut(
        drafts: &[Vec<Offered>],
        cost: &PassCost,
        pace: f64,
        plain: Pass,
    ) -> Result<(f64, f64), TestCaseError> {
        let worth = DraftBudget { cost, pace, sequences: drafts.len(), at_once: 1 };
        let slices: Vec<&[Offered]> = drafts.iter().map(Vec::as_slice).collect();
        let Allocation { kept, gains } = worth.cut(plain, &slices);
        prop_assert!(kept.iter().zip(drafts).all(|(kept, draft)| *kept <= draft.len()));
        let found = net(&worth, plain, drafts, &kept);
        // The parts are the whole.
        prop_assert!((gains.iter().sum::<f64>() * pace - found).abs() < 1e-6, "{gains:?} {found}");
        Ok((found, best(&worth, plain, drafts)))
    }

    proptest! {
        #[test]
        fn cuts_are_the_best_there_are(
            drafts in drafts(Just(true)),
            steps in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0_f64], 40),
            (pace, plain) in (0.05..1.5_f64, 1..9_usize),
        ) {
            let (found, best) = cut(&drafts, &cost(&steps, &[]), pace, Pass::whole(plain))?;
            prop_assert!((found - best).abs() < 1e-9, "{found} {best}");
        }

        #[test]
        fn with_rows_that_are_not_wanted_whole_they_are_no_worse_than_none(
            drafts in drafts(any::<bool>()),
            (token, row, pace) in (0.0..1.0_f64, 0.0..1.0_f64, 0.05..1.5_f64),
            (plain, whole) in (1..9_usize, 1..9_usize),
        ) {
            let cost = cost(&[token; 40], &[row; 40]);
            let (found, best) = cut(&drafts, &cost, pace, Pass { tokens: plain, whole: whole.min(plain) })?;
            prop_assert!(-1e-9 < found && found <= best + 1e-9, "{found} {best}");
        }

        /// Without shared passes each draft is cut as is best for it alone, and one draft is cut as it is
        /// among one.
        #[test]
        fn drafts_that_are_cut_apart_are_each_the_best(
            drafts in drafts(Just(true)),
            steps in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0_f64], 40),
            (pace, plain) in (0.05..1.5_f64, 1..9_usize),
        ) {
            let cost = cost(&steps, &[]);
            let worth = DraftBudget { cost: &cost, pace, sequences: drafts.len(), at_once: 1 };
            let slices: Vec<&[Offered]> = drafts.iter().map(Vec::as_slice).collect();
            let apart = worth.cut_apart(Pass::whole(plain), &slices);
            for (draft, kept) in drafts.iter().zip(&apart.kept) {
                let alone = std::slice::from_ref(draft);
                let found = net(&worth, Pass::whole(plain), alone, &[*kept]);
                prop_assert!((found - best(&worth, Pass::whole(plain), alone)).abs() < 1e-9);
            }
            if slices.len() == 1 {
                prop_assert_eq!(worth.cut(Pass::whole(plain), &slices), apart);
            }
        }

        /// No draft is given up that would have become better.
        #[test]
        fn who_gives_up_is_right(
            steps in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0_f64], 40),
            (pace, reached, behind) in (0.05..1.5_f64, 0.0..1.0_f64, 0.0..0.5_f64),
            follow in prop::collection::vec(0.5..1.0_f64, 1..16),
            plain in 1..9_usize,
        ) {
            let cost = cost(&steps, &[]);
            let worth = DraftBudget { cost: &cost, pace, sequences: 1, at_once: 1 };
            let pass = Pass { tokens: plain, whole: 0 };
            if !worth.could_gain(pass, reached, behind, 0.0, follow.len()) {
                let (mut gain, mut reached) = (0.0, reached);
                for (tokens, acceptance) in (1..).zip(follow) {
                    reached *= acceptance;
                    gain += reached;
                    let price = worth.price(pass, Pass { tokens, whole: 0 });
                    prop_assert!(gain - price <= behind + 1e-9);
                }
            }
        }
    }

    #[test]
    fn a_guess_costs_time_too() {
        let cost = cost(&[0.0; 20], &[]);
        let worth = DraftBudget { cost: &cost, pace: 1.0, sequences: 1, at_once: 1 };
        let could = |guess| worth.could_gain(Pass::whole(1), 0.5, 0.0, guess, 9);
        assert!(could(0.4) && !could(0.6) && !worth.could_gain(Pass::whole(1), 0.5, 0.0, 0.0, 0));
    }

    #[test]
    fn the_latest_passes_count_most() {
        let mut speedup = Speedup::default();
        assert!((speedup.times() - 1.0).abs() < 1e-12);
        speedup.note(3.0, 1.0);
        assert!((speedup.times() - 7.0 / 5.0).abs() < 1e-12);
        speedup.note(2.0, 1.5);
        speedup.note(f64::NAN, 1.0);
        assert!((speedup.times() - (0.98 * 3.0 + 2.0 + 4.0) / (0.98 + 1.5 + 4.0)).abs() < 1e-12);
    }
}
