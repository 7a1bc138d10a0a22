//! Grammar texts, spans into them, and excerpts that show errors.
//!
//! A [`Span`] is a range of bytes of the text; line and column are worked out only for display. An
//! [`Excerpt`] is a bounded copy, so an error holds no text and is short, whatever the text is. It knows
//! nothing of notations.

use std::{fmt, ops::Range};

use crate::ids::{as_index, saturating_u32};

/// U+FEFF in UTF-8, which some editors and shells put before a text to mark its encoding.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Limits on the characters of a line that are shown before the carets, above them, and behind them.
const BEFORE: usize = 60;
const UNDER: usize = 60;
const AFTER: usize = 40;

/// A range of bytes of a grammar text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The place behind the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`, or the empty one at `start` if that is larger.
    #[must_use]
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end: end.max(start) }
    }

    /// The span of a range; offsets beyond 4 GiB become the largest one.
    #[must_use]
    pub fn from_range(range: Range<usize>) -> Self {
        Self::new(saturating_u32(range.start), saturating_u32(range.end))
    }

    /// The span in another text, in which this text begins after `by` bytes.
    pub(super) fn shifted(self, by: u32) -> Self {
        Self { start: self.start.saturating_add(by), end: self.end.saturating_add(by) }
    }

    /// The span as indices.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        as_index(self.start)..as_index(self.end)
    }
}

/// A place in a text, with numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line; lines end with a line feed.
    pub line: usize,
    /// The character (Unicode scalar value) of the line.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A grammar text, which need not be UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct Source<'t> {
    bytes: &'t [u8],
}

impl<'t> Source<'t> {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes() }
    }

    /// Wraps a text that may not be UTF-8.
    #[must_use]
    pub fn from_bytes(bytes: &'t [u8]) -> Self {
        Self { bytes }
    }

    /// The line and column of the byte at `offset`; a byte order mark takes no column. Linear in the text.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let at = self.clamp(offset);
        let before = &self.bytes[..at];
        let line_start = self.line_start(at);
        Position {
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            column: chars(&before[line_start..]) + 1,
        }
    }

    /// The line around the start of `span`, cut to a bounded length. Linear in the text.
    #[must_use]
    pub fn excerpt(&self, span: Span) -> Excerpt {
        let start = self.clamp(span.start);
        let line_start = self.line_start(start);
        let line_end = self.line_end(start);
        let end = self.clamp(span.end).clamp(start, line_end);

        let from = back(self.bytes, line_start..start, BEFORE);
        let marked_to = forward(self.bytes, start..end, UNDER);
        let to = if marked_to < end { marked_to } else { forward(self.bytes, end..line_end, AFTER) };

        let before = shown(&self.bytes[from..start]);
        let marked = shown(&self.bytes[start..marked_to]);
        let after = shown(&self.bytes[marked_to..to]);
        let cut_left = if from > line_start { "\u{2026}" } else { "" };
        let cut_right = if to < line_end { "\u{2026}" } else { "" };
        Excerpt {
            position: self.position(span.start),
            indent: cut_left.chars().count() + before.chars().count(),
            carets: marked.chars().count().max(1),
            line: format!("{cut_left}{before}{marked}{after}{cut_right}"),
        }
    }

    /// True if there is only white space before it on its line.
    pub(super) fn begins_line(&self, span: Span) -> bool {
        let start = self.clamp(span.start);
        self.bytes[self.line_start(start)..start].iter().all(u8::is_ascii_whitespace)
    }

    fn clamp(&self, offset: u32) -> usize {
        as_index(offset).clamp(self.begin(), self.bytes.len())
    }

    /// The beginning of the first line: editors do not show a byte order mark, so nobody counts it.
    fn begin(&self) -> usize {
        if self.bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }

    fn line_start(&self, at: usize) -> usize {
        let newline = self.bytes[..at].iter().rposition(|&byte| byte == b'\n');
        newline.map_or(self.begin(), |newline| newline + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        let newline = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        if rest[..newline].last() == Some(&b'\r') { at + newline - 1 } else { at + newline }
    }
}

