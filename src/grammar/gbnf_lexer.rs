//! The tokens of GBNF: names, literals, classes, counts, punctuation.
//!
//! Owns what a regular lexer cannot tell: that `name ::=` begins a rule (one token, so that rules may
//! run over lines as they like), and that parentheses are closed. Follows llama.cpp in what a literal
//! and a class may hold. Never recurses; memory is bounded by the text and by the budget of open groups.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{
    error::{GrammarError, quoted},
    source::{Source, Span},
};
use crate::limits::{Budget, LimitExceeded, Limits};

/// A token.
#[derive(Debug, Clone)]
pub(super) enum Token<'t> {
    /// A name with the `::=` after it.
    RuleName(&'t str),
    /// The use of a rule.
    Name(&'t str),
    /// A quoted literal.
    Literal(Vec<u8>),
    /// A class, or `.`.
    Class(ClassUnicode),
    /// `?`, `*`, `+` or `{..}`: at least and at most.
    Count((u32, Option<u32>)),
    /// `(`
    Open,
    /// `)`
    Close,
    /// `|`
    Or,
    /// `::=` without a name.
    Define,
}

type Spanned<'t> = (u32, Token<'t>, u32);

/// Splits a grammar text.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Where the groups were opened that are still open.
    open: Vec<u32>,
    /// What came after a name that did not begin a rule.
    pending: Option<Result<Spanned<'t>, GrammarError>>,
    /// The first literal or class with a line feed in it, which may be a missing quote.
    multiline: Option<Span>,
    max_open: usize,
    max_count: u32,
}

