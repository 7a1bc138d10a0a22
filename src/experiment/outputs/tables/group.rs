//! Groups of lines for one table, their choice, and the cells that tables share.

use crate::experiment::{
    outputs::table::{Cell, Table},
    statistics::Estimate,
    summary::{Line, PlainNames},
};

/// Explains to readers how [`best`] chooses.
pub(in crate::experiment::outputs) const CHOICE: &str = "Each method is shown at the largest k; of several s \
    and thresholds the fastest is, which makes its throughput look a little better than it is.";

/// Mark of throughput if most texts ran to the limit.
const RUNAWAY: &str = "†";
/// Mark of methods that had seen the prompts of greedy texts.
const KNOWN: &str = "‡";
/// Marks of cells and their meaning.
const MARKS: [(&str, &str); 2] = [
    (
        RUNAWAY,
        "† Fewer than half of these texts ended: the rest ran to the limit of tokens, and the number is \
        mostly about what they ran on with.",
    ),
    (
        KNOWN,
        "‡ At temperature 0 the method had learnt from warm-ups on prompts that are measured too, so from \
        the very texts.",
    ),
];

/// The heads of [`pace`].
pub(in crate::experiment::outputs) const PACE: [&str; 4] =
    ["over unconstrained", "over masks", "ended", "over unconstrained, ended"];

/// Lines of one model and temperature, which are comparable.
pub(in crate::experiment::outputs) struct LineGroup<'a> {
    /// Ending of file names: different for different groups, empty if there is but one.
    pub(in crate::experiment::outputs) suffix: String,
    /// Ending of titles.
    pub(in crate::experiment::outputs) title: String,
    pub(in crate::experiment::outputs) lines: Vec<&'a Line>,
}

/// Groups lines, in order of first occurrence.
pub(in crate::experiment::outputs) fn groups(lines: &[Line]) -> Vec<LineGroup<'_>> {
    let names = PlainNames::of(lines.iter().map(|line| line.model.as_str()));
    let mut found: Vec<LineGroup<'_>> = Vec::new();
    for line in lines {
        let same = |group: &&mut LineGroup<'_>| {
            group.lines.first().is_some_and(|first| {
                first.model == line.model && first.temperature.to_bits() == line.temperature.to_bits()
            })
        };
        match found.iter_mut().find(same) {
            Some(group) => group.lines.push(line),
            None => {
                let model = names.get(&line.model);
                let title = format!(" ({model}, temperature {})", line.temperature);
                found.push(LineGroup { suffix: format!("-{}", found.len() + 1), title, lines: vec![line] });
            }
        }
    }
    if let [only] = &mut found[..] {
        only.suffix.clear();
        only.title.clear();
    }
    found
}

/// Are these lines of one grammar and method?
pub(in crate::experiment::outputs) fn same_method(one: &Line, other: &Line) -> bool {
    one.grammar == other.grammar && one.method == other.method
}

/// Returns the throughput to compare by; a missing one is least.
pub(in crate::experiment::outputs) fn throughput(line: &Line) -> f64 {
    line.throughput.map_or(f64::NEG_INFINITY, |throughput| throughput.value)
}

/// Chooses one line for each grammar and method: at the largest k, with the most warm-ups, and of several
/// lengths and thresholds the fastest.
pub(in crate::experiment::outputs) fn best<'a>(lines: &[&'a Line]) -> Vec<&'a Line> {
    let mut found: Vec<&Line> = Vec::new();
    for &line in lines {
        let rank = |line: &Line| (line.k, line.warm_ups, throughput(line));
        let better = |known: &Line| rank(line) > rank(known);
        match found.iter_mut().find(|known| same_method(known, line)) {
            Some(known) if better(known) => *known = line,
            Some(_) => {}
            None => found.push(line),
        }
    }
    found
}

