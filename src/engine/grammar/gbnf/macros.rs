//! XGrammar's additions to GBNF: macros, options of rules, and the macros `TagDispatch` and `Regex` as
//! expressions.

use regex_syntax::hir::Hir;

use super::{Actions, Failure, GbnfDialect, lexer::Lexer, user};
use crate::{
    grammar::{
        GrammarError, Pattern, errors::quoted, extension::Extension, regex, regular::Language, source::Span,
    },
    ids::ExprId,
    limits::LimitExceeded,
};

/// Limit on the depth of tuples in the arguments of a macro.
const MOST_NESTED: usize = 8;

/// A use of a macro.
#[derive(Debug, Clone)]
pub(super) struct Macro<'t> {
    pub(super) name: &'t str,
    pub(super) arguments: Vec<(MacroValue<'t>, Span)>,
    pub(super) named: Vec<(&'t str, MacroValue<'t>, Span)>,
}

/// An argument of a macro.
#[derive(Debug, Clone)]
pub(super) enum MacroValue<'t> {
    Text(String),
    Number,
    Flag(bool),
    Name(&'t str),
    Tuple(Vec<(MacroValue<'t>, Span)>),
}

impl<'t> Lexer<'t> {
    /// Reads the use of a macro behind its name, if the name is one.
    pub(super) fn call(&mut self, name: &'t str, start: usize) -> Result<Option<Macro<'t>>, GrammarError> {
        if let "Token" | "ExcludeToken" | "TokenTagDispatch" = name {
            let message = format!("the macro {} is about token ids, and is not supported", quoted(name));
            return Err(GrammarError::unsupported(message)
                .at(self.source(), self.here(start), "a grammar here is about text, whatever its tokens are")
                .with_hint("write the token's text as a literal: `\"text\"`"));
        }
        if !matches!(name, "TagDispatch" | "Regex") {
            return Ok(None);
        }
        self.skip_space();
        self.arguments(name).map(Some)
    }

    /// Reads arguments in parentheses behind a name.
    pub(super) fn arguments(&mut self, name: &'t str) -> Result<Macro<'t>, GrammarError> {
        if !self.eat("(") {
            return Err(self.expected(&format!("`(` after the macro {}", quoted(name))));
        }
        let mut call = Macro { name, arguments: Vec::new(), named: Vec::new() };
        loop {
            self.skip_space();
            if self.eat(")") {
                return Ok(call);
            }
            let from = self.at;
            let value = self.value(0)?;
            self.skip_space();
            match value {
                MacroValue::Name(name) if self.eat("=") => {
                    self.skip_space();
                    let value = self.value(0)?;
                    call.named.push((name, value, self.here(from)));
                    self.skip_space();
                }
                value => call.arguments.push((value, self.here(from))),
            }
            if !self.eat(",") && !self.rest().starts_with(')') {
                return Err(self.expected("`,` or `)` after an argument"));
            }
        }
    }

    /// Reads a value: a text in quotes, a tuple, a number, a flag or a name.
    fn value(&mut self, depth: usize) -> Result<MacroValue<'t>, GrammarError> {
        let start = self.at;
        match self.peek() {
            Some('"') => match self.literal()? {
                super::lexer::Token::Literal(bytes) => {
                    Ok(MacroValue::Text(String::from_utf8_lossy(&bytes).into_owned()))
                }
                _ => Err(self.expected("a text")),
            },
            Some('(') if depth < MOST_NESTED => {
                self.at += 1;
                let mut parts = Vec::new();
                loop {
                    self.skip_space();
                    if self.eat(")") {
                        return Ok(MacroValue::Tuple(parts));
                    }
                    let from = self.at;
                    let part = self.value(depth + 1)?;
                    parts.push((part, self.here(from)));
                    self.skip_space();
                    if !self.eat(",") && !self.rest().starts_with(')') {
                        return Err(self.expected("`,` or `)` in a tuple"));
                    }
                }
            }
            Some(c) if c.is_ascii_digit() => {
                let rest = self.rest();
                self.at += rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                Ok(MacroValue::Number)
            }
            Some(c) if self.dialect.is_name(c) => {
                let rest = self.rest();
                self.at += rest.find(|c| !self.dialect.is_name(c)).unwrap_or(rest.len());
                Ok(match &self.text[start..self.at] {
                    "true" => MacroValue::Flag(true),
                    "false" => MacroValue::Flag(false),
                    name => MacroValue::Name(name),
                })
            }
            _ => Err(self.expected("a text, a name, a number, `true`, `false` or a tuple")),
        }
    }

    fn expected(&self, what: &str) -> GrammarError {
        GrammarError::syntax(format!("{what} must come here")).at(self.source(), self.here(self.at), "")
    }

    /// Reads `[name=value, ..]` between the name of a rule and its `::=`. Anything else is left unread.
    pub(super) fn options_of_rule(&mut self, rule: &'t str) -> Result<(), GrammarError> {
        let rest = self.rest();
        let Some(end) = rest.strip_prefix('[').and_then(|inside| inside.find(']')) else { return Ok(()) };
        if !rest[end + 2..].trim_start_matches([' ', '\t']).starts_with("::=") {
            return Ok(());
        }
        let mut at = self.at + 1;
        for option in rest[1..=end].split(',') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            let span = Span::from_range(at..at + option.len());
            at += option.len() + 1;
            match name {
                "capture" => self.captured.push((rule, if value.is_empty() { rule } else { value })),
                "temperature" => self.without_effect.push((name, span)),
                "max_tokens" | "max_chars" => {
                    let message = format!("the option {} of rules is not supported", quoted(name));
                    return Err(GrammarError::unsupported(message)
                        .at(self.source(), span, "")
                        .with_hint("bound the characters by a count: `[a-z]{0,80}`"));
                }
                _ => {
                    return Err(GrammarError::syntax(format!("no option {}", quoted(name)))
                        .at(self.source(), span, "")
                        .with_hint("the options of rules are `capture` and `temperature`"));
                }
            }
        }
        self.at += end + 2;
        Ok(())
    }
}

impl GbnfDialect {
    /// True if the character may be in a name.
    pub(super) fn is_name(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || c == '.' && self == Self::XGrammar
    }

    /// The expression for any character.
    pub(super) fn any_character(self) -> &'static str {
        match self {
            Self::LlamaCpp => ".",
            Self::XGrammar => "[^]",
        }
    }
}

// Free text up to a tag is a regular language: the texts that end with their first tag or excluded string,
// if that is the wanted tag. So `TagDispatch` is exact for all tags, even where one is a part of another.

/// A `TagDispatch` as written in the grammar.
struct DispatchMacro<'m, 't> {
    tags: Vec<(&'m str, &'t str, Span)>,
    repeats: bool,
    excluded: Vec<&'m str>,
}

impl<'t> Actions<'t> {
    /// Translates a use of a macro or of an extension.
    pub(super) fn call(&mut self, start: u32, call: &Macro<'t>, end: u32) -> Result<ExprId, Failure<'t>> {
        let span = Span::new(start, end);
        match Extension::named(call.name) {
            Some(extension) => self.extension(extension, call, span),
            _ if call.name == "Regex" => self.regex(call, span),
            _ => self.tag_dispatch(call, span),
        }
    }

    pub(super) fn wrong(&self, span: Span, message: impl Into<String>, hint: &str) -> Failure<'t> {
        user(GrammarError::syntax(message).at(self.source, span, "").with_hint(hint))
    }

    fn regex(&mut self, call: &Macro<'t>, span: Span) -> Result<ExprId, Failure<'t>> {
        const HINT: &str = "it is written `Regex(\"expression\")`";
        let [(MacroValue::Text(expression), at)] = &call.arguments[..] else {
            return Err(self.wrong(span, "`Regex` takes one text", HINT));
        };
        for (name, value, span) in &call.named {
            match (*name, value) {
                ("json_string", MacroValue::Flag(false)) => {}
                ("json_string", MacroValue::Flag(true)) => {
                    return Err(user(
                        GrammarError::unsupported("`json_string=true` is not supported")
                            .at(self.source, *span, "")
                            .with_hint("a string of JSON with a `pattern` is a JSON Schema's"),
                    ));
                }
                _ => return Err(self.wrong(*span, format!("`Regex` takes no {}", quoted(name)), HINT)),
            }
        }
        // Places inside of a literal with escapes cannot be mapped back.
        let (source, at) = (self.source, *at);
        let (pattern, _) =
            regex::leaf(expression, "", &self.limits).map_err(|error| user(error.moved(source, |_| at)))?;
        self.pattern(pattern, span)
    }

    fn tag_dispatch(&mut self, call: &Macro<'t>, span: Span) -> Result<ExprId, Failure<'t>> {
        let dispatch = self.dispatch(call, span)?;
        let limits = self.limits.clone();
        let made = (|| {
            let texts = Language::texts(&limits)?;
            let ending = |text: &str| {
                let literal = Language::of(&Hir::literal(text.as_bytes()), &limits)?;
                Language::sequence(&[texts.clone(), literal], &limits)
            };
            let excluded =
                dispatch.excluded.iter().map(|text| ending(text)).collect::<Result<Vec<_>, _>>()?;
            let tags = dispatch.tags.iter().map(|(tag, ..)| ending(tag)).collect::<Result<Vec<_>, _>>()?;
            let any = Language::union(&[tags.clone(), excluded.clone()].concat(), &limits)?;
            let first = any.shortest();
            let refused = Language::union(&excluded, &limits)?;
            let heads = tags.iter().map(|tag| first.and(tag, &limits)?.minus(&refused, &limits));
            let heads = heads.collect::<Result<Vec<_>, _>>()?;
            let after = Language::sequence(&[any, texts.clone()], &limits)?;
            let free = texts.minus(&after, &limits)?.automaton(&limits)?;
            let heads = heads.iter().map(|head| head.automaton(&limits)).collect::<Result<Vec<_>, _>>()?;
            Ok((free, heads))
        })();
        let (free, heads) = made.map_err(|limit: LimitExceeded| self.limit(limit, span))?;
        let free = self.pattern(Pattern::automaton(free), span)?;
        let mut calls = Vec::with_capacity(heads.len());
        for (head, &(_, rule, at)) in heads.into_iter().zip(&dispatch.tags) {
            let head = self.pattern(Pattern::automaton(head), span)?;
            let rule = self.name(at.start, rule, at.end)?;
            calls.push(self.sequence(span.start, vec![head, rule], span.end)?);
        }
        if !dispatch.repeats {
            calls.push(free);
            return self.alternatives(span.start, calls, span.end);
        }
        let one = self.alternatives(span.start, calls, span.end)?;
        let calls = self.repeat(span.start, one, (0, None), span.end)?;
        self.sequence(span.start, vec![calls, free], span.end)
    }

    fn dispatch<'m>(&self, call: &'m Macro<'t>, span: Span) -> Result<DispatchMacro<'m, 't>, Failure<'t>> {
        const HINT: &str = "it is written `TagDispatch((\"tag\", rule), .., loop_after_dispatch=true, \
            excludes=(\"text\",))`";
        let mut found = DispatchMacro { tags: Vec::new(), repeats: true, excluded: Vec::new() };
        for (value, at) in &call.arguments {
            match value {
                MacroValue::Tuple(pair) => match &pair[..] {
                    [(MacroValue::Text(tag), _), (MacroValue::Name(rule), at)] if !tag.is_empty() => {
                        found.tags.push((tag, rule, *at));
                    }
                    _ => {
                        return Err(self.wrong(
                            *at,
                            "not a pair of a tag, which is not empty, and a rule",
                            HINT,
                        ));
                    }
                },
                _ => return Err(self.wrong(*at, "not a pair of a tag and a rule", HINT)),
            }
        }
        for (name, value, at) in &call.named {
            match (*name, value) {
                ("loop_after_dispatch", MacroValue::Flag(flag)) => found.repeats = *flag,
                ("excludes", MacroValue::Tuple(texts)) => {
                    for (text, at) in texts {
                        match text {
                            MacroValue::Text(text) if !text.is_empty() => found.excluded.push(text),
                            _ => {
                                return Err(self.wrong(
                                    *at,
                                    "what is excluded is a text, and not empty",
                                    HINT,
                                ));
                            }
                        }
                    }
                }
                _ => {
                    return Err(self.wrong(
                        *at,
                        format!("`TagDispatch` takes no such {}", quoted(name)),
                        HINT,
                    ));
                }
            }
        }
        for (tag, _, at) in &found.tags {
            if let Some(text) = found.excluded.iter().find(|text| tag.starts_with(**text)) {
                let message = format!(
                    "the tag {} can never come: {} is excluded, with which it begins",
                    quoted(tag),
                    quoted(text)
                );
                return Err(self.wrong(*at, message, "an excluded text may be no beginning of a tag"));
            }
        }
        if found.tags.is_empty() && found.excluded.is_empty() {
            return Err(self.wrong(span, "`TagDispatch` without a tag", HINT));
        }
        Ok(found)
    }
}
