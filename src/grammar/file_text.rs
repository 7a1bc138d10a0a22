//! The grammar text in a file: additions of editors and shells are not part of the grammar.
//!
//! A text in a program's memory is taken as it is; a file may have come through an editor, a shell or a
//! version control system of Windows.

use std::borrow::Cow;

use super::Syntax;

impl Syntax {
    /// The grammar text in a file with this content: without a byte order mark; with `\n` for `\r\n`; and,
    /// for a regular expression, without the line end behind it, which nobody means as a part of it. So a
    /// file means the same whatever editor has saved it. Linear; copies the text only if it has `\r\n`.
    ///
    /// [`Grammar::parse`](super::Grammar::parse) takes a text as it is but for a byte order mark, and a
    /// regular expression entirely as it is.
    ///
    /// # Examples
    /// ```
    /// use domino::Syntax;
    ///
    /// assert_eq!(Syntax::Regex.text_of_file("\u{FEFF}[a-z]+\r\n"), "[a-z]+");
    /// assert_eq!(Syntax::Gbnf.text_of_file("root ::= a\r\na ::= \"x\"\r\n"), "root ::= a\na ::= \"x\"\n");
    /// ```
    #[must_use]
    pub fn text_of_file(self, content: &str) -> Cow<'_, str> {
        let content = content.strip_prefix('\u{FEFF}').unwrap_or(content);
        let is_json = matches!(self, Self::JsonSchema | Self::StructuralTag);
        // JSON has no line ends inside of strings.
        let text = match !is_json && content.contains("\r\n") {
            true => Cow::Owned(content.replace("\r\n", "\n")),
            false => Cow::Borrowed(content),
        };
        match (self, text) {
            (Self::Regex, Cow::Borrowed(text)) => Cow::Borrowed(text.strip_suffix('\n').unwrap_or(text)),
            (Self::Regex, Cow::Owned(mut text)) => {
                if text.ends_with('\n') {
                    text.pop();
                }
                Cow::Owned(text)
            }
            (_, text) => text,
        }
    }
}

/// A hint for bytes that are not UTF-8.
pub(super) fn encoding_hint(bytes: &[u8]) -> &'static str {
    let is_utf_16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    // Without a mark, every other byte of an ASCII text in UTF-16 is NUL.
    let looks_so = bytes.len() > 1 && (bytes[0] == 0) != (bytes[1] == 0);
    match is_utf_16 || looks_so {
        true => "the text is UTF-16, as shells of Windows write it: save it as UTF-8",
        false => "save the text as UTF-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_byte_order_marks_and_line_ends_are_removed() {
        for (syntax, content, want) in [
            (Syntax::Regex, "a\r\n", "a"),
            (Syntax::Regex, "a\n", "a"),
            (Syntax::Regex, "\u{FEFF}a", "a"),
            (Syntax::Regex, "a\r\nb\r\n", "a\nb"),
            (Syntax::Regex, "a\n\n", "a\n"),
            (Syntax::Regex, "a\r\n\r\n", "a\n"),
            (Syntax::Regex, "a\r", "a\r"),
            (Syntax::Regex, "a\u{FEFF}", "a\u{FEFF}"),
            (Syntax::Regex, "\r\n", ""),
            (Syntax::Ebnf, "\u{FEFF}root ::= \"a\"\r\n", "root ::= \"a\"\n"),
            (Syntax::Lark, "start: \"a\"\r\n", "start: \"a\"\n"),
            (Syntax::JsonSchema, "\u{FEFF}{}\r\n", "{}\r\n"),
        ] {
            assert_eq!(syntax.text_of_file(content), want, "{syntax:?} {content:?}");
        }
    }

    #[test]
    fn the_encoding_hint_recognises_utf_16() {
        assert!(encoding_hint(b"\xFF\xFEa\0").contains("UTF-16"));
        assert!(encoding_hint(b"\xFE\xFF\0a").contains("UTF-16"));
        assert!(!encoding_hint(b"\xE9t\xE9").contains("UTF-16"));
    }
}
