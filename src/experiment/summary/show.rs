//! Summaries in Markdown and as comma-separated values.

use std::fmt::Write;

use super::{
    cells::{PlainNames, column, quoted},
    lines::Line,
};
use crate::experiment::statistics::Estimate;

/// A column of numbers: its head, its number of a line, and decimals.
type Column = (&'static str, fn(&Line) -> Option<Estimate>, usize);

/// The columns of estimates, with decimals.
const COLUMNS: [Column; 21] = [
    ("over unconstrained", |line| line.throughput, 2),
    ("over masks", |line| line.over_masks, 2),
    ("ended", |line| line.ended, 2),
    ("over unconstrained, ended", |line| line.ended_throughput, 2),
    ("tokens/s, ended", |line| line.ended_per_second, 0),
    ("tokens/s", |line| line.tokens_per_second, 0),
    ("tokens/pass", |line| line.tokens_per_pass, 2),
    ("acceptance", |line| line.acceptance, 2),
    ("1 - TV", |line| line.overlap, 2),
    ("guessed", |line| line.guessed, 2),
    ("mask ms/token", |line| line.mask_milliseconds, 3),
    ("interventions/token", |line| line.interventions, 3),
    ("redraws/token", |line| line.redraws, 2),
    ("forced", |line| line.forced, 2),
    ("non-canonical", |line| line.non_canonical, 2),
    ("log kept", |line| line.log_kept, 2),
    ("perplexity", |line| line.perplexity, 2),
    ("well-formed", |line| line.well_formed, 2),
    ("or a prefix", |line| line.prefix, 2),
    ("correct", |line| line.correct, 2),
    ("prompt seen", |line| line.seen, 2),
];

/// The last column of estimates, apart as it is about prompts.
const REPRODUCED: Column = ("reproduced", |line| line.reproduced, 2);

/// Formats the settings of a line, as cells; empty if the method has no such setting. `several` says whether
/// there are several numbers of warm-ups.
fn settings(line: &Line, several: bool) -> Vec<String> {
    fn cell<T: ToString>(value: Option<T>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let mut cells = vec![
        line.grammar.clone(),
        line.method.clone(),
        cell(line.k),
        cell(line.s),
        cell(line.threshold),
        line.temperature.to_string(),
        line.n.to_string(),
        line.prompts.to_string(),
    ];
    if several {
        cells.push(cell(line.warm_ups));
    }
    cells
}

/// Returns the heads of the settings.
fn heads(several: bool) -> impl Iterator<Item = &'static str> {
    SETTINGS.into_iter().chain(several.then_some("warm-ups"))
}

/// Are several numbers of warm-ups compared?
fn several(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.warm_ups.is_some())
}

const SETTINGS: [&str; 8] = ["grammar", "method", "k", "s", "threshold", "temperature", "n", "prompts"];

