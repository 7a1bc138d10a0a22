//! Descriptions of bytes, tokens and positions for people, and excerpts of a line with a caret under one
//! character.
//!
//! Columns of an excerpt are those of a terminal: East Asian characters take two and combining marks none
//! (UAX #11, crate `unicode-width`).

use std::ops::RangeInclusive;

use domino::{Constraint, ThreadView, TokenId, Vocabulary, decode::TokenLogprobs};
use serde_json::{Value, json};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Limit on the terminals named in a message.
const MOST_TERMINALS: usize = 8;
/// Limit on the threads of a state whose terminals are listed; listing more takes longer than the step that
/// failed.
const MOST_THREADS: usize = 1000;

/// Shows bytes as text between quotes: UTF-8 as it is, control characters and other bytes escaped.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                '\n' | '\r' | '\t' => text.extend(character.escape_default()),
                _ if character.is_control() => text.extend(character.escape_unicode()),
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02X}");
        }
    }
    text.push('"');
    text
}

/// Shows a token by its bytes or its name.
pub(crate) fn token(vocabulary: &Vocabulary, token: TokenId) -> String {
    match (vocabulary.bytes(token), vocabulary.name(token)) {
        (Some(bytes), _) => quoted(bytes),
        (None, Some(name)) => name.to_owned(),
        (None, None) => format!("token {token}"),
    }
}

/// Makes the fields of JSON about a token: its id, and its text or name.
pub(crate) fn token_json(vocabulary: &Vocabulary, token: TokenId) -> Value {
    let text = vocabulary.bytes(token).map(String::from_utf8_lossy);
    let text = text.or_else(|| vocabulary.name(token).map(Into::into));
    json!({ "token_id": token.raw(), "token": text })
}

/// Makes the fields of JSON about a token and its probabilities. Minus infinity has no number in JSON: it is
/// null.
pub(crate) fn logprobs_json(vocabulary: &Vocabulary, entry: &TokenLogprobs) -> Value {
    let mut object = token_json(vocabulary, entry.token);
    object["logprob"] = entry.model.into();
    object["constrained_logprob"] = entry.constrained.into();
    object
}

/// Shows one byte as an ASCII character, or else by its number.
pub(crate) fn byte(byte: u8) -> String {
    match byte {
        b' '..=b'~' | b'\n' | b'\r' | b'\t' => character(char::from(byte)),
        _ => format!("0x{byte:02X}"),
    }
}

/// Shows one character between quotes, or by its number if it is not visible.
pub(crate) fn character(character: char) -> String {
    match character {
        '\'' => "\"'\"".to_owned(),
        '\n' | '\r' | '\t' => format!("'{}'", character.escape_default()),
        ' ' => "' '".to_owned(),
        _ if is_visible(character) => format!("'{character}'"),
        _ => format!("U+{:04X}", u32::from(character)),
    }
}

/// True if the character has a picture of its own. White space has none, nor have controls, marks that join
/// the character before, marks that turn the direction of text, and characters for private use.
pub(crate) fn is_visible(character: char) -> bool {
    let private = matches!(character, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..);
    !private && !character.is_whitespace() && character.width().is_some_and(|width| width > 0)
}

/// Shows sorted bytes as ranges such as `'a'-'z'`.
pub(crate) fn byte_ranges(bytes: &[u8]) -> Vec<String> {
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for &byte in bytes {
        match ranges.last_mut() {
            // Ranges stop at the borders between kinds of bytes, so that they mean something.
            Some((_, last)) if last.checked_add(1) == Some(byte) && kind(*last) == kind(byte) => *last = byte,
            _ => ranges.push((byte, byte)),
        }
    }
    let show = |&(first, last): &(u8, u8)| match last - first {
        0 => byte(first),
        1 => format!("{}, {}", byte(first), byte(last)),
        _ => format!("{}-{}", byte(first), byte(last)),
    };
    ranges.iter().map(show).collect()
}

fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 1,
        b'A'..=b'Z' => 2,
        b'a'..=b'z' => 3,
        b' '..=b'~' => 4,
        0xC2..=0xF4 => 5,
        0x80..=0xBF => 6,
        _ => 7,
    }
}

