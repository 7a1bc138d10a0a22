//! Sets of numbers, and the ways in which JSON writes them.
//!
//! Values are exact decimals. A set knows its values, and for draft 4, where `1` is an integer and `1.0` is
//! not, also those that it has only if they are written without fraction and exponent.
//!
//! `decimal` has numbers, `reals` sets of values and functions of divisors; `bounds` and `multiples` are
//! automata that read texts digit by digit, `texts` combines them, and `plain` restricts them to texts that
//! all parsers read, within the `edges` of their types.

mod bounds;
mod decimal;
mod multiples;
mod plain;
#[cfg(test)]
mod plain_tests;
mod reals;
#[cfg(test)]
mod tests;
mod texts;

pub(super) use decimal::Decimal;
use reals::Reals;

use super::{
    automata::{AutomataCache, recipe},
    dfa::CharDfa,
    leaf::{LeafError, Numbers, ValueSpelling},
};
use crate::{
    grammar::{
        Automaton, GrammarBuilder, Pattern, Span,
        automaton::{Edge, State},
    },
    ids::ExprId,
};

/// Limit on the cuts of a set that is cached for all schemas: two bounds, and what a multiple leaves out.
const COMMON_CUTS: usize = 4;

/// The name of the automaton of a set's texts, in such a spelling.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Texts(NumberSet, Numbers);
recipe!(Texts, |Texts(set, _)| set.values.bytes() + set.plain.as_ref().map_or(0, Reals::bytes), |Texts(
    set,
    _,
)| set
    .is_all()
    || *set == NumberSet::integers(Integers::ByValue));

/// The meaning of "integer".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Integers {
    /// A number without fractional part, such as `1.0` (drafts from 6 on).
    ByValue,
    /// A number written without fraction and exponent (draft 4).
    BySpelling,
}

/// A set of numbers: intervals, multiples and single numbers, and Boolean combinations of these.
///
/// Operations fail with [`LeafError::Budget`] if there is too much to tell apart. `Eq` compares
/// constructions: values that are equal are equal sets, but equal sets may be different values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NumberSet {
    /// The numbers in the set, however they are written, unless `plain` says otherwise.
    values: Reals,
    /// The integers in the set when written without fraction and exponent; `None` if that makes no
    /// difference.
    plain: Option<Reals>,
    /// The part of the set that is written; `None` for all of it. A complement is written as a whole, so that
    /// what is written is always in the set.
    to_write: Option<Box<Self>>,
}

impl NumberSet {
    /// The set of all numbers.
    pub(super) fn all() -> Self {
        Self::by_value(Reals::always(true))
    }

    /// The empty set.
    pub(super) fn none() -> Self {
        Self::by_value(Reals::always(false))
    }

    fn by_value(values: Reals) -> Self {
        Self { values, plain: None, to_write: None }
    }

    /// The set of all integers.
    pub(super) fn integers(what: Integers) -> Self {
        let integers = Reals::multiples(Decimal::from(1));
        match what {
            Integers::ByValue => Self::by_value(integers),
            Integers::BySpelling => Self { plain: Some(integers), ..Self::by_value(Reals::always(false)) },
        }
    }

    /// The set of all numbers, of which those of an integer type are written: `int32` and its like, as the
    /// registry of OpenAPI's formats has them. `None` for other names.
    pub(super) fn writing_type(name: &str, what: Integers) -> Result<Option<Self>, LeafError> {
        let Some((least, most)) = plain::integer_type(name) else { return Ok(None) };
        let range = Self::by_value(Reals::range(least, most)).intersect(&Self::integers(what))?;
        Ok(Some(Self { to_write: Some(Box::new(range)), ..Self::all() }))
    }

    /// True if the name is that of an integer type.
    pub(super) fn is_integer_type(name: &str) -> bool {
        plain::integer_type(name).is_some()
    }

    /// The part of the set that is written, if that has any number; otherwise the set.
    pub(super) fn part(&self) -> &Self {
        self.to_write.as_deref().filter(|part| !part.is_empty()).unwrap_or(self)
    }

    /// The set of exactly these numbers.
    pub(super) fn of(numbers: impl IntoIterator<Item = Decimal>) -> Self {
        Self::by_value(Reals::of(numbers.into_iter().collect()))
    }

