//! Tables with intervals, as Markdown and CSV.

use std::fmt::Write;

use crate::experiment::{
    statistics::Estimate,
    summary::{column, quoted},
};

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