/// A piece of one line, with a part of it pointed at. `Display` writes the line, a line feed, and the carets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    position: Position,
    line: String,
    indent: usize,
    carets: usize,
}

impl Excerpt {
    /// The line and column where the part pointed at begins.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Writes the excerpt behind a gutter with the line number, and `label` behind the carets. `document`
    /// names the text if that is not the grammar's.
    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        document: Option<&str>,
        label: &str,
    ) -> fmt::Result {
        let number = self.position.line.to_string();
        let gutter = number.len();
        write!(f, "{:gutter$}--> ", "")?;
        if let Some(document) = document {
            write!(f, "{document}:")?;
        }
        writeln!(f, "{}", self.position)?;
        writeln!(f, "{number} | {}", self.line)?;
        write!(f, "{:gutter$} | {:indent$}{}", "", "", "^".repeat(self.carets), indent = self.indent)?;
        if label.is_empty() { Ok(()) } else { write!(f, " {label}") }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line)?;
        write!(f, "{:indent$}{}", "", "^".repeat(self.carets), indent = self.indent)
    }
}

/// True if a character begins at this byte. A stray byte counts as one character.
fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| begins(byte)).count()
}

/// The start of the longest part of `range` that has at most `count` characters and ends where it ends.
fn back(bytes: &[u8], range: Range<usize>, count: usize) -> usize {
    let starts = range.clone().rev().filter(|&at| begins(bytes[at]));
    starts.take(count).last().unwrap_or(range.end)
}

/// The end of the longest part of `range` that has at most `count` characters and starts where it starts.
fn forward(bytes: &[u8], range: Range<usize>, count: usize) -> usize {
    range.clone().filter(|&at| begins(bytes[at])).nth(count).unwrap_or(range.end)
}

/// The bytes as text in which each character takes one column and none moves the cursor.
fn shown(bytes: &[u8]) -> String {
    let picture = |c: char| match c {
        '\t' => ' ',
        '\u{7F}' => '\u{2421}',
        c if c < ' ' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        c if c.is_control() || ('\u{202A}'..='\u{202E}').contains(&c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    String::from_utf8_lossy(bytes).chars().map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let source = Source::new("a\n\t\u{e9}\u{4f60}x\r\nz");
        let position = |offset| source.position(offset).to_string();
        assert_eq!(position(0), "1:1");
        assert_eq!(position(2), "2:1");
        assert_eq!(position(8), "2:4");
        assert_eq!(source.excerpt(Span::new(8, 40)).to_string(), " \u{e9}\u{4f60}x\n   ^");
        assert_eq!(position(11), "3:1");
        assert_eq!(position(99), "3:2");
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        let source = Source::new("\u{FEFF}ab\nc");
        let positions: Vec<String> = [0, 3, 4, 6].map(|at| source.position(at).to_string()).into();
        assert_eq!(positions, ["1:1", "1:1", "1:2", "2:1"]);
        assert_eq!(source.excerpt(Span::new(4, 5)).to_string(), "ab\n ^");
        assert_eq!(source.excerpt(Span::new(0, 0)).to_string(), "ab\n^");
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("{}!{}", "a".repeat(1_000_000), "\u{e9}".repeat(1_000_000));
        let excerpt = Source::new(&text).excerpt(Span::new(1_000_000, 1_000_001));
        let want = format!("\u{2026}{}!{}\u{2026}\n{:61}^", "a".repeat(60), "\u{e9}".repeat(40), "");
        assert_eq!(excerpt.to_string(), want);
        let marked = Source::new(&text).excerpt(Span::new(10, 900_000));
        assert_eq!(marked.to_string(), format!("{}\u{2026}\n{:10}{}", "a".repeat(70), "", "^".repeat(60)));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown() {
        let excerpt = Source::from_bytes(b"a\x00\xFFb").excerpt(Span::new(2, 3));
        assert_eq!(excerpt.to_string(), "a\u{2400}\u{fffd}b\n  ^");
        assert_eq!(Source::from_bytes(b"\x80\x80").excerpt(Span::new(0, 9)).carets, 2);
        assert_eq!(Source::new("").excerpt(Span::new(0, 9)).to_string(), "\n^");
    }
}
