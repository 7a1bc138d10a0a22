//! Tables with intervals, as Markdown and CSV; groups of lines for one table, their choice, and the cells
//! that tables share.

use std::fmt::Write;

use crate::experiment::statistics::Estimate;
use crate::experiment::summary::{Line, PlainNames, column, quoted};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name in file names and addresses.
    pub id: String,
    /// The table's title.
    pub title: String,
    /// A sentence about what it shows, and how its lines were chosen.
    pub about: String,
    /// The heads of its columns.
    pub head: Vec<String>,
    /// The lines, each as long as the head.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number with its interval, and the number of decimals shown.
    Estimate(Estimate, usize),
    /// A number without an interval, and the number of decimals shown.
    Number(f64, usize),
    /// Another cell with a mark behind it, which the table explains.
    Marked(Box<Self>, &'static str),
    /// Nothing.
    None,
}

impl Cell {
    /// Creates a cell of an estimate if there is one.
    pub(super) fn of(estimate: Option<Estimate>, figures: usize) -> Self {
        estimate.map_or(Self::None, |estimate| Self::Estimate(estimate, figures))
    }

    /// Creates a cell of a value if there is one, in words.
    pub(super) fn shown<T: ToString>(value: Option<T>) -> Self {
        value.map_or(Self::None, |value| Self::Text(value.to_string()))
    }

    /// Puts a mark behind the cell.
    pub(super) fn marked(self, mark: &'static str) -> Self {
        Self::Marked(Box::new(self), mark)
    }

    /// Returns the mark of the cell.
    pub(super) fn mark(&self) -> Option<&'static str> {
        match self {
            Self::Marked(_, mark) => Some(mark),
            _ => None,
        }
    }

    /// Returns the cell without a mark.
    pub(super) fn plain(&self) -> &Self {
        match self {
            Self::Marked(cell, _) => cell.plain(),
            other => other,
        }
    }

    /// Formats the cell, with the interval behind the number.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Estimate(estimate, figures) => estimate.words(*figures),
            Self::Marked(cell, mark) => format!("{} {mark}", cell.words()),
            Self::Number(number, figures) => format!("{number:.figures$}"),
            Self::None => "-".to_owned(),
        }
    }
}

impl Table {
    /// Formats the table in Markdown, with its title and description.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, wrapped(&self.about));
        let escaped = |cell: String| cell.replace('|', "\\|");
        let _ = writeln!(text, "| {} |", self.head.join(" | "));
        let _ = writeln!(text, "|{}", "---|".repeat(self.head.len()));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| escaped(cell.words())).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    /// Formats comma-separated values (RFC 4180). A column of estimates has its bounds and number of texts in
    /// columns of their own, in full precision. Heads are names that need no quotes, there are no marks, and
    /// missing values are empty.
    #[must_use]
    pub fn csv(&self) -> String {
        let is_estimate = |at: usize| {
            self.rows.iter().any(|row| matches!(row.get(at).map(Cell::plain), Some(Cell::Estimate(..))))
        };
        let estimates: Vec<bool> = (0..self.head.len()).map(is_estimate).collect();
        let mut heads = Vec::new();
        for (head, estimate) in self.head.iter().zip(&estimates) {
            let name = column(head);
            let bounds = ["low", "high", "n"].map(|bound| format!("{name}_{bound}"));
            heads.push(name);
            heads.extend(bounds.into_iter().filter(|_| *estimate));
        }
        let mut text = heads.join(",") + "\r\n";
        for row in &self.rows {
            let mut cells = Vec::new();
            for (cell, estimate) in row.iter().zip(&estimates) {
                let values = match cell.plain() {
                    Cell::Text(text) => vec![quoted(text)],
                    Cell::Estimate(Estimate { value, low, high, n }, _) => {
                        let bound = |bound: &Option<f64>| bound.map(|at| at.to_string()).unwrap_or_default();
                        vec![value.to_string(), bound(low), bound(high), n.to_string()]
                    }
                    Cell::Number(number, _) => vec![number.to_string()],
                    Cell::Marked(..) | Cell::None => vec![String::new()],
                };
                let width = if *estimate { 4 } else { 1 };
                let missing = width - values.len().min(width);
                cells.extend(values);
                cells.extend(std::iter::repeat_n(String::new(), missing));
            }
            text += &cells.join(",");
            text += "\r\n";
        }
        text
    }
}

/// Bytes of a line of prose.
const WIDTH: usize = 110;

