//! Lark -> IR: each rule, terminal and instance of a template is a rule of the grammar.
//!
//! Texts of `%ignore` may stand behind every lexeme, so a reference to a rule for them follows each lexeme.
//! Terminals are written out in the IR without it. A terminal with `&` or `~`, or that is cut short by `lazy`
//! and the like, is an automaton ([`super::terminal`]).

use std::{collections::HashMap, rc::Rc};

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{
    Lexing, Structured,
    scope::{self, Meaning, Scope},
    syntax::{ExprKind, LarkDefinition, LarkExpr, LarkItem, is_terminal},
    template::{Instance, TemplateArguments},
    uses::{LexemeUse, Used, has_lazy},
};
use crate::{
    grammar::{
        AutomataCache, Grammar, GrammarBuilder, GrammarError, GrammarWarning, GrammarWarningKind, Pattern,
        errors::MOST_SHOWN,
        ir::embed,
        json_schema::SchemaOptions,
        regex,
        regular::Language,
        source::{Source, Span},
        substring, token_numbers,
    },
    ids::ExprId,
    limits::{LimitExceeded, Limits},
};

pub(super) type LarkResult<T> = Result<T, GrammarError>;

/// The surroundings of an expression.
#[derive(Debug, Clone)]
pub(super) struct ExprSite<'a, 't> {
    /// The grammar that it is in.
    pub(super) scope: Rc<Scope<'a, 't>>,
    /// The values of its template's parameters.
    pub(super) arguments: Option<Rc<TemplateArguments<'a, 't>>>,
    /// True for a part of a lexeme.
    pub(super) lexeme: bool,
}

/// Translates a parsed text to a grammar.
pub(super) fn translate<'t>(
    text: &'t str,
    items: &[LarkItem<'t>],
    lexing: Lexing,
    schemas: &SchemaOptions,
    limits: &Limits,
    automata: &AutomataCache,
) -> LarkResult<Grammar> {
    let mut builder = GrammarBuilder::new(limits);
    if lexing == Lexing::Greedy {
        builder.greedy();
    }
    let mut translator = LarkTranslator {
        text,
        limits,
        schemas,
        automata,
        lexing,
        builder,
        warnings: Vec::new(),
        parts: 0,
        instances: HashMap::new(),
        waiting: Vec::new(),
        languages: HashMap::new(),
        depth: 0,
        uses: has_lazy(items).then(Vec::new),
    };
    let whole = Span::from_range(0..text.len());
    let root = translator.grammar(items, String::new(), whole)?;
    translator.settle(&root)?;
    let impossible = |_| GrammarError::syntax("the grammar has no start");
    let LarkTranslator { mut builder, warnings, .. } = translator;
    builder.warn(warnings);
    builder.finish(&root).map_err(impossible)
}

pub(super) struct LarkTranslator<'a, 't, 'l> {
    pub(super) text: &'t str,
    pub(super) limits: &'l Limits,
    schemas: &'l SchemaOptions,
    automata: &'l AutomataCache,
    pub(super) lexing: Lexing,
    pub(super) builder: GrammarBuilder,
    warnings: Vec<GrammarWarning>,
    /// The number of grammars and schemas inside, by which they are named.
    parts: usize,
    pub(super) instances: HashMap<String, ()>,
    pub(super) waiting: Vec<Instance<'a, 't>>,
    /// The languages of terminals, by their names in the IR.
    pub(super) languages: HashMap<String, Language>,
    pub(super) depth: u32,
    /// The uses of lexemes, each a rule without a body until all are known; `None` if no rule is lazy.
    pub(super) uses: Option<Vec<LexemeUse<'a, 't>>>,
}

