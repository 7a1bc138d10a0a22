//! Errors of compiling a grammar.

use std::borrow::Cow;

use crate::{grammar::Location, limits::LimitExceeded, vocab::VocabularyError};

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
    NoTokens(String),
    /// The grammar asks for the token of a number that the vocabulary does not use.
    NoToken {
        /// The number.
        number: u32,
        /// One more than the vocabulary's greatest number.
        size: usize,
    },
    /// This part of the grammar asks for one of some tokens, and none of those can stand in a text.
    NoTokenLeft(String),
    /// The vocabulary cannot have the special tokens that the grammar asks for as text.
    Vocabulary(VocabularyError),
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A grammar that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    kind: CompileErrorKind,
    place: Option<Box<Location>>,
}

impl CompileError {
    pub(crate) fn new(kind: CompileErrorKind) -> Self {
        Self { kind, place: None }
    }

    /// Adds the part of the grammar text where the error is.
    pub(crate) fn at(self, place: Option<&Location>) -> Self {
        Self { place: place.cloned().map(Box::new), ..self }
    }

    pub(crate) fn limit(limit: LimitExceeded) -> Self {
        Self::new(CompileErrorKind::Limit(limit))
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &CompileErrorKind {
        &self.kind
    }

    /// True if somebody has ended the compiling by its [`Cancel`](crate::Cancel), or the time of that is
    /// over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(&self.kind, CompileErrorKind::Limit(limit) if limit.is_cancelled())
    }

    /// The part of the grammar text that the error is about, where that is one token.
    #[must_use]
    pub fn place(&self) -> Option<&Location> {
        self.place.as_deref()
    }
}

impl CompileErrorKind {
    /// Describes the error.
    fn message(&self) -> String {
        match self {
            Self::EmptyLanguage => {
                "the grammar has no sentence: every way through its start rule needs a rule that never ends"
                    .to_owned()
            }
            Self::EmptyPart => {
                "a part of a list in any order, or the separator between two, matches the empty text"
                    .to_owned()
            }
            Self::NoSpecialToken(name, _) => {
                format!("the vocabulary has no token `{name}`, which the grammar asks for")
            }
            Self::EndsText(name) => {
                format!(
                    "the grammar asks for the special token `{name}`, which ends the text in this vocabulary"
                )
            }
            Self::SpecialsAmongBytes => {
                "the grammar asks for special tokens and for the byte 0xFF, which no text has".to_owned()
            }
            Self::NoTokens(name) => format!("`{name}` is one token of a model, and here is none"),
            Self::NoToken { number, size } => {
                let within = usize::try_from(*number).is_ok_and(|number| number < *size);
                let unused = if within { " and does not use this one" } else { "" };
                format!(
                    "the vocabulary has no token {number}, which the grammar asks for: \
                     it has {size} numbers, 0 to {}{unused}",
                    size.saturating_sub(1)
                )
            }
            Self::NoTokenLeft(written) => {
                format!("the vocabulary has no token for `{written}` that may stand in a text")
            }
            Self::Vocabulary(error) => error.to_string(),
            Self::Limit(limit) => limit.to_string(),
        }
    }

    /// Suggests a way out.
    fn hint(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::EmptyLanguage => "give each recursive rule an alternative that does not use it, as in \
                 `list ::= item | item \",\" list`"
                .into(),
            Self::EmptyPart => "leave out the part instead of letting it be empty".into(),
            Self::NoSpecialToken(_, Some(near)) => format!("did you mean `{near}`?").into(),
            Self::NoSpecialToken(_, None) => {
                "take the grammar for this model, or write the name as text".into()
            }
            Self::EndsText(_) => {
                "leave it out where the text ends, and name other tokens that end the text".into()
            }
            Self::SpecialsAmongBytes => {
                "match characters, not bytes, in a grammar with special tokens".into()
            }
            Self::NoTokens(_) => {
                "give a vocabulary, with --tokenizer or --model where there is such a flag".into()
            }
            Self::NoToken { .. } => {
                "numbers are of one vocabulary: take the grammar for this model, or give the token's name"
                    .into()
            }
            Self::NoTokenLeft(_) => "tokens that end the text stand nowhere in a grammar".into(),
            Self::Vocabulary(_) => return None,
            Self::Limit(limit) => limit.hint().into(),
        })
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind.message())?;
        if let Some(place) = &self.place {
            f.write_str("\n")?;
            place.write(f)?;
        }
        match self.kind.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
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
