//! Stand-ins for the languages of strings and numbers: finite sets and their complements.

use std::collections::BTreeSet;

use regex_syntax::hir::{Hir, Repetition};

use crate::{
    grammar::{GrammarBuilder, Pattern, source::Span},
    ids::ExprId,
};


use super::leaf::{LeafError, Spelling};
type R<T> = Result<T, LeafError>;
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Integers {
    ByValue,
    BySpelling,
}
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Decimal(String);
impl Decimal {
    pub(super) fn parse(text: &str) -> R<Self> {
        Ok(Self(text.to_owned()))
    }
    pub(super) fn is_negative(&self) -> bool {
        self.0.starts_with('-')
    }
    pub(super) fn is_zero(&self) -> bool {
        self.0 == "0"
    }
    pub(super) fn to_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NumberSet {
    All,
    Integers,
    Some(BTreeSet<Decimal>),
}

impl NumberSet {
    pub(super) fn all() -> Self {
        Self::All
    }
    pub(super) fn none() -> Self {
        Self::Some(BTreeSet::new())
    }
    pub(super) fn integers(_: Integers) -> Self {
        Self::Integers
    }
    pub(super) fn of(numbers: impl IntoIterator<Item = Decimal>) -> Self {
        Self::Some(numbers.into_iter().collect())
    }
    pub(super) fn at_least(_: &Decimal, _: bool) -> Self {
        Self::All
    }
    pub(super) fn at_most(_: &Decimal, _: bool) -> Self {
        Self::All
    }
    pub(super) fn multiples_of(_: &Decimal) -> R<Self> {
        Ok(Self::All)
    }
    pub(super) fn complement(&self) -> R<Self> {
        match self {
            Self::All => Ok(Self::none()),
            Self::Some(some) if some.is_empty() => Ok(Self::All),
            _ => Err(LeafError::Number("no complements yet".into())),
        }
    }
    pub(super) fn intersect(&self, other: &Self) -> R<Self> {
        Ok(match (self, other) {
            (Self::All, x) | (x, Self::All) => x.clone(),
            (Self::Some(x), Self::Some(y)) => Self::Some(x & y),
            (Self::Some(x), _) | (_, Self::Some(x)) => Self::Some(x.clone()),
            _ => Self::Integers,
        })
    }
    pub(super) fn union(&self, other: &Self) -> R<Self> {
        Ok(match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Some(x), Self::Some(y)) => Self::Some(x | y),
            (Self::Some(x), y) | (y, Self::Some(x)) if x.is_empty() => y.clone(),
            _ => Self::Integers,
        })
    }
    pub(super) fn is_all(&self) -> bool {
        *self == Self::All
    }
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Some(x) if x.is_empty())
    }
    pub(super) fn as_finite(&self, limit: usize) -> Option<Vec<Decimal>> {
        match self {
            Self::Some(x) if x.len() <= limit => Some(x.iter().cloned().collect()),
            _ => None,
        }
    }
    pub(super) fn emit(&self, builder: &mut GrammarBuilder, _: Spelling, span: Span) -> R<ExprId> {
        let hir = match self {
            Self::All => regex_syntax::Parser::new().parse(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?").unwrap(),
            Self::Integers => regex_syntax::Parser::new().parse(r"-?(0|[1-9][0-9]*)(\.0+)?").unwrap(),
            Self::Some(x) => Hir::alternation(x.iter().map(|x| Hir::literal(x.0.clone().into_bytes())).collect()),
        };
        let _ = Repetition { min: 0, max: None, greedy: true, sub: Box::new(Hir::empty()) };
        builder.pattern(Pattern::from_hir(hir).unwrap(), span).map_err(|e| LeafError::Number(e.to_string()))
    }
}
