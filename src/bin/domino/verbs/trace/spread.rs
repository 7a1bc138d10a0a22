//! Summaries of many times of one kind in a few numbers.

use serde_json::{Value, json};

/// The distribution of one kind of time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Summarises times in nanoseconds; `None` if there are none. A quantile is a measured time, the smallest
    /// that at least that share of the times does not exceed (nearest rank).
    pub(crate) fn new(times: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut times: Vec<u64> = times.into_iter().collect();
        times.sort_unstable();
        let last = *times.last()?;
        let us = |time: u64| microseconds(u128::from(time));
        let quantile = |hundredths: usize| us(times[(times.len() * hundredths).div_ceil(100).max(1) - 1]);
        let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
        #[expect(clippy::cast_precision_loss, reason = "times of a run are far fewer than 2^53")]
        let count = times.len() as f64;
        Some(Self { mean: microseconds(sum) / count, p50: quantile(50), p99: quantile(99), max: us(last) })
    }

    /// Makes an object of JSON.
    pub(crate) fn to_json(self) -> Value {
        json!({ "mean": self.mean, "p50": self.p50, "p99": self.p99, "max": self.max })
    }
}

/// Converts nanoseconds to microseconds, with a fraction, for people.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run are far below 2^53")]
pub(crate) fn microseconds(nanoseconds: u128) -> f64 {
    nanoseconds as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn quantiles_are_the_values_of_nearest_rank() {
        let spread = Spread::new((1..=200).map(|time| time * 1000)).unwrap();
        assert_eq!(spread, Spread { mean: 100.5, p50: 100.0, p99: 198.0, max: 200.0 });
        let one = Spread::new([1500]).unwrap();
        assert_eq!((one.mean, one.p50, one.p99, one.max), (1.5, 1.5, 1.5, 1.5));
        assert_eq!(Spread::new([]), None);
    }
}