impl<'a, 't> LarkTranslator<'a, 't, '_> {
    pub(super) fn source(&self) -> Source<'t> {
        Source::new(self.text)
    }

    /// The error of a budget that is used up at `span`.
    pub(super) fn limit(&self, limit: LimitExceeded, span: Span) -> GrammarError {
        GrammarError::limit(limit).at(self.source(), span, "")
    }

    pub(super) fn warn(&mut self, kind: GrammarWarningKind, message: &str, span: Span, hint: &str) {
        if self.warnings.len() < MOST_SHOWN {
            let warning = GrammarWarning::new(kind, message, Source::new(self.text), span, hint);
            self.warnings.push(warning);
        }
    }

    /// Translates all definitions of a grammar; returns the name of its start rule in the IR.
    fn grammar(&mut self, items: &'a [LarkItem<'t>], prefix: String, at: Span) -> LarkResult<String> {
        let scope = Rc::new(scope::of(self.text, items, prefix, at)?);
        let options = super::read_options(self.text, &scope.options)?;
        // Rules are numbered in the order in which they are first mentioned.
        for definition in scope.definitions.iter().filter(|definition| definition.parameters.is_empty()) {
            self.builder.declare(&scope.name(definition.name));
        }
        let place = ExprSite { scope: Rc::clone(&scope), arguments: None, lexeme: false };
        self.ignored(&scope, options.ignore_once)?;
        for definition in &scope.definitions {
            self.warn_of(definition);
            if definition.parameters.is_empty() {
                let name = scope.name(definition.name);
                self.define(&name, definition, &place)?;
            }
        }
        for &(name, expression, span) in &scope.imported {
            let (pattern, _) = regex::leaf(expression, "", self.limits)?;
            let body = self.terminal(pattern, span)?;
            self.set(&scope.name(name), body, span);
        }
        while let Some(instance) = self.waiting.pop() {
            let place = ExprSite { arguments: Some(instance.arguments), ..instance.place };
            self.define(&instance.name, instance.template, &place)?;
        }
        let start = scope.name(scope.start.name);
        if scope.ignored.is_empty() || !options.allow_initial_skip {
            return Ok(start);
        }
        let span = scope.start.span;
        let parts = vec![self.reference(&scope.name(IGNORED), span)?, self.reference(&start, span)?];
        let body = self.builder.sequence(parts, span).map_err(|limit| self.limit(limit, span))?;
        let name = scope.name("%start");
        self.set(&name, body, span);
        Ok(name)
    }

    /// Writes the rule for texts that may stand between lexemes.
    fn ignored(&mut self, scope: &Rc<Scope<'a, 't>>, once: bool) -> LarkResult<()> {
        let Some(first) = scope.ignored.first() else { return Ok(()) };
        let span = first.span;
        let place = ExprSite { scope: Rc::clone(scope), arguments: None, lexeme: true };
        let parts = scope.ignored.iter().map(|body| match self.lexing {
            Lexing::EveryWay => self.expr(body, &place),
            Lexing::Greedy => self.one_terminal(body, &place),
        });
        let parts = parts.collect::<LarkResult<Vec<_>>>()?;
        let any = self.builder.alternatives(parts, span).map_err(|limit| self.limit(limit, span))?;
        let most = once.then_some(1);
        let body = self.builder.repeat(any, 0, most, span).map_err(|limit| self.limit(limit, span))?;
        self.set(&scope.name(IGNORED), body, span);
        self.builder.ignore(&scope.name(IGNORED));
        Ok(())
    }

    fn warn_of(&mut self, definition: &LarkDefinition<'t>) {
        if let Some(span) = definition.priority {
            let message = match self.lexing {
                Lexing::EveryWay => {
                    "priorities decide nothing here: every way to split a text into terminals is followed"
                }
                Lexing::Greedy => {
                    "priorities decide nothing here: all terminals are taken that match equally far"
                }
            };
            self.warn(
                GrammarWarningKind::Priority,
                message,
                span,
                "leave it out, or make the terminals exclude each other, as in `NAME: /[a-z]+/ & ~KEYWORD`",
            );
        }
        for &(option, span) in &definition.without_effect {
            let message =
                format!("`{option}` has no effect here: it changes nothing in which texts there are");
            self.warn(GrammarWarningKind::WithoutEffect, &message, span, "leave it out");
        }
    }

    fn define(
        &mut self,
        name: &str,
        definition: &'a LarkDefinition<'t>,
        place: &ExprSite<'a, 't>,
    ) -> LarkResult<()> {
        let body = match (&definition.ending, is_terminal(definition.name)) {
            (Some((ending, _)), _) => {
                let place = ExprSite { lexeme: true, ..place.clone() };
                let ended = self.ended(&definition.body, ending, &place)?;
                let span = definition.body.span;
                let leaf = match self.uses {
                    Some(_) => self.used(Used::Lazy(ended), span)?,
                    None => self.language_leaf(&ended.text, span)?,
                };
                self.lexeme(leaf, &ExprSite { lexeme: false, ..place })?
            }
            (None, true) if self.lexing == Lexing::Greedy => {
                self.one_terminal(&definition.body, &ExprSite { lexeme: true, ..place.clone() })?
            }
            (None, terminal) => {
                self.expr(&definition.body, &ExprSite { lexeme: terminal, ..place.clone() })?
            }
        };
        self.set(name, body, definition.span);
        if let Some(capture) = &definition.capture {
            self.builder.capture(name, capture);
        }
        Ok(())
    }

    pub(super) fn set(&mut self, name: &str, body: ExprId, span: Span) {
        // Names were checked before: none is defined twice.
        let _ = self.builder.define(name, body, span);
    }

    pub(super) fn pattern(&mut self, pattern: Pattern, span: Span) -> LarkResult<ExprId> {
        self.builder.pattern(pattern, span).map_err(|limit| self.limit(limit, span))
    }

    pub(super) fn reference(&mut self, name: &str, span: Span) -> LarkResult<ExprId> {
        self.builder.rule_ref(name, span).map_err(|limit| self.limit(limit, span))
    }

    /// Puts ignored texts behind `part`, unless it is only a part of a lexeme itself.
    fn lexeme(&mut self, part: ExprId, place: &ExprSite<'a, 't>) -> LarkResult<ExprId> {
        if place.lexeme || place.scope.ignored.is_empty() {
            return Ok(part);
        }
        let span = place.scope.ignored[0].span;
        let ignored = self.reference(&place.scope.name(IGNORED), span)?;
        self.builder.sequence(vec![part, ignored], span).map_err(|limit| self.limit(limit, span))
    }

    /// Translates an expression. The recursion is bounded by the depth of brackets in the text, and by that
    /// of arguments in each other.
    pub(super) fn expr(&mut self, expr: &'a LarkExpr<'t>, place: &ExprSite<'a, 't>) -> LarkResult<ExprId> {
        let span = expr.span;
        if self.uses.is_some() && !place.lexeme && self.is_lexeme(expr, place) {
            let part = self.used(Used::Part(expr, ExprSite { lexeme: true, ..place.clone() }), span)?;
            return self.lexeme(part, place);
        }
        let parts = |translator: &mut Self| {
            expr.parts().iter().map(|part| translator.expr(part, place)).collect::<LarkResult<Vec<_>>>()
        };
        let part = match &expr.kind {
            ExprKind::Sequence(_) => {
                let parts = parts(self)?;
                return self.builder.sequence(parts, span).map_err(|limit| self.limit(limit, span));
            }
            ExprKind::Choice(_) => {
                let parts = parts(self)?;
                return self.builder.alternatives(parts, span).map_err(|limit| self.limit(limit, span));
            }
            ExprKind::Repeat(part, least, most) => {
                let part = self.expr(part, place)?;
                return self
                    .builder
                    .repeat(part, *least, *most, span)
                    .map_err(|limit| self.limit(limit, span));
            }
            ExprKind::Text { text, .. } if text.is_empty() => {
                return self.builder.sequence(Vec::new(), span).map_err(|limit| self.limit(limit, span));
            }
            ExprKind::Name(name) => match place.arguments.as_ref().and_then(|all| all.get(name)) {
                Some(argument) => {
                    let place = ExprSite { lexeme: place.lexeme, ..argument.place.clone() };
                    return self.expr(argument.expr, &place);
                }
                None => {
                    let reference = self.reference(&place.scope.name(name), span)?;
                    if !is_terminal(name) {
                        return Ok(reference);
                    }
                    reference
                }
            },
            ExprKind::Template(name, arguments) => {
                let instance = self.instance(name, arguments, place, span)?;
                return self.reference(&instance, span);
            }
            ExprKind::Json(value) => {
                let start = self.schema(*value, expr, place)?;
                match self.uses {
                    Some(_) => self.used(Used::Schema(start), span)?,
                    None => self.reference(&start, span)?,
                }
            }
            ExprKind::Nested(items) => {
                self.parts += 1;
                let start = self.grammar(items, format!("lark-{}.", self.parts), span)?;
                self.reference(&start, span)?
            }
            ExprKind::Special(written) => self.token_of_model(written, span)?,
            ExprKind::Both(_) | ExprKind::Not(_) => {
                let language = self.language(expr, &ExprSite { lexeme: true, ..place.clone() })?;
                self.language_leaf(&language, span)?
            }
            _ => {
                let pattern = self.leaf(expr)?;
                self.terminal(pattern, span)?
            }
        };
        self.lexeme(part, place)
    }

    /// The pattern of a literal, a range, a regular expression or a `%regex`.
    pub(super) fn leaf(&mut self, expr: &LarkExpr<'t>) -> LarkResult<Pattern> {
        match &expr.kind {
            ExprKind::Text { text, ignore_case: true } => {
                Ok(regex::leaf(&regex_syntax::escape(text), "i", self.limits)?.0)
            }
            ExprKind::Text { text, .. } => Ok(Pattern::literal(text.as_bytes())),
            ExprKind::Range(first, last) => {
                Ok(Pattern::class(ClassUnicode::new([ClassUnicodeRange::new(*first, *last)])))
            }
            ExprKind::Regex { body, flags } => {
                let text = &self.text[body.range()];
                let (source, by) = (self.source(), body.start);
                let (pattern, warnings) = regex::leaf(text, flags, self.limits)
                    .map_err(|error| self.of_part(error.moved(source, |span| span.shifted(by)), expr.span))?;
                let room = MOST_SHOWN.saturating_sub(self.warnings.len());
                let moved =
                    warnings.into_iter().map(|warning| warning.moved(source, |span| span.shifted(by)));
                self.warnings.extend(moved.take(room));
                Ok(pattern)
            }
            ExprKind::Structured(value) => self.structured(*value),
            // Names were checked before: nothing else is a leaf.
            _ => Err(GrammarError::syntax("no part of a terminal").at(self.source(), expr.span, "")),
        }
    }

    /// Makes sure that an error of a part shows a place.
    fn of_part(&self, error: GrammarError, span: Span) -> GrammarError {
        if error.places().is_empty() { error.at(self.source(), span, "") } else { error }
    }

    fn structured(&self, value: Span) -> LarkResult<Pattern> {
        let made = match super::structured(self.text, value)? {
            Structured::Chars(text) => substring::pattern(&text),
            Structured::Words(text) => {
                substring::of_pieces(&substring::words(&text), self.limits).map(Pattern::automaton)
            }
            Structured::Chunks(chunks) => {
                let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
                substring::of_pieces(&chunks, self.limits).map(Pattern::automaton)
            }
        };
        made.map_err(|limit| self.limit(limit, value))
    }

    /// Writes the rules of a schema; returns the name of the first.
    fn schema(&mut self, value: Span, expr: &LarkExpr<'t>, place: &ExprSite<'a, 't>) -> LarkResult<String> {
        let source = self.source();
        if self.lexing == Lexing::Greedy {
            let error = GrammarError::unsupported("a schema has no lexemes that greedy lexing could take");
            return Err(error
                .at(source, expr.span, "")
                .with_hint("read the grammar without greedy lexing, as `lark`"));
        }
        let scope = &place.scope;
        let whole = matches!(scope.start.body.kind, ExprKind::Json(start) if start == value);
        let alone = whole && scope.prefix.is_empty() && scope.ignored.is_empty();
        let options = self.schemas.clone().with_lenient(false).of_part(!alone);
        let text = &self.text[value.range()];
        let schema = options.parse_with(text, self.limits, self.automata).map_err(|error| {
            let moved = GrammarError::from(error).moved(source, |span| span.shifted(value.start));
            self.of_part(moved, expr.span)
        })?;
        let room = MOST_SHOWN.saturating_sub(self.warnings.len());
        let warnings = schema.grammar.warnings().iter().take(room);
        self.warnings.extend(warnings.map(|one| one.clone().moved(source, |span| span.shifted(value.start))));
        self.parts += 1;
        let prefix = format!("json-{}.", self.parts);
        let name = embed(&mut self.builder, &schema.grammar, &prefix, value.start)
            .map_err(|limit| self.limit(limit, value))?;
        schema.grammar.distinct_items().into_iter().for_each(|items| self.builder.distinct_items(items));
        if let Some(keys) = schema.grammar.distinct_keys() {
            if alone {
                self.builder.distinct_keys(keys);
            } else {
                self.warn(
                    GrammarWarningKind::DuplicateKeys,
                    "objects of this schema may have a key twice that the schema does not list",
                    value,
                    "set `additionalProperties` to false, or use the schema as a grammar by itself",
                );
            }
        }
        Ok(name)
    }
}

/// The name of the rule for `%ignore`. It cannot clash, since `%` is not allowed in names.
const IGNORED: &str = "%ignore";

impl<'a, 't> Scope<'a, 't> {
    /// The name in the IR of a name of this grammar.
    pub(super) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The meaning of a name.
    pub(super) fn meaning(&self, name: &str) -> Option<Meaning<'a, 't>> {
        self.names.get(name).map(|&(meaning, _)| meaning)
    }
}

impl LarkTranslator<'_, '_, '_> {
    /// Translates `<name>`, `<[12]>` and the like.
    fn token_of_model(&mut self, written: &str, span: Span) -> LarkResult<ExprId> {
        let source = self.source();
        let made = if token_numbers::begins(written) {
            let picked = token_numbers::read(written, source, span)?;
            self.builder.picked(picked, source, span)
        } else {
            self.builder.special_at(written, source, span)
        };
        made.map_err(|limit| self.limit(limit, span))
    }
}
