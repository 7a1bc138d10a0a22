//! llama.cpp's GBNF, text -> grammar.
//!
//! The notation of llama.cpp's `grammars/README.md` is read, with the same meaning but for these differences:
//! line ends may stand anywhere (a rule ends where the next `name ::=` begins); `{,n}` is `{0,n}`; counts are
//! exact up to `Limits::repeat`, whereas llama.cpp stops counting at 2,000; a rule defined twice, an empty
//! class, a surrogate and a NUL byte are errors. References to tokens ([`tokens`]) are resolved for a
//! vocabulary, when the grammar is compiled.
//!
//! Names with arguments are new here ([`extensions`]): `SUBSTRING_OF("text")` and others, in both dialects.
//!
//! XGrammar's EBNF is a dialect of it: other names and escapes ([`lexer`], [`text`]), macros and options of
//! rules ([`macros`]), and lookahead assertions, which are hints for its compiler and cause a warning.

mod extensions;
mod lexer;
mod macros;
mod text;
mod tokens;

use lalrpop_util::ParseError;
use regex_syntax::hir::ClassUnicode;

use self::lexer::{Lexer, Token};
use super::{
    Grammar, GrammarError, GrammarErrorKind, GrammarWarning, GrammarWarningKind, Pattern,
    errors::{MOST_SHOWN, quoted, quoted_list},
    extension::Extension,
    ir::{DuplicateRule, GrammarBuilder, UnfinishedGrammar},
    source::{Source, Span},
    suggest,
};
use crate::{
    ids::ExprId,
    limits::{LimitExceeded, Limits},
};

/// The parser that LALRPOP generates from `gbnf.lalrpop`; `.ci/parsers` writes it anew.
#[expect(unreachable_pub, clippy::all, clippy::too_many_lines, reason = "generated")]
#[cfg_attr(not(test), expect(clippy::panic, clippy::unwrap_used, reason = "generated"))]
mod parser {
    include!("gbnf.rs.in");
}

/// The name of the start rule.
const ROOT: &str = "root";

type Failure<'t> = ParseError<u32, Token<'t>, GrammarError>;

/// The dialect of a grammar text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GbnfDialect {
    LlamaCpp,
    XGrammar,
}

/// Reads a grammar of at most 4 GiB. About 0.2 us for each byte.
pub(super) fn parse(dialect: GbnfDialect, text: &str, limits: &Limits) -> Result<Grammar, GrammarError> {
    let source = Source::new(text);
    if let Some(at) = text.find('\0') {
        return Err(GrammarError::syntax("a NUL byte in the grammar text")
            .at(source, Span::from_range(at..at + 1), "")
            .with_hint("the character NUL in a literal or class is written `\\x00`"));
    }
    let mut actions =
        Actions { source, builder: GrammarBuilder::new(limits), limits: limits.clone(), ahead: Vec::new() };
    let mut lexer = Lexer::new(dialect, text, limits);
    if let Err(failure) = parser::RulesParser::new().parse(&mut actions, lexer.by_ref()) {
        let error = explain(source, failure);
        return Err(match lexer.multiline().filter(|_| *error.kind() == GrammarErrorKind::Syntax) {
            Some(span) => error.at(source, span, "this runs over the end of its line: is its end missing?"),
            None => error,
        });
    }
    actions.warn(&lexer.without_effect);
    lexer.captured.iter().for_each(|&(rule, name)| actions.builder.capture(rule, name));
    match actions.builder.check(ROOT) {
        Ok(()) => actions.builder.finish(ROOT).map_err(|error| match error {
            UnfinishedGrammar::TooManyRules(limit) => GrammarError::limit(limit),
            _ => GrammarError::syntax("the grammar has no start"),
        }),
        Err(UnfinishedGrammar::NoRoot) => Err(no_root(source, &actions.builder)),
        Err(UnfinishedGrammar::Undefined(uses)) => Err(undefined(source, &actions.builder, uses)),
        Err(UnfinishedGrammar::TooManyRules(limit)) => Err(GrammarError::limit(limit)),
    }
}