    /// The set of numbers of at least `bound`, or above it.
    pub(super) fn at_least(bound: &Decimal, exclusive: bool) -> Self {
        Self::by_value(Reals::cut(bound.clone(), false, !exclusive, true))
    }

    /// The set of numbers of at most `bound`, or below it.
    pub(super) fn at_most(bound: &Decimal, exclusive: bool) -> Self {
        Self::by_value(Reals::cut(bound.clone(), true, !exclusive, false))
    }

    /// The set of multiples of a positive number.
    ///
    /// # Errors
    /// If it is not positive.
    pub(super) fn multiples_of(divisor: &Decimal) -> Result<Self, LeafError> {
        if divisor.is_negative() || divisor.is_zero() {
            return Err(LeafError::Number(format!("a divisor must be greater than 0, not {divisor}")));
        }
        Ok(Self::by_value(Reals::multiples(divisor.clone())))
    }

    /// The intersection of both sets.
    ///
    /// # Errors
    /// If there are too many divisors or bounds, or if it takes too long to find out whether an interval has
    /// any number.
    pub(super) fn intersect(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(other.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(self.clone());
        }
        self.combine_both(other, |left, right| left && right)
    }

    /// The union of both sets.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn union(&self, other: &Self) -> Result<Self, LeafError> {
        if self.is_all() || other.is_empty() || self == other {
            return Ok(self.clone());
        }
        if other.is_all() || self.is_empty() {
            return Ok(other.clone());
        }
        self.combine_both(other, |left, right| left || right)
    }

    /// The complement of the set.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn complement(&self) -> Result<Self, LeafError> {
        let values = self.values.not()?;
        let Some(plain) = &self.plain else { return Ok(Self::by_value(values)) };
        Ok(Self { plain: Some(plain.not()?.whole()?), ..Self::by_value(values) })
    }

    /// The numbers of the set that are not in `other`.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn subtract(&self, other: &Self) -> Result<Self, LeafError> {
        if other.is_empty() || self.is_empty() {
            return Ok(self.clone());
        }
        let left = self.combine(other, |left, right| left && !right)?;
        let part = self.to_write.as_ref().map(|part| part.combine(other, |left, right| left && !right));
        Ok(Self { to_write: part.transpose()?.map(Box::new), ..left })
    }

    /// The bounds of the set from below and from above, if it has any; they need not be in it.
    pub(super) fn bounds(&self) -> (Option<&Decimal>, Option<&Decimal>) {
        let least = self.values.gaps().next().filter(|gap| gap.residues.is(false)).and_then(|gap| gap.before);
        let most = self.values.gaps().last().filter(|gap| gap.residues.is(false)).and_then(|gap| gap.after);
        (least, most)
    }

    /// True if membership depends on how a number is written, as in draft 4.
    pub(super) fn depends_on_spelling(&self) -> bool {
        self.plain.is_some()
    }

    /// True if the set has no number.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is(false) && self.plain.as_ref().is_none_or(|plain| plain.is(false))
    }

    /// True if the set has every number.
    pub(super) fn is_all(&self) -> bool {
        self.values.is(true) && self.plain.is_none() && self.to_write.is_none()
    }

    /// The numbers of the set in ascending order, if there are at most `limit`.
    pub(super) fn as_finite(&self, limit: usize) -> Option<Vec<Decimal>> {
        let mut numbers = self.values.finite(limit)?;
        if let Some(plain) = &self.plain {
            numbers.extend(plain.finite(limit)?);
            numbers.sort_unstable();
            numbers.dedup();
        }
        (numbers.len() <= limit).then_some(numbers)
    }

    /// Combines both sets, and the parts of them that are written.
    fn combine_both(&self, other: &Self, op: fn(bool, bool) -> bool) -> Result<Self, LeafError> {
        let both = self.combine(other, op)?;
        if self.to_write.is_none() && other.to_write.is_none() {
            return Ok(both);
        }
        let [one, two] = [self, other].map(|set| set.to_write.as_deref().unwrap_or(set));
        Ok(Self { to_write: Some(Box::new(one.combine(two, op)?)), ..both })
    }

    fn combine(&self, other: &Self, op: fn(bool, bool) -> bool) -> Result<Self, LeafError> {
        let values = self.values.combine(&other.values, op)?;
        if self.plain.is_none() && other.plain.is_none() {
            return Ok(Self::by_value(values));
        }
        let plain = |set: &Self| set.plain.clone().map_or_else(|| set.values.whole(), Ok);
        let plain = plain(self)?.combine(&plain(other)?, op)?.whole()?;
        let same = plain.combine(&values.whole()?, |left, right| left != right)?.is(false);
        Ok(Self { plain: (!same).then_some(plain), ..Self::by_value(values) })
    }

    /// The numbers of the set that have a text under this spelling.
    ///
    /// # Errors
    /// As [`intersect`](Self::intersect).
    pub(super) fn written(&self, numbers: Numbers) -> Result<Self, LeafError> {
        let set = self.part();
        if numbers == Numbers::Any || set.is_all() {
            return Ok(set.clone());
        }
        let plain = set.plain.as_ref().map(plain::written).transpose()?;
        Ok(Self { plain, ..Self::by_value(plain::written(&set.values)?) })
    }

    /// Writes the JSON texts of the set's numbers.
    ///
    /// Every text is of a number of the set, and every number has the texts that writers use: without
    /// exponent, with any zeros at the end of a fraction, and as `d.ddde+dd`.
    ///
    /// The set of all numbers has every text. In other sets an exponent follows one digit before the point
    /// (not `12e3`, not `0.5e1`), and where multiples matter at most 20 digits behind it; multiples of a
    /// number with more than two digits have no digits there. Of more than 400 single numbers only the texts
    /// of common writers are taken. With [`Numbers::Plain`] there are fewer texts, as said there.
    ///
    /// # Errors
    /// If automata would be too large (remainders of large multiples without bounds), or the grammar.
    pub(super) fn emit_with(
        &self,
        automata: &AutomataCache,
        builder: &mut GrammarBuilder,
        spelling: ValueSpelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        let set = self.part();
        if set.is_empty() {
            return Ok(builder.alternatives(Vec::new(), span)?);
        }
        let make = || match spelling.numbers {
            Numbers::Plain => ascii(&plain::texts(&set.values, set.plain.as_ref(), automata)?),
            Numbers::Any => ascii(&set.texts(automata)?),
        };
        let automaton = if set.values.cuts().len() <= COMMON_CUTS {
            automata.automaton(Texts(set.clone(), spelling.numbers), make)?
        } else {
            make()?
        };
        Ok(builder.pattern(Pattern::automaton(automaton), span)?)
    }

    /// The language of the texts of the set.
    fn texts(&self, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
        let values = texts::texts(&self.values, automata)?;
        let Some(plain) = &self.plain else { return Ok(values) };
        let integers = texts::plain_integers(automata)?;
        texts::texts(plain, automata)?.and(&integers)?.or(&values.minus(&integers)?)
    }
}