/// Shows bytes as a class of a regular expression: `a`, `[a-z_]`, `[^"]`; bytes outside ASCII by number.
pub(crate) fn class(ranges: &[RangeInclusive<u8>]) -> String {
    let count: usize = ranges.iter().map(RangeInclusive::len).sum();
    if count == 256 {
        return "any byte".to_owned();
    }
    if let [only] = ranges
        && only.len() == 1
    {
        return class_byte(*only.start());
    }
    let has = |byte: &u8| ranges.iter().any(|range| range.contains(byte));
    // A class of more than half of all bytes is shorter by what it leaves out.
    let (caret, bytes): (&str, Vec<u8>) = match count > 128 {
        true => ("^", (0..=u8::MAX).filter(|byte| !has(byte)).collect()),
        false => ("", (0..=u8::MAX).filter(has).collect()),
    };
    let show = |run: &[u8]| match run {
        [first, _, .., last] => format!("{}-{}", class_byte(*first), class_byte(*last)),
        run => run.iter().map(|&byte| class_byte(byte)).collect(),
    };
    let runs: String = bytes.chunk_by(|a, b| a.checked_add(1) == Some(*b)).map(show).collect();
    format!("[{caret}{runs}]")
}

fn class_byte(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'[' | b']' | b'\\' | b'^' | b'-' => format!("\\{}", char::from(byte)),
        b' ' => "\\x20".to_owned(),
        b'!'..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

/// Escapes the control characters of a name, which regular expressions may contain.
pub(crate) fn one_line(name: &str) -> String {
    let show = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    name.chars().map(show).collect()
}

/// Names the terminals that a state is in or waits for, unless there are too many to look at.
pub(crate) fn terminals_of(state: &Constraint) -> Vec<String> {
    match state.state_sizes().threads {
        ..=MOST_THREADS => terminals(&state.threads()),
        _ => Vec::new(),
    }
}

/// Names the terminals that threads are in or wait for, each once, at most [`MOST_TERMINALS`].
fn terminals(threads: &[ThreadView]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for thread in threads {
        let name = one_line(&thread.terminal);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > MOST_TERMINALS {
        let rest = names.len() - MOST_TERMINALS;
        names.truncate(MOST_TERMINALS);
        names.push(format!("{rest} more"));
    }
    names
}

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

    #[test]
    fn quoted_bytes_are_escaped() {
        assert_eq!(quoted(b"a\"\\\n\x01\xff\xc3\xa9"), "\"a\\\"\\\\\\n\\u{1}\\xFF\u{e9}\"");
    }

    #[test]
    fn byte_classes_are_shown_in_brackets() {
        let show = |bytes: &[RangeInclusive<u8>]| class(bytes);
        assert_eq!(show(&[b'a'..=b'a']), "a");
        assert_eq!(show(&[b'0'..=b'1', b'_'..=b'_', b'a'..=b'z']), "[01_a-z]");
        assert_eq!(show(&[0..=b'!', b'#'..=b'[', b']'..=u8::MAX]), "[^\"\\\\]");
        assert_eq!(show(&[b'\t'..=b'\n', b' '..=b' ', 0x80..=0xbf]), "[\\t\\n\\x20\\x80-\\xbf]");
        assert_eq!(show(&[0..=u8::MAX]), "any byte");
    }

    #[test]
    fn bytes_are_listed_as_ranges_of_one_kind() {
        let bytes: Vec<u8> = (0x20..0x7f).chain(0xc2..=0xf4).filter(|&byte| byte != b'"').collect();
        let expected = "' ', '!' '#'-'/' '0'-'9' ':'-'@' 'A'-'Z' '['-'`' 'a'-'z' '{'-'~' 0xC2-0xF4";
        assert_eq!(byte_ranges(&bytes).join(" "), expected);
        assert_eq!(byte_ranges(b"\tab'").join(" "), "'\\t' 'a', 'b' \"'\"");
    }

    #[test]
    fn invisible_characters_are_shown_as_code_points() {
        let show = |characters: &str| characters.chars().map(character).collect::<Vec<_>>().join(" ");
        assert_eq!(show("a'\n\u{e9}\u{6728}"), "'a' \"'\" '\\n' '\u{e9}' '\u{6728}'");
        // A control, a combining mark, a direction, a space that is none of ASCII's, and a private one.
        assert_eq!(show("\0\u{301}\u{202e}\u{3000}\u{e000}"), "U+0000 U+0301 U+202E U+3000 U+E000");
    }

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