/// Returns the lengths of drafts among lines like this one, ascending.
pub(in crate::experiment::outputs) fn lengths(lines: &[&Line]) -> Vec<usize> {
    let mut lengths: Vec<usize> = lines.iter().filter_map(|line| line.s).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Groups lines that differ only in s, for each grammar, method, k and threshold that has several.
pub(in crate::experiment::outputs) fn sweeps<'a>(lines: &[&'a Line]) -> Vec<Vec<&'a Line>> {
    let same = |one: &Line, other: &Line| {
        same_method(one, other)
            && one.k == other.k
            && one.warm_ups == other.warm_ups
            && one.threshold.map(f64::to_bits) == other.threshold.map(f64::to_bits)
    };
    let mut found: Vec<Vec<&Line>> = Vec::new();
    for &line in lines.iter().filter(|line| line.s.is_some()) {
        match found.iter_mut().find(|sweep| sweep.first().is_some_and(|first| same(first, line))) {
            Some(sweep) => sweep.push(line),
            None => found.push(vec![line]),
        }
    }
    for sweep in &mut found {
        sweep.sort_by_key(|line| line.s);
    }
    found.retain(|sweep| lengths(sweep).len() > 1);
    found
}

/// Makes a table without the columns that are empty in all its lines.
pub(in crate::experiment::outputs) fn table(
    group: &LineGroup<'_>,
    id: &str,
    title: &str,
    about: &str,
    head: &[&str],
    mut rows: Vec<Vec<Cell>>,
) -> Table {
    let is_used =
        |column: &usize| rows.iter().any(|row| row.get(*column).is_some_and(|cell| *cell != Cell::None));
    let used: Vec<usize> = (0..head.len()).filter(is_used).collect();
    for row in &mut rows {
        *row = used.iter().filter_map(|&column| row.get(column).cloned()).collect();
    }
    let marks: Vec<&str> = MARKS
        .iter()
        .filter(|(mark, _)| rows.iter().flatten().any(|cell| cell.mark() == Some(*mark)))
        .map(|(_, says)| *says)
        .collect();
    Table {
        id: format!("{id}{}", group.suffix),
        title: format!("{title}{}", group.title),
        about: [&[about], &marks[..]].concat().join(" "),
        head: used.iter().filter_map(|&column| head.get(column)).map(|head| (*head).to_owned()).collect(),
        rows,
    }
}

/// Words as a cell.
pub(in crate::experiment::outputs) fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// Makes a cell of the method's name, marked if it had learnt from the very texts.
pub(in crate::experiment::outputs) fn method(line: &Line) -> Cell {
    let name = text(&line.method);
    if line.is_known_before() { name.marked(KNOWN) } else { name }
}

/// Makes a cell of a number, marked if most texts ran to the limit.
pub(in crate::experiment::outputs) fn paced(line: &Line, estimate: Option<Estimate>, figures: usize) -> Cell {
    let cell = Cell::of(estimate, figures);
    if line.runs_away() && estimate.is_some() { cell.marked(RUNAWAY) } else { cell }
}

/// Makes cells of throughput over unconstrained texts and over masks, the share of texts that ended, and
/// their throughput alone: in every table that shows throughput.
pub(in crate::experiment::outputs) fn pace(line: &Line) -> [Cell; 4] {
    [
        paced(line, line.throughput, 2),
        paced(line, line.over_masks, 2),
        Cell::of(line.ended, 2),
        Cell::of(line.ended_throughput, 2),
    ]
}

/// Makes the cells that identify a line.
pub(in crate::experiment::outputs) fn setting(line: &Line) -> Vec<Cell> {
    vec![
        text(&line.grammar),
        method(line),
        Cell::shown(line.k),
        Cell::shown(line.s),
        Cell::shown(line.threshold),
        Cell::shown(Some(line.n)),
    ]
}

/// Returns the heads of [`setting`], and more behind them.
pub(in crate::experiment::outputs) fn heads<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["grammar", "method", "k", "s", "threshold", "n"].iter().chain(more).copied().collect()
}
