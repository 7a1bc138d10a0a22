//! A regular expression as a grammar: one rule `root`, one pattern, matched as a whole.
//!
//! The dialect is that of the `regex` crate, Unicode on; flags such as `(?s)` may be written inside.
//! Since the whole text is matched, anchors at the ends are dropped; all other look-around and
//! back-references are refused by name. How lazy or greedy a repeat is makes no difference.

use std::convert::Infallible;

use regex_syntax::{
    ast::{
        self, AssertionKind, Ast, ErrorKind, RepetitionKind, RepetitionRange, Visitor, parse::ParserBuilder,
    },
    hir::translate::TranslatorBuilder,
};

use super::{
    Grammar, GrammarError, Pattern,
    ir::GrammarBuilder,
    source::{Source, Span},
};
use crate::limits::{LimitExceeded, Limits};

/// Reads a regular expression of at most 4 GiB.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Grammar, GrammarError> {
    let source = Source::new(text);
    let mut ast = ParserBuilder::new()
        .nest_limit(limits.regex_nesting)
        .build()
        .parse(text)
        .map_err(|error| syntax_error(source, text, &error))?;
    drop_anchors(&mut ast, true, true);
    let findings = ast::visit(&ast, Check { max_count: limits.repeat, too_many: None, assertion: None });
    let Ok(Check { too_many, assertion, .. }) = findings;
    if let Some((span, kind)) = assertion {
        return Err(GrammarError::unsupported(format!("{} is not supported here", assertion_name(&kind)))
            .at(source, place(&span), "asks about the text around it")
            .with_hint("the whole text is matched: `^` and `$` may only stand at its ends"));
    }
    if let Some(span) = too_many {
        let most = usize::try_from(limits.repeat).unwrap_or(usize::MAX);
        return Err(GrammarError::limit(LimitExceeded::new("repeats in a count", most))
            .at(source, place(&span), "")
            .with_hint("`*`, `+` and `{m,}` have no upper end; the budget is `Limits::repeat`"));
    }
    let hir = TranslatorBuilder::new().utf8(false).build().translate(text, &ast).map_err(|error| {
        GrammarError::syntax(error.kind().to_string()).at(source, place(error.span()), "")
    })?;
    let pattern = Pattern::from_hir(hir).map_err(|error| GrammarError::unsupported(error.to_string()))?;
    root_of(pattern, Span::from_range(0..text.len()), limits)
}

fn root_of(pattern: Pattern, span: Span, limits: &Limits) -> Result<Grammar, GrammarError> {
    let mut builder = GrammarBuilder::new(limits);
    let body = builder.pattern(pattern, span).map_err(GrammarError::limit)?;
    let impossible = |_| GrammarError::syntax("the start rule is missing");
    builder.define("root", body, span).map_err(|_| GrammarError::syntax("the start rule is there twice"))?;
    builder.finish("root").map_err(impossible)
}

fn place(span: &ast::Span) -> Span {
    Span::from_range(span.start.offset..span.end.offset)
}

/// Drops the anchors that always hold when the whole text is matched. The nesting limit bounds the recursion.
fn drop_anchors(ast: &mut Ast, at_start: bool, at_end: bool) {
    let redundant = match ast {
        Ast::Assertion(assertion) => match assertion.kind {
            AssertionKind::StartLine | AssertionKind::StartText => at_start,
            AssertionKind::EndLine | AssertionKind::EndText => at_end,
            _ => false,
        },
        _ => false,
    };
    if redundant {
        *ast = Ast::empty(*ast.span());
        return;
    }
    match ast {
        Ast::Group(group) => drop_anchors(&mut group.ast, at_start, at_end),
        Ast::Alternation(choice) => {
            choice.asts.iter_mut().for_each(|part| drop_anchors(part, at_start, at_end))
        }
        Ast::Concat(concat) => {
            let parts = &mut concat.asts;
            let first = parts.iter().position(|part| !takes_no_text(part)).unwrap_or(parts.len());
            let last = parts.iter().rposition(|part| !takes_no_text(part)).unwrap_or(0);
            for (index, part) in parts.iter_mut().enumerate() {
                let (start, end) = (at_start && index <= first, at_end && index >= last);
                if start || end {
                    drop_anchors(part, start, end);
                }
            }
        }
        _ => {}
    }
}

