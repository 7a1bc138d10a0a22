//! A cell in a few lines: means and quantiles over all steps of all texts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::cell::{Cell, Row};
use crate::failure::Paint;

/// The distribution of one kind of time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of times in nanoseconds; `None` of none. A quantile is the smallest time that at least so many do not exceed.
    pub(crate) fn new(times: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut times: Vec<u64> = times.into_iter().collect();
        times.sort_unstable();
        let last = *times.last()?;
        let us = |time: u64| microseconds(u128::from(time));
        let quantile = |hundredths: usize| us(times[(times.len() * hundredths).div_ceil(100).max(1) - 1]);
        let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
        let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
        Some(Self {
            mean: microseconds(sum) / f64::from(count),
            p50: quantile(50),
            p99: quantile(99),
            max: us(last),
        })
    }

    fn to_json(self) -> Value {
        json!({ "mean": self.mean, "p50": self.p50, "p99": self.p99, "max": self.max })
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run are far below 2^53")]
fn microseconds(nanoseconds: u128) -> f64 {
    nanoseconds as f64 / 1e3
}

/// What a person reads.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    cell: &'a Cell,
    /// Were the masks held against expected ones?
    compared: bool,
    times: Vec<(&'static str, &'static str, Option<Spread>)>,
    /// From the grammar's text to the first mask of a text, in microseconds.
    start_to_mask: Option<Spread>,
}

impl<'a> Summary<'a> {
    /// Of `cell`, whose masks are the expected ones if they were `compared`.
    pub(crate) fn new(cell: &'a Cell, compared: bool) -> Self {
        let all = |of: fn(&Row) -> &[u64]| Spread::new(cell.traces.iter().flat_map(of).copied());
        let each = |of: fn(&Row) -> u64| Spread::new(cell.traces.iter().map(of));
        let allows = cell.extra.allows_ns.iter().flatten().copied();
        let times = vec![
            ("mask_us", "mask, warm", all(|row| &row.mask_ns)),
            ("mask_first_us", "mask, first visit", all(|row| &row.mask_first_ns)),
            ("commit_us", "commit", all(|row| &row.commit_ns)),
            ("commit_first_us", "commit, first visit", all(|row| &row.commit_first_ns)),
            ("allows_us", "allows, no mask", Spread::new(allows)),
            ("check_commit_us", "allows + commit", all(|row| &row.check_commit_ns)),
            ("start_us", "start of a request", each(|row| row.start_ns)),
        ];
        let starts = cell.traces.iter().zip(&cell.extra.compile_ms).map(|(row, &compile_ms)| {
            let mask = row.mask_first_ns.first().copied().unwrap_or_default();
            let compile = std::time::Duration::from_secs_f64(compile_ms / 1e3).as_nanos();
            u64::try_from(compile).unwrap_or(u64::MAX).saturating_add(row.start_first_ns).saturating_add(mask)
        });
        Self { cell, compared, times, start_to_mask: Spread::new(starts) }
    }

    /// As an object.
    pub(crate) fn to_json(&self) -> Value {
        let cell = self.cell;
        let mut object = json!({
            "grammar": cell.grammar, "vocab": cell.vocab, "grammar_source": cell.extra.grammar_source,
            "traces": cell.traces.len(), "masks": self.masks(), "passes": cell.passes,
            "interrupted": cell.extra.interrupted, "rejected": self.rejected(),
            "as_expected": self.compared.then_some(true),
            "vocab_ms": cell.vocab_ms, "compile_ms": cell.compile_ms,
            "start_to_mask_us": self.start_to_mask.map(Spread::to_json),
            "clock_us": microseconds(u128::from(cell.extra.clock_ns)), "rss_kb": cell.rss_kb,
        });
        for (key, _, spread) in &self.times {
            object[*key] = spread.map_or(Value::Null, Spread::to_json);
        }
        object
    }

    /// As a table.
    pub(crate) fn to_text(&self, paint: Paint) -> String {
        let cell = self.cell;
        let mut text = format!(
            "{}, {}: {} traces, {} masks, {} passes{}\n",
            cell.grammar,
            cell.vocab,
            cell.traces.len(),
            self.masks(),
            cell.passes,
            if self.compared { "; every mask is as expected" } else { "" },
        );
        let _ = writeln!(text, "{:<20}{:>11}{:>11}{:>11}{:>11}  us", "", "mean", "p50", "p99", "max");
        let start_to_mask = ("", "text to first mask", self.start_to_mask);
        for (_, name, spread) in self.times.iter().chain([&start_to_mask]) {
            if let Some(Spread { mean, p50, p99, max }) = spread {
                let _ = writeln!(text, "{name:<20}{mean:>11.3}{p50:>11.3}{p99:>11.3}{max:>11.3}");
            }
        }
        let _ = writeln!(text, "compile {:.2} ms, vocabulary {:.1} ms", cell.compile_ms, cell.vocab_ms);
        if let Some(memory) = &cell.rss_kb {
            let _ = writeln!(text, "memory {memory}");
        }
        for rejected in self.rejected() {
            let _ = writeln!(text, "{}", paint.red(&format!("the mask excludes a token: {rejected}")));
        }
        if cell.extra.interrupted {
            let _ = writeln!(text, "{}", paint.red("interrupted: these are the finished traces and passes"));
        }
        text
    }

    fn masks(&self) -> usize {
        self.cell.traces.iter().map(|row| row.mask_first_ns.len()).sum()
    }

    fn rejected(&self) -> Vec<Value> {
        let rows = self.cell.traces.iter().enumerate();
        rows.filter_map(|(trace, row)| Some(json!({ "trace": trace, "token": row.rejected_at? }))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let spread = Spread::new((1..=200).map(|time| time * 1000)).unwrap();
        assert_eq!(spread, Spread { mean: 100.5, p50: 100.0, p99: 198.0, max: 200.0 });
        let one = Spread::new([1500]).unwrap();
        assert_eq!((one.mean, one.p50, one.p99, one.max), (1.5, 1.5, 1.5, 1.5));
        assert_eq!(Spread::new([]), None);
    }
}
