//! Errors of vocabularies.

use std::fmt;

/// Kinds of [`VocabularyError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabularyErrorKind {
    /// A file could not be read.
    Io,
    /// The text is not JSON, or ends too early.
    NotJson,
    /// The JSON is not a `tokenizer.json`: a part is missing or of the wrong type.
    Malformed,
    /// A `tokenizer.json` whose way of spelling bytes is not known: WordPiece, Unigram without byte
    /// fallback, suffixes for word ends.
    Unsupported,
    /// Two different tokens have this id.
    DuplicateId(u32),
    /// This id is 2^24 or more.
    IdTooLarge(u64),
    /// The tokens have more than 2^28 bytes in all.
    TooManyBytes,
    /// No token has any bytes.
    NoTokens,
    /// No token ends the text, so a text could never end.
    NoEndOfText,
    /// A text could not be turned into tokens, or tokens into a text.
    Encoding,
}

/// A vocabulary that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VocabularyError {
    kind: VocabularyErrorKind,
    message: String,
}

impl VocabularyError {
    /// Creates an error of `kind` with a sentence for people.
    pub(super) fn new(kind: VocabularyErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Puts the place where it was found in front of the sentence.
    pub(super) fn at(mut self, place: &dyn fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &VocabularyErrorKind {
        &self.kind
    }
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for VocabularyError {}
