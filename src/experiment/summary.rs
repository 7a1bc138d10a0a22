//! Summaries of rows: a line for each model, grammar, method and setting, every number with its interval, and
//! how lines are shown, in Markdown and as comma-separated values (RFC 4180).

use std::{collections::HashMap, fmt::Write};

use serde::{Deserialize, Serialize};

use super::row::{End, K, Row, RunId, UNCONSTRAINED};
use super::statistics::{Estimate, RatioTerm, ratio, relative, relative_to_pool};
use crate::ids::as_f64;

/// The method whose masks save rows of the output product, by which throughput is divided too.
const MASKS: &str = "masks";
/// Share of texts that ended below which throughput is mostly that of texts that ran to the limit.
const MOSTLY: f64 = 0.5;

/// A line of the summary. Estimates are `None` where no text has the number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The model's name.
    pub model: String,
    /// The grammar's name.
    pub grammar: String,
    /// The method's name.
    pub method: String,
    /// Lookahead.
    pub k: Option<K>,
    /// Length of drafts.
    pub s: Option<usize>,
    /// Least acceptance of a guess.
    pub threshold: Option<f64>,
    /// Number of texts learnt from before, if several numbers of them are compared.
    #[serde(default)]
    pub warm_ups: Option<usize>,
    /// Most tokens of the thought before the answer, if one comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<usize>,
    /// Temperature.
    pub temperature: f64,
    /// Number of texts.
    pub n: usize,
    /// Number of prompts.
    pub prompts: usize,
    /// Tokens a second, the prompt's pass and the first token left out, relative to all unconstrained runs of
    /// the same model, of whatever grammar: a pass is a pass.
    pub throughput: Option<Estimate>,
    /// Throughput in processor time, relative to the same runs.
    #[serde(default)]
    pub processor_throughput: Option<Estimate>,
    /// Throughput relative to runs with masks and no drafts, which also save rows of the output product: the
    /// gain of drafts alone. Masks with the same `k`, if there are such.
    #[serde(default)]
    pub over_masks: Option<Estimate>,
    /// Tokens a second.
    pub tokens_per_second: Option<Estimate>,
    /// Share of texts that ended other than by the limit of tokens.
    #[serde(default)]
    pub ended: Option<Estimate>,
    /// Tokens a second of the texts that ended, alone.
    #[serde(default)]
    pub ended_per_second: Option<Estimate>,
    /// Throughput of the texts that ended, relative to the same unconstrained runs.
    #[serde(default)]
    pub ended_throughput: Option<Estimate>,
    /// Share of texts whose prompts were among the warm-ups that their method had learnt from.
    #[serde(default)]
    pub seen: Option<Estimate>,
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
    /// Share of the answer's bytes that the grammar forced, but for their spelling.
    pub forced: Option<Estimate>,
    /// Share of texts whose tokens are not those that the tokenizer makes of them.
    pub non_canonical: Option<Estimate>,
    /// Mean over texts of the log of the probability that the masks kept.
    pub log_kept: Option<Estimate>,
    /// Perplexity under the unconstrained model, over all tokens of answers.
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
    /// Creates a line without texts.
    fn of(run: &RunId) -> Self {
        let RunId { model, grammar, method, k, s, threshold, warm_ups, think, temperature, .. } = run.clone();
        Self {
            model,
            grammar,
            method,
            k,
            s,
            threshold,
            warm_ups,
            think,
            temperature,
            n: 0,
            prompts: 0,
            throughput: None,
            processor_throughput: None,
            over_masks: None,
            tokens_per_second: None,
            ended: None,
            ended_per_second: None,
            ended_throughput: None,
            seen: None,
            end_to_end: None,
            tokens_per_pass: None,
            acceptance: None,
            overlap: None,
            guessed: None,
            mask_milliseconds: None,
            interventions: None,
            redraws: None,
            forced: None,
            non_canonical: None,
            log_kept: None,
            perplexity: None,
            well_formed: None,
            prefix: None,
            correct: None,
            reproduced: None,
            compile_seconds: None,
        }
    }

    /// Did most of the texts run to the limit of tokens, so that their throughput is mostly about what they
    /// ran on with?
    #[must_use]
    pub fn runs_away(&self) -> bool {
        self.ended.is_some_and(|ended| ended.value < MOSTLY)
    }

    /// May its texts at temperature 0 be the very texts that its method had learnt from?
    #[must_use]
    pub fn is_known_before(&self) -> bool {
        self.temperature <= 0.0 && self.seen.is_some_and(|seen| seen.value > 0.0)
    }

    /// Returns the method's name, with the bound of its thought if it has one.
    #[must_use]
    pub fn method_name(&self) -> String {
        let think = self.think.map(|tokens| format!(", think {tokens}"));
        format!("{}{}", self.method, think.unwrap_or_default())
    }

    /// Is a run one of the line's?
    pub(super) fn is_of(&self, run: &RunId) -> bool {
        let RunId { model, grammar, method, k, s, threshold, warm_ups, think, temperature, .. } = run;
        (model, grammar, method) == (&self.model, &self.grammar, &self.method)
            && (*k, *s, *warm_ups, *think) == (self.k, self.s, self.warm_ups, self.think)
            && threshold.map(f64::to_bits) == self.threshold.map(f64::to_bits)
            && temperature.to_bits() == self.temperature.to_bits()
    }
}

