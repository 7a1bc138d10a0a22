//! Means with intervals, by the bootstrap over prompts (Efron's percentile method).
//!
//! Texts of one prompt are alike, so prompts are resampled, each with all of its texts. Fewer than five
//! prompts give no interval: that of so few is far too narrow. Everything is a ratio of two sums over texts,
//! so that a mean over tokens is one too.
//!
//! Invariant: the same rows give the same intervals: the resamples have a fixed seed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::split_mix::SplitMix64;

/// Number of resamples.
pub const RESAMPLES: usize = 1000;
/// Fewest prompts with an interval. Percentiles of the bootstrap are too narrow by `sqrt((n - 1) / n)`, and
/// by the normal distribution in place of Student's: of `n` = 3 prompts they have 0.37 of the width that they
/// should have, of 4 0.53, of 5 0.63, of 8 0.78.
pub const LEAST_PROMPTS: usize = 5;
/// Seed of the resamples.
const SEED: u64 = 0x5eed;

/// An estimate with its 95% interval, if there are at least [`LEAST_PROMPTS`] prompts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value for all texts.
    pub value: f64,
    /// The 2.5% quantile of the resamples; `None` for too few prompts.
    pub low: Option<f64>,
    /// The 97.5% quantile; `None` for too few prompts.
    pub high: Option<f64>,
    /// Number of its texts.
    pub n: usize,
}

impl Estimate {
    /// A value that is known exactly, of `n` measurements.
    #[must_use]
    pub fn exact(value: f64, n: usize) -> Self {
        Self { value, low: None, high: None, n }
    }

    /// The bounds of the interval; `None` without one.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Formats the estimate with `figures` decimals, and the interval in brackets, or `-` in its place.
    #[must_use]
    pub fn words(&self, figures: usize) -> String {
        match self.interval() {
            Some((low, high)) => format!("{:.figures$} ({low:.figures$} to {high:.figures$})", self.value),
            None => format!("{:.figures$} (-)", self.value),
        }
    }
}

/// The contribution of one text to the two sums of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioTerm {
    /// Index of the text's prompt, the unit of resampling.
    pub prompt: usize,
    /// Summand of the numerator.
    pub above: f64,
    /// Summand of the denominator.
    pub below: f64,
}

/// Two sums and a number of texts.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    above: f64,
    below: f64,
}

impl Sums {
    fn add(self, other: Self) -> Self {
        Self { above: self.above + other.above, below: self.below + other.below }
    }

    fn ratio(self) -> f64 {
        self.above / self.below
    }
}

/// Sums the parts by unit of resampling: by prompt.
fn units(parts: &[RatioTerm]) -> BTreeMap<usize, Sums> {
    let mut units: BTreeMap<usize, Sums> = BTreeMap::new();
    for RatioTerm { prompt, above, below } in parts {
        let unit = units.entry(*prompt).or_default();
        *unit = unit.add(Sums { above: *above, below: *below });
    }
    units
}

/// Returns the ratio of two sums over texts, after `shown` was applied to it; `None` without texts, or if it
/// is not finite.
#[must_use]
pub fn ratio(parts: &[RatioTerm], shown: fn(f64) -> f64) -> Option<Estimate> {
    let units: Vec<Sums> = units(parts).into_values().collect();
    let of = |units: &mut dyn Iterator<Item = usize>, all: &[Sums]| {
        units.fold(Sums::default(), |sum, unit| sum.add(all[unit])).ratio()
    };
    estimate(parts.len(), units.len(), |drawn| shown(of(drawn, &units)))
}

/// Returns the ratio of `parts` divided by that of `base`. Prompts that both have are resampled together, so
/// that prompts that are hard for both do not widen the interval. Other prompts are left out.
#[must_use]
pub fn relative(parts: &[RatioTerm], base: &[RatioTerm]) -> Option<Estimate> {
    let (ours, theirs) = (units(parts), units(base));
    let pairs: Vec<(Sums, Sums)> =
        ours.iter().filter_map(|(unit, sums)| Some((*sums, *theirs.get(unit)?))).collect();
    quotient(parts.len(), &pairs)
}

/// Returns the ratio of `parts` divided by that of `pool`, whose prompts are more than those of `parts`: all
/// of them are resampled, with what `parts` has of each.
#[must_use]
pub fn relative_to_pool(parts: &[RatioTerm], pool: &[RatioTerm]) -> Option<Estimate> {
    let (mut ours, all) = (units(parts), units(pool));
    let few = ours.len() < LEAST_PROMPTS;
    let mut pairs: Vec<(Sums, Sums)> =
        all.into_iter().map(|(unit, sums)| (ours.remove(&unit).unwrap_or_default(), sums)).collect();
    pairs.extend(ours.into_values().map(|sums| (sums, Sums::default())));
    let estimate = quotient(parts.len(), &pairs)?;
    Some(if few { Estimate::exact(estimate.value, estimate.n) } else { estimate })
}

/// Estimates the ratio of the first sums over that of the second ones.
fn quotient(n: usize, pairs: &[(Sums, Sums)]) -> Option<Estimate> {
    estimate(n, pairs.len(), |drawn| {
        let (mut own, mut other) = (Sums::default(), Sums::default());
        for unit in drawn {
            own = own.add(pairs[unit].0);
            other = other.add(pairs[unit].1);
        }
        own.ratio() / other.ratio()
    })
}

