//! Lines of a summary: one for each model, grammar, method and setting, every number with its interval.

use serde::{Deserialize, Serialize};

use crate::{
    experiment::{
        row::{End, K, Row, RunId, UNCONSTRAINED},
        statistics::{Estimate, RatioTerm, ratio, relative},
    },
    ids::as_f64,
};

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
    /// Temperature.
    pub temperature: f64,
    /// Number of texts.
    pub n: usize,
    /// Number of prompts.
    pub prompts: usize,
    /// Tokens a second, the prompt's pass and the first token left out, relative to unconstrained runs of the
    /// same model, grammar and temperature.
    pub throughput: Option<Estimate>,
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
    /// Throughput of the texts that ended, relative to all unconstrained ones of the same prompts.
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
    /// Creates a line without texts.
    fn of(run: &RunId) -> Self {
        let RunId { model, grammar, method, k, s, threshold, warm_ups, temperature, .. } = run.clone();
        Self {
            model,
            grammar,
            method,
            k,
            s,
            threshold,
            warm_ups,
            temperature,
            n: 0,
            prompts: 0,
            throughput: None,
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

    /// Is a run one of the line's?
    pub(in crate::experiment) fn is_of(&self, run: &RunId) -> bool {
        let RunId { model, grammar, method, k, s, threshold, warm_ups, temperature, .. } = run;
        (model, grammar, method) == (&self.model, &self.grammar, &self.method)
            && (*k, *s, *warm_ups) == (self.k, self.s, self.warm_ups)
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

/// Names a cell.
fn cell_of(row: &Row) -> String {
    let mut run = row.run.clone();
    (run.prompt, run.seed) = (0, 0);
    run.key()
}

/// Collects the parts of a ratio, of rows that have it.
fn parts(rows: &[&Row], of: impl Fn(&Row) -> Option<(f64, f64)>) -> Vec<RatioTerm> {
    let part = |row: &&Row| {
        let (above, below) = of(row)?;
        Some(RatioTerm { prompt: row.run.prompt, above, below })
    };
    rows.iter().filter_map(part).collect()
}

fn yes(truth: bool) -> f64 {
    f64::from(u8::from(truth))
}

/// Returns the tokens after the first, and their seconds.
fn pace(row: &Row) -> Option<(f64, f64)> {
    row.tokens_per_second()?;
    Some((as_f64(row.tokens.len() - 1), row.seconds - row.first_seconds))
}

/// Returns the rows that a cell is compared with: of the same model, grammar and temperature, by this method.
fn base<'a>(first: &RunId, all: &'a [Row], method: &str) -> Vec<&'a Row> {
    let is_base = |run: &RunId| {
        run.method == method
            && (&run.model, &run.grammar) == (&first.model, &first.grammar)
            && run.temperature.to_bits() == first.temperature.to_bits()
    };
    all.iter().filter(|row| is_base(&row.run)).collect()
}

/// Returns the runs with masks that a cell is compared with: those of its own lookahead, else all.
fn masks<'a>(first: &RunId, all: &'a [Row]) -> Vec<&'a Row> {
    let masks = base(first, all, MASKS);
    let same: Vec<&Row> = masks.iter().filter(|row| row.run.k == first.k).copied().collect();
    if same.is_empty() { masks } else { same }
}

/// Creates a line without estimates except those of pace.
fn paces(cell: &[&Row], all: &[Row]) -> Line {
    let first = &cell[0].run;
    let unconstrained = parts(&base(first, all, UNCONSTRAINED), pace);
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
        throughput: relative(&own, &unconstrained),
        over_masks: relative(&own, &masks).filter(|_| is_other),
        tokens_per_second: ratio(&own, |value| value),
        ended_per_second: ratio(&parts(&ended, pace), |value| value),
        ended_throughput: relative(&parts(&ended, pace), &unconstrained),
        ..Line::of(first)
    }
}

/// Summarizes the rows of a cell.
fn line(cell: &[&Row], all: &[Row]) -> Line {
    let mean = |of: &dyn Fn(&Row) -> Option<(f64, f64)>| ratio(&parts(cell, of), |value| value);
    let tokens = |row: &Row| as_f64(row.tokens.len());
    let share = |of: &dyn Fn(&Row) -> Option<bool>| mean(&|row| of(row).map(|truth| (yes(truth), 1.0)));
    let per_token = |of: fn(&Row) -> Option<usize>| mean(&|row| Some((as_f64(of(row)?), tokens(row))));
    let nll = parts(cell, |row| Some((row.nll?, tokens(row))));
    Line {
        end_to_end: mean(&|row| Some((tokens(row), row.seconds))),
        tokens_per_pass: mean(&|row| {
            row.tokens_per_pass()?;
            Some((as_f64(row.tokens.len() - 1), as_f64(row.passes - 1)))
        }),
        acceptance: mean(&|row| Some((as_f64(row.accepted), as_f64(row.drafted)))),
        overlap: mean(&|row| Some((row.overlap?, as_f64(row.positions?)))),
        guessed: mean(&|row| Some((as_f64(row.guessed?), as_f64(row.positions?)))),
        mask_milliseconds: mean(&|row| row.run.k.map(|_| (1e3 * row.mask_seconds, tokens(row)))),
        interventions: per_token(|row| row.interventions.filter(|_| row.run.k.is_some())),
        redraws: per_token(|row| row.redraws),
        forced: mean(&|row| Some((as_f64(row.forced_bytes?), as_f64(row.text.len())))),
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
