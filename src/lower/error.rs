//! Why a grammar cannot be compiled.

use crate::limits::LimitExceeded;

/// Kinds of [`CompileError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileErrorKind {
    /// The grammar has no sentence at all, such as `root ::= root`.
    EmptyLanguage,
    /// A part of a list in any order, or its separator, matches the empty text.
    EmptyPart,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A grammar that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    kind: CompileErrorKind,
}

impl CompileError {
    pub(crate) fn new(kind: CompileErrorKind) -> Self {
        Self { kind }
    }

    pub(crate) fn limit(limit: LimitExceeded) -> Self {
        Self::new(CompileErrorKind::Limit(limit))
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &CompileErrorKind {
        &self.kind
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            CompileErrorKind::EmptyLanguage => f.write_str(
                "the grammar has no sentence: every way through its start rule needs a rule that never ends\n\
                 hint: give each recursive rule an alternative that does not use it, as in `list ::= item | item \",\" list`",
            ),
            CompileErrorKind::EmptyPart => f.write_str(
                "a part of a list in any order, or the separator between two, matches the empty text\n\
                 hint: leave out the part instead of letting it be empty",
            ),
            CompileErrorKind::Limit(limit) => {
                write!(f, "{limit}\nhint: {}", limit.hint())
            }
        }
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            CompileErrorKind::EmptyLanguage | CompileErrorKind::EmptyPart => None,
            CompileErrorKind::Limit(limit) => Some(limit),
        }
    }
}

impl From<LimitExceeded> for CompileError {
    fn from(limit: LimitExceeded) -> Self {
        Self::limit(limit)
    }
}
