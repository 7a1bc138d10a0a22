//! Mistakes in grammar texts: errors, and warnings of parts that are valid but may not mean what their author
//! expects.
//!
//! Every front end makes errors, and attaches warnings to the grammar; nothing prints them here. Both own
//! short excerpts and not the text, so they stay small for any text.

use std::fmt;

use super::source::{Excerpt, Position, Source, Span};
use crate::limits::LimitExceeded;

/// Limit on the places shown of one error, and on the names listed in a message.
pub(super) const MOST_SHOWN: usize = 20;
/// Limit on the characters shown of a name.
const NAME_CHARS: usize = 60;

/// The kind of a [`GrammarError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarErrorKind {
    /// The text is not UTF-8.
    NotUtf8,
    /// The text is not of the notation.
    Syntax,
    /// Rules are used but not defined: all of them, in order of first use.
    Undefined(Vec<String>),
    /// There is no start rule.
    NoRoot,
    /// A rule is defined twice.
    Duplicate(String),
    /// A part of the notation that cannot be supported, such as look-around.
    Unsupported,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A grammar text that cannot be used. `Display` prints what is wrong; then for each place its line and
/// column, and the line with carets and a label; then a hint if there is one. There is no line feed at the
/// end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrammarError {
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: GrammarErrorKind,
    message: String,
    places: Vec<Location>,
    hidden_places: usize,
    hint: Option<String>,
}

/// A place in a grammar text, with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    span: Span,
    excerpt: Excerpt,
    label: String,
    /// The name of the text, if it is not the grammar's.
    document: Option<Box<str>>,
}

impl Location {
    pub(super) fn new(source: Source<'_>, span: Span, label: impl Into<String>) -> Self {
        Self { span, excerpt: source.excerpt(span), label: label.into(), document: None }
    }

    /// Makes it a place in another text than the grammar's, which has a name.
    pub(super) fn in_document(mut self, name: Option<&str>) -> Self {
        self.document = name.map(Into::into);
        self
    }

    /// Moves the place of a text that is a part of another one. Places in further documents stay.
    pub(super) fn moved(&self, source: Source<'_>, to: impl Fn(Span) -> Span) -> Self {
        if self.document.is_some() {
            return self.clone();
        }
        Self::new(source, to(self.span), self.label.clone())
    }

    /// Writes line and column, the line, and carets with the label.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.excerpt.write(f, self.document.as_deref(), &self.label)
    }

    /// The bytes of the text.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// The line and column where it begins.
    #[must_use]
    pub fn position(&self) -> Position {
        self.excerpt.position()
    }

    /// The name of the text, if that is not the grammar's own but a document that it refers to.
    #[must_use]
    pub fn document(&self) -> Option<&str> {
        self.document.as_deref()
    }

    /// The label, which may be empty.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }
}

impl GrammarError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &GrammarErrorKind {
        &self.inner.kind
    }

    /// The message: what is wrong, in one line of words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The first place.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.inner.places.first().map(Location::span)
    }

    /// All places, at most twenty; the first is the one to look at first.
    #[must_use]
    pub fn places(&self) -> &[Location] {
        &self.inner.places
    }

    /// A hint that may help.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// True if somebody has ended the reading by its [`Cancel`](crate::Cancel), or the time of that is over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind(), GrammarErrorKind::Limit(limit) if limit.is_cancelled())
    }

    /// An error without a place yet.
    pub(crate) fn new(kind: GrammarErrorKind, message: impl Into<String>) -> Self {
        let inner = Inner { kind, message: message.into(), places: Vec::new(), hidden_places: 0, hint: None };
        Self { inner: Box::new(inner) }
    }

    /// An error of a text that is not of the notation.
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(GrammarErrorKind::Syntax, message)
    }

    /// An error of a construct that the notation has, and Domino does not.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(GrammarErrorKind::Unsupported, message)
    }

    /// An error of a budget that is used up.
    pub(crate) fn limit(limit: LimitExceeded) -> Self {
        let message = limit.to_string();
        Self::new(GrammarErrorKind::Limit(limit), message)
    }

    /// An error of work that was cancelled.
    pub(crate) fn cancelled(limit: LimitExceeded) -> Self {
        let hint = limit.hint();
        Self::limit(limit).with_hint(hint)
    }

    /// Adds a place.
    pub(crate) fn at(self, source: Source<'_>, span: Span, label: impl Into<String>) -> Self {
        self.at_place(|| Location::new(source, span, label))
    }

    /// Adds a place that may be in another text. One that is not shown is not made, which would take time
    /// linear in the text.
    pub(super) fn at_place(mut self, place: impl FnOnce() -> Location) -> Self {
        if self.inner.places.len() < MOST_SHOWN {
            self.inner.places.push(place());
        } else {
            self.inner.hidden_places += 1;
        }
        self
    }

    /// Moves an error of a text that is a part of another one: `source` is the whole, and `to` maps places in
    /// the part to places in the whole.
    pub(crate) fn moved(mut self, source: Source<'_>, to: impl Fn(Span) -> Span) -> Self {
        self.inner.places = self.inner.places.iter().map(|place| place.moved(source, &to)).collect();
        self
    }

    /// Makes all places those of another text than the grammar's, and puts its name before the message.
    pub(super) fn in_document(mut self, name: &str) -> Self {
        let places = std::mem::take(&mut self.inner.places);
        self.inner.places = places.into_iter().map(|place| place.in_document(Some(name))).collect();
        self.within(name)
    }

    /// Puts the name of a part before the message.
    pub(crate) fn within(mut self, part: &str) -> Self {
        self.inner.message = format!("{part}: {}", self.inner.message);
        self
    }

    /// Sets the hint, in place of any before.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for GrammarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, places, hidden_places, hint, .. } = &*self.inner;
        f.write_str(message)?;
        for place in places {
            writeln!(f)?;
            place.write(f)?;
        }
        if *hidden_places > 0 {
            write!(f, "\nand {hidden_places} more")?;
        }
        if let Some(hint) = hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for GrammarError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.kind {
            GrammarErrorKind::Limit(limit) => Some(limit),
            _ => None,
        }
    }
}