/// The actions of the parser, called bottom-up.
struct Actions<'t> {
    source: Source<'t>,
    builder: GrammarBuilder,
    limits: Limits,
    /// Lookahead assertions.
    ahead: Vec<Span>,
}

impl<'t> Actions<'t> {
    fn head(&mut self, name: &str) {
        self.builder.declare(name);
    }

    fn rule(&mut self, start: u32, name: &'t str, body: ExprId) -> Result<(), Failure<'t>> {
        let span = Span::new(start, start + Span::from_range(0..name.len()).end);
        match self.builder.define(name, body, span) {
            Ok(_) => Ok(()),
            Err(DuplicateRule { first }) => Err(user(
                GrammarError::new(
                    GrammarErrorKind::Duplicate(name.to_owned()),
                    format!("the rule {} is defined twice", quoted(name)),
                )
                .at(self.source, span, "defined again here")
                .at(self.source, first, "first defined here")
                .with_hint("give one of them another name, or join them with `|`"),
            )),
        }
    }

    fn alternatives(&mut self, start: u32, parts: Vec<ExprId>, end: u32) -> Result<ExprId, Failure<'t>> {
        let span = Span::new(start, end);
        self.builder.alternatives(parts, span).map_err(|limit| self.limit(limit, span))
    }

    fn sequence(&mut self, start: u32, parts: Vec<ExprId>, end: u32) -> Result<ExprId, Failure<'t>> {
        let span = Span::new(start, end);
        self.builder.sequence(parts, span).map_err(|limit| self.limit(limit, span))
    }

    fn repeat(
        &mut self,
        start: u32,
        part: ExprId,
        (min, max): (u32, Option<u32>),
        end: u32,
    ) -> Result<ExprId, Failure<'t>> {
        let span = Span::new(start, end);
        self.builder.repeat(part, min, max, span).map_err(|limit| self.limit(limit, span))
    }

    fn name(&mut self, start: u32, name: &str, end: u32) -> Result<ExprId, Failure<'t>> {
        let span = Span::new(start, end);
        self.builder.rule_ref(name, span).map_err(|limit| self.limit(limit, span))
    }

    #[expect(clippy::needless_pass_by_value, reason = "the parser gives it away")]
    fn literal(&mut self, start: u32, bytes: Vec<u8>, end: u32) -> Result<ExprId, Failure<'t>> {
        self.pattern(Pattern::literal(&bytes), Span::new(start, end))
    }

    fn class(&mut self, start: u32, class: ClassUnicode, end: u32) -> Result<ExprId, Failure<'t>> {
        self.pattern(Pattern::class(class), Span::new(start, end))
    }

    fn pattern(&mut self, pattern: Pattern, span: Span) -> Result<ExprId, Failure<'t>> {
        self.builder.pattern(pattern, span).map_err(|limit| self.limit(limit, span))
    }

    fn lookahead(&mut self, start: u32, end: u32) {
        self.ahead.push(Span::new(start, end));
    }

    /// Warns of parts that have no effect on the set of texts.
    fn warn(&mut self, without_effect: &[(&str, Span)]) {
        let source = self.source;
        let options = without_effect.iter().map(|&(option, span)| {
            let message =
                format!("`{option}` has no effect here: it changes nothing in which texts there are");
            GrammarWarning::new(GrammarWarningKind::WithoutEffect, message, source, span, "leave it out")
        });
        let ahead = self.ahead.iter().map(|&span| {
            let message =
                "a lookahead assertion is not checked: it is a hint that the text goes on like this";
            GrammarWarning::new(GrammarWarningKind::Lookahead, message, source, span, "leave it out")
        });
        let warnings = options.chain(ahead).take(MOST_SHOWN).collect();
        self.builder.warn(warnings);
    }

    fn limit(&self, limit: LimitExceeded, span: Span) -> Failure<'t> {
        user(
            GrammarError::limit(limit)
                .at(self.source, span, "")
                .with_hint("the budget is `Limits::expressions`"),
        )
    }
}

