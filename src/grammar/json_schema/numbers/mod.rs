//! Sets of numbers, and how JSON writes them.
//!
//! Values are exact decimals. A set knows which values it has, and in draft 4, where `1` is an integer and
//! `1.0` is none, which it has if they are written without fraction and exponent.
//!
//! What is what: `decimal` numbers, `residues` functions of divisors, `reals` sets of values; `bounds` and
//! `multiples` read texts digit by digit, `texts` puts these together, and `plain` has those of them that all
//! parsers read, within the `edges` of their types.

mod bounds;
mod decimal;
mod edges;
mod multiples;
mod plain;
#[cfg(test)]
mod plain_tests;
mod reals;
mod residues;
#[cfg(test)]
mod tests;
mod texts;

pub use decimal::Decimal;
use reals::Reals;

use super::{
    automata::{AutomataCache, recipe},
    dfa::CharDfa,
    leaf::{LeafError, Numbers, Spelling},
};
use crate::{
    grammar::{
        Automaton, GrammarBuilder, Pattern, Span,
        automaton::{Edge, State},
    },
    ids::ExprId,
};

/// Numbers at which a set that schemas may have in common is cut: two bounds, and what a multiple leaves out.
const COMMON_CUTS: usize = 4;

/// The texts of a set, in such spelling.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Texts(NumberSet, Numbers);
recipe!(Texts, |Texts(set, _)| set.values.bytes() + set.plain.as_ref().map_or(0, Reals::bytes), |Texts(
    set,
    _,
)| set
    .is_all()
    || *set == NumberSet::integers(Integers::ByValue));

/// What an integer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Integers {
    /// A number without fractional part, such as `1.0` (drafts from 6 on).
    ByValue,
    /// A number written without fraction and exponent (draft 4).
    BySpelling,
}

/// A set of numbers: intervals, multiples, single numbers, and what Boolean operations make of them.
///
/// Operations fail with [`LeafError::Budget`] where there is too much to tell apart. `Eq` compares
/// constructions: equal values are equal sets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberSet {
    /// By value, however written, unless `plain` says otherwise.
    values: Reals,
    /// The integers it has if they are written without fraction and exponent; `None` if that is all the same.
    plain: Option<Reals>,
}

impl NumberSet {
    /// All numbers.
    #[must_use]
    pub fn all() -> Self {
        Self::by_value(Reals::always(true))
    }

    /// No number.
    #[must_use]
    pub fn none() -> Self {
        Self::by_value(Reals::always(false))
    }

    fn by_value(values: Reals) -> Self {
        Self { values, plain: None }
    }

    /// All integers.
    #[must_use]
    pub fn integers(what: Integers) -> Self {
        let integers = Reals::multiples(Decimal::from(1));
        match what {
            Integers::ByValue => Self::by_value(integers),
            Integers::BySpelling => Self { values: Reals::always(false), plain: Some(integers) },
        }
    }

    /// Exactly these numbers.
    pub fn of(numbers: impl IntoIterator<Item = Decimal>) -> Self {
        Self::by_value(Reals::of(numbers.into_iter().collect()))
    }

    /// Numbers of at least `bound`, or above it.
    #[must_use]
    pub fn at_least(bound: &Decimal, exclusive: bool) -> Self {
        Self::by_value(Reals::cut(bound.clone(), false, !exclusive, true))
    }

    /// Numbers of at most `bound`, or below it.
    #[must_use]
    pub fn at_most(bound: &Decimal, exclusive: bool) -> Self {
        Self::by_value(Reals::cut(bound.clone(), true, !exclusive, false))
    }

    /// The multiples of a positive number.
    ///
    /// # Errors
    /// If it is not positive.
    pub fn multiples_of(divisor: &Decimal) -> Result<Self, LeafError> {
        if divisor.is_negative() || divisor.is_zero() {
            return Err(LeafError::Number(format!("a divisor must be greater than 0, not {divisor}")));
        }
        Ok(Self::by_value(Reals::multiples(divisor.clone())))
    }

    /// What is in both.
    ///
    /// # Errors
    /// If there are too many divisors or bounds, or it takes too long to find out whether an interval has any
    /// number.
    pub fn intersect(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(other.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(self.clone());
        }
        self.combine(other, |left, right| left && right)
    }