/// Summarises rows as lines, in the order in which models, grammars and settings first occur.
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
        let Some(RunId { model, grammar, method, k, s, threshold, warm_ups, think, temperature, .. }) =
            rows.first().map(|row| &row.run)
        else {
            continue;
        };
        let setting = format!("{method} {k:?} {s:?} {threshold:?} {warm_ups:?} {think:?} {temperature}");
        let task = place(format!("{model} {grammar}"), &mut tasks);
        places.push((task, method != UNCONSTRAINED, place(setting, &mut settings)));
    }
    let mut cells: Vec<_> = places.into_iter().zip(cells).collect();
    cells.sort_by_key(|(place, _)| *place);
    cells.iter().map(|(_, (_, cell))| line(cell, rows)).collect()
}

/// Names a cell.
fn cell_of(row: &Row) -> String {
    let mut run = row.run.clone();
    (run.prompt, run.seed) = (0, 0);
    run.key()
}

/// Collects the parts of a ratio, of rows that have it.
pub(super) fn parts(rows: &[&Row], of: impl Fn(&Row) -> Option<(f64, f64)>) -> Vec<RatioTerm> {
    let part = |row: &&Row| {
        let (above, below) = of(row)?;
        Some(RatioTerm { prompt: row.run.prompt, above, below })
    };
    rows.iter().filter_map(part).collect()
}

/// The same of rows of several grammars, whose prompts are other ones.
pub(super) fn pooled(rows: &[&Row], all: &[Row], of: impl Fn(&Row) -> Option<(f64, f64)>) -> Vec<RatioTerm> {
    let first = |row: &Row| all.iter().position(|other| other.run.grammar == row.run.grammar).unwrap_or(0);
    let most = 1 + all.iter().map(|row| row.run.prompt).max().unwrap_or(0);
    let part = |row: &&Row| {
        let (above, below) = of(row)?;
        Some(RatioTerm { prompt: first(row) * most + row.run.prompt, above, below })
    };
    rows.iter().filter_map(part).collect()
}

fn yes(truth: bool) -> f64 {
    f64::from(u8::from(truth))
}

/// Returns the tokens after the first, and their seconds.
pub(super) fn pace(row: &Row) -> Option<(f64, f64)> {
    row.tokens_per_second()?;
    Some((as_f64(row.tokens.len() - 1), row.seconds - row.first_seconds))
}

