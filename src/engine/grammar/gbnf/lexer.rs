//! The tokens of GBNF and of XGrammar's EBNF: names, literals, classes, counts, macros, punctuation.
//!
//! It decides what a regular lexer cannot: that `name ::=` begins a rule (one token, so that rules may run
//! over lines), and that parentheses are closed. The contents of literals and classes are read in `text`. It
//! never recurses; its memory is bounded by the text and by the budget of open groups.

use hashbrown::HashMap;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{GbnfDialect, macros::Macro, tokens::Reference};
use crate::{
    grammar::{
        errors::{GrammarError, quoted},
        source::{Source, Span},
    },
    ids::as_index,
    limits::{Budget, LimitExceeded, Limits},
};

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
    /// A macro of XGrammar, or an extension.
    Macro(Box<Macro<'t>>),
    /// A token of the model, or a class of them.
    Reference(Box<Reference<'t>>),
    /// A count `?`, `*`, `+` or `{..}`: the least and the greatest number.
    Count((u32, Option<u32>)),
    /// `(`
    Open,
    /// `(=`
    Ahead,
    /// `)`
    Close,
    /// `|`
    Or,
    /// `::=` without a name.
    Define,
}

type Spanned<'t> = (u32, Token<'t>, u32);

/// The lexer of a grammar text.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    pub(super) dialect: GbnfDialect,
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// The places where groups were opened that are still open.
    open: Vec<u32>,
    /// The token behind a name that did not begin a rule.
    pending: Option<Result<Spanned<'t>, GrammarError>>,
    /// The first literal or class with a line feed in it, which may be a missing quote.
    multiline: Option<Span>,
    /// Options of rules that have no effect on the texts: name and place.
    pub(super) without_effect: Vec<(&'t str, Span)>,
    /// Names of extensions; true if there is a rule of that name.
    pub(super) defined: HashMap<&'t str, bool>,
    /// Rules that are captured, with the names of their captures.
    pub(super) captured: Vec<(&'t str, &'t str)>,
    /// True if the last token was a count.
    counted: bool,
    max_open: usize,
    max_count: u32,
}

impl<'t> Lexer<'t> {
    /// Splits `text`, which has no NUL byte and at most 4 GiB.
    pub(super) fn new(dialect: GbnfDialect, text: &'t str, limits: &Limits) -> Self {
        Self {
            dialect,
            text,
            at: if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 },
            open: Vec::new(),
            pending: None,
            multiline: None,
            without_effect: Vec::new(),
            defined: HashMap::new(),
            captured: Vec::new(),
            counted: false,
            max_open: limits.expressions,
            max_count: limits.repeat,
        }
    }

    /// The first literal or class so far that runs over a line end.
    pub(super) fn multiline(&self) -> Option<Span> {
        self.multiline
    }

    pub(super) fn source(&self) -> Source<'t> {
        Source::new(self.text)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    pub(super) fn here(&self, from: usize) -> Span {
        Span::from_range(from..self.at)
    }

    pub(super) fn skip_space(&mut self) {
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

    /// The next token, with names that begin rules not told apart yet.
    fn token(&mut self) -> Option<Result<Spanned<'t>, GrammarError>> {
        self.skip_space();
        let start = self.at;
        let first = self.peek()?;
        let token = match first {
            '"' => self.literal(),
            '[' => self.class(),
            '{' => self.count(),
            '<' | '!' if self.dialect == GbnfDialect::LlamaCpp => self.token_reference(),
            c if self.dialect.is_name(c) => self.name(),
            _ => self.mark(first),
        };
        let counted = matches!(token, Ok(Token::Count(_)));
        if counted && self.counted && self.dialect == GbnfDialect::XGrammar {
            let error = GrammarError::syntax("a count right after another one");
            return Some(Err(error
                .at(self.source(), self.here(start), "")
                .with_hint("a repeat of a repeat is written in parentheses: `(\"a\"+)+`")));
        }
        self.counted = counted;
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
            '.' if self.dialect == GbnfDialect::LlamaCpp => Ok(Token::Class(any_character())),
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
                let ahead = self.dialect == GbnfDialect::XGrammar && self.eat("=");
                Ok(if ahead { Token::Ahead } else { Token::Open })
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

    fn name(&mut self) -> Result<Token<'t>, GrammarError> {
        let (start, rest) = (self.at, self.rest());
        let name = &rest[..rest.find(|c| !self.dialect.is_name(c)).unwrap_or(rest.len())];
        self.at += name.len();
        if let Some(call) = self.extension(name)? {
            return Ok(Token::Macro(Box::new(call)));
        }
        if self.dialect == GbnfDialect::LlamaCpp {
            return Ok(Token::Name(name));
        }
        let error = |lexer: &Self, message: String| {
            GrammarError::syntax(message).at(lexer.source(), lexer.here(start), "")
        };
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            let error = error(self, format!("{} is no name: it begins with a digit", quoted(name)));
            return Err(error.with_hint("text to be matched is written in double quotes"));
        }
        if name.bytes().all(|byte| byte == b'.') {
            let error = error(self, format!("{} is no name", quoted(name)));
            return Err(error.with_hint("any character is `[^]` in XGrammar's EBNF"));
        }
        if let Some(call) = self.call(name, start)? {
            return Ok(Token::Macro(Box::new(call)));
        }
        self.options_of_rule(name)?;
        Ok(Token::Name(name))
    }

    fn count(&mut self) -> Result<Token<'t>, GrammarError> {
        let start = self.at;
        self.at += 1;
        self.skip_space();
        let least = self.number()?;
        self.skip_space();
        let most = if self.eat(",") {
            self.skip_space();
            // XGrammar prints `{2, -1}` for `{2,}`.
            let open_end = self.dialect == GbnfDialect::XGrammar && least.is_some() && self.eat("-1");
            let most = if open_end { None } else { self.number()? };
            self.skip_space();
            let none = least.is_none() && (most.is_none() || self.dialect == GbnfDialect::XGrammar);
            if none { None } else { Some(most) }
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
                .with_hint(match self.dialect {
                    GbnfDialect::LlamaCpp => {
                        "counts are `{m}`, `{m,}`, `{,n}` and `{m,n}`; a literal brace is `\"{\"`"
                    }
                    GbnfDialect::XGrammar => {
                        "counts are `{m}`, `{m,}` and `{m,n}`; a literal brace is `\"{\"`"
                    }
                }));
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
        let limit = LimitExceeded::new(Budget::Repeat, "repeats in a count", as_index(self.max_count));
        Err(GrammarError::limit(limit)
            .at(self.source(), self.here(start), "")
            .with_hint("`*`, `+` and `{m,}` have no upper end; the budget is `Limits::repeat`"))
    }

    pub(super) fn note_lines(&mut self, start: usize) {
        if self.multiline.is_none() && self.text[start..self.at].contains('\n') {
            self.multiline = Some(Span::from_range(start..self.at));
        }
    }

    pub(super) fn unterminated(&self, start: usize, what: &str, closing: char) -> GrammarError {
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

pub(super) fn any_character() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}
