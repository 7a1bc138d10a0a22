//! A regular expression as a grammar: one rule `root`, one pattern, matched as a whole.
//!
//! The dialect is that of the `regex` crate, Unicode on; flags such as `(?s)` may be written inside.
//! Since the whole text is matched, anchors at the ends are dropped; all other look-around and
//! back-references are refused by name. How lazy or greedy a repeat is makes no difference.

use regex_syntax::{
    ast::{
        self, Assertion, AssertionKind, Ast, ClassSetItem, ErrorKind, RepetitionKind, RepetitionOp,
        RepetitionRange, Visitor, parse::ParserBuilder,
    },
    hir::translate::TranslatorBuilder,
};

use super::{
    Grammar, GrammarError, Pattern,
    ir::GrammarBuilder,
    source::{Source, Span},
};
use crate::limits::{Budget, LimitExceeded, Limits};

/// What a class such as `\w` counts in bytes of text: it becomes hundreds of ranges.
const NAMED_CLASS_BYTES: usize = 96;

/// Reads a regular expression.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Grammar, GrammarError> {
    let source = Source::new(text);
    if text.len() > limits.regex_bytes {
        let limit =
            LimitExceeded::new(Budget::RegexBytes, "bytes of a regular expression", limits.regex_bytes);
        return Err(GrammarError::limit(limit).with_hint("the budget is `Limits::regex_bytes`"));
    }
    let mut ast = ParserBuilder::new()
        .nest_limit(limits.regex_nesting)
        .build()
        .parse(text)
        .map_err(|error| syntax_error(source, text, &error))?;
    drop_anchors(&mut ast, true, true);
    ast::visit(&ast, Check { source, limits, named_classes: 0 })?;
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

/// Stops at the first part that cannot be, before anything large is made of it.
struct Check<'a> {
    source: Source<'a>,
    limits: &'a Limits,
    named_classes: usize,
}

impl Check<'_> {
    fn assertion(&self, assertion: &Assertion) -> GrammarError {
        GrammarError::unsupported(format!("{} is not supported here", assertion_name(&assertion.kind)))
            .at(self.source, place(&assertion.span), "asks about the text around it")
            .with_hint("the whole text is matched: `^` and `$` may only stand at its ends")
    }

    fn repetition(&self, op: &RepetitionOp) -> Result<(), GrammarError> {
        let RepetitionKind::Range(
            RepetitionRange::Exactly(most)
            | RepetitionRange::AtLeast(most)
            | RepetitionRange::Bounded(_, most),
        ) = op.kind
        else {
            return Ok(());
        };
        if most <= self.limits.repeat {
            return Ok(());
        }
        let limit = usize::try_from(self.limits.repeat).unwrap_or(usize::MAX);
        Err(GrammarError::limit(LimitExceeded::new(Budget::Repeat, "repeats in a count", limit))
            .at(self.source, place(&op.span), "")
            .with_hint("`*`, `+` and `{m,}` have no upper end; the budget is `Limits::repeat`"))
    }

    fn named_class(&mut self, span: &ast::Span) -> Result<(), GrammarError> {
        self.named_classes += 1;
        let most = self.limits.regex_bytes / NAMED_CLASS_BYTES;
        if self.named_classes <= most {
            return Ok(());
        }
        Err(GrammarError::limit(LimitExceeded::new(
            Budget::RegexBytes,
            "named classes in a regular expression",
            most,
        ))
        .at(self.source, place(span), "")
        .with_hint("repeats are better written with a count; the budget is `Limits::regex_bytes`"))
    }
}

impl Visitor for Check<'_> {
    type Output = ();
    type Err = GrammarError;

    fn finish(self) -> Result<(), GrammarError> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), GrammarError> {
        match ast {
            Ast::Assertion(assertion) => Err(self.assertion(assertion)),
            Ast::Repetition(repetition) => self.repetition(&repetition.op),
            Ast::ClassUnicode(class) => self.named_class(&class.span),
            Ast::ClassPerl(class) => self.named_class(&class.span),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), GrammarError> {
        match item {
            ClassSetItem::Unicode(class) => self.named_class(&class.span),
            ClassSetItem::Perl(class) => self.named_class(&class.span),
            _ => Ok(()),
        }
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
            GrammarError::limit(LimitExceeded::new(
                Budget::RegexNesting,
                "levels of groups in a regular expression",
                most,
            ))
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
