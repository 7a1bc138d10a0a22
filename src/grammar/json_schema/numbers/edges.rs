//! The range of numbers within which those of a set are written, so that the types of programs can hold them.
//!
//! Whole numbers fit 64 bits and have at most 19 digits, or 20 in a set without negative numbers, whose types
//! are unsigned; others fit an `f64`. If the set itself names a number beyond that (a bound, a single number
//! or a divisor), or has no other numbers, the next wider type is taken; beyond an `f64` there are no edges.
//! So a set that is not empty has a number within its edges, and a finite set all of its numbers: they lie
//! between its cuts, and are no less in size than its divisors.

use num_bigint::BigInt;

use super::{
    bounds::{WantedComparison, compared},
    decimal::Decimal,
    reals::Reals,
    texts::{self, signed},
};
use crate::grammar::json_schema::{automata::AutomataCache, dfa::CharDfa, leaf::LeafError};

/// The least and greatest numbers to be written, and the smallest in size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ExtremeNumbers {
    least: Option<Decimal>,
    most: Option<Decimal>,
    /// The least absolute value of a number that is written with an exponent.
    smallest: Option<Decimal>,
}

/// The largest finite `f64`, in the fewest digits.
fn largest_float() -> Decimal {
    Decimal::new(BigInt::from(17_976_931_348_623_157_i64), 292)
}

/// A lower bound on the texts that writers give the smallest positive `f64`, which is about `4.94e-324`: Java
/// writes `4.9E-324`, others `5e-324`.
fn smallest_float() -> Decimal {
    Decimal::new(BigInt::from(49), -325)
}

/// Number of digits of the largest `i64`, up to which whole numbers are written.
pub(super) const SIGNED_DIGITS: u32 = 19;
/// Number of digits of the largest `u64`, up to which those of a set without negative numbers are written.
pub(super) const UNSIGNED_DIGITS: u32 = 20;

/// The set of the numbers that are not negative.
fn not_negative() -> Reals {
    Reals::cut(Decimal::from(0), false, true, true)
}

fn minus(number: &Decimal) -> Decimal {
    number.times(&(-1).into())
}

fn size(number: &Decimal) -> Decimal {
    if number.is_negative() { minus(number) } else { number.clone() }
}

/// The sizes of the divisors that a set names.
fn divisors(reals: &Reals) -> impl Iterator<Item = Decimal> {
    reals.gaps().flat_map(|gap| gap.residues.divisors()).map(size)
}

/// The least and the greatest number that a set names: its cuts, and its divisors with either sign.
fn named(reals: &Reals) -> (Option<Decimal>, Option<Decimal>) {
    let cuts = || reals.cuts().iter().map(|(cut, _)| cut.clone());
    let least = cuts().chain(divisors(reals).map(|divisor| minus(&divisor))).min();
    (least, cuts().chain(divisors(reals)).max())
}

/// The most digits that stand before the point in texts without exponent, of the set's positive numbers and
/// of its negative ones: as many as of whole numbers of 64 bits. `None` if the set names a longer number.
pub(super) fn whole_digits(reals: &Reals) -> [Option<u32>; 2] {
    let power = |digits: u32| Decimal::new(1.into(), digits.into());
    let (least, most) = named(reals);
    let (least, most) = (least.map(|least| minus(&least)), most);
    let fits =
        |named: &Option<Decimal>, digits: &u32| named.as_ref().is_none_or(|named| *named < power(*digits));
    let unsigned = reals.are_in(&not_negative());
    let positive = [SIGNED_DIGITS, UNSIGNED_DIGITS].into_iter().skip(usize::from(unsigned));
    let negative = [SIGNED_DIGITS];
    [
        positive.into_iter().find(|digits| fits(&most, digits)),
        negative.into_iter().find(|digits| fits(&least, digits)),
    ]
}

impl ExtremeNumbers {
    const OPEN: Self = Self { least: None, most: None, smallest: None };

    /// The edges of whole numbers of 64 bits: up to [`UNSIGNED_DIGITS`] digits or up to [`SIGNED_DIGITS`].
    pub(super) fn of_64_bits(unsigned: bool) -> Self {
        let most = if unsigned { u64::MAX } else { 10_u64.pow(SIGNED_DIGITS) - 1 };
        let most = Decimal::new(BigInt::from(most), 0);
        Self { least: Some(Decimal::from(i64::MIN)), most: Some(most), smallest: None }
    }