/// Returns the tokens after the first, and their processor seconds.
pub(super) fn processor_pace(row: &Row) -> Option<(f64, f64)> {
    let seconds = row.cpu_seconds.filter(|seconds| *seconds > 0.0)?;
    Some((pace(row)?.0, seconds))
}

/// Returns the tokens after the first, and the passes after the prompt's.
pub(super) fn passes(row: &Row) -> Option<(f64, f64)> {
    row.tokens_per_pass()?;
    Some((as_f64(row.tokens.len() - 1), as_f64(row.passes - 1)))
}

/// Returns all runs of a method by a model.
pub(super) fn by_method<'a>(all: &'a [Row], model: &str, method: &str) -> Vec<&'a Row> {
    all.iter().filter(|row| (row.run.model.as_str(), row.run.method.as_str()) == (model, method)).collect()
}

/// Returns the runs with masks that a cell is compared with: of the same model, grammar, temperature and
/// thought, and of its own lookahead if there are such.
fn masks<'a>(first: &RunId, all: &'a [Row]) -> Vec<&'a Row> {
    let mut masks = by_method(all, &first.model, MASKS);
    masks.retain(|Row { run, .. }| {
        (&run.grammar, run.think) == (&first.grammar, first.think)
            && run.temperature.to_bits() == first.temperature.to_bits()
    });
    let same: Vec<&Row> = masks.iter().filter(|row| row.run.k == first.k).copied().collect();
    if same.is_empty() { masks } else { same }
}

/// Creates a line without estimates except those of pace.
fn paces(cell: &[&Row], all: &[Row]) -> Line {
    let first = &cell[0].run;
    let unconstrained = by_method(all, &first.model, UNCONSTRAINED);
    let over = |rows: &[&Row], of: fn(&Row) -> Option<(f64, f64)>| {
        relative_to_pool(&pooled(rows, all, of), &pooled(&unconstrained, all, of))
    };
    let masks = parts(&masks(first, all), pace);
    let is_other = first.k.is_some() && first.method != MASKS;
    let ended: Vec<&Row> = cell.iter().filter(|row| row.finish == End::Stop).copied().collect();
    let mut prompts: Vec<usize> = cell.iter().map(|row| row.run.prompt).collect();
    prompts.sort_unstable();
    prompts.dedup();
    let own = parts(cell, pace);
    Line {
        n: cell.len(),
        prompts: prompts.len(),
        throughput: over(cell, pace),
        processor_throughput: over(cell, processor_pace),
        over_masks: relative(&own, &masks).filter(|_| is_other),
        tokens_per_second: ratio(&own, |value| value),
        ended_per_second: ratio(&parts(&ended, pace), |value| value),
        ended_throughput: over(&ended, pace),
        ..Line::of(first)
    }
}

/// Summarizes the rows of a cell.
fn line(cell: &[&Row], all: &[Row]) -> Line {
    let mean = |of: &dyn Fn(&Row) -> Option<(f64, f64)>| ratio(&parts(cell, of), |value| value);
    let tokens = |row: &Row| as_f64(row.tokens.len());
    let share = |of: &dyn Fn(&Row) -> Option<bool>| mean(&|row| of(row).map(|truth| (yes(truth), 1.0)));
    let per_token = |of: fn(&Row) -> Option<usize>| mean(&|row| Some((as_f64(of(row)?), tokens(row))));
    let nll = parts(cell, |row| Some((row.nll?, as_f64(row.answer_tokens()))));
    Line {
        end_to_end: mean(&|row| Some((tokens(row), row.seconds))),
        tokens_per_pass: mean(&passes),
        acceptance: mean(&|row| Some((as_f64(row.accepted), as_f64(row.drafted)))),
        overlap: mean(&|row| Some((row.overlap?, as_f64(row.positions?)))),
        guessed: mean(&|row| Some((as_f64(row.guessed?), as_f64(row.positions?)))),
        mask_milliseconds: mean(&|row| row.run.k.map(|_| (1e3 * row.mask_seconds, tokens(row)))),
        interventions: per_token(|row| row.interventions.filter(|_| row.run.k.is_some())),
        redraws: per_token(|row| row.redraws),
        forced: mean(&|row| Some((as_f64(row.forced_bytes?), as_f64(row.answer().len())))),
        non_canonical: share(&|row| row.canonical.map(|canonical| !canonical)),
        log_kept: mean(&|row| Some((row.log_kept?, 1.0))),
        perplexity: ratio(&nll, f64::exp),
        well_formed: share(&|row| Some(row.well_formed)),
        prefix: share(&|row| Some(row.prefix || row.well_formed)),
        ended: share(&|row| Some(row.finish == End::Stop)),
        seen: share(&|row| row.seen),
        correct: share(&|row| row.correct),
        reproduced: share(&|row| row.reproduced),
        compile_seconds: cell.iter().find_map(|row| row.compile_seconds),
        ..paces(cell, all)
    }
}

