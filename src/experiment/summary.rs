//! What rows add up to: a line for each model, grammar, method and setting, every number with its interval.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{
    records::quoted,
    row::{K, Row, RunId, UNCONSTRAINED, count},
    statistics::{Estimate, Part, ratio, relative},
};

/// A line of the summary. Estimates are `None` where no text has the number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The model's name.
    pub model: String,
    /// The grammar's.
    pub grammar: String,
    /// The method's.
    pub method: String,
    /// Lookahead.
    pub k: Option<K>,
    /// Length of drafts.
    pub s: Option<usize>,
    /// Least acceptance of a guess.
    pub threshold: Option<f64>,
    /// Texts that were learnt from before, where several numbers of them are compared.
    #[serde(default)]
    pub warm_ups: Option<usize>,
    /// Temperature.
    pub temperature: f64,
    /// Texts.
    pub n: usize,
    /// Prompts.
    pub prompts: usize,
    /// Tokens a second, the prompt's pass and the first token left out, relative to unconstrained runs of the
    /// same model, grammar and temperature.
    pub throughput: Option<Estimate>,
    /// Tokens a second.
    pub tokens_per_second: Option<Estimate>,
    /// Tokens a second over whole texts, the prompt's pass and the first token included.
    #[serde(default)]
    pub end_to_end: Option<Estimate>,
    /// Tokens for each pass after the prompt's.
    pub tokens_per_pass: Option<Estimate>,
    /// Accepted among drafted tokens.
    pub acceptance: Option<Estimate>,
    /// Mean over tokens of 1 - TV between what the counts and the model say: maximal coupling's acceptance.
    #[serde(default)]
    pub overlap: Option<Estimate>,
    /// Share of tokens that the counts guess: Gumbel coupling's acceptance, where guesses are coupled.
    #[serde(default)]
    pub guessed: Option<Estimate>,
    /// Milliseconds in masks for each token.
    pub mask_milliseconds: Option<Estimate>,
    /// Draws in which the model's own choice was refused, for each token.
    pub interventions: Option<Estimate>,
    /// Further draws for each token.
    pub redraws: Option<Estimate>,
    /// Share of the text's bytes that the grammar forced, but for their spelling.
    pub forced: Option<Estimate>,
    /// Share of texts whose tokens are not those that the tokenizer makes of them.
    pub non_canonical: Option<Estimate>,
    /// Mean over texts of the log of the probability that the masks kept.
    pub log_kept: Option<Estimate>,
    /// Perplexity under the unconstrained model, over all tokens.
    pub perplexity: Option<Estimate>,
    /// Share of texts in the language.
    pub well_formed: Option<Estimate>,
    /// Share of texts that are in the language or can become such: those that were cut by length among them.
    pub prefix: Option<Estimate>,
    /// Share of texts with the right answer.
    pub correct: Option<Estimate>,
    /// Share of prompts whose valid unconstrained text was reproduced.
    pub reproduced: Option<Estimate>,
    /// Seconds to compile the grammar.
    pub compile_seconds: Option<f64>,
}

impl Line {
    /// Is a run one of the line's?
    pub(super) fn is_of(&self, run: &RunId) -> bool {
        let RunId { model, grammar, method, k, s, threshold, warm_ups, temperature, .. } = run;
        (model, grammar, method) == (&self.model, &self.grammar, &self.method)
            && (*k, *s, *warm_ups) == (self.k, self.s, self.warm_ups)
            && threshold.map(f64::to_bits) == self.threshold.map(f64::to_bits)
            && temperature.to_bits() == self.temperature.to_bits()
    }
}

/// The lines for some rows, in the order in which models, grammars and settings first come.
#[must_use]
pub fn summarise(rows: &[Row]) -> Vec<Line> {
    let mut cells: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let cell = cell_of(row);
        match cells.iter_mut().find(|(name, _)| *name == cell) {
            Some((_, rows)) => rows.push(row),
            None => cells.push((cell, vec![row])),
        }
    }
    // Grammar by grammar, and what all is divided by first; the others in the order of the first round of
    // all, which is the definition's, as later rounds begin with another method.
    let (mut tasks, mut settings) = (Vec::new(), Vec::new());
    let place = |name: String, names: &mut Vec<String>| {
        names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let mut places: Vec<(usize, bool, usize)> = Vec::new();
    for (_, rows) in &cells {
        let Some(RunId { model, grammar, method, k, s, threshold, warm_ups, temperature, .. }) =
            rows.first().map(|row| &row.run)
        else {
            continue;
        };
        let setting = format!("{method} {k:?} {s:?} {threshold:?} {warm_ups:?} {temperature}");
        let task = place(format!("{model} {grammar}"), &mut tasks);
        places.push((task, method != UNCONSTRAINED, place(setting, &mut settings)));
    }
    let mut cells: Vec<_> = places.into_iter().zip(cells).collect();
    cells.sort_by_key(|(place, _)| *place);
    cells.iter().map(|(_, (_, cell))| line(cell, rows)).collect()
}