    /// What is in either.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub fn union(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(self.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(other.clone());
        }
        self.combine(other, |left, right| left || right)
    }

    /// What is not in it.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub fn complement(&self) -> Result<Self, LeafError> {
        let values = self.values.not()?;
        let Some(plain) = &self.plain else { return Ok(Self::by_value(values)) };
        Ok(Self { values, plain: Some(plain.not()?.whole()?) })
    }

    /// What is in it but not in `other`.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub fn subtract(&self, other: &Self) -> Result<Self, LeafError> {
        if other.is_empty() || self.is_empty() {
            return Ok(self.clone());
        }
        self.combine(other, |left, right| left && !right)
    }

    /// The least and the greatest number that it may have, where it is bounded; they need not be in it.
    pub(super) fn bounds(&self) -> (Option<&Decimal>, Option<&Decimal>) {
        let least = self.values.gaps().next().filter(|gap| gap.residues.is(false)).and_then(|gap| gap.before);
        let most = self.values.gaps().last().filter(|gap| gap.residues.is(false)).and_then(|gap| gap.after);
        (least, most)
    }

    /// Does it depend on how a number is written whether that is in it, as in draft 4?
    pub(super) fn depends_on_spelling(&self) -> bool {
        self.plain.is_some()
    }

    /// Is there no number in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is(false) && self.plain.as_ref().is_none_or(|plain| plain.is(false))
    }

    /// Is every number in it?
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.values.is(true) && self.plain.is_none()
    }

    /// Is the number in it? In draft 4, where writing counts: if an integer is written as one.
    #[must_use]
    pub fn contains(&self, number: &Decimal) -> bool {
        match &self.plain {
            Some(plain) if number.is_integer() => plain.contains(number),
            _ => self.values.contains(number),
        }
    }

    /// Its numbers in ascending order, if there are at most `limit`.
    #[must_use]
    pub fn as_finite(&self, limit: usize) -> Option<Vec<Decimal>> {
        let mut numbers = self.values.finite(limit)?;
        if let Some(plain) = &self.plain {
            numbers.extend(plain.finite(limit)?);
            numbers.sort_unstable();
            numbers.dedup();
        }
        (numbers.len() <= limit).then_some(numbers)
    }

    fn combine(&self, other: &Self, op: fn(bool, bool) -> bool) -> Result<Self, LeafError> {
        let values = self.values.combine(&other.values, op)?;
        if self.plain.is_none() && other.plain.is_none() {
            return Ok(Self::by_value(values));
        }
        let plain = |set: &Self| set.plain.clone().map_or_else(|| set.values.whole(), Ok);
        let plain = plain(self)?.combine(&plain(other)?, op)?.whole()?;
        let same = plain.combine(&values.whole()?, |left, right| left != right)?.is(false);
        Ok(Self { values, plain: (!same).then_some(plain) })
    }

    /// Its numbers that have a text.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub fn written(&self, numbers: Numbers) -> Result<Self, LeafError> {
        if numbers == Numbers::Any || self.is_all() {
            return Ok(self.clone());
        }
        let plain = self.plain.as_ref().map(plain::written).transpose()?;
        Ok(Self { values: plain::written(&self.values)?, plain })
    }

    /// The JSON texts of its numbers. Every text is of a number of the set, and every number has the texts
    /// that writers use: without exponent, with any zeros at the end of a fraction, and as `d.ddde+dd`.
    ///
    /// All numbers may be written in any way. Otherwise an exponent follows one digit before the point (not
    /// `12e3`, not `0.5e1`), and where multiples matter at most 20 digits after it; of a multiple of a number
    /// with more than two digits, none. Of more than 400 single numbers only the texts of common writers are
    /// taken. With [`Numbers::Plain`] there are fewer texts, as said there.
    ///
    /// # Errors
    /// If automata would be too large: remainders of large multiples without bounds, or the grammar.
    pub fn emit(
        &self,
        builder: &mut GrammarBuilder,
        spelling: Spelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        self.emit_with(&AutomataCache::of_one_call(), builder, spelling, span)
    }

    /// The same with automata that other sets may have in common.
    pub(super) fn emit_with(
        &self,
        automata: &AutomataCache,
        builder: &mut GrammarBuilder,
        spelling: Spelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        if self.is_empty() {
            return Ok(builder.alternatives(Vec::new(), span)?);
        }
        let make = || match spelling.numbers {
            Numbers::Plain => ascii(&plain::texts(&self.values, self.plain.as_ref(), automata)?),
            Numbers::Any => ascii(&self.texts(automata)?),
        };
        let automaton = if self.values.cuts().len() <= COMMON_CUTS {
            automata.automaton(Texts(self.clone(), spelling.numbers), make)?
        } else {
            make()?
        };
        Ok(builder.pattern(Pattern::automaton(automaton), span)?)
    }

    /// The texts of its numbers.
    fn texts(&self, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
        let values = texts::texts(&self.values, automata)?;
        let Some(plain) = &self.plain else { return Ok(values) };
        let integers = texts::plain_integers(automata)?;
        texts::texts(plain, automata)?.and(&integers)?.or(&values.minus(&integers)?)
    }
}

/// An automaton over ASCII characters as one over bytes.
fn ascii(dfa: &CharDfa) -> Result<Automaton, LeafError> {
    let byte = |character: u32| u8::try_from(character).unwrap_or(u8::MAX);
    let edge = |(first, last, to)| Edge { first: byte(first), last: byte(last), to };
    let states = (0..u32::try_from(dfa.len()).unwrap_or(u32::MAX)).map(|state| State {
        accepts: dfa.accepts(state),
        edges: dfa.edges(state).into_iter().map(edge).collect(),
    });
    let states: Vec<State> = states.collect();
    let states = if states.is_empty() { vec![State::default()] } else { states };
    let limit = crate::limits::AUTOMATON_STATES;
    // A language over characters has no two states that mean the same, nor one from which no text ends.
    Automaton::trimmed(states).map_err(|_| LeafError::Budget { what: "states of numbers", limit })
}
