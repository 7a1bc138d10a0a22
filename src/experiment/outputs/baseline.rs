//! Tables about texts without a grammar: the control, which should make 1, and the texts that are the same
//! with a grammar.

use std::collections::HashMap;

use super::figures::distinct;
use super::table::{Cell, Table, text};
use crate::experiment::row::{K, Row, UNCONSTRAINED};
use crate::experiment::statistics::{ratio, relative, relative_to_pool};
use crate::experiment::summary::{PlainNames, by_method, pace, parts, passes, pooled, processor_pace};

/// The method with a grammar that makes the very passes of none, and a mask only where the draw is refused.
const CONTROL: &str = "opportunistic";
/// Methods that write the same texts under a grammar, in the order of their columns.
const SAME: [&str; 3] = ["masks", "paper", "ours"];

/// Returns the passes behind the prompt's, and their seconds.
fn pass_pace(row: &Row) -> Option<(f64, f64)> {
    Some((passes(row)?.1, pace(row)?.1))
}

/// Returns the same passes, and their processor seconds.
fn processor_pass_pace(row: &Row) -> Option<(f64, f64)> {
    Some((passes(row)?.1, processor_pace(row)?.1))
}

fn kept<'a>(rows: &[&'a Row], is_it: impl Fn(&Row) -> bool) -> Vec<&'a Row> {
    rows.iter().filter(|row| is_it(row)).copied().collect()
}

/// Makes the table of the control, by model, and by grammar in it.
pub(super) fn control(all: &[Row]) -> Option<Table> {
    let names = PlainNames::of(all.iter().map(|row| row.run.model.as_str()));
    let mut rows = Vec::new();
    for model in distinct(all.iter().map(|row| row.run.model.as_str())) {
        let (free, control) = (by_method(all, model, UNCONSTRAINED), by_method(all, model, CONTROL));
        let over = |rows: &[&Row], of: fn(&Row) -> Option<(f64, f64)>| {
            Cell::of(relative_to_pool(&pooled(rows, all, of), &pooled(&free, all, of)), 3)
        };
        let grammars = distinct(control.iter().map(|row| row.run.grammar.as_str()));
        for grammar in grammars.into_iter().map(Some).chain([None]).filter(|_| !control.is_empty()) {
            let is_it = |row: &Row| grammar.is_none_or(|grammar| row.run.grammar == grammar);
            let (free, control) = (kept(&free, is_it), kept(&control, is_it));
            rows.push(vec![
                text(names.get(model)),
                text(grammar.unwrap_or("all")),
                Cell::shown(Some(control.len())),
                over(&free, pass_pace),
                over(&control, pass_pace),
                over(&control, processor_pass_pace),
            ]);
        }
    }
    let about = "Passes a second, that of the prompt left out, relative to those of all unconstrained texts \
        of the model together, which are what throughput is divided by: of the unconstrained texts of a \
        grammar, and of opportunistic masking, which makes the same passes, in wall time and in processor \
        time. All should be 1; where they are not, the machine was not the same throughout.";
    let head = ["model", "grammar", "n", "no grammar", "control", "control, processor"];
    let head = head.map(str::to_owned).to_vec();
    let (id, title) = ("control".to_owned(), "The control".to_owned());
    (!rows.is_empty()).then(|| Table { id, title, about: about.to_owned(), head, rows })
}

/// Returns the runs among these of a method at unbounded lookahead; none where it has several settings.
fn of_one_setting<'a>(rows: &[&'a Row], method: &str) -> Vec<&'a Row> {
    let is_it = |row: &Row| row.run.method == method && matches!(row.run.k, None | Some(K::Infinite));
    let found = kept(rows, is_it);
    let settings = found.iter().map(|Row { run, .. }| (run.s, run.threshold, run.warm_ups, run.think));
    if distinct(settings).len() > 1 { Vec::new() } else { found }
}

/// Makes the table of the texts that are the same, white space at their ends aside.
pub(super) fn same_texts(all: &[Row]) -> Option<Table> {
    let names = PlainNames::of(all.iter().map(|row| row.run.model.as_str()));
    let place = |row: &Row| (row.run.model.clone(), row.run.grammar.clone(), row.run.temperature.to_bits());
    let mut rows = Vec::new();
    for at in distinct(all.iter().map(place)) {
        let here: Vec<&Row> = all.iter().filter(|row| place(row) == at).collect();
        let free = of_one_setting(&here, UNCONSTRAINED);
        let methods = SAME.map(|method| of_one_setting(&here, method));
        let key = |row: &Row| (row.run.prompt, row.run.seed);
        let texts = |rows: &[&Row]| -> HashMap<(usize, u64), String> {
            rows.iter().map(|row| (key(row), row.text.trim().to_owned())).collect()
        };
        let (without, with) = (texts(&free), methods.each_ref().map(|rows| texts(rows)));
        let [_, _, ours] = &methods;
        let is_same = |row: &Row| {
            let own = without.get(&key(row));
            own.is_some() && with.iter().all(|texts| texts.is_empty() || texts.get(&key(row)) == own)
        };
        let (free, count) = (kept(&free, is_same), ours.len());
        let methods = methods.each_ref().map(|rows| kept(rows, is_same));
        let [masks, _, ours] = &methods;
        if count == 0 || without.is_empty() {
            continue;
        }
        let rate = |rows: &[&Row]| Cell::of(ratio(&parts(rows, pace), |rate| rate), 0);
        let over = |base: &[&Row], of: fn(&Row) -> Option<(f64, f64)>| {
            Cell::of(relative(&parts(ours, of), &parts(base, of)), 2)
        };
        let mut cells = vec![text(names.get(&at.0)), text(&at.1), text(&f64::from_bits(at.2).to_string())];
        cells.extend([text(&format!("{} of {count}", ours.len())), rate(&free)]);
        cells.extend(methods.iter().map(|rows| rate(rows)));
        cells.extend([over(&free, pace), over(&free, processor_pace), over(masks, pace)]);
        cells.push(Cell::of(ratio(&parts(ours, passes), |rate| rate), 2));
        rows.push(cells);
    }
    let about = "Tokens a second, the prompt's pass and the first token left out, of texts that the model \
        wrote without a grammar too, white space at their ends aside: other texts have other lengths and \
        words, and so another pace. Last `ours` over no grammar, the same in processor time, and over masks, \
        and its tokens a pass.";
    let head = [
        &["model", "grammar", "temperature", "texts", "no grammar"][..],
        &SAME,
        &["over no grammar", "over no grammar, processor", "over masks", "tokens/pass"],
    ];
    let head = head.concat().into_iter().map(str::to_owned).collect();
    let (id, title) = ("same-texts".to_owned(), "The same texts".to_owned());
    (!rows.is_empty()).then(|| Table { id, title, about: about.to_owned(), head, rows })
}
