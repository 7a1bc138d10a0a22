//! An excerpt of one line of a text, with a caret under one character.
//!
//! Columns are those of a terminal: East Asian characters take two and combining marks none (UAX #11, crate
//! `unicode-width`).

use unicode_width::UnicodeWidthStr;

/// Columns shown before the caret and after it.
const BEFORE: usize = 60;
const AFTER: usize = 40;
/// The mark for a part that was cut off.
const CUT: char = '\u{2026}';

/// A line, and the caret under it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MarkedLine {
    pub(crate) line: String,
    pub(crate) caret: String,
}

impl MarkedLine {
    /// Makes the excerpt of a line that reads `before` up to a character and `rest` from it on, as far as
    /// either was read. `marked` is the length of the character in bytes, 0 at the end of the text; `whole`
    /// is true if the line begins with `before`.
    pub(crate) fn new(before: &[u8], whole: bool, rest: &[u8], marked: usize) -> Self {
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        // A line feed that is pointed at has a picture; one that ends the line has none.
        let (marked, after) = rest.split_at(marked.min(rest.len()));
        let after = after.get(..end.saturating_sub(marked.len())).unwrap_or_default();
        let after = if marked == b"\n" { &[] } else { after.strip_suffix(b"\r").unwrap_or(after) };
        let (before, marked, after) = (shown(before), shown(marked), shown(after));

        let kept = last_columns(&before, BEFORE);
        let left = if whole && kept.len() == before.len() { String::new() } else { CUT.to_string() };
        let left = left + kept;
        let shown_after = first_columns(&after, AFTER);
        let right = if shown_after.len() < after.len() { CUT.to_string() } else { String::new() };
        Self {
            caret: " ".repeat(left.width()) + &"^".repeat(marked.width().max(1)),
            line: left + &marked + shown_after + &right,
        }
    }
}

/// The longest part at the end of a text that takes at most `columns`.
fn last_columns(text: &str, columns: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| &text[at..]);
    starts.into_iter().find(|part| part.width() <= columns).unwrap_or_default()
}

/// The longest part at the beginning of a text that takes at most `columns`.
fn first_columns(text: &str, columns: usize) -> &str {
    let ends = text.char_indices().map(|(at, character)| &text[..at + character.len_utf8()]);
    ends.take_while(|part| part.width() <= columns).last().unwrap_or_default()
}

/// Shows bytes as text that does not move the cursor; bytes that are not UTF-8 are replaced.
fn shown(bytes: &[u8]) -> String {
    let picture = |character: char| match character {
        '\t' => ' ',
        '\u{7F}' => '\u{2421}',
        character if character < ' ' => {
            char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        character if character.is_control() => char::REPLACEMENT_CHARACTER,
        '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        character => character,
    };
    String::from_utf8_lossy(bytes).chars().map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: &str, rest: &str) -> (String, String) {
        let marked = rest.chars().next().map_or(0, char::len_utf8);
        let MarkedLine { line, caret } = MarkedLine::new(before.as_bytes(), true, rest.as_bytes(), marked);
        (line, caret)
    }

    fn pair(line: &str, caret: &str) -> (String, String) {
        (line.to_owned(), caret.to_owned())
    }

    #[test]
    fn carets_stand_under_wide_characters() {
        assert_eq!(of("日", "木x\nmore"), pair("日木x", "  ^^"));
        assert_eq!(of("ae\u{301}", "x"), pair("ae\u{301}x", "  ^"));
        assert_eq!(of("a", "\u{301}"), pair("a\u{301}", " ^"));
        assert_eq!(of("ab", ""), pair("ab", "  ^"));
        assert_eq!(of("\tb", "\r\n"), pair(" b\u{240d}", "  ^"));
        assert_eq!(of("b", "\nnext"), pair("b\u{240a}", " ^"));
        assert_eq!(of("b", "xy\r\nnext"), pair("bxy", " ^"));
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let (line, caret) = of(&"日".repeat(1000), &"木".repeat(1000));
        assert_eq!(line, format!("…{}木{}…", "日".repeat(BEFORE / 2), "木".repeat(AFTER / 2)));
        assert_eq!(caret, format!("{}^^", " ".repeat(BEFORE + 1)));
        let cut = MarkedLine::new("日".as_bytes(), false, b"x", 1);
        assert_eq!((cut.line, cut.caret), pair("…日x", "   ^"));
    }

    #[test]
    fn bytes_that_are_no_text_have_replacement_characters() {
        let MarkedLine { line, caret } = MarkedLine::new(b"a\x00\xE6\x97", true, b"\xFFb", 1);
        assert_eq!((line, caret), pair("a\u{2400}\u{fffd}\u{fffd}b", "   ^"));
    }
}
