//! Sets of numbers.

use crate::{
    grammar::{
        GrammarBuilder, Span,
        json_schema::leaf::{LeafError, Spelling},
    },
    ids::ExprId,
};

/// An exact decimal number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decimal {}

impl Decimal {
    /// Reads a JSON number.
    pub fn parse(_text: &str) -> Result<Self, LeafError> {
        Ok(Self {})
    }
}

/// What an integer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Integers {
    /// A number without fractional part, such as `1.0` (drafts from 6 on).
    ByValue,
    /// A number written without fraction and exponent (draft 4).
    BySpelling,
}

/// A set of numbers: intervals, multiples and single numbers.
///
/// `Eq` compares constructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberSet {}

impl NumberSet {
    /// All numbers.
    #[must_use]
    pub fn all() -> Self {
        Self {}
    }

    /// No number.
    #[must_use]
    pub fn none() -> Self {
        Self {}
    }

    /// All integers.
    #[must_use]
    pub fn integers(_what: Integers) -> Self {
        Self {}
    }

    /// Exactly these numbers.
    pub fn of(_numbers: impl IntoIterator<Item = Decimal>) -> Self {
        Self {}
    }

    /// Numbers of at least `bound`, or above it.
    #[must_use]
    pub fn at_least(_bound: &Decimal, _exclusive: bool) -> Self {
        Self {}
    }

    /// Numbers of at most `bound`, or below it.
    #[must_use]
    pub fn at_most(_bound: &Decimal, _exclusive: bool) -> Self {
        Self {}
    }

    /// The multiples of a positive number.
    pub fn multiples_of(_divisor: &Decimal) -> Result<Self, LeafError> {
        Ok(Self {})
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

    /// Is there no number in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Is every number in it?
    #[must_use]
    pub fn is_all(&self) -> bool {
        true
    }

    /// Is the number in it, however it is written? (For draft 4's integers: if it is written shortest.)
    #[must_use]
    pub fn contains(&self, _number: &Decimal) -> bool {
        true
    }

    /// Its numbers in ascending order, if there are at most `limit`.
    #[must_use]
    pub fn as_finite(&self, _limit: usize) -> Option<Vec<Decimal>> {
        None
    }

    /// The JSON texts of its numbers.
    pub fn emit(
        &self,
        builder: &mut GrammarBuilder,
        _spelling: Spelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        Ok(builder.sequence(Vec::new(), span)?)
    }
}
