//! Warnings: parts of a grammar that are valid but may not mean what their author expects.
//!
//! Front ends attach these to the grammar; nothing prints them here. Like an error, a warning owns a short
//! excerpt and not the text.

use std::fmt;

use super::error::Location;
use crate::grammar::source::{Source, Span};

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
    pub(in crate::grammar) fn moved(self, source: Source<'_>, to: impl Fn(Span) -> Span) -> Self {
        Self { place: self.place.moved(source, to), ..self }
    }

    /// Makes the place one in another text than the grammar's, which has a name.
    pub(in crate::grammar) fn in_document(self, name: Option<&str>) -> Self {
        Self { place: self.place.in_document(name), ..self }
    }

    /// Adds to the message that `count` more warnings are not shown.
    pub(in crate::grammar) fn with_more(mut self, count: usize) -> Self {
        self.message += &format!(" (and {count} more warnings)");
        self
    }

    /// Puts the name of a part before the message.
    pub(in crate::grammar) fn within(self, part: &str) -> Self {
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