fn takes_no_text(ast: &Ast) -> bool {
    matches!(ast, Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_))
}

/// Looks for what cannot be: the first of each.
struct Check {
    max_count: u32,
    too_many: Option<ast::Span>,
    assertion: Option<(ast::Span, AssertionKind)>,
}

impl Visitor for Check {
    type Output = Self;
    type Err = Infallible;

    fn finish(self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        match ast {
            Ast::Assertion(found) if self.assertion.is_none() => {
                self.assertion = Some((found.span, found.kind.clone()));
            }
            Ast::Repetition(repetition) => {
                let most = match repetition.op.kind {
                    RepetitionKind::Range(
                        RepetitionRange::Exactly(most)
                        | RepetitionRange::AtLeast(most)
                        | RepetitionRange::Bounded(_, most),
                    ) => most,
                    _ => 0,
                };
                if most > self.max_count && self.too_many.is_none() {
                    self.too_many = Some(repetition.op.span);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn assertion_name(kind: &AssertionKind) -> &'static str {
    match kind {
        AssertionKind::StartLine => "the anchor `^`",
        AssertionKind::EndLine => "the anchor `$`",
        AssertionKind::StartText => "the anchor `\\A`",
        AssertionKind::EndText => "the anchor `\\z`",
        AssertionKind::WordBoundary => "the word boundary `\\b`",
        AssertionKind::NotWordBoundary => "the word boundary `\\B`",
        AssertionKind::WordBoundaryStart => "the word boundary `\\b{start}`",
        AssertionKind::WordBoundaryEnd => "the word boundary `\\b{end}`",
        AssertionKind::WordBoundaryStartAngle => "the word boundary `\\<`",
        AssertionKind::WordBoundaryEndAngle => "the word boundary `\\>`",
        AssertionKind::WordBoundaryStartHalf => "the word boundary `\\b{start-half}`",
        AssertionKind::WordBoundaryEndHalf => "the word boundary `\\b{end-half}`",
    }
}

fn syntax_error(source: Source<'_>, text: &str, error: &ast::Error) -> GrammarError {
    let span = place(error.span());
    let from = text.get(span.range().start..).unwrap_or_default();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| from.starts_with(prefix));
    let unsupported = |what: &str| {
        GrammarError::unsupported(format!("{what} is not supported")).at(
            source,
            span,
            "not a regular language's",
        )
    };
    match error.kind() {
        ErrorKind::NestLimitExceeded(most) => {
            let most = usize::try_from(*most).unwrap_or(usize::MAX);
            GrammarError::limit(LimitExceeded::new("levels of groups in a regular expression", most))
                .at(source, span, "")
                .with_hint("the budget is `Limits::regex_nesting`")
        }
        ErrorKind::UnsupportedBackreference => {
            unsupported("a back-reference").with_hint("for a character by its number write `\\x{..}`")
        }
        ErrorKind::UnsupportedLookAround => {
            unsupported(if starts(&["(?=", "(?!"]) { "look-ahead" } else { "look-behind" })
        }
        ErrorKind::EscapeUnrecognized if starts(&["\\k", "\\g"]) => unsupported("a back-reference"),
        ErrorKind::EscapeUnrecognized if starts(&["\\G", "\\K", "\\Z"]) => unsupported("this anchor"),
        ErrorKind::FlagUnrecognized if text[..span.range().start].ends_with("(?") && starts(&[">"]) => {
            unsupported("an atomic group")
        }
        kind => GrammarError::syntax(kind.to_string()).at(source, span, ""),
    }
}

#[cfg(test)]
#[path = "regex_tests.rs"]
mod tests;
