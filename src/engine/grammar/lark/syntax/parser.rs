//! Tokens of Lark -> its tree, by recursive descent.
//!
//! It is written by hand and not by LALRPOP, because the end of a definition depends on lines, and most
//! mistakes are explained best by what was about to come. The lexer bounds how deep brackets nest, so
//! recursion is bounded too.

use super::{
    Ending, ExprKind, LarkDefinition, LarkExpr, LarkItem, is_terminal,
    lexer::{LarkToken, LarkTokens, read_count, split},
};
use crate::{
    grammar::{
        errors::{GrammarError, quoted},
        source::{Source, Span},
    },
    limits::Limits,
};

type ParseResult<T> = Result<T, GrammarError>;

/// Reads a text of at most 4 GiB. Linear.
pub(in super::super) fn parse<'t>(text: &'t str, limits: &Limits) -> ParseResult<Vec<LarkItem<'t>>> {
    let tokens = split(text, limits)?;
    let mut parser = LarkParser { text, tokens, at: 0, limits };
    parser.items()
}

struct LarkParser<'t, 'l> {
    pub(super) text: &'t str,
    pub(super) tokens: LarkTokens<'t>,
    pub(super) at: usize,
    pub(super) limits: &'l Limits,
}

impl<'t> LarkParser<'t, '_> {
    pub(super) fn peek(&self) -> Option<&LarkToken<'t>> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    /// The place of the next token.
    pub(super) fn span(&self) -> Span {
        let end = Span::from_range(self.text.len()..self.text.len());
        self.tokens.get(self.at).map_or(end, |&(_, span)| span)
    }

    /// The span from `start` to the end of the last token.
    pub(super) fn from(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).map_or(start, |at| self.tokens[at].1);
        Span::new(start.start, last.end)
    }

    pub(super) fn eat(&mut self, mark: &'static str) -> bool {
        let found = self.peek() == Some(&LarkToken::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, mark: &'static str, after: &str) -> ParseResult<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}` {after}"))) }
    }

    pub(super) fn unexpected(&self, wanted: &str) -> GrammarError {
        let found = self.peek().map_or_else(|| "the end of the grammar".to_owned(), LarkToken::describe);
        GrammarError::syntax(format!("{found} where {wanted} must come")).at(
            Source::new(self.text),
            self.span(),
            "",
        )
    }

    pub(super) fn error(&self, span: Span, message: impl Into<String>) -> GrammarError {
        GrammarError::syntax(message).at(Source::new(self.text), span, "")
    }

    fn refused(&self, span: Span, what: &str, hint: &str) -> GrammarError {
        GrammarError::unsupported(format!("{what} not supported"))
            .at(Source::new(self.text), span, "")
            .with_hint(hint)
    }

    pub(super) fn name(&mut self, what: &str) -> ParseResult<(&'t str, Span)> {
        match self.tokens.get(self.at) {
            Some(&(LarkToken::Name(name), span)) => {
                self.at += 1;
                Ok((name, span))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Reads definitions and statements up to the end, or to a `}`.
    pub(super) fn items(&mut self) -> ParseResult<Vec<LarkItem<'t>>> {
        let mut items = Vec::new();
        loop {
            while self.peek() == Some(&LarkToken::Newline) {
                self.at += 1;
            }
            match self.peek() {
                None | Some(LarkToken::Mark("}")) => return Ok(items),
                Some(_) => items.push(self.item()?),
            }
            if !matches!(self.peek(), None | Some(LarkToken::Newline | LarkToken::Mark("}"))) {
                return Err(self.unexpected("the end of the line").with_hint(
                    "a line goes on in the next one with a `|` at its beginning, or in brackets",
                ));
            }
        }
    }

    fn item(&mut self) -> ParseResult<LarkItem<'t>> {
        let start = self.span();
        match self.peek() {
            Some(&LarkToken::Keyword(word)) => {
                self.at += 1;
                self.statement(word, start)
            }
            Some(&LarkToken::Json { word: "llguidance" | "grammar_options", value }) => {
                self.at += 1;
                Ok(LarkItem::Options(value))
            }
            _ => self.definition().map(LarkItem::Define),
        }
    }

    fn statement(&mut self, word: &'t str, start: Span) -> ParseResult<LarkItem<'t>> {
        match word {
            "ignore" => self.choice().map(LarkItem::Ignore),
            "import" => self.import(),
            "declare" => Err(self.refused(
                start,
                "`%declare` names terminals that only code around a lexer can find, and is",
                "give the terminal a body: `NAME: /regex/`",
            )),
            "override" | "extend" => Err(self.refused(
                start,
                &format!("`%{word}` changes a definition that was imported, and is"),
                "imports are those of `common`: define a terminal of another name",
            )),
            _ => Err(self.error(start, format!("no statement {}", quoted(&format!("%{word}")))).with_hint(
                "there are `%ignore`, `%import` and `%llguidance`; in bodies `%json`, `%regex` and `%lark`",
            )),
        }
    }

    fn import(&mut self) -> ParseResult<LarkItem<'t>> {
        let start = self.span();
        let mut path: Vec<(&'t str, Span)> = Vec::new();
        let relative = self.eat(".");
        loop {
            path.push(self.name("the name of a module or of a terminal")?);
            if !self.eat(".") {
                break;
            }
        }
        let mut names = Vec::new();
        if self.eat("(") {
            loop {
                let (name, span) = self.name("the name of a terminal")?;
                names.push((name, span, name));
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")", "after the names to import")?;
        } else if let Some((name, span)) = path.pop() {
            let local = if self.eat("->") { self.name("the name to import it as")?.0 } else { name };
            names.push((name, span, local));
        }
        let module_span = path.last().map_or(start, |&(_, last)| Span::new(start.start, last.end));
        let names_of: Vec<&str> = path.iter().map(|&(name, _)| name).collect();
        let module = format!("{}{}", if relative { "." } else { "" }, names_of.join("."));
        Ok(LarkItem::Import { module, module_span, names })
    }

    fn definition(&mut self) -> ParseResult<LarkDefinition<'t>> {
        // The marks `!` and `?` shape the tree of a parser, and not the language.
        while matches!(self.peek(), Some(LarkToken::Mark("!") | LarkToken::Count(0, Some(1)))) {
            self.at += 1;
        }
        let (name, span) = self.name("a definition").map_err(|error| {
            error.with_hint("a definition is written `name: body`; its next line begins with `|`")
        })?;
        let mut definition = LarkDefinition {
            name,
            span,
            parameters: Vec::new(),
            priority: None,
            ending: None,
            capture: None,
            without_effect: Vec::new(),
            body: LarkExpr { kind: ExprKind::Sequence(Vec::new()), span },
        };
        if self.peek() == Some(&LarkToken::Mark("::")) {
            return Err(self.parametric());
        }
        if self.eat("{") {
            if is_terminal(name) {
                return Err(self.refused(span, "templates of terminals are", "only rules can be templates"));
            }
            loop {
                definition.parameters.push(self.name("the name of a parameter")?.0);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("}", "after the parameters of a template")?;
        }
        if self.eat(".") {
            definition.priority = Some(self.span());
            match self.peek() {
                Some(LarkToken::Number(_)) => self.at += 1,
                _ => return Err(self.unexpected("a priority, which is a number,")),
            }
        }
        if self.eat("[") {
            self.options(&mut definition)?;
        }
        if self.peek() == Some(&LarkToken::Mark("::")) {
            return Err(self.parametric());
        }
        self.expect(":", &format!("after {}", quoted(name)))
            .map_err(|error| error.with_hint("a definition is written `name: body`"))?;
        definition.body = self.choice()?;
        Ok(definition)
    }

    fn parametric(&self) -> GrammarError {
        self.refused(
            self.span(),
            "rules with a number as their parameter (`name::_`) are",
            "a list of different parts in any order is a JSON Schema's: `%json`",
        )
    }

    fn options(&mut self, definition: &mut LarkDefinition<'t>) -> ParseResult<()> {
        while self.peek() != Some(&LarkToken::Mark("]")) {
            let (option, span) = self.name("the name of an option")?;
            match option {
                "lazy" => self.ending(definition, Ending::Lazy, span)?,
                "capture" => definition.capture = Some(self.capture_name(definition.name)?),
                "stop_capture" => {
                    self.expect("=", "after `stop_capture`")?;
                    self.value_of(option)?;
                    definition.without_effect.push(("stop_capture", span));
                }
                "temperature" => {
                    self.expect("=", "after `temperature`")?;
                    while matches!(self.peek(), Some(LarkToken::Number(_) | LarkToken::Mark("."))) {
                        self.at += 1;
                    }
                    definition.without_effect.push(("temperature", span));
                }
                "suffix" | "stop" => {
                    self.expect("=", &format!("after `{option}`"))?;
                    let value = self.value_of(option)?;
                    let ending = if option == "stop" { Ending::Stop(value) } else { Ending::Suffix(value) };
                    self.ending(definition, ending, span)?;
                }
                "max_tokens" => {
                    return Err(self.refused(
                        span,
                        "`max_tokens` counts tokens, where a grammar here is about text, and is",
                        "bound the characters instead, as in `/.{0,80}/`",
                    ));
                }
                _ => {
                    return Err(self.error(span, format!("no option {}", quoted(option))).with_hint(
                        "the options are `lazy`, `suffix=..`, `stop=..`, `capture` and `temperature=..`",
                    ));
                }
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]", "after the options of a rule")
    }

    /// Reads the name under which a rule is captured: its own, or a literal.
    fn capture_name(&mut self, rule: &str) -> ParseResult<String> {
        if !self.eat("=") {
            return Ok(rule.to_owned());
        }
        match self.peek().cloned() {
            Some(LarkToken::Text { text, ignore_case: false }) if !text.is_empty() => {
                self.at += 1;
                Ok(text)
            }
            _ => Err(self
                .unexpected("the name of a capture, as a literal,")
                .with_hint("a capture is written `rule[capture]` or `rule[capture=\"name\"]`")),
        }
    }

    fn ending(&self, definition: &mut LarkDefinition<'t>, ending: Ending<'t>, span: Span) -> ParseResult<()> {
        match &definition.ending {
            None => definition.ending = Some((ending, span)),
            // The other options imply `lazy`.
            Some(_) if matches!(ending, Ending::Lazy) => {}
            Some((Ending::Lazy, _)) => definition.ending = Some((ending, span)),
            Some((_, first)) => {
                return Err(self.error(span, "a rule has one of `suffix` and `stop`").at(
                    Source::new(self.text),
                    *first,
                    "the other one",
                ));
            }
        }
        Ok(())
    }

    /// Reads the value of an option: a literal, a regular expression or a terminal.
    fn value_of(&mut self, option: &str) -> ParseResult<LarkExpr<'t>> {
        match self.peek() {
            Some(LarkToken::Text { .. } | LarkToken::Regex { .. } | LarkToken::Name(_)) => self.atom(),
            _ => Err(self.unexpected(&format!("the value of `{option}`"))),
        }
    }
}

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
