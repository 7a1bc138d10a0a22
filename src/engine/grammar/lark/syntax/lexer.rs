//! The tokens of Lark: names, literals, regular expressions, JSON after `%json` and the like, marks, line
//! ends.
//!
//! It decides what depends on more than the next character: what a `{` opens (a count, or arguments), where
//! JSON ends, and which line ends matter. A line end is a token only between definitions: not inside of
//! brackets, nor before a `|` or `&` that continues the last line. Memory is linear in the text.

use crate::{
    grammar::{
        errors::{GrammarError, quoted},
        source::{Source, Span},
    },
    ids::as_index,
    limits::{Budget, LimitExceeded, Limits},
};

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LarkToken<'t> {
    /// A rule's or a terminal's name.
    Name(&'t str),
    /// `"text"`, with an `i` behind it if case makes no difference.
    Text { text: String, ignore_case: bool },
    /// `/regex/flags`: the place of the expression, and the flags.
    Regex { body: Span, flags: &'t str },
    /// `<name>`, with its brackets.
    Special(&'t str),
    /// `@name`.
    Reference(&'t str),
    /// `%word`.
    Keyword(&'t str),
    /// `%word` with a JSON value behind it, and the place of that.
    Json { word: &'t str, value: Span },
    /// A count `?`, `*`, `+` or `{..}`: the least and the greatest number.
    Count(u32, Option<u32>),
    /// An integer as written.
    Number(&'t str),
    /// Any other mark.
    Mark(&'static str),
    /// One line end or more.
    Newline,
}

impl LarkToken<'_> {
    /// The token in the words of messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Name(name) | Self::Special(name) | Self::Reference(name) | Self::Number(name) => {
                quoted(name)
            }
            Self::Text { .. } => "a literal".to_owned(),
            Self::Regex { .. } => "a regular expression".to_owned(),
            Self::Keyword(word) | Self::Json { word, .. } => quoted(&format!("%{word}")),
            Self::Count(..) => "a count".to_owned(),
            Self::Mark(mark) => quoted(mark),
            Self::Newline => "the end of the line".to_owned(),
        }
    }
}

/// The tokens with their places, in the text's order.
pub(super) type LarkTokens<'t> = Vec<(LarkToken<'t>, Span)>;

/// The marks; longer ones come before their beginnings. `?`, `*` and `+` are counts, or begin a definition.
const MARKS: [&str; 16] = ["->", "..", "::", "(", ")", "[", "]", "{", "}", "|", "&", "~", ":", ",", ".", "="];

/// Words with a JSON value behind them. XGrammar has the last in place of the last but one.
const WITH_JSON: [&str; 4] = ["json", "regex", "llguidance", "grammar_options"];

/// Splits `text`, which has at most 4 GiB. Linear.
pub(super) fn split<'t>(text: &'t str, limits: &Limits) -> Result<LarkTokens<'t>, GrammarError> {
    let mut lexer = LarkLexer { text, at: 0, open: Vec::new(), tokens: Vec::new(), limits };
    if text.starts_with('\u{FEFF}') {
        lexer.at = '\u{FEFF}'.len_utf8();
    }
    while lexer.token()? {}
    match lexer.open.last() {
        Some(&(mark, span)) => Err(GrammarError::syntax(format!("`{mark}` is never closed")).at(
            Source::new(text),
            span,
            "opened here",
        )),
        None => Ok(lexer.tokens),
    }
}

struct LarkLexer<'t, 'l> {
    text: &'t str,
    at: usize,
    /// The open brackets. A line end matters if there is none, or if the innermost is that of a nested
    /// grammar.
    open: Vec<(&'static str, Span)>,
    tokens: LarkTokens<'t>,
    limits: &'l Limits,
}

impl<'t> LarkLexer<'t, '_> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn source(&self) -> Source<'t> {
        Source::new(self.text)
    }

    fn here(&self, from: usize) -> Span {
        Span::from_range(from..self.at)
    }

    fn push(&mut self, from: usize, token: LarkToken<'t>) {
        let span = self.here(from);
        self.tokens.push((token, span));
    }

