//! Bodies of definitions: choices, sequences, counts, and their parts.

use crate::grammar::source::{Source, Span};

use super::{
    ast::{ExprKind, LarkExpr},
    lexer::{LarkToken, read_count},
    parser::{LarkParser, ParseResult},
};

impl<'t> LarkParser<'t, '_> {
    /// Reads `a | b`.
    pub(super) fn choice(&mut self) -> ParseResult<LarkExpr<'t>> {
        let start = self.span();
        let mut parts = vec![self.alternative()?];
        while self.eat("|") {
            parts.push(self.alternative()?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Ok(LarkExpr { kind: ExprKind::Choice(parts), span: self.from(start) })
    }

    /// Reads `a b & c -> name`.
    fn alternative(&mut self) -> ParseResult<LarkExpr<'t>> {
        let start = self.span();
        let mut parts = vec![self.sequence()?];
        while self.eat("&") {
            parts.push(self.sequence()?);
        }
        if self.eat("->") {
            self.name("the name of an alias")?;
        }
        if let Some(LarkToken::Keyword("if")) = self.peek() {
            return Err(self.parametric());
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Ok(LarkExpr { kind: ExprKind::Both(parts), span: self.from(start) })
    }

    fn sequence(&mut self) -> ParseResult<LarkExpr<'t>> {
        let start = self.span();
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None | Some(LarkToken::Newline | LarkToken::Keyword("if")) => break,
                Some(LarkToken::Mark("|" | "&" | "->" | ")" | "]" | "}" | ",")) => break,
                Some(_) => parts.push(self.repeated()?),
            }
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let span = if parts.is_empty() { Span::new(start.start, start.start) } else { self.from(start) };
        Ok(LarkExpr { kind: ExprKind::Sequence(parts), span })
    }

    fn repeated(&mut self) -> ParseResult<LarkExpr<'t>> {
        let start = self.span();
        let part = self.negated()?;
        let count = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(&LarkToken::Count(least, most)), _) => {
                self.at += 1;
                Some((least, most))
            }
            (Some(LarkToken::Mark("~")), Some((LarkToken::Number(_), _))) => {
                self.at += 1;
                Some(self.times()?)
            }
            _ => None,
        };
        let Some((least, most)) = count else { return Ok(part) };
        if let Some(LarkToken::Count(..)) = self.peek() {
            return Err(self
                .error(self.span(), "a count right after another one")
                .with_hint("repeats of repeats are written in brackets: `(a*)?`; none is lazy here"));
        }
        Ok(LarkExpr { kind: ExprKind::Repeat(Box::new(part), least, most), span: self.from(start) })
    }

    /// Reads `3` or `3..5`, behind a `~`.
    fn times(&mut self) -> ParseResult<(u32, Option<u32>)> {
        let start = self.span();
        let least = self.number()?;
        let most = if self.eat("..") { self.number()? } else { least };
        if most < least {
            return Err(self.error(self.from(start), "a count whose greatest is less than its least"));
        }
        Ok((least, Some(most)))
    }

    fn number(&mut self) -> ParseResult<u32> {
        let span = self.span();
        let Some(&LarkToken::Number(written)) = self.peek() else { return Err(self.unexpected("a number")) };
        self.at += 1;
        read_count(written, self.limits).map_err(|error| error.at(Source::new(self.text), span, ""))
    }

    fn negated(&mut self) -> ParseResult<LarkExpr<'t>> {
        let start = self.span();
        let mut negations = 0_usize;
        while self.eat("~") {
            negations += 1;
        }
        let mut part = self.atom()?;
        // A double negation is the identity, except that invalid UTF-8 is in no complement; so at most two
        // are kept.
        for _ in 0..negations.min(2 - negations % 2) {
            part = LarkExpr { kind: ExprKind::Not(Box::new(part)), span: self.from(start) };
        }
        Ok(part)
    }

    pub(super) fn atom(&mut self) -> ParseResult<LarkExpr<'t>> {
        let span = self.span();
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected("a part of a body")) };
        self.at += 1;
        let kind = match token {
            LarkToken::Mark("(") => {
                let inside = self.choice()?;
                self.expect(")", "after a group")?;
                return Ok(inside);
            }
            LarkToken::Mark("[") => {
                let inside = self.choice()?;
                self.expect("]", "after an optional part")?;
                ExprKind::Repeat(Box::new(inside), 0, Some(1))
            }
            LarkToken::Text { text, ignore_case } => self.text_or_range(text, ignore_case, span)?,
            LarkToken::Regex { body, flags } => ExprKind::Regex { body, flags },
            LarkToken::Name(name) => self.use_of(name)?,
            LarkToken::Json { word: "json", value } => ExprKind::Json(value),
            LarkToken::Json { word: "regex", value } => ExprKind::Structured(value),
            LarkToken::Keyword("lark") => {
                self.expect("{", "after `%lark`")?;
                let items = self.items()?;
                self.expect("}", "after a nested grammar")?;
                ExprKind::Nested(items)
            }
            LarkToken::Special(name) => ExprKind::Special(name),
            LarkToken::Reference(name) => ExprKind::Reference(name),
            _ => {
                self.at -= 1;
                let error = self.unexpected("a part of a body");
                return Err(match token {
                    LarkToken::Count(..) => error.with_hint("a count stands behind what is repeated"),
                    LarkToken::Mark(":") => error.with_hint("a definition begins on a line of its own"),
                    _ => error,
                });
            }
        };
        Ok(LarkExpr { kind, span: self.from(span) })
    }

    fn text_or_range(&mut self, text: String, ignore_case: bool, span: Span) -> ParseResult<ExprKind<'t>> {
        if !self.eat("..") {
            return Ok(ExprKind::Text { text, ignore_case });
        }
        let Some(LarkToken::Text { text: last, ignore_case: last_case }) = self.peek().cloned() else {
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
            (Some(first), Some(last)) if first <= last => Ok(ExprKind::Range(first, last)),
            (Some(_), Some(_)) => Err(self.error(whole, "a range from a greater character to a smaller one")),
            _ => Err(self.error(whole, "the ends of a range are one character each")),
        }
    }

    fn use_of(&mut self, name: &'t str) -> ParseResult<ExprKind<'t>> {
        if self.peek() == Some(&LarkToken::Mark("::")) {
            return Err(self.parametric());
        }
        if !self.eat("{") {
            return Ok(ExprKind::Name(name));
        }
        let mut arguments = vec![self.choice()?];
        while self.eat(",") {
            arguments.push(self.choice()?);
        }
        self.expect("}", "after the arguments of a template")?;
        Ok(ExprKind::Template(name, arguments))
    }
}
