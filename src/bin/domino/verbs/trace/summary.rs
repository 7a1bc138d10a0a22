//! Summaries of a cell in a few lines: means and quantiles over all steps of all texts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::cell::{Cell, Row};
use super::spread::{Spread, microseconds};
use crate::{terminal::count, terminal::failure::Paint};

/// A summary for people.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    cell: &'a Cell,
    /// True if the masks were compared with expected ones.
    compared: bool,
    times: Vec<(&'static str, &'static str, Option<Spread>)>,
}

impl<'a> Summary<'a> {
    /// Summarises `cell`, whose masks are the expected ones if they were `compared`.
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
            ("compile_us", "compile", Spread::new(cell.extra.compile_ns.iter().copied())),
            (
                "text_to_mask_us",
                "text to first mask",
                Spread::new(cell.extra.text_to_mask_ns.iter().copied()),
            ),
        ];
        Self { cell, compared, times }
    }

    /// Makes an object of JSON.
    pub(crate) fn to_json(&self) -> Value {
        let cell = self.cell;
        let mut object = json!({
            "grammar": cell.grammar, "vocab": cell.vocab, "grammar_source": cell.extra.grammar_source,
            "traces": cell.traces.len(), "masks": self.masks(), "passes": cell.passes,
            "interrupted": cell.extra.interrupted, "rejected": self.rejected(),
            "as_expected": self.compared.then_some(true),
            "vocab_ms": cell.vocab_ms, "compile_ms": cell.compile_ms,
            "clock_us": microseconds(u128::from(cell.extra.clock_ns)), "rss_kb": cell.rss_kb,
        });
        for (key, _, spread) in &self.times {
            object[*key] = spread.map_or(Value::Null, Spread::to_json);
        }
        object
    }

    /// Writes a table.
    pub(crate) fn to_text(&self, paint: Paint) -> String {
        let cell = self.cell;
        let mut text = format!(
            "{}, {}: {}, {}, {}{}\n",
            cell.grammar,
            cell.vocab,
            count(cell.traces.len(), "trace"),
            count(self.masks(), "mask"),
            count(cell.passes, "pass"),
            if self.compared { "; every mask is as expected" } else { "" },
        );
        let _ = writeln!(text, "{:<20}{:>11}{:>11}{:>11}{:>11}  us", "", "mean", "p50", "p99", "max");
        for (_, name, spread) in &self.times {
            if let Some(Spread { mean, p50, p99, max }) = spread {
                let _ = writeln!(text, "{name:<20}{mean:>11.3}{p50:>11.3}{p99:>11.3}{max:>11.3}");
            }
        }
        let _ = writeln!(text, "vocabulary {:.1} ms, first compile {:.2} ms", cell.vocab_ms, cell.compile_ms);
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
