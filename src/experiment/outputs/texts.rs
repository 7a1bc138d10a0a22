//! Tables of the effect of constraining on texts, by method and by lookahead: the forms of the paper's tables
//! 2 and 4.

use super::table::{
    CHOICE, Cell, LineGroup, PACE, Table, best, heads, pace, same_method, setting, table, throughput,
};
use crate::experiment::row::{K, UNCONSTRAINED};
use crate::experiment::summary::Line;

/// Makes the table of accuracy, well-formedness, perplexity and throughput by method.
pub(super) fn by_method(group: &LineGroup<'_>) -> Table {
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::of(line.correct, 3),
            Cell::of(line.well_formed, 3),
            Cell::of(line.perplexity, 2),
            Cell::of(line.reproduced, 3),
            Cell::of(line.interventions, 3),
        ]);
        cells.extend(pace(line));
        cells
    };
    let about = format!(
        "The form of the paper's table 2: share of right answers (where prompts have one), share of judged \
         texts in the language within the limit of tokens, perplexity under the model by itself, share of \
         the valid unconstrained texts that come out the same (the paper's definition 2.1), interventions a \
         token, and tokens a second relative to unconstrained texts and to masks, with the share of texts \
         that ended before the limit and the throughput of those alone. {CHOICE}"
    );
    let more = ["accuracy", "well-formed", "perplexity", "reproduced", "interventions/token"];
    let rows = best(&group.lines).iter().map(row).collect();
    let head = heads(&[&more[..], &PACE].concat());
    table(group, "texts", "What constraining does to texts", &about, &head, rows)
}

/// Makes the table of accuracy by lookahead, if there are several, below that of unconstrained texts.
pub(super) fn by_lookahead(group: &LineGroup<'_>) -> Option<Table> {
    let chosen = by_k(group);
    let row = |line: &&Line| {
        let mut cells = setting(line);
        cells.extend([
            Cell::of(line.correct, 3),
            Cell::of(line.well_formed, 3),
            Cell::of(line.perplexity, 2),
            Cell::of(line.interventions, 3),
            Cell::of(line.non_canonical, 3),
            Cell::of(line.log_kept, 2),
        ]);
        cells.extend(pace(line));
        cells
    };
    let about = "The form of the paper's table 4. Fewer terminals ahead allow fewer tokens and bend the \
        model more. Texts do not depend on s; of several lengths and thresholds the fastest is shown.";
    let more = ["accuracy", "well-formed", "perplexity", "interventions/token", "non-canonical", "log kept"];
    let rows: Vec<Vec<Cell>> = chosen.iter().map(row).collect();
    let head = heads(&[&more[..], &PACE].concat());
    (!rows.is_empty()).then(|| table(group, "lookahead", "Accuracy by lookahead k", about, &head, rows))
}

/// Returns the lines by lookahead: for each grammar the unconstrained one first, and of several lengths and
/// thresholds the fastest.
pub(super) fn by_k<'a>(group: &LineGroup<'a>) -> Vec<&'a Line> {
    let ks = |line: &Line| {
        let mut ks: Vec<K> =
            group.lines.iter().filter(|other| same_method(other, line)).filter_map(|line| line.k).collect();
        ks.sort_unstable();
        ks.dedup();
        ks.len()
    };
    let mut chosen: Vec<&Line> = Vec::new();
    for &line in group.lines.iter().filter(|line| line.k.is_some() && ks(line) > 1) {
        if !chosen.iter().any(|known| known.grammar == line.grammar) {
            let free = |other: &&&Line| other.method == UNCONSTRAINED && other.grammar == line.grammar;
            chosen.extend(group.lines.iter().find(free));
        }
        let same = |known: &&mut &Line| same_method(known, line) && known.k == line.k;
        match chosen.iter_mut().find(same) {
            Some(known) if throughput(line) > throughput(known) => *known = line,
            Some(_) => {}
            None => chosen.push(line),
        }
    }
    chosen
}