/// A column of numbers: its head, its number of a line, and decimals.
type Column = (&'static str, fn(&Line) -> Option<Estimate>, usize);

/// The columns of estimates, with decimals.
const COLUMNS: [Column; 22] = [
    ("over unconstrained", |line| line.throughput, 2),
    ("over unconstrained, processor", |line| line.processor_throughput, 2),
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

/// The settings that only some summaries have.
#[derive(Debug, Clone, Copy)]
struct MoreSettings {
    /// Are several numbers of warm-ups compared?
    warm_ups: bool,
    /// Do thoughts come before answers?
    think: bool,
}

impl MoreSettings {
    const ALL: Self = Self { warm_ups: true, think: true };

    fn of(lines: &[Line]) -> Self {
        Self {
            warm_ups: lines.iter().any(|line| line.warm_ups.is_some()),
            think: lines.iter().any(|line| line.think.is_some()),
        }
    }
}

/// Formats the settings of a line, as cells; empty if the method has no such setting.
fn settings(line: &Line, more: MoreSettings) -> Vec<String> {
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
    cells.extend(more.warm_ups.then(|| cell(line.warm_ups)));
    cells.extend(more.think.then(|| cell(line.think)));
    cells
}

/// Returns the heads of the settings.
fn heads(more: MoreSettings) -> impl Iterator<Item = &'static str> {
    SETTINGS.into_iter().chain(more.warm_ups.then_some("warm-ups")).chain(more.think.then_some("think"))
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
        let more = MoreSettings::of(model);
        let heads: Vec<&str> = heads(more).chain(columns.iter().map(|(head, ..)| *head)).collect();
        let name = names.get(&model[0].model);
        let _ = writeln!(text, "Model {name}, with 95% intervals (bootstrap over prompts).\n");
        let _ = writeln!(text, "| {} |", heads.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
        for line in model {
            let dash = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
            let mut cells: Vec<String> = settings(line, more).into_iter().map(dash).collect();
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

/// The method of a line with its thought, and those of its settings in which the model's lines of that method
/// differ.
fn with_settings(line: &Line, model: &[Line]) -> String {
    let mut name = line.method.clone();
    let all = MoreSettings::ALL;
    let own = settings(line, all);
    let alike: Vec<Vec<String>> =
        model.iter().filter(|other| other.method == line.method).map(|other| settings(other, all)).collect();
    for (at, head) in heads(all).enumerate() {
        let is_setting = !["grammar", "method", "n", "prompts"].contains(&head);
        // A thought is said in any case: methods with one are not like those without.
        let differs = || head == "think" || alike.iter().any(|other| other[at] != own[at]);
        if is_setting && !own[at].is_empty() && differs() {
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
    let more = MoreSettings::of(lines);
    heads.extend(self::heads(more).map(column));
    for name in columns.iter().map(|(head, ..)| column(head)) {
        heads.extend(["", "_low", "_high"].map(|bound| format!("{name}{bound}")));
    }
    heads.push("compile_seconds".to_owned());
    let mut text = heads.join(",") + "\r\n";
    let names = PlainNames::of(lines.iter().map(|line| line.model.as_str()));
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for line in lines {
        let mut cells = vec![names.get(&line.model).to_owned()];
        cells.extend(settings(line, more));
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

/// Quotes a text as a cell of comma-separated values.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Returns the name of a column in files, for a head that is written for readers: lower case, digits and
/// underscores.
pub(super) fn column(head: &str) -> String {
    if head == "1 - TV" {
        return "overlap".to_owned();
    }
    let mut name = String::with_capacity(head.len());
    for c in head.chars() {
        let put: &str = match c {
            '/' => "_per_",
            _ if c.is_alphanumeric() => {
                name.extend(c.to_lowercase());
                continue;
            }
            _ => "_",
        };
        name.push_str(put);
    }
    name.split('_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

/// Names of models without folders: the last part of a path, and as many parts before it as distinguish it.
#[derive(Debug, Clone, Default)]
pub(super) struct PlainNames {
    known: HashMap<String, String>,
}

impl PlainNames {
    /// Computes plain names for these models.
    pub(super) fn of<'a>(models: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<&str> = models.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let parts = |model: &str| -> Vec<String> {
            let parts = model.split(['/', '\\']).filter(|part| !["", ".", ".."].contains(part));
            parts.map(str::to_owned).collect()
        };
        let tail = |model: &str, most: usize| {
            let parts = parts(model);
            parts[parts.len().saturating_sub(most)..].join("/")
        };
        let plain = |model: &str| {
            // A repository on the hub is a name as it is.
            let lies_in_folders = model.starts_with(['/', '.', '\\']) || parts(model).len() > 2;
            let most = if lies_in_folders { 1 } else { 2 };
            let is_other =
                |most: usize| all.iter().all(|one| *one == model || tail(one, most) != tail(model, most));
            let most = (most..=parts(model).len()).find(|most| is_other(*most)).unwrap_or(most);
            let name = tail(model, most);
            if name.is_empty() { model.to_owned() } else { name }
        };
        Self { known: all.iter().map(|model| ((*model).to_owned(), plain(model))).collect() }
    }

    /// Returns the plain name of a model; itself if it was not among those given.
    pub(super) fn get<'a>(&'a self, model: &'a str) -> &'a str {
        self.known.get(model).map_or(model, String::as_str)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod cells_tests {
    use super::*;

    #[test]
    fn columns_have_names_that_need_no_quotes() {
        for (head, name) in [
            ("over unconstrained", "over_unconstrained"),
            ("tokens/s", "tokens_per_s"),
            ("mask ms/token", "mask_ms_per_token"),
            ("1 - TV", "overlap"),
            ("non-canonical", "non_canonical"),
            ("s = 4", "s_4"),
            ("t(n)/t(1)", "t_n_per_t_1"),
            ("Paper: Mistral 7B", "paper_mistral_7b"),
        ] {
            assert_eq!(column(head), name);
        }
    }

    #[test]
    fn models_have_plain_names() {
        for (models, plain) in [
            (&["../end_to_end/small/small-q8_0.gguf"][..], &["small-q8_0.gguf"][..]),
            (&["/models/a.gguf", "domino-small"], &["a.gguf", "domino-small"]),
            (&["/x/one/model.gguf", "/x/two/model.gguf"], &["one/model.gguf", "two/model.gguf"]),
            (&["OWNER/NAME"], &["OWNER/NAME"]),
            (&["./model"], &["model"]),
            (&["../a/m", "b/m"], &["a/m", "b/m"]),
            (&["/"], &["/"]),
        ] {
            let names = PlainNames::of(models.iter().copied());
            let found: Vec<&str> = models.iter().map(|model| names.get(model)).collect();
            assert_eq!(found, plain);
        }
        assert_eq!(PlainNames::default().get("other"), "other");
    }
}
