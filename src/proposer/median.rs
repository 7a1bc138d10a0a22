//! A running median of the last few measurements: robust to single outliers.

/// Number of measurements in the window.
const MEMORY: usize = 7;

/// The last few measurements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Median {
    last: [f64; MEMORY],
    next: usize,
}

impl Median {
    /// Creates a median of equal measurements.
    pub(crate) fn of(value: f64) -> Self {
        Self { last: [value; MEMORY], next: 0 }
    }

    /// Adds a measurement.
    pub(crate) fn add(&mut self, value: f64) {
        self.last[self.next] = value;
        self.next = (self.next + 1) % MEMORY;
    }

    /// Returns the median.
    pub(crate) fn value(&self) -> f64 {
        let mut sorted = self.last;
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[MEMORY / 2]
    }
}

#[cfg(test)]
mod tests {
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
