//! Bodies of definitions: choices, sequences, counts, and their parts.

use crate::grammar::source::{Source, Span};

use super::{
    ast::{Expr, Kind},
    lexer::{Token, read_count},
    parser::{Parsed, Parser},
};

impl<'t> Parser<'t, '_> {
    /// Reads `a | b`.
    pub(super) fn choice(&mut self) -> Parsed<Expr<'t>> {
        let start = self.span();
        let mut parts = vec![self.alternative()?];
        while self.eat("|") {
            parts.push(self.alternative()?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Ok(Expr { kind: Kind::Choice(parts), span: self.from(start) })
    }

    /// Reads `a b & c -> name`.
    fn alternative(&mut self) -> Parsed<Expr<'t>> {
        let start = self.span();
        let mut parts = vec![self.sequence()?];
        while self.eat("&") {
            parts.push(self.sequence()?);
        }
        if self.eat("->") {
            self.name("the name of an alias")?;
        }
        if let Some(Token::Keyword("if")) = self.peek() {
            return Err(self.parametric());
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Ok(Expr { kind: Kind::Both(parts), span: self.from(start) })
    }

    fn sequence(&mut self) -> Parsed<Expr<'t>> {
        let start = self.span();
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None | Some(Token::Newline | Token::Keyword("if")) => break,
                Some(Token::Mark("|" | "&" | "->" | ")" | "]" | "}" | ",")) => break,
                Some(_) => parts.push(self.repeated()?),
            }
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let span = if parts.is_empty() { Span::new(start.start, start.start) } else { self.from(start) };
        Ok(Expr { kind: Kind::Sequence(parts), span })
    }

    fn repeated(&mut self) -> Parsed<Expr<'t>> {
        let start = self.span();
        let part = self.negated()?;
        let count = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(&Token::Count(least, most)), _) => {
                self.at += 1;
                Some((least, most))
            }
            (Some(Token::Mark("~")), Some((Token::Number(_), _))) => {
                self.at += 1;
                Some(self.times()?)
            }
            _ => None,
        };
        let Some((least, most)) = count else { return Ok(part) };
        if let Some(Token::Count(..)) = self.peek() {
            return Err(self
                .error(self.span(), "a count right after another one")
                .with_hint("repeats of repeats are written in brackets: `(a*)?`; none is lazy here"));
        }
        Ok(Expr { kind: Kind::Repeat(Box::new(part), least, most), span: self.from(start) })
    }

    /// Reads `3` or `3..5`, behind a `~`.
    fn times(&mut self) -> Parsed<(u32, Option<u32>)> {
        let start = self.span();
        let least = self.number()?;
        let most = if self.eat("..") { self.number()? } else { least };
        if most < least {
            return Err(self.error(self.from(start), "a count whose greatest is less than its least"));
        }
        Ok((least, Some(most)))
    }

    fn number(&mut self) -> Parsed<u32> {
        let span = self.span();
        let Some(&Token::Number(written)) = self.peek() else { return Err(self.unexpected("a number")) };
        self.at += 1;
        read_count(written, self.limits).map_err(|error| error.at(Source::new(self.text), span, ""))
    }

    fn negated(&mut self) -> Parsed<Expr<'t>> {
        let start = self.span();
        let mut negations = 0_usize;
        while self.eat("~") {
            negations += 1;
        }
        let mut part = self.atom()?;
        // A double negation is the identity, except that invalid UTF-8 is in no complement; so at most two
        // are kept.
        for _ in 0..negations.min(2 - negations % 2) {
            part = Expr { kind: Kind::Not(Box::new(part)), span: self.from(start) };
        }
        Ok(part)
    }

    pub(super) fn atom(&mut self) -> Parsed<Expr<'t>> {
        let span = self.span();
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected("a part of a body")) };
        self.at += 1;
        let kind = match token {
            Token::Mark("(") => {
                let inside = self.choice()?;
                self.expect(")", "after a group")?;
                return Ok(inside);
            }
            Token::Mark("[") => {
                let inside = self.choice()?;
                self.expect("]", "after an optional part")?;
                Kind::Repeat(Box::new(inside), 0, Some(1))
            }
            Token::Text { text, ignore_case } => self.text_or_range(text, ignore_case, span)?,
            Token::Regex { body, flags } => Kind::Regex { body, flags },
            Token::Name(name) => self.use_of(name)?,
            Token::Json { word: "json", value } => Kind::Json(value),
            Token::Json { word: "regex", value } => Kind::Structured(value),
            Token::Keyword("lark") => {
                self.expect("{", "after `%lark`")?;
                let items = self.items()?;
                self.expect("}", "after a nested grammar")?;
                Kind::Nested(items)
            }
            Token::Special(name) => Kind::Special(name),
            Token::Reference(name) => Kind::Reference(name),
            _ => {
                self.at -= 1;
                let error = self.unexpected("a part of a body");
                return Err(match token {
                    Token::Count(..) => error.with_hint("a count stands behind what is repeated"),
                    Token::Mark(":") => error.with_hint("a definition begins on a line of its own"),
                    _ => error,
                });
            }
        };
        Ok(Expr { kind, span: self.from(span) })
    }

    fn text_or_range(&mut self, text: String, ignore_case: bool, span: Span) -> Parsed<Kind<'t>> {
        if !self.eat("..") {
            return Ok(Kind::Text { text, ignore_case });
        }
        let Some(Token::Text { text: last, ignore_case: last_case }) = self.peek().cloned() else {
            return Err(self.unexpected("the last character of a range, as a literal,"));
        };
        self.at += 1;
        let whole = self.from(span);
        let one = |text: &str| {
            let mut chars = text.chars();
            chars.next().filter(|_| chars.next().is_none())
        };
        match (one(&text), one(&last)) {
            _ if ignore_case || last_case => Err(self.error(whole, "a range has no flags")),
            (Some(first), Some(last)) if first <= last => Ok(Kind::Range(first, last)),
            (Some(_), Some(_)) => Err(self.error(whole, "a range from a greater character to a smaller one")),
            _ => Err(self.error(whole, "the ends of a range are one character each")),
        }
    }

    fn use_of(&mut self, name: &'t str) -> Parsed<Kind<'t>> {
        if self.peek() == Some(&Token::Mark("::")) {
            return Err(self.parametric());
        }
        if !self.eat("{") {
            return Ok(Kind::Name(name));
        }
        let mut arguments = vec![self.choice()?];
        while self.eat(",") {
            arguments.push(self.choice()?);
        }
        self.expect("}", "after the arguments of a template")?;
        Ok(Kind::Template(name, arguments))
    }
}