#[cfg(test)]
impl NumberSet {
    /// True if the number is in the set. In draft 4, where spelling counts: if integers are written as such.
    pub(super) fn contains(&self, number: &Decimal) -> bool {
        match &self.plain {
            Some(plain) if number.is_integer() => plain.contains(number),
            _ => self.values.contains(number),
        }
    }

    /// Writes the numbers without a cache.
    pub(super) fn emit(
        &self,
        builder: &mut GrammarBuilder,
        spelling: ValueSpelling,
        span: Span,
    ) -> Result<ExprId, LeafError> {
        self.emit_with(&AutomataCache::of_one_call(), builder, spelling, span)
    }
}

/// Turns an automaton over ASCII characters into one over bytes.
fn ascii(dfa: &CharDfa) -> Result<Automaton, LeafError> {
    let byte = |character: u32| {
        let other = |_| LeafError::Number("a number has a character that is not ASCII".to_owned());
        u8::try_from(character).map_err(other)
    };
    let edge = |(first, last, to)| -> Result<Edge, LeafError> {
        Ok(Edge { first: byte(first)?, last: byte(last)?, to })
    };
    let state = |state| -> Result<State, LeafError> {
        let edges = dfa.edges(state).into_iter().map(edge).collect::<Result<_, _>>()?;
        Ok(State { accepts: dfa.accepts(state), edges })
    };
    let states = dfa.states().map(state).collect::<Result<Vec<State>, _>>()?;
    let states = if states.is_empty() { vec![State::default()] } else { states };
    let limit = crate::limits::AUTOMATON_STATES;
    // Automata over characters are minimal and trimmed already.
    Automaton::trimmed(states).map_err(|_| LeafError::Budget { what: "states of numbers", limit })
}