/// Estimates `of` over all units, with an interval from resamples.
fn estimate(n: usize, units: usize, of: impl Fn(&mut dyn Iterator<Item = usize>) -> f64) -> Option<Estimate> {
    let value = of(&mut (0..units));
    if units == 0 || !value.is_finite() {
        return None;
    }
    if units < LEAST_PROMPTS {
        return Some(Estimate::exact(value, n));
    }
    let mut random = SplitMix64::new(SEED);
    let mut draw = || {
        let wide = u128::from(random.bits()) * u128::try_from(units).unwrap_or(1);
        usize::try_from(wide >> 64).unwrap_or(0)
    };
    let mut values: Vec<f64> = (0..RESAMPLES).map(|_| of(&mut (0..units).map(|_| draw()))).collect();
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let quantile = |share: usize| values.get(values.len() * share / 1000).or(values.last()).copied();
    Some(Estimate { value, low: quantile(25), high: quantile(975), n })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(prompt: usize, above: f64) -> RatioTerm {
        RatioTerm { prompt, above, below: 1.0 }
    }

    /// Generates a uniform number in 0..1, by another generator than the bootstrap's.
    fn noise(seed: &mut u32) -> f64 {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(*seed) / f64::from(u32::MAX)
    }

    #[test]
    fn intervals_have_about_the_coverage_they_claim() {
        let mut seed = 7;
        let mut held = 0;
        for _ in 0..400 {
            let parts: Vec<RatioTerm> = (0..40).map(|prompt| part(prompt, noise(&mut seed))).collect();
            let found = ratio(&parts, |value| value).unwrap();
            let (low, high) = found.interval().unwrap();
            held += usize::from(low <= 0.5 && 0.5 <= high);
            assert!(low <= found.value && found.value <= high);
        }
        // 95% of 400, within three standard deviations and the bootstrap's known shortfall at n = 40.
        assert!((362..=393).contains(&held), "{held}");
    }

    #[test]
    fn the_bootstrap_resamples_whole_prompts() {
        let alike: Vec<RatioTerm> =
            (0..100).map(|text| part(text / 20, f64::from(u8::from(text < 60)))).collect();
        let apart: Vec<RatioTerm> = (0..100).map(|text| part(text, f64::from(u8::from(text < 60)))).collect();
        let width = |parts: &[RatioTerm]| {
            let (low, high) = ratio(parts, |value| value).unwrap().interval().unwrap();
            high - low
        };
        assert!(width(&alike) > 3.0 * width(&apart));
    }

    /// One to four prompts have no interval, however many texts: their differences tell nothing of other
    /// prompts.
    #[test]
    fn few_prompts_have_no_interval() {
        for (prompts, texts) in [(1, 1), (1, 2), (1, 100), (3, 3), (4, 100)] {
            let parts: Vec<RatioTerm> =
                (0..texts).map(|text| part(text % prompts, f64::from(u8::from(text % 2 == 0)))).collect();
            for found in [ratio(&parts, |value| value), relative(&parts, &parts)].into_iter().flatten() {
                assert_eq!((found.interval(), found.n), (None, parts.len()));
                assert!(found.words(2).ends_with(" (-)"), "{}", found.words(2));
            }
            assert!(ratio(&parts, |value| value).is_some());
            let mut more = parts.clone();
            more.extend((prompts..LEAST_PROMPTS).map(|prompt| part(prompt, 1.0)));
            let found = ratio(&more, |value| value).unwrap();
            assert!(found.interval().is_some() && !found.words(2).contains("(-)"));
            // Of two methods only prompts that both have count.
            assert_eq!(relative(&more, &parts).unwrap().interval(), None);
        }
    }

    #[test]
    fn relative_intervals_resample_both_sides_together() {
        let base: Vec<RatioTerm> = (1..20_u8).map(|prompt| part(prompt.into(), f64::from(prompt))).collect();
        let twice: Vec<RatioTerm> =
            base.iter().map(|one| RatioTerm { above: 2.0 * one.above, ..*one }).collect();
        let found = relative(&twice, &base).unwrap();
        let (low, high) = found.interval().unwrap();
        assert!((found.value - 2.0).abs() < 1e-12 && (high - low).abs() < 1e-12);
        assert_eq!(relative(&twice, &[]), None);
        assert_eq!(ratio(&[], |value| value), None);
        assert_eq!(ratio(&[RatioTerm { prompt: 0, above: 1.0, below: 0.0 }], |value| value), None);
        let shown = ratio(&twice, f64::exp).unwrap();
        assert!((shown.value - 20.0_f64.exp()).abs() < 1e-3 && shown.n == 19);
    }

    #[test]
    fn a_pool_has_more_prompts_than_what_is_divided_by_it() {
        let pool: Vec<RatioTerm> = (0..20).map(|prompt| part(prompt, 1.0)).collect();
        let some: Vec<RatioTerm> = (0..6).map(|prompt| part(prompt, 2.0)).collect();
        let found = relative_to_pool(&some, &pool).unwrap();
        let (low, high) = found.interval().unwrap();
        assert!((found.value - 2.0).abs() < 1e-12 && (high - low).abs() < 1e-12 && found.n == 6);
        // A prompt that the pool does not have counts too, and few have no interval.
        let found = relative_to_pool(&[part(40, 3.0), part(0, 1.0)], &pool).unwrap();
        assert!((found.value - 2.0).abs() < 1e-12 && found.interval().is_none());
        assert_eq!(relative_to_pool(&[], &pool), None);
        assert_eq!(relative_to_pool(&some, &[]), None);
    }

    #[test]
    fn the_same_rows_always_give_the_same_interval() {
        let parts: Vec<RatioTerm> = (0..9_u8).map(|prompt| part(prompt.into(), f64::from(prompt))).collect();
        assert_eq!(ratio(&parts, |value| value), ratio(&parts, |value| value));
    }
}