/// Formats the lines as tables in Markdown, one for each model, without columns that no line has.
#[must_use]
pub fn markdown(lines: &[Line]) -> String {
    let mut text = String::new();
    let names = PlainNames::of(lines.iter().map(|line| line.model.as_str()));
    for model in lines.chunk_by(|one, other| one.model == other.model) {
        let columns: Vec<&Column> = COLUMNS
            .iter()
            .chain([&REPRODUCED])
            .filter(|(_, of, _)| model.iter().any(|line| of(line).is_some()))
            .collect();
        let several = several(model);
        let heads: Vec<&str> = heads(several).chain(columns.iter().map(|(head, ..)| *head)).collect();
        let name = names.get(&model[0].model);
        let _ = writeln!(text, "Model {name}, with 95% intervals (bootstrap over prompts).\n");
        let _ = writeln!(text, "| {} |", heads.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
        for line in model {
            let dash = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
            let mut cells: Vec<String> = settings(line, several).into_iter().map(dash).collect();
            cells.extend(columns.iter().map(|(_, of, figures)| shown(of(line), *figures)));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

/// The columns that [`brief`] chooses from, by what is asked first.
const BRIEF: [&str; 8] = [
    "correct",
    "over unconstrained",
    "over masks",
    "tokens/s",
    "well-formed",
    "tokens/pass",
    "acceptance",
    "perplexity",
];

/// Most columns of [`brief`]: with more, lines of a table are wrapped on most terminals.
const BRIEF_COLUMNS: usize = 6;

/// Formats the lines for a terminal: a table for each model, of at most six columns and without intervals. A
/// method has its settings beside its name, where the model's lines differ in them.
#[must_use]
pub fn brief(lines: &[Line]) -> String {
    let mut text = String::new();
    let names = PlainNames::of(lines.iter().map(|line| line.model.as_str()));
    for model in lines.chunk_by(|one, other| one.model == other.model) {
        let known = |head: &&str| COLUMNS.iter().find(|(name, ..)| name == head);
        let there = |(_, of, _): &&Column| model.iter().any(|line| of(line).is_some());
        let columns: Vec<&Column> =
            BRIEF.iter().filter_map(known).filter(there).take(BRIEF_COLUMNS - 2).collect();
        let heads = ["grammar", "method"].into_iter().chain(columns.iter().map(|(head, ..)| *head));
        let mut rows = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
        rows.extend(model.iter().map(|line| {
            let plain = |(_, of, figures): &&Column| {
                of(line).map_or_else(|| "-".to_owned(), |found| format!("{:.*}", *figures, found.value))
            };
            let first = [line.grammar.clone(), with_settings(line, model)];
            first.into_iter().chain(columns.iter().map(plain)).collect()
        }));
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let _ = writeln!(text, "Model {}\n", names.get(&model[0].model));
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        text.push('\n');
    }
    text
}

/// The method of a line with those of its settings in which the model's lines of that method differ.
fn with_settings(line: &Line, model: &[Line]) -> String {
    let mut name = line.method.clone();
    let own = settings(line, true);
    let alike: Vec<Vec<String>> =
        model.iter().filter(|other| other.method == line.method).map(|other| settings(other, true)).collect();
    for (at, head) in heads(true).enumerate() {
        let is_setting = !["grammar", "method", "n", "prompts"].contains(&head);
        if is_setting && alike.iter().any(|other| other[at] != own[at]) {
            let _ = write!(name, ", {head} {}", own[at]);
        }
    }
    name
}

/// Formats an estimate as a cell.
fn shown(estimate: Option<Estimate>, figures: usize) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| estimate.words(figures))
}

/// Formats the lines as comma-separated values, with the bounds of each estimate in columns of their own.
/// Column names need no quotes in programs, models are named without folders, and missing values are empty.
#[must_use]
pub fn csv(lines: &[Line]) -> String {
    let columns: Vec<&Column> = COLUMNS.iter().chain([&REPRODUCED]).collect();
    let mut heads = vec!["model".to_owned()];
    let several = several(lines);
    heads.extend(self::heads(several).map(column));
    for name in columns.iter().map(|(head, ..)| column(head)) {
        heads.extend(["", "_low", "_high"].map(|bound| format!("{name}{bound}")));
    }
    heads.push("compile_seconds".to_owned());
    let mut text = heads.join(",") + "\r\n";
    let names = PlainNames::of(lines.iter().map(|line| line.model.as_str()));
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for line in lines {
        let mut cells = vec![names.get(&line.model).to_owned()];
        cells.extend(settings(line, several));
        for estimate in columns.iter().map(|(_, of, _)| of(line)) {
            cells.push(number(estimate.map(|estimate| estimate.value)));
            cells.push(number(estimate.and_then(|estimate| estimate.low)));
            cells.push(number(estimate.and_then(|estimate| estimate.high)));
        }
        cells.push(number(line.compile_seconds));
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        text += &cells.join(",");
        text += "\r\n";
    }
    text
}
