//! Sets of Unicode strings.

use crate::{
    grammar::{
        GrammarBuilder, Span,
        json_schema::leaf::{LeafError, Spelling},
    },
    ids::ExprId,
};

/// A set of strings of Unicode scalar values: regular languages, and bounds on their length in characters.
///
/// Operations fail with [`LeafError::Budget`] where automata would become too large. `Eq` compares constructions: equal
/// values are equal sets, and equal sets are equal values unless length bounds are involved; [`same`](Self::same) is exact.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StringSet {}

impl StringSet {
    /// All strings.
    #[must_use]
    pub fn all() -> Self {
        Self {}
    }

    /// No string.
    #[must_use]
    pub fn none() -> Self {
        Self {}
    }

    /// Exactly this string.
    pub fn one(_string: &str) -> Result<Self, LeafError> {
        Ok(Self {})
    }

    /// Exactly these strings.
    pub fn of<S: AsRef<str>>(_strings: impl IntoIterator<Item = S>) -> Result<Self, LeafError> {
        Ok(Self {})
    }

    /// The strings in which an ECMA-262 regular expression finds a match.
    pub fn from_pattern(_pattern: &str) -> Result<Self, LeafError> {
        Ok(Self {})
    }

    /// The strings of a format, or `None` if the format is unknown (an annotation).
    pub fn from_format(_name: &str) -> Result<Option<Self>, LeafError> {
        Ok(None)
    }

    /// Those of `min` to `max` characters.
    pub fn with_length(&self, _min: u64, _max: Option<u64>) -> Result<Self, LeafError> {
        Ok(self.clone())
    }

    /// What is in both.
    pub fn intersect(&self, _other: &Self) -> Result<Self, LeafError> {
        Ok(self.clone())
    }

    /// What is in either.
    pub fn union(&self, _other: &Self) -> Result<Self, LeafError> {
        Ok(self.clone())
    }

    /// What is not in it.
    pub fn complement(&self) -> Result<Self, LeafError> {
        Ok(self.clone())
    }

    /// What is in it but not in `other`.
    pub fn subtract(&self, _other: &Self) -> Result<Self, LeafError> {
        Ok(self.clone())
    }

    /// Are these the same strings?
    pub fn same(&self, other: &Self) -> Result<bool, LeafError> {
        Ok(self == other)
    }

    /// Is there no string in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Is every string in it?
    #[must_use]
    pub fn is_all(&self) -> bool {
        true
    }

    /// Is `string` in it?
    #[must_use]
    pub fn contains(&self, _string: &str) -> bool {
        true
    }

    /// Its strings in order of their characters, if there are at most `limit`.
    #[must_use]
    pub fn as_finite(&self, _limit: usize) -> Option<Vec<String>> {
        None
    }

    /// The JSON texts of its strings, with their quotes.
    pub fn emit(
        &self,
        builder: &mut GrammarBuilder,
        _spelling: Spelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        Ok(builder.sequence(Vec::new(), span)?)
    }
}
