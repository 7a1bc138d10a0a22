//! Places in the grammar text, for people.

use domino::grammar::Span;

/// A finder of line and column of offsets, in logarithmic time.
#[derive(Debug)]
pub(crate) struct LineIndex {
    text: String,
    line_starts: Vec<usize>,
}

impl LineIndex {
    /// Indexes the lines of a text.
    pub(crate) fn new(text: String) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { text, line_starts }
    }

    /// Shows line and column (in characters, from 1) where the span begins; `-` if the span is no place in
    /// the text.
    pub(crate) fn show(&self, span: Span) -> String {
        if span == Span::default() {
            return "-".to_owned();
        }
        let at = span.range().start.min(self.text.len());
        let line = self.line_starts.partition_point(|&start| start <= at);
        let start = self.line_starts[line.max(1) - 1];
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count()) + 1;
        format!("{line}:{column}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_as_line_and_column() {
        let places = LineIndex::new("a\n\u{e9}b\n".to_owned());
        let show = |at: u32| places.show(Span::new(at, at + 1));
        assert_eq!(
            [show(0), show(1), show(2), show(4), show(5), show(6)],
            ["1:1", "1:2", "2:1", "2:2", "2:3", "3:1"]
        );
        assert_eq!(places.show(Span::new(100, 200)), "3:1");
        assert_eq!(places.show(Span::default()), "-");
    }
}
