//! Effective sample size of particles, and systematic resampling.

use crate::{decode::sampling::noise, ids::as_f64};

/// Returns weights relative to the largest, and the log of their mean; zeros and minus infinity if all are
/// zero.
pub(super) fn relative(logs: &[f64]) -> (Vec<f64>, f64) {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return (vec![0.0; logs.len()], largest);
    }
    let weights: Vec<f64> = logs.iter().map(|log| noise::exp(log - largest)).collect();
    let mean = weights.iter().sum::<f64>() / as_f64(logs.len());
    (weights, largest + noise::ln(mean))
}

/// Returns Kish's effective sample size.
pub(super) fn effective(weights: &[f64]) -> f64 {
    let (sum, squares) = weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Systematic resampling: returns the number of copies of each particle, keeping their number. Each gets its
/// share, rounded up or down.
pub(super) fn offspring(weights: &[f64], uniform: f64) -> Vec<usize> {
    let step = weights.iter().sum::<f64>() / as_f64(weights.len());
    let mut copies = vec![0; weights.len()];
    let (mut given, mut sum) = (0, 0.0);
    for (copies, weight) in copies.iter_mut().zip(weights) {
        sum += weight;
        while given < weights.len() && (uniform + as_f64(given)) * step < sum {
            *copies += 1;
            given += 1;
        }
    }
    // Sums are off by rounding.
    if let Some(last) = weights.iter().rposition(|weight| *weight > 0.0) {
        copies[last] += weights.len() - given;
    }
    copies
}

/// Are the weights so uneven that particles should be resampled: is the effective sample size under half of
/// their number?
pub(super) fn needed(weights: &[f64]) -> bool {
    2.0 * effective(weights) < as_f64(weights.len())
}

/// Returns the index that a number in 0..1 falls on, if each has its weight's share.
pub(super) fn chosen(weights: &[f64], uniform: f64) -> usize {
    let mut rest = uniform * weights.iter().sum::<f64>();
    let found = weights.iter().position(|weight| {
        rest -= weight;
        rest < 0.0
    });
    // Sums are off by rounding.
    found.or_else(|| weights.iter().rposition(|weight| *weight > 0.0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// There are as many copies as particles, each share rounded up or down; on average exactly the
        /// share.
        #[test]
        fn copies_are_shares_rounded_up_or_down(
            weights in prop::collection::vec(prop_oneof![1 => Just(0.0), 4 => 1e-6..1.0_f64], 1..30),
            u in 0.0..1.0_f64,
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let count = weights.len();
            let copies = offspring(&weights, u);
            prop_assert_eq!(copies.iter().sum::<usize>(), count);
            for (copies, weight) in copies.iter().zip(&weights) {
                let share = as_f64(count) * weight / total;
                prop_assert!((as_f64(*copies) - share).abs() < 1.0 + 1e-9, "{} {}", copies, share);
                prop_assert!(*weight > 0.0 || *copies == 0);
            }
            let steps = 400;
            let mut sums = vec![0.0; count];
            for step in 0..steps {
                let copies = offspring(&weights, (f64::from(step) + 0.5) / f64::from(steps));
                let mean = |copies| as_f64(copies) / f64::from(steps);
                sums.iter_mut().zip(copies).for_each(|(sum, copies)| *sum += mean(copies));
            }
            for (sum, weight) in sums.iter().zip(&weights) {
                prop_assert!((sum - as_f64(count) * weight / total).abs() < 0.02);
            }
        }
    }

    #[test]
    fn draws_choose_particles_by_weight() {
        let weights = [0.0, 1.0, 3.0, 0.0];
        let places: Vec<usize> = (0..8).map(|eighth| chosen(&weights, f64::from(eighth) / 8.0)).collect();
        assert_eq!(places, [1, 1, 2, 2, 2, 2, 2, 2]);
        assert_eq!((chosen(&weights, 1.0), chosen(&[0.0, 0.0], 0.5)), (2, 0));
    }

    #[test]
    fn weights_are_relative_and_their_evenness_counts() {
        let logs = [-1000.0, f64::NEG_INFINITY, -1000.0 + 3.0_f64.ln()];
        let (weights, log_mean) = relative(&logs);
        assert!((weights[0] - 1.0 / 3.0).abs() < 1e-12 && weights[1] == 0.0 && weights[2] == 1.0);
        assert!((log_mean - (-1000.0 + (4.0_f64 / 3.0).ln())).abs() < 1e-9);
        assert!((effective(&weights) - 1.6).abs() < 1e-12);
        assert_eq!(relative(&[f64::NEG_INFINITY; 2]), (vec![0.0; 2], f64::NEG_INFINITY));
        assert!(needed(&[1.0, 0.1, 0.1, 0.1]) && !needed(&[1.0, 1.0, 0.0, 0.0]) && !needed(&[1.0]));
    }
}
