//! Engines side by side: the tokens a second that a user gets from each.

use super::{
    super::summary::Line,
    table::{Cell, Table},
    tables::group::{best, groups, paced, table, text},
};

/// Makes a table for each model and temperature in which another engine takes part: `elsewhere` names the
/// methods of other engines with constraints of their own.
pub(super) fn tables(lines: &[Line], elsewhere: &[String]) -> Vec<Table> {
    let all = groups(lines);
    let taking_part =
        all.iter().filter(|group| group.lines.iter().any(|line| elsewhere.contains(&line.method)));
    taking_part
        .map(|group| {
            let lines = best(&group.lines);
            let (mut grammars, mut methods) = (Vec::new(), Vec::new());
            for line in &lines {
                if !grammars.contains(&line.grammar.as_str()) {
                    grammars.push(line.grammar.as_str());
                }
                if !methods.contains(&line.method.as_str()) {
                    methods.push(line.method.as_str());
                }
            }
            let row = |method: &&str| {
                let of = |grammar: &&str| {
                    lines.iter().find(|line| line.method == **method && line.grammar == **grammar)
                };
                let found: Vec<Option<&&Line>> = grammars.iter().map(of).collect();
                let n: usize = found.iter().flatten().map(|line| line.n).sum();
                let mut cells = vec![text(method), Cell::shown(Some(n))];
                cells.extend(
                    found.iter().map(|line| line.map_or(Cell::None, |line| paced(line, line.end_to_end, 0))),
                );
                cells
            };
            let head: Vec<&str> = ["method", "n"].into_iter().chain(grammars.iter().copied()).collect();
            let about = "Tokens a second by engine and grammar, over whole texts: from the prompt's pass on, \
            which counts. Loading the model and reading the grammar do not count, where the engine reads it \
            once. Of several s and thresholds the fastest is shown.";
            let rows = methods.iter().map(row).collect();
            table(group, "end-to-end", "End to end: tokens a second by engine", about, &head, rows)
        })
        .collect()
}
