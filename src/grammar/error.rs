//! What is wrong with a grammar text, and where.
use super::source::Span;
use crate::limits::LimitExceeded;

/// Kinds of [`GrammarError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarErrorKind {
    /// The text is not of the notation.
    Syntax,
    /// Rules are used but not defined.
    Undefined(Vec<String>),
    /// No start rule.
    NoRoot,
    /// A rule is defined twice.
    Duplicate(String),
    /// A part of the notation that cannot be supported, such as look-around.
    Unsupported,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A grammar text that cannot be used. `Display` prints line, column, a caret excerpt and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrammarError {
    kind: GrammarErrorKind,
    span: Option<Span>,
}
impl GrammarError {
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &GrammarErrorKind {
        &self.kind
    }
    /// Where (the first place).
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.span
    }
}
impl std::fmt::Display for GrammarError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}
impl std::error::Error for GrammarError {}
