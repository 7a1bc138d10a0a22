//! Errors in grammar texts: what is wrong, and where.
//!
//! Every front end makes these. An error owns short excerpts and not the text, so it stays small for any
//! text.

use std::fmt;

use crate::{
    grammar::source::{Excerpt, Position, Source, Span},
    limits::LimitExceeded,
};

/// Limit on the places shown of one error, and on the names listed in a message.
pub(in crate::grammar) const MOST_SHOWN: usize = 20;
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
    pub(in crate::grammar) fn new(source: Source<'_>, span: Span, label: impl Into<String>) -> Self {
        Self { span, excerpt: source.excerpt(span), label: label.into(), document: None }
    }

    /// Makes it a place in another text than the grammar's, which has a name.
    pub(in crate::grammar) fn in_document(mut self, name: Option<&str>) -> Self {
        self.document = name.map(Into::into);
        self
    }

    /// Moves the place of a text that is a part of another one. Places in further documents stay.
    pub(in crate::grammar) fn moved(&self, source: Source<'_>, to: impl Fn(Span) -> Span) -> Self {
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
    pub(in crate::grammar) fn at_place(mut self, place: impl FnOnce() -> Location) -> Self {
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
    pub(in crate::grammar) fn in_document(mut self, name: &str) -> Self {
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
pub(in crate::grammar) fn quoted(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("`{}\u{2026}`", &name[..end]),
        None => format!("`{name}`"),
    }
}

/// Names between backquotes with commas, and the number of those left out.
pub(in crate::grammar) fn quoted_list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let hidden = names.len().saturating_sub(MOST_SHOWN);
    let shown: Vec<String> = names.take(MOST_SHOWN).map(quoted).collect();
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
