//! Tells the code of a Rust text from its comments and literals, so that no rule is misled by a brace in a
//! string.

use std::ops::Range;

/// A Rust text, taken apart.
pub(super) struct Lexed {
    /// The text with a space for every byte of comments and of the contents of literals: offsets and lines
    /// stay.
    pub(super) code: String,
    /// Comments, in order.
    pub(super) comments: Vec<Range<usize>>,
}

/// Reads `text` once. Text that is no Rust gives something, but never a panic.
pub(super) fn lex(text: &str) -> Lexed {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut comments = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (end, inside) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => {
                let end = line_end(bytes, at);
                comments.push(at..end);
                (end, at..end)
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                let end = block_comment(bytes, at);
                comments.push(at..end);
                (end, at..end)
            }
            b'"' => {
                let end = quoted(bytes, at + 1, b'"');
                (end, at + 1..end.saturating_sub(1).max(at + 1))
            }
            b'\'' => match character(text, at) {
                Some(end) => (end, at + 1..end - 1),
                None => (at + 1, at..at),
            },
            first if is_word(first) => {
                let end = word_end(bytes, at);
                raw_string(bytes, at, end).unwrap_or((end, at..at))
            }
            _ => (at + 1, at..at),
        };
        for byte in &mut code[inside] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Outside of comments and literals only identifiers may have bytes beyond ASCII.
    let code = String::from_utf8(code).unwrap_or_else(|_| text.to_owned());
    Lexed { code, comments }
}

/// True if a byte may stand in an identifier. All bytes of letters beyond ASCII do.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The end of the identifier or number that begins at `at`.
pub(super) fn word_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !is_word(*byte)).map_or(bytes.len(), |length| at + length)
}

/// The places in `code` where `word` stands as a word of its own.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        (*at == 0 || !is_word(bytes[at - 1])) && bytes.get(at + word.len()).is_none_or(|byte| !is_word(*byte))
    })
}

/// The end, exclusive, of the bracket that opens at `at`, of blanked code.
pub(super) fn closing(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return offset + 1;
        }
    }
    code.len()
}

/// The line, from 1, of the byte at `offset`.
pub(super) fn line(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// The end of a block comment; they nest.
fn block_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The end of a literal: behind the next `quote` from `at` on that no backslash escapes.
fn quoted(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of the character literal that the quote at `at` opens; `None` if it is a lifetime or label.
fn character(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at + 1..];
    if rest.starts_with('\\') {
        return Some(quoted(text.as_bytes(), at + 1, b'\'').max(at + 2));
    }
    let length = rest.chars().next()?.len_utf8();
    rest[length..].starts_with('\'').then_some(at + 1 + length + 1)
}

/// End and contents of the raw string whose prefix is `start..word`, if it is one.
fn raw_string(bytes: &[u8], start: usize, word: usize) -> Option<(usize, Range<usize>)> {
    if !matches!(&bytes[start..word], b"r" | b"br" | b"cr") {
        return None;
    }
    let hashes = bytes[word..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(word + hashes) != Some(&b'"') {
        return None;
    }
    let inside = word + hashes + 1;
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let length = bytes[inside..].windows(close.len()).position(|window| window == close);
    let end = length.map_or(bytes.len(), |length| inside + length);
    Some(((end + close.len()).min(bytes.len()), inside..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code with runs of spaces as one.
    fn shown(text: &str) -> String {
        let code = lex(text).code;
        assert_eq!(code.len(), text.len());
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(shown("a // { b\nc"), "a c");
        assert_eq!(shown("a /* { /* } */ { */ c"), "a c");
        assert_eq!(shown("a /* never closed {"), "a");
        assert_eq!(shown("a \"// no comment\" b // }"), "a \" \" b");
        assert_eq!(lex("/// What\nfn a() {} // b").comments, [0..8, 19..23]);
    }

    #[test]
    fn strings_are_no_code() {
        assert_eq!(shown(r#"a("{\"}\\") b"#), "a(\" \") b");
        assert_eq!(shown(r##"a(r"{\") b"##), "a(r\" \") b");
        assert_eq!(shown("a(r#\"{\"}\"#) b"), "a(r#\" \"#) b");
        assert_eq!(shown("a(br##\"\"#{\"##) b"), "a(br##\" \"##) b");
        assert_eq!(shown("a(b\"{\", c\"}\") b"), "a(b\" \", c\" \") b");
        assert_eq!(shown("a(\"\u{e4}{\n}\") b"), "a(\" \") b");
        for unclosed in ["\"", "\"a\\", "r#\"", "r#\"a\"", "'", "'\\", "b'"] {
            assert_eq!(lex(unclosed).code.len(), unclosed.len());
        }
    }

    #[test]
    fn characters_are_no_lifetimes() {
        assert_eq!(shown("a('{', '\\'', b'}', '\\u{7d}', '\u{20ac}') b"), "a(' ', ' ', b' ', ' ', ' ') b");
        assert_eq!(
            shown("impl<'a> A<'a> { 'b: loop { break 'b } }"),
            "impl<'a> A<'a> { 'b: loop { break 'b } }"
        );
        assert_eq!(shown("('\"', \"'\")"), "(' ', \" \")");
        assert_eq!(shown("r#type r#\"{\"# br"), "r#type r#\" \"# br");
    }

    #[test]
    fn closing_brackets_are_found() {
        assert_eq!(closing("a (b [c] {}) d", 2), 12);
        assert_eq!(closing("a (b", 2), 4);
        assert_eq!(words("as alias as_ as", "as").collect::<Vec<_>>(), [0, 13]);
    }
}