fn user<'t>(error: GrammarError) -> Failure<'t> {
    ParseError::User { error }
}

/// Explains in words why the parser failed.
fn explain(source: Source<'_>, failure: Failure<'_>) -> GrammarError {
    let (start, token, end) = match failure {
        ParseError::User { error } => return error,
        ParseError::UnrecognizedToken { token, .. } | ParseError::ExtraToken { token } => token,
        ParseError::UnrecognizedEof { location, .. } | ParseError::InvalidToken { location } => {
            let here = Span::new(location, location);
            return GrammarError::syntax("the grammar ends too soon").at(source, here, "");
        }
    };
    let span = Span::new(start, end);
    match token {
        Token::Name(name) => GrammarError::syntax(format!("`::=` is missing after {}", quoted(name)))
            .at(source, span, "a rule must begin here, so `::=` must follow")
            .with_hint("a rule is written `name ::= body`"),
        Token::Count(_) => GrammarError::syntax("nothing stands before the count to be repeated")
            .at(source, span, "")
            .with_hint("as text it is written in double quotes"),
        Token::Define => GrammarError::syntax("`::=` without a rule name before it")
            .at(source, span, "")
            .with_hint("names are made of ASCII letters, digits, `-` and `_`"),
        _ => GrammarError::syntax("a grammar begins with a rule")
            .at(source, span, "a rule must begin here")
            .with_hint("a rule is written `name ::= body`"),
    }
}

fn no_root(source: Source<'_>, builder: &GrammarBuilder) -> GrammarError {
    let Some((first, span)) = builder.defined().next() else {
        return GrammarError::new(GrammarErrorKind::NoRoot, "the grammar is empty")
            .with_hint("the least grammar is a rule `root ::= ...`, where every text starts");
    };
    let names: Vec<&str> = builder.defined().map(|(name, _)| name).collect();
    let meant = suggest::nearest(ROOT, names.iter().copied()).unwrap_or(first);
    GrammarError::new(GrammarErrorKind::NoRoot, "there is no rule `root`, where every text starts")
        .at(source, span, "the first rule")
        .with_hint(format!(
            "rename the start rule to `root`, or add a rule `root` that uses {}; the rules are {}",
            quoted(meant),
            quoted_list(names.into_iter())
        ))
}

fn undefined(source: Source<'_>, builder: &GrammarBuilder, uses: Vec<(String, Vec<Span>)>) -> GrammarError {
    let names: Vec<&str> = uses.iter().map(|(name, _)| &**name).collect();
    let list = quoted_list(names.iter().copied());
    let message = match names.len() {
        1 => format!("the rule {list} is used but not defined"),
        count => format!("{count} rules are used but not defined: {list}"),
    };
    let kind = GrammarErrorKind::Undefined(names.iter().map(|&name| name.to_owned()).collect());
    let mut error = GrammarError::new(kind, message);
    let mut may_begin = None;
    for (name, spans) in &uses {
        let Some(&span) = spans.first() else { continue };
        if error.places().len() >= MOST_SHOWN {
            error = error.at(source, span, "");
            continue;
        }
        let label = match suggest::nearest(name, builder.defined().map(|(name, _)| name)) {
            Some(meant) => format!("did you mean {}?", quoted(meant)),
            None if let Some(meant) = Extension::nearest(name) => format!("did you mean `{meant}(..)`?"),
            None => {
                may_begin = may_begin.or_else(|| source.begins_line(span).then(|| quoted(name)));
                String::from("not defined")
            }
        };
        error = error.at(source, span, label);
    }
    match may_begin {
        Some(name) => error.with_hint(format!("if {name} is to begin a rule, write `::=` after it")),
        None => error,
    }
}

#[cfg(test)]
mod tests;