    /// Skips white space, comments, and line ends behind a backslash; true if a line ended.
    fn skip(&mut self) -> bool {
        let mut newline = false;
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            let skipped = &rest[..rest.len() - trimmed.len()];
            newline |= skipped.contains(['\n', '\r']);
            self.at += skipped.len();
            if let Some(continued) = trimmed.strip_prefix('\\').map(|rest| rest.trim_start_matches(' '))
                && let Some(next) = continued.strip_prefix("\r\n").or_else(|| continued.strip_prefix('\n'))
            {
                self.at = self.text.len() - next.len();
                continue;
            }
            if !trimmed.starts_with('#') && !trimmed.starts_with("//") {
                return newline;
            }
            self.at += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
        }
    }

    /// True if no bracket is open, or if the innermost is that of a nested grammar.
    fn between_lines(&self) -> bool {
        self.open.last().is_none_or(|&(mark, _)| mark == "%lark {")
    }

    /// Reads a token; `false` at the end.
    fn token(&mut self) -> Result<bool, GrammarError> {
        self.limits.look().map_err(GrammarError::cancelled)?;
        let start = self.at;
        let newline = self.skip();
        let Some(first) = self.rest().chars().next() else { return Ok(false) };
        if newline && self.between_lines() && !matches!(first, '|' | '&') && !self.tokens.is_empty() {
            self.tokens.push((LarkToken::Newline, Span::from_range(start..start)));
        }
        let start = self.at;
        match first {
            '"' => self.literal(start)?,
            '/' => self.regex(start)?,
            '%' => self.keyword(start)?,
            '<' => self.special(start)?,
            '@' => {
                let length =
                    self.rest()[1..].find(|c: char| !is_name(c)).map_or(self.rest().len(), |end| end + 1);
                self.at += length;
                self.push(start, LarkToken::Reference(&self.text[start..self.at]));
            }
            '{' if self.counts() => self.count(start)?,
            '-' | '0'..='9' if self.number(start) => {}
            '?' | '*' | '+' => {
                self.at += 1;
                let (least, most) = match first {
                    '?' => (0, Some(1)),
                    '*' => (0, None),
                    _ => (1, None),
                };
                self.push(start, LarkToken::Count(least, most));
            }
            '!' => {
                self.at += 1;
                self.push(start, LarkToken::Mark("!"));
            }
            c if c.is_ascii_alphabetic() || c == '_' => self.name(start)?,
            _ => self.mark(start, first)?,
        }
        Ok(true)
    }

    fn mark(&mut self, start: usize, first: char) -> Result<(), GrammarError> {
        let Some(&mark) = MARKS.iter().find(|mark| self.rest().starts_with(**mark)) else {
            self.at += first.len_utf8();
            return Err(self.stray(start, first));
        };
        self.at += mark.len();
        match mark {
            "(" | "[" | "{" => {
                let nested = mark == "{"
                    && self.tokens.last().is_some_and(|(last, _)| *last == LarkToken::Keyword("lark"));
                let most = as_index(self.limits.regex_nesting);
                if self.open.len() >= most {
                    let limit =
                        LimitExceeded::new(Budget::RegexNesting, "levels of groups in a grammar", most);
                    return Err(GrammarError::limit(limit)
                        .at(self.source(), self.here(start), "")
                        .with_hint("the budget is `Limits::regex_nesting`"));
                }
                self.open.push((if nested { "%lark {" } else { mark }, self.here(start)));
            }
            ")" | "]" | "}" => {
                let opened = self.open.pop();
                let fits = opened.is_some_and(|(open, _)| open.ends_with(counterpart(mark)));
                if !fits {
                    let error =
                        GrammarError::syntax(format!("`{mark}` without a `{}` before it", counterpart(mark)));
                    let error = error.at(self.source(), self.here(start), "");
                    return Err(match opened {
                        Some((open, span)) => error.at(self.source(), span, format!("`{open}` is open here")),
                        None => error,
                    });
                }
            }
            _ => {}
        }
        self.push(start, LarkToken::Mark(mark));
        Ok(())
    }

    fn stray(&self, start: usize, c: char) -> GrammarError {
        let what = if c.is_control() || c.is_whitespace() {
            format!("unexpected character U+{:04X}", u32::from(c))
        } else {
            format!("unexpected `{c}`")
        };
        let error = GrammarError::syntax(what).at(self.source(), self.here(start), "");
        match c {
            '\'' | '`' | '\u{201C}' | '\u{201D}' => {
                error.with_hint("a literal is written between straight double quotes: `\"text\"`")
            }
            ';' => error.with_hint("definitions end with their line"),
            '\\' => error.with_hint(
                "a `\\` stands at the end of a line that goes on, or in literals and regular expressions",
            ),
            '^' | '$' => error.with_hint("anchors stand in regular expressions only: `/^a/`"),
            _ => error.with_hint("text to be matched is written in double quotes"),
        }
    }

    fn name(&mut self, start: usize) -> Result<(), GrammarError> {
        let rest = self.rest();
        let mut length = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        // The dash of an arrow is not part of the name.
        if rest[..length].ends_with('-') && rest[length..].starts_with('>') {
            length -= 1;
        }
        self.at += length;
        let name = &rest[..length];
        let lower = name.contains(|c: char| c.is_ascii_lowercase());
        let upper = name.contains(|c: char| c.is_ascii_uppercase());
        if lower == upper && name != "_" {
            let (message, hint) = if lower {
                ("a name of small and of capital letters", "rules have small letters, terminals capital ones")
            } else {
                (
                    "a name without letters",
                    "names of rules begin with a small letter, those of terminals with a capital one",
                )
            };
            return Err(GrammarError::syntax(format!("{} is {message}", quoted(name)))
                .at(self.source(), self.here(start), "")
                .with_hint(hint));
        }
        self.push(start, LarkToken::Name(name));
        Ok(())
    }

    /// Reads an integer, if there is one.
    fn number(&mut self, start: usize) -> bool {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - sign);
        if digits > 0 {
            self.at += sign + digits;
            self.push(start, LarkToken::Number(&self.text[start..self.at]));
        }
        digits > 0
    }

    /// True if the `{` at this place begins a count.
    fn counts(&self) -> bool {
        let inside = self.rest()[1..].trim_start_matches([' ', '\t']);
        inside.starts_with(|c: char| c.is_ascii_digit() || matches!(c, ',' | '-'))
    }

    fn count(&mut self, start: usize) -> Result<(), GrammarError> {
        let rest = self.rest();
        let end = rest.find('}').unwrap_or(1);
        let inside = &rest[1..end.max(1)];
        self.at += end + 1;
        let wrong = |lexer: &Self| {
            GrammarError::syntax("not a count")
                .at(lexer.source(), lexer.here(start), "")
                .with_hint("counts are `{m}`, `{m,}`, `{,n}`, `{m,n}`, `~m` and `~m..n`, with m at most n")
        };
        let (least, most) = match inside.split_once(',') {
            None => {
                let count = self.bounded(inside, start)?;
                (count, Some(count))
            }
            Some((least, most)) => (self.bounded(least, start)?, Some(self.bounded(most, start)?)),
        };
        let open_end = inside.trim_end().ends_with(',');
        let (least, most) = match (least, most) {
            (None, Some(None)) => return Err(wrong(self)),
            (least, Some(None)) if open_end => (least.unwrap_or(0), None),
            (least, most) => (least.unwrap_or(0), most.flatten()),
        };
        if most.is_some_and(|most| most < least) {
            return Err(wrong(self));
        }
        self.push(start, LarkToken::Count(least, most));
        Ok(())
    }

    /// Reads a number of a count, within the budget; `None` if nothing is written.
    fn bounded(&self, written: &str, start: usize) -> Result<Option<u32>, GrammarError> {
        let written = written.trim();
        if written.is_empty() {
            return Ok(None);
        }
        match read_count(written, self.limits) {
            Ok(count) => Ok(Some(count)),
            Err(error) => Err(error.at(self.source(), self.here(start), "")),
        }
    }

    fn literal(&mut self, start: usize) -> Result<(), GrammarError> {
        let (text, length) = read_string(self.text, start)?;
        self.at = start + length;
        let ignore_case = self.rest().starts_with('i') && !self.rest()[1..].starts_with(is_name);
        self.at += usize::from(ignore_case);
        self.push(start, LarkToken::Text { text, ignore_case });
        Ok(())
    }

    fn regex(&mut self, start: usize) -> Result<(), GrammarError> {
        let inside = &self.rest()[1..];
        let mut escaped = false;
        let end = inside.find(|c: char| {
            let ends = c == '/' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some(end) = end else {
            return Err(GrammarError::syntax("a regular expression is never closed")
                .at(self.source(), Span::from_range(start..start + 1), "opened here")
                .with_hint("add the closing `/`; inside, it is written `\\/`"));
        };
        let body = Span::from_range(start + 1..start + 1 + end);
        self.at = start + end + 2;
        let rest = self.rest();
        let flags = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        self.at += flags.len();
        if let Some(flag) = flags.chars().find(|flag| !"imsux".contains(*flag)) {
            return Err(GrammarError::unsupported(format!(
                "the flag `{flag}` of a regular expression is not supported"
            ))
            .at(self.source(), self.here(self.at - flags.len()), "")
            .with_hint("the flags are `i`, `m`, `s`, `u` and `x`"));
        }
        self.push(start, LarkToken::Regex { body, flags });
        Ok(())
    }

    fn keyword(&mut self, start: usize) -> Result<(), GrammarError> {
        let rest = &self.rest()[1..];
        let word = &rest[..rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())];
        self.at += 1 + word.len();
        if !WITH_JSON.contains(&word) {
            self.push(start, LarkToken::Keyword(word));
            return Ok(());
        }
        let after = self.rest();
        let space = after.len() - after.trim_start().len();
        let from = self.at + space;
        let mut values =
            serde_json::Deserializer::from_str(&self.text[from..]).into_iter::<serde::de::IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                self.at = from + values.byte_offset();
                self.push(start, LarkToken::Json { word, value: Span::from_range(from..self.at) });
                Ok(())
            }
            problem => {
                let (why, line, column) = match problem {
                    Some(Err(error)) => (error.to_string(), error.line(), error.column()),
                    _ => ("there is none".to_owned(), 1, 1),
                };
                let lines = self.text[from..].split_inclusive('\n').take(line.saturating_sub(1));
                let at = from + lines.map(str::len).sum::<usize>() + column.saturating_sub(1);
                let at =
                    (at.min(self.text.len())..).find(|&at| self.text.is_char_boundary(at)).unwrap_or(from);
                let why = why.rsplit_once(" at line").map_or(&*why, |(why, _)| why);
                Err(GrammarError::syntax(format!("no JSON after `%{word}`: {why}"))
                    .at(self.source(), Span::from_range(at..at), "")
                    .at(self.source(), self.here(start), "it belongs to this"))
            }
        }
    }

    fn special(&mut self, start: usize) -> Result<(), GrammarError> {
        let rest = self.rest();
        let length =
            rest.find(|c: char| c == '>' || c.is_whitespace()).filter(|&end| rest[end..].starts_with('>'));
        let Some(length) = length.filter(|&length| length > 1) else {
            self.at += 1;
            return Err(self.stray(start, '<'));
        };
        self.at += length + 1;
        self.push(start, LarkToken::Special(&self.text[start..self.at]));
        Ok(())
    }
}

/// Reads a count.
pub(super) fn read_count(written: &str, limits: &Limits) -> Result<u32, GrammarError> {
    if written.is_empty() || !written.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(GrammarError::syntax("not a count")
            .with_hint("counts are `{m}`, `{m,}`, `{,n}`, `{m,n}`, `~m` and `~m..n`, with m at most n"));
    }
    match written.parse() {
        Ok(count) if count <= limits.repeat => Ok(count),
        _ => {
            let most = as_index(limits.repeat);
            Err(GrammarError::limit(LimitExceeded::new(Budget::Repeat, "repeats in a count", most))
                .with_hint("`*`, `+` and `{m,}` have no upper end; the budget is `Limits::repeat`"))
        }
    }
}

fn counterpart(mark: &str) -> &'static str {
    match mark {
        ")" => "(",
        "]" => "[",
        _ => "{",
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

// Literals stand between double quotes, with the escapes of JSON and of Python.

/// The text of the literal whose first quote is at `start`, and its length with both quotes.
fn read_string(text: &str, start: usize) -> Result<(String, usize), GrammarError> {
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
