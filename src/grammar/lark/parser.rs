//! Tokens of Lark -> its tree, by recursive descent.
//!
//! By hand and not by LALRPOP: where a definition ends depends on lines, and most mistakes are told best
//! from what was about to come. The lexer has bounded how deep brackets nest, so recursion is bounded too.

use crate::{
    grammar::{
        error::{GrammarError, quoted},
        source::{Source, Span},
    },
    limits::Limits,
};

use super::{
    ast::{Definition, Ending, Expr, Item, Kind, is_terminal},
    lexer::{Token, Tokens, read_count, split},
};

type Parsed<T> = Result<T, GrammarError>;

/// Reads a text of at most 4 GiB. Linear.
pub(super) fn parse<'t>(text: &'t str, limits: &Limits) -> Parsed<Vec<Item<'t>>> {
    let tokens = split(text, limits)?;
    let mut parser = Parser { text, tokens, at: 0, limits };
    parser.items()
}

struct Parser<'t, 'l> {
    text: &'t str,
    tokens: Tokens<'t>,
    at: usize,
    limits: &'l Limits,
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Option<&Token<'t>> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    /// Where the next token is.
    fn span(&self) -> Span {
        let end = Span::from_range(self.text.len()..self.text.len());
        self.tokens.get(self.at).map_or(end, |&(_, span)| span)
    }

    /// From `start` to the end of the last token.
    fn from(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).map_or(start, |at| self.tokens[at].1);
        Span::new(start.start, last.end)
    }

    fn eat(&mut self, mark: &'static str) -> bool {
        let found = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &'static str, after: &str) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}` {after}"))) }
    }

    fn unexpected(&self, wanted: &str) -> GrammarError {
        let found = self.peek().map_or_else(|| "the end of the grammar".to_owned(), Token::describe);
        GrammarError::syntax(format!("{found} where {wanted} must come")).at(
            Source::new(self.text),
            self.span(),
            "",
        )
    }

    fn error(&self, span: Span, message: impl Into<String>) -> GrammarError {
        GrammarError::syntax(message).at(Source::new(self.text), span, "")
    }

    fn refused(&self, span: Span, what: &str, hint: &str) -> GrammarError {
        GrammarError::unsupported(format!("{what} not supported"))
            .at(Source::new(self.text), span, "")
            .with_hint(hint)
    }

    fn name(&mut self, what: &str) -> Parsed<(&'t str, Span)> {
        match self.tokens.get(self.at) {
            Some(&(Token::Name(name), span)) => {
                self.at += 1;
                Ok((name, span))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Definitions and statements up to the end, or to a `}`.
    fn items(&mut self) -> Parsed<Vec<Item<'t>>> {
        let mut items = Vec::new();
        loop {
            while self.peek() == Some(&Token::Newline) {
                self.at += 1;
            }
            match self.peek() {
                None | Some(Token::Mark("}")) => return Ok(items),
                Some(_) => items.push(self.item()?),
            }
            if !matches!(self.peek(), None | Some(Token::Newline | Token::Mark("}"))) {
                return Err(self.unexpected("the end of the line").with_hint(
                    "a line goes on in the next one with a `|` at its beginning, or in brackets",
                ));
            }
        }
    }

    fn item(&mut self) -> Parsed<Item<'t>> {
        let start = self.span();
        match self.peek() {
            Some(&Token::Keyword(word)) => {
                self.at += 1;
                self.statement(word, start)
            }
            Some(&Token::Json { word: "llguidance" | "grammar_options", value }) => {
                self.at += 1;
                Ok(Item::Options(value))
            }
            _ => self.definition().map(Item::Define),
        }
    }

    fn statement(&mut self, word: &'t str, start: Span) -> Parsed<Item<'t>> {
        match word {
            "ignore" => self.choice().map(Item::Ignore),
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

    fn import(&mut self) -> Parsed<Item<'t>> {
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
        Ok(Item::Import { module, module_span, names })
    }

    fn definition(&mut self) -> Parsed<Definition<'t>> {
        while matches!(self.peek(), Some(Token::Mark("!") | Token::Count(0, Some(1)))) {
            self.at += 1;
        }
        let (name, span) = self.name("a definition").map_err(|error| {
            error.with_hint("a definition is written `name: body`; its next line begins with `|`")
        })?;
        let mut definition = Definition {
            name,
            span,
            parameters: Vec::new(),
            priority: None,
            ending: None,
            without_effect: Vec::new(),
            body: Expr { kind: Kind::Sequence(Vec::new()), span },
        };
        if self.peek() == Some(&Token::Mark("::")) {
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
                Some(Token::Number(_)) => self.at += 1,
                _ => return Err(self.unexpected("a priority, which is a number,")),
            }
        }
        if self.eat("[") {
            self.options(&mut definition)?;
        }
        if self.peek() == Some(&Token::Mark("::")) {
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

    fn options(&mut self, definition: &mut Definition<'t>) -> Parsed<()> {
        while self.peek() != Some(&Token::Mark("]")) {
            let (option, span) = self.name("the name of an option")?;
            match option {
                "lazy" => self.ending(definition, Ending::Lazy, span)?,
                "capture" | "stop_capture" => {
                    if self.eat("=") {
                        self.value_of(option)?;
                    }
                    definition.without_effect.push(("capture", span));
                }
                "temperature" => {
                    self.expect("=", "after `temperature`")?;
                    while matches!(self.peek(), Some(Token::Number(_) | Token::Mark("."))) {
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

    fn ending(&self, definition: &mut Definition<'t>, ending: Ending<'t>, span: Span) -> Parsed<()> {
        match &definition.ending {
            None => definition.ending = Some((ending, span)),
            // `lazy` says nothing that the other two do not.
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

    /// A literal, a regular expression or a terminal, as the value of an option.
    fn value_of(&mut self, option: &str) -> Parsed<Expr<'t>> {
        match self.peek() {
            Some(Token::Text { .. } | Token::Regex { .. } | Token::Name(_)) => self.atom(),
            _ => Err(self.unexpected(&format!("the value of `{option}`"))),
        }
    }

    /// `a | b`.
    fn choice(&mut self) -> Parsed<Expr<'t>> {
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

    /// `a b & c -> name`.
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

    /// `3` or `3..5`, after a `~`.
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
        // Twice is not at all, but that invalid UTF-8 is in no complement.
        for _ in 0..negations.min(2 - negations % 2) {
            part = Expr { kind: Kind::Not(Box::new(part)), span: self.from(start) };
        }
        Ok(part)
    }

    fn atom(&mut self) -> Parsed<Expr<'t>> {
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
