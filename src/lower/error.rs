//! Why a grammar cannot be compiled.

use crate::{limits::LimitExceeded, vocab::VocabularyError};

/// Kinds of [`CompileError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileErrorKind {
    /// The grammar has no sentence at all, such as `root ::= root`.
    EmptyLanguage,
    /// A part of a list in any order, or its separator, matches the empty text.
    EmptyPart,
    /// The grammar asks for a special token, and the vocabulary has no token of this name; perhaps this one
    /// is meant.
    NoSpecialToken(String, Option<String>),
    /// The grammar asks for a special token of this name, and that token ends the text.
    EndsText(String),
    /// The grammar asks for special tokens and for bytes that are no text.
    SpecialsAmongBytes,
    /// The grammar asks for one token of a model, by this name, and is compiled for texts.
    NoTokens(&'static str),
    /// The vocabulary cannot have the special tokens that the grammar asks for as text.
    Vocabulary(VocabularyError),
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
            CompileErrorKind::NoSpecialToken(name, near) => {
                write!(f, "the vocabulary has no token `{name}`, which the grammar asks for")?;
                match near {
                    Some(near) => write!(f, "\nhint: did you mean `{near}`?"),
                    None => f.write_str("\nhint: take the grammar for this model, or write the name as text"),
                }
            }
            CompileErrorKind::EndsText(name) => write!(
                f,
                "the grammar asks for the special token `{name}`, which ends the text in this vocabulary\n\
                 hint: leave it out where the text ends, and name other tokens that end the text"
            ),
            CompileErrorKind::SpecialsAmongBytes => f.write_str(
                "the grammar asks for special tokens and for the byte 0xFF, which no text has\n\
                 hint: match characters, not bytes, in a grammar with special tokens",
            ),
            CompileErrorKind::NoTokens(name) => write!(
                f,
                "`{name}` is one token of a model, and here is none\n\
                 hint: give a vocabulary, with --tokenizer or --model where there is such a flag"
            ),
            CompileErrorKind::Vocabulary(error) => error.fmt(f),
            CompileErrorKind::Limit(limit) => {
                write!(f, "{limit}\nhint: {}", limit.hint())
            }
        }
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            CompileErrorKind::Limit(limit) => Some(limit),
            CompileErrorKind::Vocabulary(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LimitExceeded> for CompileError {
    fn from(limit: LimitExceeded) -> Self {
        Self::limit(limit)
    }
}