/// Wraps prose into lines of at most [`WIDTH`] bytes, unless a word is longer.
pub(super) fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        lines.push(String::new());
        for word in paragraph.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) if line.len() + 1 + word.len() <= WIDTH => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines.join("\n")
}

/// Explains to readers how [`best`] chooses.
pub(super) const CHOICE: &str = "Each method is shown at the largest k; of several s \
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
pub(super) const PACE: [&str; 4] = ["over unconstrained", "over masks", "ended", "over unconstrained, ended"];

/// Lines of one model and temperature, which are comparable.
pub(super) struct LineGroup<'a> {
    /// Ending of file names: different for different groups, empty if there is but one.
    pub(super) suffix: String,
    /// Ending of titles.
    pub(super) title: String,
    pub(super) lines: Vec<&'a Line>,
}

/// Groups lines, in order of first occurrence.
pub(super) fn groups(lines: &[Line]) -> Vec<LineGroup<'_>> {
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

/// Are these lines of one grammar and method, with the same thought?
pub(super) fn same_method(one: &Line, other: &Line) -> bool {
    one.grammar == other.grammar && one.method == other.method && one.think == other.think
}

/// Returns the throughput to compare by; a missing one is least.
pub(super) fn throughput(line: &Line) -> f64 {
    line.throughput.map_or(f64::NEG_INFINITY, |throughput| throughput.value)
}

/// Chooses one line for each grammar and method: at the largest k, with the most warm-ups, and of several
/// lengths and thresholds the fastest.
pub(super) fn best<'a>(lines: &[&'a Line]) -> Vec<&'a Line> {
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
pub(super) fn lengths(lines: &[&Line]) -> Vec<usize> {
    let mut lengths: Vec<usize> = lines.iter().filter_map(|line| line.s).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Groups lines that differ only in s, for each grammar, method, k and threshold that has several.
pub(super) fn sweeps<'a>(lines: &[&'a Line]) -> Vec<Vec<&'a Line>> {
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
pub(super) fn table(
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
    let different = if head.contains(&PACE[0]) { ", of different texts" } else { "" };
    Table {
        id: format!("{id}{}", group.suffix),
        title: format!("{title}{different}{}", group.title),
        about: [&[about], &marks[..]].concat().join(" "),
        head: used.iter().filter_map(|&column| head.get(column)).map(|head| (*head).to_owned()).collect(),
        rows,
    }
}

/// Words as a cell.
pub(super) fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// Makes a cell of the method's name, marked if it had learnt from the very texts.
pub(super) fn method(line: &Line) -> Cell {
    let name = text(&line.method);
    if line.is_known_before() { name.marked(KNOWN) } else { name }
}

/// Makes a cell of a number, marked if most texts ran to the limit.
pub(super) fn paced(line: &Line, estimate: Option<Estimate>, figures: usize) -> Cell {
    let cell = Cell::of(estimate, figures);
    if line.runs_away() && estimate.is_some() { cell.marked(RUNAWAY) } else { cell }
}

/// Makes cells of throughput over unconstrained texts and over masks, the share of texts that ended, and
/// their throughput alone: in every table that shows throughput.
pub(super) fn pace(line: &Line) -> [Cell; 4] {
    [
        paced(line, line.throughput, 2),
        paced(line, line.over_masks, 2),
        Cell::of(line.ended, 2),
        Cell::of(line.ended_throughput, 2),
    ]
}

/// Makes the cells that identify a line.
pub(super) fn setting(line: &Line) -> Vec<Cell> {
    vec![
        text(&line.grammar),
        method(line),
        Cell::shown(line.k),
        Cell::shown(line.s),
        Cell::shown(line.threshold),
        Cell::shown(line.think),
        Cell::shown(Some(line.n)),
    ]
}

/// Returns the heads of [`setting`], and more behind them.
pub(super) fn heads<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["grammar", "method", "k", "s", "threshold", "think", "n"].iter().chain(more).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, wrapped};

    #[test]
    fn wrapped_prose_keeps_all_words() {
        let text = "some words of a note ".repeat(40) + "\nand its end";
        let shown = wrapped(&text);
        assert!(shown.lines().all(|line| line.len() <= WIDTH) && shown.ends_with("\nand its end"));
        assert!(shown.lines().next().unwrap().len() > WIDTH - 6);
        assert!(shown.split_whitespace().eq(text.split_whitespace()));
        assert_eq!(wrapped(""), "");
    }
}
