//! Stand-ins for the languages of strings and numbers: finite sets and their complements.

use std::collections::BTreeSet;

use regex_syntax::hir::{Hir, Repetition};

use crate::{
    grammar::{GrammarBuilder, Pattern, source::Span},
    ids::ExprId,
};


#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Escapes {
    /// Every way that JSON has: `a` is also `\u0061`.
    #[default]
    All,
    /// As they are; escapes only where JSON demands them.
    Minimal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Spelling {
    pub(super) escapes: Escapes,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct LeafError(pub(super) String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Integers {
    ByValue,
    BySpelling,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StringSet {
    some: BTreeSet<String>,
    without: bool,
}

type R<T> = Result<T, LeafError>;

impl StringSet {
    pub(super) fn all() -> Self {
        Self { some: BTreeSet::new(), without: true }
    }
    pub(super) fn none() -> Self {
        Self { some: BTreeSet::new(), without: false }
    }
    pub(super) fn one(text: &str) -> R<Self> {
        Ok(Self { some: BTreeSet::from([text.to_owned()]), without: false })
    }
    pub(super) fn of<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> R<Self> {
        Ok(Self { some: texts.into_iter().map(|s| s.as_ref().to_owned()).collect(), without: false })
    }
    pub(super) fn from_pattern(pattern: &str) -> R<Self> {
        Err(LeafError(format!("no patterns yet: {pattern}")))
    }
    pub(super) fn from_format(_name: &str) -> R<Option<Self>> {
        Ok(None)
    }
    pub(super) fn with_length(&self, min: u64, max: Option<u64>) -> R<Self> {
        if min == 0 && max.is_none() { Ok(Self::all()) } else { Err(LeafError("no lengths yet".into())) }
    }
    pub(super) fn complement(&self) -> R<Self> {
        Ok(Self { some: self.some.clone(), without: !self.without })
    }
    pub(super) fn intersect(&self, other: &Self) -> R<Self> {
        Ok(match (self.without, other.without) {
            (true, true) => Self { some: &self.some | &other.some, without: true },
            (true, false) => Self { some: &other.some - &self.some, without: false },
            (false, true) => Self { some: &self.some - &other.some, without: false },
            (false, false) => Self { some: &self.some & &other.some, without: false },
        })
    }
    pub(super) fn union(&self, other: &Self) -> R<Self> {
        self.complement()?.intersect(&other.complement()?)?.complement()
    }
    pub(super) fn is_all(&self) -> bool {
        self.without && self.some.is_empty()
    }
    pub(super) fn is_empty(&self) -> bool {
        !self.without && self.some.is_empty()
    }
    pub(super) fn contains(&self, text: &str) -> bool {
        self.some.contains(text) != self.without
    }
    pub(super) fn as_finite(&self, limit: usize) -> Option<Vec<String>> {
        (!self.without && self.some.len() <= limit).then(|| self.some.iter().cloned().collect())
    }
    pub(super) fn emit(&self, builder: &mut GrammarBuilder, _: Spelling, span: Span) -> R<ExprId> {
        let hir = if self.without {
            regex_syntax::Parser::new().parse(r#""([^"\\\x00-\x1F]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*""#).unwrap()
        } else {
            Hir::alternation(
                self.some
                    .iter()
                    .map(|text| Hir::literal(serde_json::to_string(text).unwrap().into_bytes()))
                    .collect(),
            )
        };
        builder.pattern(Pattern::from_hir(hir).unwrap(), span).map_err(|e| LeafError(e.to_string()))
    }
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
            _ => Err(LeafError("no complements yet".into())),
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
        builder.pattern(Pattern::from_hir(hir).unwrap(), span).map_err(|e| LeafError(e.to_string()))
    }
}