/// What tells cells apart.
fn cell_of(row: &Row) -> String {
    let mut run = row.run.clone();
    (run.prompt, run.seed) = (0, 0);
    run.key()
}

/// The parts of a ratio, of rows that have it.
fn parts(rows: &[&Row], of: impl Fn(&Row) -> Option<(f64, f64)>) -> Vec<Part> {
    let part = |row: &&Row| {
        let (above, below) = of(row)?;
        Some(Part { prompt: row.run.prompt, above, below })
    };
    rows.iter().filter_map(part).collect()
}

fn yes(truth: bool) -> f64 {
    f64::from(u8::from(truth))
}

/// Tokens after the first, and their seconds.
fn pace(row: &Row) -> Option<(f64, f64)> {
    row.tokens_per_second()?;
    Some((count(row.tokens.len() - 1), row.seconds - row.first_seconds))
}

fn line(cell: &[&Row], all: &[Row]) -> Line {
    let first = &cell[0].run;
    let base: Vec<&Row> = all
        .iter()
        .filter(|row| {
            let run = &row.run;
            run.method == UNCONSTRAINED
                && (&run.model, &run.grammar) == (&first.model, &first.grammar)
                && run.temperature.to_bits() == first.temperature.to_bits()
        })
        .collect();
    let mean = |of: &dyn Fn(&Row) -> Option<(f64, f64)>| ratio(&parts(cell, of), |value| value);
    let tokens = |row: &Row| count(row.tokens.len());
    let share = |of: &dyn Fn(&Row) -> Option<bool>| mean(&|row| of(row).map(|truth| (yes(truth), 1.0)));
    let mut prompts: Vec<usize> = cell.iter().map(|row| row.run.prompt).collect();
    prompts.sort_unstable();
    prompts.dedup();
    let per_token = |of: fn(&Row) -> Option<usize>| mean(&|row| Some((count(of(row)?), tokens(row))));
    let nll = parts(cell, |row| Some((row.nll?, tokens(row))));
    Line {
        model: first.model.clone(),
        grammar: first.grammar.clone(),
        method: first.method.clone(),
        k: first.k,
        s: first.s,
        threshold: first.threshold,
        warm_ups: first.warm_ups,
        temperature: first.temperature,
        n: cell.len(),
        prompts: prompts.len(),
        throughput: relative(&parts(cell, pace), &parts(&base, pace)),
        tokens_per_second: mean(&pace),
        end_to_end: mean(&|row| Some((tokens(row), row.seconds))),
        tokens_per_pass: mean(&|row| {
            row.tokens_per_pass()?;
            Some((count(row.tokens.len() - 1), count(row.passes - 1)))
        }),
        acceptance: mean(&|row| Some((count(row.accepted), count(row.drafted)))),
        overlap: mean(&|row| Some((row.overlap?, count(row.positions?)))),
        guessed: mean(&|row| Some((count(row.guessed?), count(row.positions?)))),
        mask_milliseconds: mean(&|row| row.run.k.map(|_| (1e3 * row.mask_seconds, tokens(row)))),
        interventions: per_token(|row| row.interventions.filter(|_| row.run.k.is_some())),
        redraws: per_token(|row| row.redraws),
        forced: mean(&|row| Some((count(row.forced_bytes?), count(row.text.len())))),
        non_canonical: share(&|row| row.canonical.map(|canonical| !canonical)),
        log_kept: mean(&|row| Some((row.log_kept?, 1.0))),
        perplexity: ratio(&nll, f64::exp),
        well_formed: share(&|row| Some(row.well_formed)),
        prefix: share(&|row| Some(row.prefix)),
        correct: share(&|row| row.correct),
        reproduced: share(&|row| row.reproduced),
        compile_seconds: cell.iter().find_map(|row| row.compile_seconds),
    }
}

/// A column of numbers: its head, and how a line shows it.
type Column = (&'static str, fn(&Line) -> Option<Estimate>, usize);

/// The columns of estimates, with figures behind the point.
const COLUMNS: [Column; 16] = [
    ("over unconstrained", |line| line.throughput, 2),
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
];

/// The last column of estimates, apart as it is about prompts.
const REPRODUCED: Column = ("reproduced", |line| line.reproduced, 2);

/// The settings of a line, as cells. `several`: are there several numbers of warm-ups?
fn settings(line: &Line, several: bool) -> Vec<String> {
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![
        line.grammar.clone(),
        line.method.clone(),
        or_none(line.k.map(|k| k.to_string())),
        or_none(line.s.map(|s| s.to_string())),
        or_none(line.threshold.map(|threshold| threshold.to_string())),
        line.temperature.to_string(),
        line.n.to_string(),
    ];
    if several {
        cells.push(or_none(line.warm_ups.map(|texts| texts.to_string())));
    }
    cells
}

/// The heads of the settings.
fn heads(several: bool) -> impl Iterator<Item = &'static str> {
    SETTINGS.into_iter().chain(several.then_some("warm-ups"))
}

