//! A regular expression as a grammar: one rule `root`, one pattern, matched as a whole.
//!
//! The dialect is that of the `regex` crate with Unicode on; flags such as `(?s)` may be written inside. It
//! differs where Python, PCRE and ECMAScript agree on something else (see `text`), and warns where they
//! do not; `docs/regex.md` has the table. Since the whole text is matched, anchors at the ends are dropped;
//! all other look-around and back-references are refused by name. Lazy and greedy repeats differ only in what
//! named groups capture.

mod class;
mod extensions;
mod names;
#[cfg(test)]
mod tests;
mod text;

use regex_syntax::{
    ast::{
        self, Assertion, AssertionKind, Ast, ClassSet, ClassSetItem, ErrorKind, Flag, Flags, Repetition,
        RepetitionKind, RepetitionOp, RepetitionRange, Visitor, parse::ParserBuilder,
    },
    hir::translate::TranslatorBuilder,
};

use super::{
    Grammar, GrammarError, GrammarWarning, GrammarWarningKind, Pattern,
    errors::quoted,
    ir::GrammarBuilder,
    source::{Source, Span},
};
use crate::{
    ids::as_index,
    limits::{Budget, LimitExceeded, Limits},
};
use extensions::{ExtensionUses, Folding};
use text::PreparedRegex;

/// The size that a class such as `\w` is counted with, in bytes of text: it becomes hundreds of ranges.
const NAMED_CLASS_BYTES: usize = 96;

/// Reads a regular expression.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Grammar, GrammarError> {
    let (pattern, warnings) = read(text, limits)?;
    root_of(pattern, warnings, Span::from_range(0..text.len()), limits)
}

/// Reads a regular expression in a grammar of another notation, with the flags behind it: its language as a
/// whole. Places are in `text`.
pub(super) fn leaf(
    text: &str,
    flags: &str,
    limits: &Limits,
) -> Result<(Pattern, Vec<GrammarWarning>), GrammarError> {
    if flags.is_empty() {
        return read(text, limits);
    }
    let head = format!("(?{flags})");
    let whole = format!("{head}{text}");
    let before = Span::from_range(0..head.len()).end;
    let end = Span::from_range(0..text.len()).end;
    let inside = |span: Span| {
        let at = |offset: u32| offset.saturating_sub(before).min(end);
        Span::new(at(span.start), at(span.end))
    };
    let source = Source::new(text);
    match read(&whole, limits) {
        Ok((pattern, warnings)) => {
            Ok((pattern, warnings.into_iter().map(|warning| warning.moved(source, inside)).collect()))
        }
        Err(error) => Err(error.moved(source, inside)),
    }
}

fn read(text: &str, limits: &Limits) -> Result<(Pattern, Vec<GrammarWarning>), GrammarError> {
    if text.len() > limits.regex_bytes {
        let limit =
            LimitExceeded::new(Budget::RegexBytes, "bytes of a regular expression", limits.regex_bytes);
        return Err(GrammarError::limit(limit).with_hint("the budget is `Limits::regex_bytes`"));
    }
    let mut prepared = PreparedRegex::new(text, limits)?;
    let mut ast = ParserBuilder::new()
        .nest_limit(limits.regex_nesting)
        .build()
        .parse(prepared.text())
        .map_err(|error| syntax_error(&prepared, text, &error))?;
    extensions::take(&mut ast, &mut prepared)?;
    drop_anchors(&mut ast, true, true);
    let check = RegexCheck {
        prepared: &prepared,
        limits,
        named_classes: 0,
        modes: Folding { ignore_case: false, unicode: true },
        outer: Vec::new(),
        found: RegexFindings::default(),
    };
    let RegexFindings { possessive, foldings } = ast::visit(&ast, check)?;
    let hir =
        TranslatorBuilder::new().utf8(false).build().translate(prepared.text(), &ast).map_err(|error| {
            GrammarError::syntax(error.kind().to_string()).at(
                prepared.source(),
                prepared.place(error.span()),
                "",
            )
        })?;
    for place in possessive {
        prepared.warn(
            GrammarWarningKind::Possessive,
            "this `+` repeats a repeat; Python and PCRE read a possessive repeat, which gives nothing back",
            place,
            "leave the `+` out, or write the repeat in a group, as in `(?:a*)+`",
        );
    }
    let mut pattern = Pattern::from_hir(hir).map_err(|error| GrammarError::unsupported(error.to_string()))?;
    if let Some(hir) = pattern.hir().filter(|_| !prepared.uses().is_empty()) {
        let classes = pattern.classes();
        pattern = ExtensionUses { prepared: &prepared, foldings, limits }.pattern(hir)?;
        if let Some(class) = classes.first().filter(|_| pattern.hir().is_none()) {
            let message =
                format!("{} is one token of the model, and an automaton is about text", quoted(class.name()));
            let hint = "in GBNF it may stand beside `TEXT_UNTIL(..)`, `SUBSTRING_OF(..)` and lists";
            return Err(GrammarError::unsupported(message)
                .at(Source::new(text), Span::from_range(0..text.len()), "")
                .with_hint(hint));
        }
    }
    Ok((pattern, prepared.into_warnings()))
}

