//! Literals of Lark: text between double quotes, with the escapes of JSON and of Python.

use crate::grammar::{
    errors::GrammarError,
    source::{Source, Span},
};

/// The text of the literal whose first quote is at `start`, and its length with both quotes.
pub(super) fn read(text: &str, start: usize) -> Result<(String, usize), GrammarError> {
    let mut reader = StringReader { text, at: start + 1 };
    let mut found = String::new();
    loop {
        match reader.peek() {
            Some('"') => return Ok((found, reader.at + 1 - start)),
            Some('\\') => found.push(reader.escape()?),
            Some(c) if c != '\n' => {
                found.push(c);
                reader.at += c.len_utf8();
            }
            _ => {
                return Err(GrammarError::syntax("a literal is never closed")
                    .at(Source::new(text), Span::from_range(start..start + 1), "opened here")
                    .with_hint(
                        "it ends on its line, with a `\"`; inside, a line end is `\\n` and a quote `\\\"`",
                    ));
            }
        }
    }
}

struct StringReader<'t> {
    text: &'t str,
    at: usize,
}

impl StringReader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn error(&self, start: usize, message: impl Into<String>) -> GrammarError {
        GrammarError::syntax(message).at(Source::new(self.text), Span::from_range(start..self.at), "")
    }

    /// Reads one escape; the backslash is next.
    fn escape(&mut self) -> Result<char, GrammarError> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        Ok(match letter {
            Some(c @ ('"' | '\\' | '/' | '\'')) => c,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some('a') => '\u{7}',
            Some('0') => '\0',
            Some('x') => return self.code(start, 2),
            Some('u') => return self.unit(start),
            Some('U') => return self.code(start, 8),
            _ => {
                return Err(self.error(start, "unknown escape").with_hint(
                    "the escapes are \\n \\r \\t \\b \\f \\v \\a \\0 \\\\ \\\" \\' \\/ \\xHH \\uHHHH \
                    \\UHHHHHHHH; a lone backslash is `\\\\`",
                ));
            }
        })
    }

    fn digits(&mut self, start: usize, count: usize) -> Result<u32, GrammarError> {
        let mut code = 0;
        for found in 0..count {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(self
                    .error(start, format!("an escape of {count} hexadecimal digits has only {found}"))
                    .with_hint("\\x takes 2 digits, \\u takes 4, \\U takes 8"));
            };
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn code(&mut self, start: usize, digits: usize) -> Result<char, GrammarError> {
        let code = self.digits(start, digits)?;
        self.character(start, code)
    }

    fn character(&self, start: usize, code: u32) -> Result<char, GrammarError> {
        char::from_u32(code).ok_or_else(|| {
            let what = if code > u32::from(char::MAX) { "beyond U+10FFFF" } else { "a surrogate" };
            self.error(start, format!("U+{code:04X} is no character: it is {what}"))
        })
    }

    /// Reads the rest of `\uHHHH`, with a second one behind it if the two are a surrogate pair.
    fn unit(&mut self, start: usize) -> Result<char, GrammarError> {
        let high = self.digits(start, 4)?;
        if !(0xD800..0xDC00).contains(&high) || !self.text[self.at..].starts_with("\\u") {
            return self.character(start, high);
        }
        self.at += 2;
        let low = self.digits(start, 4)?;
        let pair = char::decode_utf16([high, low].map(|unit| u16::try_from(unit).unwrap_or(0))).next();
        match pair {
            Some(Ok(c)) => Ok(c),
            _ => self.character(start, high),
        }
    }
}
