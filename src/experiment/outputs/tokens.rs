//! The distance of texts from the tokens that the model itself would have chosen for them (paper, figure 2).

use super::{
    super::{
        row::Row,
        statistics::{Estimate, RatioTerm, ratio},
        summary::Line,
    },
    table::{Cell, Table},
    tables::group::{LineGroup, best, groups, heads, setting, table},
};

/// Makes the tables, one for each model and temperature whose texts were retokenised.
pub(super) fn tables(lines: &[Line], rows: &[Row]) -> Vec<Table> {
    groups(lines).iter().filter_map(|group| one(group, rows)).collect()
}

/// Makes the table of a group; `None` if no text was cut again.
fn one(group: &LineGroup<'_>, rows: &[Row]) -> Option<Table> {
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
