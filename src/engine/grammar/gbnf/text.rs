//! Literals, classes and the characters in them, in both dialects.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{
    GbnfDialect,
    lexer::{Lexer, Token, any_character},
};
use crate::grammar::errors::GrammarError;

const LLAMA_ESCAPES: &str = "the escapes are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH; a \
    lone backslash is `\\\\`";

const X_ESCAPES: &str = "the escapes are \\n \\r \\t \\b \\f \\a \\v \\0 \\e \\\\ \\\" \\' \\? \\/ \\xH.. \
    \\uHHHH \\UHHHHHHHH, and in classes \\^ \\- \\[ \\] and other marks; a lone backslash is `\\\\`";

impl<'t> Lexer<'t> {
    pub(super) fn literal(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('"') => break,
                Some(c) if !self.ends_line(c) => text.push(self.character(false)?),
                _ => return Err(self.unterminated(start, "literal", '"')),
            }
        }
        self.at += 1;
        self.note_lines(start);
        Ok(Token::Literal(text.into_bytes()))
    }

    pub(super) fn class(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                Some(']') => break,
                Some('\\') if self.shorthand(&mut ranges) => {}
                Some(c) if !self.ends_line(c) => ranges.push(self.range()?),
                _ => return Err(self.unterminated(start, "class", ']')),
            }
        }
        self.at += 1;
        self.note_lines(start);
        if ranges.is_empty() && negated && self.dialect == GbnfDialect::XGrammar {
            return Ok(Token::Class(any_character()));
        }
        if ranges.is_empty() {
            return Err(GrammarError::syntax("a class without characters")
                .at(self.source(), self.here(start), "")
                .with_hint(format!(
                    "`{}` is any character, `\"\"` is no text, `\\]` in a class is the bracket itself",
                    self.dialect.any_character()
                )));
        }
        let mut class = ClassUnicode::new(ranges);
        if negated {
            // `negate` would put U+D7FF and U+E000 between ranges that border on the surrogates.
            let given = std::mem::replace(&mut class, any_character());
            class.difference(&given);
        }
        if class.ranges().is_empty() {
            return Err(GrammarError::syntax("this class is empty")
                .at(self.source(), self.here(start), "no character is in it")
                .with_hint(format!(
                    "every character is excluded; `{}` is any character",
                    self.dialect.any_character()
                )));
        }
        Ok(Token::Class(class))
    }

    /// Reads `\d`, `\w`, `\s` or a complement of these in a class, as regular expressions have them; false if
    /// there is none.
    fn shorthand(&mut self, ranges: &mut Vec<ClassUnicodeRange>) -> bool {
        let Some(letter) = self.rest().chars().nth(1).filter(|_| self.dialect == GbnfDialect::LlamaCpp)
        else {
            return false;
        };
        let given: &[(char, char)] = match letter.to_ascii_lowercase() {
            'd' => &[('0', '9')],
            'w' => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            's' => &[('\t', '\r'), (' ', ' ')],
            _ => return false,
        };
        self.at += '\\'.len_utf8() + letter.len_utf8();
        let given = ClassUnicode::new(given.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last)));
        if letter.is_ascii_lowercase() {
            ranges.extend(given.ranges());
        } else {
            let mut others = any_character();
            others.difference(&given);
            ranges.extend(others.ranges());
        }
        true
    }

    fn range(&mut self) -> Result<ClassUnicodeRange, GrammarError> {
        let start = self.at;
        let low = self.character(true)?;
        let mut ahead = self.rest().chars();
        if ahead.next() != Some('-') || matches!(ahead.next(), None | Some(']')) {
            return Ok(ClassUnicodeRange::new(low, low));
        }
        self.at += 1;
        let high = self.character(true)?;
        if low <= high {
            return Ok(ClassUnicodeRange::new(low, high));
        }
        Err(GrammarError::syntax("a range from a greater character to a smaller one")
            .at(
                self.source(),
                self.here(start),
                format!("U+{:04X} comes after U+{:04X}", u32::from(low), u32::from(high)),
            )
            .with_hint("swap them, or write `\\-` for the dash itself"))
    }

    /// True for a character that ends the line, which a literal or class must not run over in this dialect.
    fn ends_line(&self, c: char) -> bool {
        self.dialect == GbnfDialect::XGrammar && matches!(c, '\n' | '\r')
    }

    /// Reads one character of a literal or class, which may be escaped. There must be one.
    fn character(&mut self, in_class: bool) -> Result<char, GrammarError> {
        let start = self.at;
        let Some(first) = self.peek() else {
            return Err(GrammarError::syntax("the text ends too soon").at(
                self.source(),
                self.here(start),
                "",
            ));
        };
        self.at += first.len_utf8();
        if first != '\\' {
            return Ok(first);
        }
        let escaped = self.peek();
        self.at += escaped.map_or(0, char::len_utf8);
        match (self.dialect, escaped) {
            (_, Some('n')) => Ok('\n'),
            (_, Some('r')) => Ok('\r'),
            (_, Some('t')) => Ok('\t'),
            (_, Some(c @ ('\\' | '"'))) => Ok(c),
            (_, Some('u')) => self.hex(start, 4),
            (_, Some('U')) => self.hex(start, 8),
            (GbnfDialect::LlamaCpp, Some('x')) => self.hex(start, 2),
            (GbnfDialect::LlamaCpp, Some(c @ ('[' | ']' | '-'))) => Ok(c),
            (GbnfDialect::LlamaCpp, Some('d' | 'D' | 'w' | 'W' | 's' | 'S')) => Err(self.unknown_escape(
                start,
                "a class of characters stands in brackets: `[\\d]`, `[\\w]`, `[\\s]`",
            )),
            (GbnfDialect::LlamaCpp, _) => Err(self.unknown_escape(start, LLAMA_ESCAPES)),
            (GbnfDialect::XGrammar, Some(c)) => self.x_escape(start, c, in_class),
            (GbnfDialect::XGrammar, None) => Err(self.unknown_escape(start, X_ESCAPES)),
        }
    }

    /// Reads an escape that only XGrammar has.
    fn x_escape(&mut self, start: usize, c: char, in_class: bool) -> Result<char, GrammarError> {
        match c {
            '\'' | '?' | '/' => Ok(c),
            'b' => Ok('\u{8}'),
            'f' => Ok('\u{c}'),
            'a' => Ok('\u{7}'),
            'v' => Ok('\u{b}'),
            'e' => Ok('\u{1b}'),
            '0' => Ok('\0'),
            'x' => {
                let rest = self.rest();
                let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
                let zeros = rest[..digits].len() - rest[..digits].trim_start_matches('0').len();
                // More digits than these are no character: the error shows the first of them.
                self.at += if digits > zeros { zeros } else { zeros.saturating_sub(1) };
                self.hex(start, (digits - zeros).clamp(1, 8))
            }
            '^' | '$' | '.' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '-' if in_class => Ok(c),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' if in_class => {
                Err(GrammarError::unsupported(format!("the class `\\{c}` is not supported in a class"))
                    .at(self.source(), self.here(start), "")
                    .with_hint("write its characters: `[0-9]`, `[a-zA-Z0-9_]`, `[ \\t\\n\\r]`"))
            }
            _ => Err(self.unknown_escape(start, X_ESCAPES)),
        }
    }

    fn unknown_escape(&self, start: usize, hint: &str) -> GrammarError {
        GrammarError::syntax("unknown escape").at(self.source(), self.here(start), "").with_hint(hint)
    }

    fn hex(&mut self, start: usize, digits: usize) -> Result<char, GrammarError> {
        let from = self.at;
        let mut code = 0_u32;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(GrammarError::syntax(format!(
                    "an escape of {digits} hexadecimal digits has only {}",
                    self.at - from
                ))
                .at(self.source(), self.here(start), "")
                .with_hint("\\x takes 2 digits, \\u takes 4, \\U takes 8"));
            };
            code = (code << 4) | digit;
            self.at += 1;
        }
        char::from_u32(code).ok_or_else(|| {
            let what = if code > u32::from(char::MAX) { "beyond U+10FFFF" } else { "a surrogate" };
            GrammarError::syntax(format!("U+{code:04X} is no character: it is {what}"))
                .at(self.source(), self.here(start), "")
                .with_hint("an escape is a code point; it is matched as its UTF-8 bytes")
        })
    }
}
