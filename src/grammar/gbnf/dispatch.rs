//! XGrammar's macros as expressions: `TagDispatch` and `Regex`.
//!
//! Free text up to a tag is a regular language: the texts that end with their first tag or excluded string,
//! if that is the wanted tag. So what follows is exact for all tags, even where one is a part of another.

use regex_syntax::hir::Hir;

use super::{
    Actions, Failure,
    macros::{Macro, MacroValue},
    user,
};
use crate::{
    grammar::{
        GrammarError, Pattern, errors::quoted, extension::Extension, regex, regular::Language, source::Span,
    },
    ids::ExprId,
    limits::LimitExceeded,
};

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
