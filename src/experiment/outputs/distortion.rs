//! The distance of texts from the model conditioned on the language, where all texts are known, and from the
//! tokens that the model itself would have chosen for them (paper, figure 2).

use std::collections::BTreeMap;

use super::table::{Cell, LineGroup, PACE, Table, best, groups, heads, pace, setting, table};
use crate::experiment::row::{End, Row};
use crate::experiment::statistics::{Estimate, RatioTerm, ratio};
use crate::experiment::{enumeration::Distribution, summary::Line};
use crate::ids::as_f64;

/// The total variations of one prompt.
struct Variations {
    /// Total variation between the conditional distribution and the shares of the texts.
    drawn: f64,
    /// Expected total variation of as many draws from the conditional distribution.
    exact: f64,
    /// Total variation between the conditional distribution and that of masks.
    masked: f64,
}

/// Makes the tables, one for each model and temperature with distributions.
pub(super) fn tables(lines: &[Line], rows: &[Row], distributions: &[Distribution]) -> Vec<Table> {
    groups(lines).iter().filter_map(|group| one(group, rows, distributions)).collect()
}

/// Makes the table of a group; `None` if no distribution was measured for it.
fn one(group: &LineGroup<'_>, rows: &[Row], distributions: &[Distribution]) -> Option<Table> {
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    for line in best(&group.lines) {
        let all = variations(line, rows, distributions);
        let mean = |of: fn(&Variations) -> f64| {
            let part = |(prompt, found): (&usize, &Variations)| RatioTerm {
                prompt: *prompt,
                above: of(found),
                below: 1.0,
            };
            ratio(&all.iter().map(part).collect::<Vec<_>>(), |mean| mean)
        };
        let Some(drawn) = mean(|found| found.drawn) else { continue };
        let number = |of| mean(of).map_or(Cell::None, |mean| Cell::Number(mean.value, 3));
        let mut row = setting(line);
        row.extend([
            Cell::Estimate(drawn, 3),
            number(|found| found.exact),
            number(|found| found.masked),
            Cell::of(line.log_kept, 2),
        ]);
        row.extend(pace(line));
        cells.push(row);
    }
    let about = "Total variation between the model conditioned on the language, all of whose texts were \
        listed, and: the texts of the method; as many draws from the conditional distribution itself, which \
        no method can be expected to fall below; and the distribution of masks, which is known too. Means \
        over prompts.";
    let more = ["TV of texts", "TV of exact draws", "TV of masks", "log kept"];
    let head = heads(&[&more[..], &PACE].concat());
    let title = "Distance to the conditional distribution";
    (!cells.is_empty()).then(|| table(group, "distortion", title, about, &head, cells))
}

/// Returns the total variations of a line's texts, by prompt.
fn variations(line: &Line, rows: &[Row], distributions: &[Distribution]) -> BTreeMap<usize, Variations> {
    let mut by_prompt: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| line.is_of(&row.run)) {
        by_prompt.entry(row.run.prompt).or_default().push(row);
    }
    let of_prompt = |(prompt, rows): (usize, Vec<&Row>)| {
        let distribution = distributions
            .iter()
            .find(|one| one.is_of(&line.model, &line.grammar, prompt, line.temperature))?;
        let share = |tokens: &[u32]| {
            let same = rows.iter().filter(|row| row.finish == End::Stop && row.tokens == tokens);
            as_f64(same.count()) / as_f64(rows.len())
        };
        let shares: Vec<f64> =
            distribution.sequences.iter().map(|sequence| share(&sequence.tokens)).collect();
        let found = Variations {
            drawn: distribution.variation(&shares),
            exact: distribution.variation_of_draws(rows.len()),
            masked: distribution.variation_of_masks(),
        };
        Some((prompt, found))
    };
    by_prompt.into_iter().filter_map(of_prompt).collect()
}

/// Makes the tables, one for each model and temperature whose texts were retokenised.
pub(super) fn from_wishes(lines: &[Line], rows: &[Row]) -> Vec<Table> {
    groups(lines).iter().filter_map(|group| by_wishes(group, rows)).collect()
}

/// Makes the table of a group; `None` if no text was cut again.
fn by_wishes(group: &LineGroup<'_>, rows: &[Row]) -> Option<Table> {
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    for line in best(&group.lines) {
        let rows: Vec<&Row> =
            rows.iter().filter(|row| line.is_of(&row.run) && row.preferred.is_some()).collect();
        let mean = |of: &dyn Fn(&Row) -> Option<(f64, f64)>| -> Option<Estimate> {
            let part =
                |row: &&Row| of(row).map(|(above, below)| RatioTerm { prompt: row.run.prompt, above, below });
            ratio(&rows.iter().filter_map(part).collect::<Vec<_>>(), |mean| mean)
        };
        if rows.is_empty() {
            continue;
        }
        let mut row = setting(line);
        row.extend([
            Cell::of(mean(&|row| Some((f64::from(u8::from(row.preferred?)), 1.0))), 2),
            Cell::of(mean(&|row| Some((row.nll?, 1.0))), 1),
            Cell::of(mean(&|row| Some((row.canonical_nll?, 1.0))), 1),
            Cell::of(mean(&|row| Some((row.preferred_nll?, 1.0))), 1),
            Cell::of(mean(&|row| Some((lost(row)?, 1.0))), 2),
        ]);
        cells.push(row);
    }
    let about = "The comparison of the paper's figure 2. Each text was cut again: as the tokenizer cuts it, \
        and into the tokens that the model by itself would choose greedily if it had to write just \
        this text behind the prompt (the paper's algorithm 3). Share of texts whose tokens the \
        latter are; negative log-likelihoods in nats, of the tokens as written and of the two cuts; \
        and what the text lost at least by its tokens alone: the difference between its tokens and \
        the likeliest of the three.";
    let head =
        heads(&["cut like algorithm 3", "nats as written", "by the tokenizer", "by algorithm 3", "lost"]);
    let title = "Tokens of texts beside the model's own";
    (!cells.is_empty()).then(|| table(group, "retokenized", title, about, &head, cells))
}

/// Returns how much less likely the tokens of a text are than the likeliest known ones, in nats.
fn lost(row: &Row) -> Option<f64> {
    let (written, preferred) = (row.nll?, row.preferred_nll?);
    let least = row.canonical_nll.map_or(preferred, |canonical| canonical.min(preferred));
    Some((written - least).max(0.0))
}
