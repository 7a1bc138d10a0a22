//! The distance of texts from the model conditioned on the language, where all texts are known.

use std::collections::BTreeMap;

use super::{
    super::{
        enumeration::Distribution,
        row::{End, Row},
        statistics::{RatioTerm, ratio},
        summary::Line,
    },
    table::{Cell, Table},
    tables::group::{LineGroup, PACE, best, groups, heads, pace, setting, table},
};
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