/// Are several numbers of warm-ups compared?
fn several(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.warm_ups.is_some())
}

const SETTINGS: [&str; 7] = ["grammar", "method", "k", "s", "threshold", "temperature", "n"];

/// The lines as tables in Markdown, one for each model, without columns that no line has.
#[must_use]
pub fn markdown(lines: &[Line]) -> String {
    let mut text = String::new();
    for model in lines.chunk_by(|one, other| one.model == other.model) {
        let columns: Vec<&Column> = COLUMNS
            .iter()
            .chain([&REPRODUCED])
            .filter(|(_, of, _)| model.iter().any(|line| of(line).is_some()))
            .collect();
        let several = several(model);
        let heads: Vec<&str> = heads(several).chain(columns.iter().map(|(head, ..)| *head)).collect();
        let _ = writeln!(text, "Model {}, with 95% intervals (bootstrap over prompts).\n", model[0].model);
        let _ = writeln!(text, "| {} |", heads.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
        for line in model {
            let mut cells = settings(line, several);
            cells.extend(columns.iter().map(|(_, of, figures)| shown(of(line), *figures)));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

/// An estimate as a cell.
fn shown(estimate: Option<Estimate>, figures: usize) -> String {
    match estimate {
        Some(Estimate { value, low, high, .. }) => {
            format!("{value:.figures$} ({low:.figures$} to {high:.figures$})")
        }
        None => "-".to_owned(),
    }
}

/// The lines as comma-separated values, with the bounds of each estimate in columns of their own.
#[must_use]
pub fn csv(lines: &[Line]) -> String {
    let columns: Vec<&Column> = COLUMNS.iter().chain([&REPRODUCED]).collect();
    let mut heads = vec!["model".to_owned()];
    let several = several(lines);
    heads.extend(self::heads(several).map(str::to_owned));
    heads.extend(
        columns
            .iter()
            .flat_map(|(head, ..)| [(*head).to_owned(), format!("{head} low"), format!("{head} high")]),
    );
    heads.push("compile seconds".to_owned());
    let mut text = heads.join(",") + "\r\n";
    for line in lines {
        let mut cells = vec![line.model.clone()];
        cells.extend(settings(line, several));
        for (_, of, _) in &columns {
            let numbers =
                of(line).map(|Estimate { value, low, high, .. }| [value, low, high].map(|x| x.to_string()));
            cells.extend(numbers.unwrap_or_default());
        }
        cells.push(line.compile_seconds.map(|seconds| seconds.to_string()).unwrap_or_default());
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        text += &cells.join(",");
        text += "\r\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::row::tests::example, *};

    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for prompt in 0..4 {
            for seed in 0..3 {
                let mut masks = example("masks", prompt, seed);
                // Twice as fast.
                masks.seconds = 0.4;
                masks.well_formed = seed > 0;
                rows.extend([masks, example(UNCONSTRAINED, prompt, seed)]);
            }
        }
        rows
    }

    #[test]
    fn lines_are_about_their_rows() {
        let lines = summarise(&rows());
        let names: Vec<&str> = lines.iter().map(|line| line.method.as_str()).collect();
        assert_eq!(names, [UNCONSTRAINED, "masks"]);
        let masks = &lines[1];
        assert_eq!((masks.n, masks.prompts), (12, 4));
        assert!((masks.throughput.unwrap().value - 2.0).abs() < 1e-9);
        assert!((masks.tokens_per_second.unwrap().value - 20.0).abs() < 1e-9);
        assert!((masks.well_formed.unwrap().value - 2.0 / 3.0).abs() < 1e-12);
        assert!((masks.prefix.unwrap().value - 1.0).abs() < 1e-12);
        assert!((masks.perplexity.unwrap().value - 0.5_f64.exp()).abs() < 1e-12);
        assert!((masks.acceptance.unwrap().value - 0.5).abs() < 1e-12);
        assert_eq!((masks.correct, masks.redraws, masks.interventions), (None, None, None));
        assert!(
            (lines[0].throughput.unwrap().value - 1.0).abs() < 1e-12 && lines[0].mask_milliseconds.is_none()
        );
    }

    #[test]
    fn tables_have_a_line_each() {
        let lines = summarise(&rows());
        let table = markdown(&lines);
        assert!(
            table.contains("| json | masks | infinite | - | - | 1 | 12 | 2.00 (2.00 to 2.00) |"),
            "{table}"
        );
        assert!(!table.contains("redraws"), "{table}");
        let heads = table.lines().nth(2).unwrap().matches('|').count();
        assert!(
            table
                .lines()
                .skip(2)
                .filter(|line| !line.is_empty())
                .all(|line| line.matches('|').count() == heads)
        );
        let csv = csv(&lines);
        let commas: Vec<usize> = csv.lines().map(|line| line.matches(',').count()).collect();
        assert_eq!(commas, [commas[0]; 3], "{csv}");
        let json = serde_json::to_string(&lines).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Line>>(&json).unwrap(), lines);
    }
}