impl<'t> Lexer<'t> {
    /// Splits `text`, which has no NUL byte and at most 4 GiB.
    pub(super) fn new(text: &'t str, limits: &Limits) -> Self {
        Self {
            text,
            at: if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 },
            open: Vec::new(),
            pending: None,
            multiline: None,
            max_open: limits.expressions,
            max_count: limits.repeat,
        }
    }

    /// The first literal or class so far that runs over a line end.
    pub(super) fn multiline(&self) -> Option<Span> {
        self.multiline
    }

    fn source(&self) -> Source<'t> {
        Source::new(self.text)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn here(&self, from: usize) -> Span {
        Span::from_range(from..self.at)
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
        }
    }

    /// The next token, names not yet told apart.
    fn token(&mut self) -> Option<Result<Spanned<'t>, GrammarError>> {
        self.skip_space();
        let start = self.at;
        let first = self.peek()?;
        let token = match first {
            '"' => self.literal(),
            '[' => self.class(),
            '{' => self.count(),
            '<' | '!' => Err(self.token_reference()),
            c if is_name(c) => Ok(self.name()),
            _ => self.mark(first),
        };
        Some(token.map(|token| {
            let span = self.here(start);
            (span.start, token, span.end)
        }))
    }

    fn mark(&mut self, first: char) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        if self.eat("::=") {
            return Ok(Token::Define);
        }
        self.at += first.len_utf8();
        match first {
            '|' => Ok(Token::Or),
            '.' => Ok(Token::Class(any_character())),
            '?' => Ok(Token::Count((0, Some(1)))),
            '*' => Ok(Token::Count((0, None))),
            '+' => Ok(Token::Count((1, None))),
            '(' if self.open.len() >= self.max_open => {
                let limit =
                    LimitExceeded::new(Budget::Expressions, "open groups of a grammar text", self.max_open);
                Err(GrammarError::limit(limit).at(self.source(), self.here(start), ""))
            }
            '(' => {
                self.open.push(self.here(start).start);
                Ok(Token::Open)
            }
            ')' if self.open.pop().is_some() => Ok(Token::Close),
            ')' => Err(GrammarError::syntax("`)` without a `(` before it").at(
                self.source(),
                self.here(start),
                "nothing is open here",
            )),
            other => Err(self.stray(start, other)),
        }
    }

    fn stray(&self, start: usize, c: char) -> GrammarError {
        let what = if c.is_control() || c.is_whitespace() {
            format!("unexpected character U+{:04X}", u32::from(c))
        } else {
            format!("unexpected `{c}`")
        };
        let error = GrammarError::syntax(what).at(self.source(), self.here(start), "");
        match c {
            ':' | '=' => error.with_hint("a rule is written `name ::= body`"),
            '\'' | '`' | '\u{201C}' | '\u{201D}' => {
                error.with_hint("a literal is written between straight double quotes: `\"text\"`")
            }
            '/' => error.with_hint("a comment begins with `#`; a literal is written in double quotes"),
            ';' | ',' => error.with_hint("rules and parts are not separated by marks, only by white space"),
            ']' | '}' => {
                error.with_hint(format!("`{c}` closes nothing here; as text it is written `\"{c}\"`"))
            }
            _ => error.with_hint("text to be matched is written in double quotes"),
        }
    }

    fn name(&mut self) -> Token<'t> {
        let rest = self.rest();
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        self.at += name.len();
        Token::Name(name)
    }

    fn token_reference(&mut self) -> GrammarError {
        let start = self.at;
        let rest = self.rest();
        let line = &rest[..rest.find(['\n', ' ']).unwrap_or(rest.len())];
        self.at += line.find('>').map_or(1, |end| end + 1);
        let span = self.here(start);
        GrammarError::unsupported(format!(
            "token references such as {} are not supported",
            quoted(&line[..self.at - start])
        ))
        .at(self.source(), span, "a grammar here is about text, whatever its tokens are")
        .with_hint("write the token's text as a literal: `\"text\"`")
    }

    fn literal(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('"') => break,
                Some(_) => text.push(self.character()?),
                None => return Err(self.unterminated(start, "literal", '"')),
            }
        }
        self.at += 1;
        self.note_lines(start);
        Ok(Token::Literal(text.into_bytes()))
    }

    fn class(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                Some(']') => break,
                Some(_) => ranges.push(self.range()?),
                None => return Err(self.unterminated(start, "class", ']')),
            }
        }
        self.at += 1;
        self.note_lines(start);
        if ranges.is_empty() {
            return Err(GrammarError::syntax("a class without characters")
                .at(self.source(), self.here(start), "")
                .with_hint(
                    "`.` is any character, `\"\"` is no text, `\\]` in a class is the bracket itself",
                ));
        }
        let mut class = ClassUnicode::new(ranges);
        if negated {
            // `negate` would put U+D7FF and U+E000 between ranges that end and begin beside the surrogates.
            let given = std::mem::replace(&mut class, any_character());
            class.difference(&given);
        }
        if class.ranges().is_empty() {
            return Err(GrammarError::syntax("this class is empty")
                .at(self.source(), self.here(start), "no character is in it")
                .with_hint("every character is excluded; `.` is any character"));
        }
        Ok(Token::Class(class))
    }

    fn range(&mut self) -> Result<ClassUnicodeRange, GrammarError> {
        let start = self.at;
        let low = self.character()?;
        let mut ahead = self.rest().chars();
        if ahead.next() != Some('-') || matches!(ahead.next(), None | Some(']')) {
            return Ok(ClassUnicodeRange::new(low, low));
        }
        self.at += 1;
        let high = self.character()?;
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

    /// One character of a literal or class, which may be escaped. There is one.
    fn character(&mut self) -> Result<char, GrammarError> {
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
        match escaped {
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some(c @ ('\\' | '"' | '[' | ']' | '-')) => Ok(c),
            Some('x') => self.hex(start, 2),
            Some('u') => self.hex(start, 4),
            Some('U') => self.hex(start, 8),
            _ => Err(GrammarError::syntax("unknown escape").at(self.source(), self.here(start), "").with_hint(
                "the escapes are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH; a lone backslash is `\\\\`",
            )),
        }
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

    fn count(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        self.at += 1;
        self.skip_space();
        let least = self.number()?;
        self.skip_space();
        let most = if self.eat(",") {
            self.skip_space();
            let most = self.number()?;
            self.skip_space();
            if least.is_none() && most.is_none() { None } else { Some(most) }
        } else {
            least.map(|_| least)
        };
        let closed = self.eat("}");
        let Some(most) = most.filter(|_| closed) else {
            if !closed {
                self.at += self.peek().map_or(0, char::len_utf8);
            }
            return Err(GrammarError::syntax("not a count")
                .at(self.source(), self.here(start), "")
                .with_hint("counts are `{m}`, `{m,}`, `{,n}` and `{m,n}`; a literal brace is `\"{\"`"));
        };
        let least = least.unwrap_or(0);
        if most.is_some_and(|most| most < least) {
            return Err(GrammarError::syntax("a count whose greatest is less than its least").at(
                self.source(),
                self.here(start),
                "",
            ));
        }
        Ok(Token::Count((least, most)))
    }

    fn number(&mut self) -> Result<Option<u32>, GrammarError> {
        let start = self.at;
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = Some(value.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        if value.is_none_or(|value| value <= self.max_count) {
            return Ok(value);
        }
        let limit = LimitExceeded::new(
            Budget::Repeat,
            "repeats in a count",
            usize::try_from(self.max_count).unwrap_or(usize::MAX),
        );
        Err(GrammarError::limit(limit)
            .at(self.source(), self.here(start), "")
            .with_hint("`*`, `+` and `{m,}` have no upper end; the budget is `Limits::repeat`"))
    }

    fn note_lines(&mut self, start: usize) {
        if self.multiline.is_none() && self.text[start..self.at].contains('\n') {
            self.multiline = Some(Span::from_range(start..self.at));
        }
    }

    fn unterminated(&self, start: usize, what: &str, closing: char) -> GrammarError {
        GrammarError::syntax(format!("a {what} is never closed"))
            .at(self.source(), Span::from_range(start..start + 1), "opened here")
            .with_hint(format!("add the closing `{closing}`; inside, it is written `\\{closing}`"))
    }

    fn unclosed(&self, open: u32, next: Option<&Spanned<'t>>) -> GrammarError {
        let error = GrammarError::syntax("`(` is never closed").at(
            self.source(),
            Span::new(open, open + 1),
            "opened here",
        );
        match next {
            Some((start, Token::RuleName(name), _)) => {
                let end = start + Span::from_range(0..name.len()).end;
                error.at(self.source(), Span::new(*start, end), "the next rule begins here")
            }
            _ => error,
        }
    }
}

impl<'t> Iterator for Lexer<'t> {
    type Item = Result<Spanned<'t>, GrammarError>;

    fn next(&mut self) -> Option<Self::Item> {
        let token = match self.pending.take() {
            Some(token) => Some(token),
            None => self.token(),
        };
        let token = match token {
            Some(Ok((start, Token::Name(name), end))) => match self.token() {
                Some(Ok((_, Token::Define, end))) => Some(Ok((start, Token::RuleName(name), end))),
                after => {
                    self.pending = after;
                    Some(Ok((start, Token::Name(name), end)))
                }
            },
            other => other,
        };
        match (&token, self.open.last()) {
            (None, Some(&open)) => Some(Err(self.unclosed(open, None))),
            (Some(Ok(rule @ (_, Token::RuleName(_), _))), Some(&open)) => {
                Some(Err(self.unclosed(open, Some(rule))))
            }
            _ => token,
        }
    }
}

fn any_character() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}