/// A name between backquotes, cut if it is very long.
pub(super) fn quoted(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("`{}\u{2026}`", &name[..end]),
        None => format!("`{name}`"),
    }
}

/// Names between backquotes with commas, and the number of those left out.
pub(super) fn quoted_list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let hidden = names.len().saturating_sub(MOST_SHOWN);
    let shown: Vec<String> = names.take(MOST_SHOWN).map(quoted).collect();
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The kind of a [`GrammarWarning`]. Most are about what another dialect of regular expressions reads in
/// another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GrammarWarningKind {
    /// `[a&&b]`, `[a--b]`, `[a~~b]`: a set operation, not characters.
    SetOperation,
    /// `[a[b]]`: a literal `[` where other dialects nest a class.
    NestedClass,
    /// `[:alpha:]` outside of a class: a class of these letters.
    PosixOutsideClass,
    /// `[]...[...]`: a class that begins with a literal `]`, not an empty class.
    LeadingBracket,
    /// `[--a]`, `[]-a]`: a first dash or bracket is a character of its own and begins no range.
    LeadingRange,
    /// `(?x)[a b]`: white space is left out of a class too.
    SpaceInClass,
    /// `a{2, 3}`: a count, although white space is in it.
    SpaceInCount,
    /// `a*+`: a repeat of a repeat, not a possessive one.
    Possessive,
    /// `\v`: the vertical tab, not all vertical white space.
    VerticalTab,
    /// Lark's `name.2: ..`: every way to split a text is followed, so priorities decide nothing.
    Priority,
    /// An option that does not change the set of texts, such as `temperature`, or a keyword of a JSON Schema
    /// that restricts nothing in its place, such as one that its draft does not have.
    WithoutEffect,
    /// A schema inside of another grammar, where the rule that no key comes twice cannot be kept.
    DuplicateKeys,
    /// Strings between tags that are longer than can be counted, which are left out.
    LongStrings,
    /// XGrammar's lookahead assertion: a hint for its compiler.
    Lookahead,
    /// A keyword of a JSON Schema that no draft knows, which restricts nothing.
    UnknownKeyword,
}

impl GrammarWarningKind {
    /// The name of the kind in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SetOperation => "set operation",
            Self::NestedClass => "nested class",
            Self::PosixOutsideClass => "POSIX class outside of a class",
            Self::LeadingBracket => "leading bracket",
            Self::LeadingRange => "leading range",
            Self::SpaceInClass => "space in class",
            Self::SpaceInCount => "space in count",
            Self::Possessive => "possessive",
            Self::VerticalTab => "vertical tab",
            Self::Priority => "priority",
            Self::WithoutEffect => "without effect",
            Self::DuplicateKeys => "duplicate keys",
            Self::LongStrings => "long strings",
            Self::Lookahead => "lookahead",
            Self::UnknownKeyword => "unknown keyword",
        }
    }
}

/// A part of a grammar text that may not mean what its author expects. `Display` prints, like an error, the
/// message, the line and column, the line with carets, and a hint; there is no line feed at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrammarWarning {
    kind: GrammarWarningKind,
    message: String,
    place: Location,
    hint: String,
}

impl GrammarWarning {
    pub(crate) fn new(
        kind: GrammarWarningKind,
        message: impl Into<String>,
        source: Source<'_>,
        span: Span,
        hint: impl Into<String>,
    ) -> Self {
        Self { kind, message: message.into(), place: Location::new(source, span, ""), hint: hint.into() }
    }

    /// Moves a warning of a text that is a part of `source`; `to` maps its places.
    pub(super) fn moved(self, source: Source<'_>, to: impl Fn(Span) -> Span) -> Self {
        Self { place: self.place.moved(source, to), ..self }
    }

    /// Makes the place one in another text than the grammar's, which has a name.
    pub(super) fn in_document(self, name: Option<&str>) -> Self {
        Self { place: self.place.in_document(name), ..self }
    }

    /// Adds to the message that `count` more warnings are not shown.
    pub(super) fn with_more(mut self, count: usize) -> Self {
        self.message += &format!(" (and {count} more warnings)");
        self
    }

    /// Puts the name of a part before the message.
    pub(super) fn within(self, part: &str) -> Self {
        Self { message: format!("{part}: {}", self.message), ..self }
    }

    /// The kind of the warning.
    #[must_use]
    pub fn kind(&self) -> GrammarWarningKind {
        self.kind
    }

    /// The message: how the part is read here and elsewhere, in one line of words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The place of the part.
    #[must_use]
    pub fn place(&self) -> &Location {
        &self.place
    }

    /// A hint: a form that all dialects read in the same way.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for GrammarWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        writeln!(f)?;
        self.place.write(f)?;
        write!(f, "\nhint: {}", self.hint)
    }
}