fn root_of(
    pattern: Pattern,
    warnings: Vec<GrammarWarning>,
    span: Span,
    limits: &Limits,
) -> Result<Grammar, GrammarError> {
    let mut builder = GrammarBuilder::new(limits);
    let body = builder.pattern(pattern, span).map_err(GrammarError::limit)?;
    let impossible = |_| GrammarError::syntax("the start rule is missing");
    builder.define("root", body, span).map_err(|_| GrammarError::syntax("the start rule is there twice"))?;
    builder.warn(warnings);
    builder.finish("root").map_err(impossible)
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
        Ast::Group(group) if extensions::index(group).is_none() => {
            drop_anchors(&mut group.ast, at_start, at_end);
        }
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

/// The findings of a [`RegexCheck`].
#[derive(Debug, Default)]
struct RegexFindings {
    /// Repeats of repeats that other dialects read as possessive.
    possessive: Vec<Span>,
    /// The flags in force outside of each extension.
    foldings: Vec<(usize, Folding)>,
}

/// A check that stops at the first part that is not allowed, before anything large is made of it.
struct RegexCheck<'a, 't> {
    prepared: &'a PreparedRegex<'t>,
    limits: &'a Limits,
    named_classes: usize,
    modes: Folding,
    /// The modes outside of each open group.
    outer: Vec<Folding>,
    found: RegexFindings,
}

impl Folding {
    fn set(&mut self, flags: &Flags) {
        self.ignore_case = flags.flag_state(Flag::CaseInsensitive).unwrap_or(self.ignore_case);
        self.unicode = flags.flag_state(Flag::Unicode).unwrap_or(self.unicode);
    }
}

impl RegexCheck<'_, '_> {
    fn at(&self, error: GrammarError, span: &ast::Span, label: &str) -> GrammarError {
        error.at(self.prepared.source(), self.prepared.place(span), label)
    }

    fn assertion(&self, assertion: &Assertion) -> GrammarError {
        let what = match assertion.kind {
            AssertionKind::StartLine
            | AssertionKind::EndLine
            | AssertionKind::StartText
            | AssertionKind::EndText => "anchor",
            _ => "word boundary",
        };
        let written = self.prepared.original(self.prepared.place(&assertion.span));
        let error =
            GrammarError::unsupported(format!("the {what} {} is not supported here", quoted(written)));
        let hint = match written {
            "\\<" | "\\>" => "as characters, `<` and `>` are written without a backslash",
            _ => "the whole text is matched: `^` and `$` may only stand at its ends",
        };
        self.at(error, &assertion.span, "asks about the text around it").with_hint(hint)
    }

    /// Refuses an empty class at its place, to which an error about an empty grammar would not lead.
    fn class(&self, class: &Ast) -> Result<(), GrammarError> {
        let Folding { ignore_case, unicode } = self.modes;
        let mut translator = TranslatorBuilder::new();
        translator.utf8(false).unicode(unicode).case_insensitive(ignore_case);
        // Parts that cannot be translated are reported when the whole is.
        let hir = translator.build().translate(self.prepared.text(), class);
        if hir.is_ok_and(|hir| hir.properties().minimum_len().is_none()) {
            let hint = match class {
                Ast::ClassBracketed(class) if matches!(class.kind, ClassSet::BinaryOp(_)) => {
                    "`&&`, `--` and `~~` are set operations; as characters write `\\&`, `\\-` and `\\~`"
                }
                _ => "every character is excluded; for any character write `(?s:.)`",
            };
            let error = GrammarError::syntax("this class is empty");
            return Err(self.at(error, class.span(), "no character is in it").with_hint(hint));
        }
        Ok(())
    }

    /// Notes a `+` directly behind a greedy repeat.
    fn possessive(&mut self, repetition: &Repetition) {
        if let Ast::Repetition(inner) = &*repetition.ast
            && inner.greedy
            && matches!(repetition.op.kind, RepetitionKind::OneOrMore)
        {
            let span = ast::Span::new(inner.op.span.start, repetition.op.span.end);
            self.found.possessive.push(self.prepared.place(&span));
        }
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
        let limit = as_index(self.limits.repeat);
        Err(GrammarError::limit(LimitExceeded::new(Budget::Repeat, "repeats in a count", limit))
            .at(self.prepared.source(), self.prepared.place(&op.span), "")
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
        .at(self.prepared.source(), self.prepared.place(span), "")
        .with_hint("repeats are better written with a count; the budget is `Limits::regex_bytes`"))
    }
}

impl Visitor for RegexCheck<'_, '_> {
    type Output = RegexFindings;
    type Err = GrammarError;

    fn finish(self) -> Result<RegexFindings, GrammarError> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), GrammarError> {
        match ast {
            Ast::Assertion(assertion) => Err(self.assertion(assertion)),
            Ast::Repetition(repetition) => {
                self.possessive(repetition);
                self.repetition(&repetition.op)
            }
            Ast::ClassUnicode(class) => self.named_class(&class.span),
            Ast::ClassPerl(class) => self.named_class(&class.span),
            Ast::Group(group) => {
                self.outer.push(self.modes);
                self.found.foldings.extend(extensions::index(group).map(|index| (index, self.modes)));
                if let Some(flags) = group.flags() {
                    self.modes.set(flags);
                }
                Ok(())
            }
            Ast::Flags(set) => {
                self.modes.set(&set.flags);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), GrammarError> {
        match ast {
            // Only now it is known that the class has few parts.
            Ast::ClassBracketed(class) if class.negated || !has_characters(&class.kind) => self.class(ast),
            Ast::ClassUnicode(_) => self.class(ast),
            Ast::Group(_) => {
                self.modes = self.outer.pop().unwrap_or(self.modes);
                Ok(())
            }
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

/// Quick, sufficient test that a class is not empty.
fn has_characters(class: &ClassSet) -> bool {
    let sure = |item: &ClassSetItem| matches!(item, ClassSetItem::Literal(_) | ClassSetItem::Range(_));
    match class {
        ClassSet::Item(ClassSetItem::Union(union)) => union.items.iter().any(sure),
        ClassSet::Item(item) => sure(item),
        ClassSet::BinaryOp(_) => false,
    }
}

fn syntax_error(prepared: &PreparedRegex<'_>, text: &str, error: &ast::Error) -> GrammarError {
    let (source, span) = (prepared.source(), prepared.place(error.span()));
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
            let most = as_index(*most);
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
        ErrorKind::EscapeUnrecognized => {
            let letter = from.chars().nth(1).unwrap_or_default();
            let (error, label) = match names::escape(letter) {
                Some(refused) => refused.error(),
                None => (names::unknown_escape(letter), ""),
            };
            error.at(source, span, label)
        }
        ErrorKind::FlagUnrecognized if text[..span.range().start].ends_with("(?") && starts(&[">"]) => {
            unsupported("an atomic group")
        }
        kind => {
            let counted = match kind {
                ErrorKind::RepetitionCountUnclosed | ErrorKind::RepetitionCountDecimalEmpty => true,
                ErrorKind::RepetitionMissing => starts(&["{"]),
                _ => false,
            };
            let error = GrammarError::syntax(kind.to_string()).at(source, span, "");
            if !counted {
                return error;
            }
            error.with_hint("as a character, `{` is written `\\{`; up to n times is `{0,n}`")
        }
    }
}