    /// The edges of an `f64`.
    pub(super) fn of_floats() -> Self {
        let largest = largest_float();
        Self { least: Some(minus(&largest)), most: Some(largest), smallest: Some(smallest_float()) }
    }

    /// The edges of a set of numbers, which are all whole if `whole` is true.
    pub(super) fn of(reals: &Reals, whole: bool) -> Self {
        let (least, most) = named(reals);
        if whole {
            return Self::of_whole(reals, least.as_ref(), most.as_ref());
        }
        let cuts = reals.cuts().iter().map(|(cut, _)| size(cut));
        let smallest = cuts.chain(divisors(reals)).filter(|size| !size.is_zero()).min();
        let floats = Self::of_floats();
        let fits = least.is_none_or(|least| Some(least) >= floats.least)
            && most.is_none_or(|most| most <= largest_float())
            && smallest.is_none_or(|smallest| smallest >= smallest_float());
        if fits && floats.leave_some(reals) { floats } else { Self::OPEN }
    }

    fn of_whole(reals: &Reals, least: Option<&Decimal>, most: Option<&Decimal>) -> Self {
        let types = [Self::of_64_bits(false), Self::of_64_bits(true), Self::of_floats()];
        let (lows, highs) = (types.clone().map(|edges| edges.least), types.map(|edges| edges.most));
        let low = lows.iter().position(|low| least.is_none_or(|least| Some(least) >= low.as_ref()));
        let high = highs.iter().position(|high| most.is_none_or(|most| Some(most) <= high.as_ref()));
        let (low, high) = (low.unwrap_or(lows.len()), high.unwrap_or(highs.len()));
        let high = high.max(usize::from(reals.are_in(&not_negative())));
        // The numbers of the set may begin just beyond the range of a type.
        let wider = (0..lows.len()).map(|wider| {
            let edge = |edges: &[Option<Decimal>], at: usize| edges.get(at.max(wider)).cloned().flatten();
            Self { least: edge(&lows, low), most: edge(&highs, high), smallest: None }
        });
        wider.into_iter().find(|edges| edges.leave_some(reals)).unwrap_or(Self::OPEN)
    }

    /// The numbers of a set that are within the edges on either side.
    ///
    /// # Errors
    /// As [`Reals::combine`].
    pub(super) fn within(&self, reals: &Reals) -> Result<Reals, LeafError> {
        let both = |one: bool, other: bool| one && other;
        let mut within = reals.clone();
        if let Some(least) = &self.least {
            within = within.combine(&Reals::cut(least.clone(), false, true, true), both)?;
        }
        if let Some(most) = &self.most {
            within = within.combine(&Reals::cut(most.clone(), true, true, false), both)?;
        }
        Ok(within)
    }

    /// True if the set has a number within the edges, or if that takes too long to find out.
    fn leave_some(&self, reals: &Reals) -> bool {
        self.within(reals).map_or(true, |within| !within.is(false))
    }

    /// Restricts the texts of `form`, which are in normal form, to numbers within the edges.
    ///
    /// Texts without exponent are held to the least and greatest number alone, which makes them finite; with
    /// `exponents_alone` they are not restricted, since automata that count digits are large.
    ///
    /// # Errors
    /// As [`compared`].
    pub(super) fn cut(
        &self,
        form: &CharDfa,
        exponents_alone: bool,
        automata: &AutomataCache,
    ) -> Result<CharDfa, LeafError> {
        let fixed = texts::fixed(automata)?;
        let side = |edge: Option<&Decimal>| -> Result<CharDfa, LeafError> {
            let mut texts = CharDfa::all();
            if let Some(edge) = edge {
                texts = compared(&size(edge), WantedComparison { less: true, equal: true, greater: false })?;
            }
            if let Some(smallest) = &self.smallest {
                let above = compared(smallest, WantedComparison { less: false, equal: true, greater: true })?;
                texts = texts.and(&above.or(&fixed)?)?;
            }
            if exponents_alone { texts.or(&fixed) } else { Ok(texts) }
        };
        if *self == Self::OPEN {
            return Ok(form.clone());
        }
        signed(&side(self.most.as_ref())?, &side(self.least.as_ref())?)?.and(form)
    }
}
