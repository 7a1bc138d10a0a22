//! The texts of numbers that parsers of typed languages read.
//!
//! A set of whole numbers is written in digits alone. Other sets have decimal fractions, and one digit, a
//! fraction and an exponent, without redundant zeros except in a fraction of one or two digits: a price is
//! `19.90`, and writers of typed languages mark a float by `.0`. A model that means `19.90` writes `19.9`
//! first; if the 0 were refused then, it would have to go on to another number. A number that stands alone,
//! as those of `enum` and `const` do, has the one text that ECMAScript writes. Numbers that neither 64 bits
//! nor an `f64` hold have no text, unless the set asks for them ([`ExtremeNumbers`]). A number whose digits
//! lie outside of the set until their exponent comes has its text without exponent alone: `0.2`, not `2e-1`,
//! where numbers are at most 1.
//!
//! Digits are bounded, since a model may write them without end: before the point as in whole numbers, and
//! behind it to those that tell any `f64` from its neighbours. Other numbers have an exponent.
//!
//! In draft 4 a number written without fraction and exponent is another value than the same number written
//! with one. If only the latter is in a set, it is written with `.0`.

use num_bigint::BigInt;

use super::{
    bounds::{WantedComparison, compared},
    decimal::Decimal,
    multiples::fraction_digits,
    reals::Reals,
    texts::{self, DigitBounds, NumberLanguage, parts, signed},
};
use crate::{
    grammar::json_schema::{
        automata::{AutomataCache, recipe},
        dfa::CharDfa,
        leaf::LeafError,
    },
    ids::saturating_usize,
};

/// Decades in which ECMAScript writes no exponent: from `0.000001` to `999999999999999999999`.
const FIXED: std::ops::Range<i64> = -6..21;
/// Number of significant digits that tell any `f64` from its neighbours.
const FLOAT_DIGITS: u32 = 17;
/// Number of zeros behind the point of `0.000001`, the smallest power of ten that ECMAScript writes so.
const FIXED_ZEROS: u32 = 5;

/// Names of the automata of texts within the usual edges, which most sets share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Within {
    /// Whole numbers of 64 bits, with the digits of unsigned ones or with those of all.
    Bits { unsigned: bool },
    /// Numbers that an `f64` holds; with `exponents_alone` only texts with an exponent are restricted.
    Floats { digits: DigitBounds, exponents_alone: bool },
}
recipe!(Within, |_| 0, |_| true);

/// The least and the greatest number of an integer type, by its name in OpenAPI's registry of formats, or
/// among those that `schemars` writes.
pub(super) fn integer_type(name: &str) -> Option<(Decimal, Decimal)> {
    let range = |least: i64, most: u64| Some((least.into(), Decimal::new(most.into(), 0)));
    let signed = |most: i64| range(-most - 1, most.unsigned_abs());
    match name {
        "int8" => signed(i8::MAX.into()),
        "int16" => signed(i16::MAX.into()),
        "int32" => signed(i32::MAX.into()),
        "int64" | "int" => signed(i64::MAX),
        "uint8" => range(0, u8::MAX.into()),
        "uint16" => range(0, u16::MAX.into()),
        "uint32" => range(0, u32::MAX.into()),
        "uint64" | "uint" => range(0, u64::MAX),
        _ => None,
    }
}

/// The texts of a set's numbers: its values, and its integers when written without fraction and exponent,
/// where that makes a difference.
///
/// # Errors
/// As [`texts::texts`].
pub(super) fn texts(
    values: &Reals,
    integers: Option<&Reals>,
    automata: &AutomataCache,
) -> Result<CharDfa, LeafError> {
    let is_whole = values.is_whole();
    let Some(integers) = integers else {
        return if is_whole { whole(values, automata) } else { fractions(values, automata) };
    };
    let mut sum = whole(integers, automata)?;
    if !is_whole {
        sum = sum.or(&fractions(values, automata)?.minus(&texts::plain_integers(automata)?)?)?;
    }
    let others = values.whole()?.combine(integers, |values, integers| values && !integers)?;
    sum.or(&match texts::language(&others, automata)? {
        NumberLanguage::Listed(numbers) => CharDfa::of(numbers.iter().map(|number| fixed(number) + ".0"))?,
        NumberLanguage::Texts(texts) => {
            let form = texts::point_zero(automata)?;
            bounded(texts.and(&form)?, &ExtremeNumbers::of(&others, true).cut(&form, false, automata)?)?
        }
    })
}

/// The numbers of a set that have a text.
///
/// # Errors
/// As [`Reals::combine`].
pub(super) fn written(reals: &Reals) -> Result<Reals, LeafError> {
    let (alone, others) = reals.alone()?;
    let whole = reals.is_whole();
    // Whole numbers of such a set have any number of digits.
    if !whole && others.has_divisors() && digit_bounds(&others, None) == DigitBounds::NONE {
        return Ok(reals.clone());
    }
    let within = ExtremeNumbers::of(&others, whole).within(&others)?;
    within.combine(&Reals::of(alone), |one, other| one || other)
}

/// The texts of a set of whole numbers.
fn whole(reals: &Reals, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let (alone, others) = reals.alone()?;
    let others = match texts::language(&others, automata)? {
        NumberLanguage::Listed(numbers) => CharDfa::of(numbers.iter().map(fixed))?,
        NumberLanguage::Texts(texts) => {
            let texts = texts.and(&texts::digits(automata)?)?;
            let edges = ExtremeNumbers::of(&others, true);
            let cut = || edges.cut(&texts::digits(automata)?, false, automata);
            let usual = [false, true].into_iter().find(|it| edges == ExtremeNumbers::of_64_bits(*it));
            bounded(
                texts,
                &match usual {
                    Some(unsigned) => automata.language(Within::Bits { unsigned }, cut)?,
                    None => cut()?,
                },
            )?
        }
    };
    others.or(&CharDfa::of(alone.iter().map(fixed))?)
}

/// The texts that are also in `within`. If remainders of a large divisor and a count of digits are too much
/// for one automaton, all texts.
fn bounded(texts: CharDfa, within: &CharDfa) -> Result<CharDfa, LeafError> {
    match texts.and(within) {
        Err(LeafError::Budget { .. }) => Ok(texts),
        both => both,
    }
}

/// The texts of a set with numbers that are not whole.
fn fractions(reals: &Reals, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let (alone, others) = reals.alone()?;
    let needless = NeedlessExponents::of(&others);
    let texts = match texts::language(&others, automata)? {
        NumberLanguage::Listed(numbers) => CharDfa::of(numbers.iter().flat_map(usual))?,
        NumberLanguage::Texts(texts) => {
            let edges = ExtremeNumbers::of(&others, false);
            let with = |digits: DigitBounds| {
                // The product of remainders and the digits of the largest `f64` would be a large automaton.
                let exponents_alone = others.has_divisors();
                let cut = || edges.cut(&texts::usual(digits)?, exponents_alone, automata);
                texts.and(&match edges == ExtremeNumbers::of_floats() {
                    true => automata.language(Within::Floats { digits, exponents_alone }, cut)?,
                    false => cut()?,
                })
            };
            match with(digit_bounds(&others, needless)) {
                Err(LeafError::Budget { .. }) => with(DigitBounds::NONE)?,
                // The only numbers of the set have more digits.
                Ok(none) if none.is_empty() => with(DigitBounds::NONE)?,
                bounded => bounded?,
            }
        }
    };
    without_exponents(texts, needless)?.or(&CharDfa::of(alone.iter().map(one))?)
}

/// The bounds on the digits of a set's texts. Every `f64` of the set keeps a text: it has an exponent, or the
/// set asks for more digits. A set without exponents for small numbers has any number of zeros before these:
/// to count those of the smallest `f64` would make schemas of such sets ten times as slow to read.
fn digit_bounds(reals: &Reals, needless: Option<NeedlessExponents>) -> DigitBounds {
    let mut divisors = reals.gaps().flat_map(|gap| gap.residues.divisors());
    if divisors.any(|divisor| fraction_digits(divisor) == 0) {
        // Numbers with an exponent have one digit then.
        return DigitBounds::NONE;
    }
    let zeros = needless.is_none().then_some(FIXED_ZEROS);
    DigitBounds { whole: whole_digits(reals), fraction: Some(FLOAT_DIGITS), zeros }
}

/// The exponents that a set does without, where the digits before them are outside of the set: `2e-1` where
/// numbers are at most 1. A model that has written the 2 cannot end there, and would go on with a fraction.
/// The number of each such text keeps one without exponent.
///
/// Exponents stay where ECMAScript writes them: all if every number of the set is small, and those that are
/// not negative if some may be large.
#[derive(Debug, Clone, Copy)]
enum NeedlessExponents {
    All,
    Negative,
}

impl NeedlessExponents {
    /// Tells by value which exponents of a set are needless; `None` of most sets.
    ///
    /// None is if all numbers from 1 to 10 are in the set, since then all digits before an exponent are of a
    /// number in it; and no negative one if no number between 0 and 1 is in the set, since all of them lead
    /// there. Both hold for each sign by itself.
    fn of(reals: &Reals) -> Option<Self> {
        let up_to =
            |exponent| Reals::range(Decimal::new((-1).into(), exponent), Decimal::new(1.into(), exponent));
        let are_fixed = reals.are_in(&up_to(FIXED.end));
        let range = |from: i64, to: i64| Reals::range(from.min(to).into(), from.max(to).into());
        let is_needless = |sign: i64| {
            let of_sign = Reals::cut(0.into(), sign < 0, false, sign > 0);
            let reached = || match are_fixed {
                true => reals.combine(&of_sign, both),
                false => reals.combine(&of_sign, both)?.combine(&range(0, sign), both),
            };
            !range(sign, 10 * sign).are_in(reals) && !reached().is_ok_and(|reached| reached.is(false))
        };
        if ![1, -1].into_iter().any(is_needless) || reals.are_in(&up_to(FIXED.start)) {
            return None;
        }
        Some(if are_fixed { Self::All } else { Self::Negative })
    }
}

fn both(one: bool, other: bool) -> bool {
    one && other
}

/// Removes the texts with needless exponents. They stay where the automaton would be over its budget.
fn without_exponents(texts: CharDfa, needless: Option<NeedlessExponents>) -> Result<CharDfa, LeafError> {
    let Some(needless) = needless.filter(|_| !texts.is_empty()) else { return Ok(texts) };
    match texts::without_needed_exponents(&texts, matches!(needless, NeedlessExponents::All)) {
        Err(LeafError::Budget { .. }) => Ok(texts),
        fewer => fewer,
    }
}

/// The one text of a number that `Number::toString` of ECMAScript writes: in digits alone, if it is whole and
/// has fewer than 22 of them.
fn one(number: &Decimal) -> String {
    if number.is_zero() || FIXED.contains(&parts(number).2) {
        fixed(number)
    } else {
        scientific(number, "e", "+")
    }
}

/// All texts of a number without redundant zeros, except those of a fraction of one or two digits.
fn usual(number: &Decimal) -> Vec<String> {
    let shortest = fixed(number);
    let mut found = match shortest.split_once('.') {
        None => vec![format!("{shortest}.0"), format!("{shortest}.00")],
        Some((_, fraction)) if fraction.len() == 1 => vec![format!("{shortest}0")],
        Some(_) => Vec::new(),
    };
    found.push(shortest);
    if !number.is_zero() && parts(number).2 != 0 {
        for (letter, plus) in [("e", ""), ("e", "+"), ("E", ""), ("E", "+")] {
            found.push(scientific(number, letter, plus));
        }
    }
    found
}

/// The text of a number without exponent.
pub(super) fn fixed(number: &Decimal) -> String {
    let (sign, digits, decade) = parts(number);
    if number.is_zero() {
        return "0".to_owned();
    }
    let places = saturating_usize(decade.unsigned_abs());
    if decade < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(places - 1));
    }
    match digits.len().checked_sub(places + 1) {
        None => format!("{sign}{digits}{}", "0".repeat(places + 1 - digits.len())),
        Some(0) => format!("{sign}{digits}"),
        Some(_) => format!("{sign}{}.{}", &digits[..=places], &digits[places + 1..]),
    }
}

/// The text of a number with an exponent, whose sign is `plus` or a minus.
fn scientific(number: &Decimal, letter: &str, plus: &str) -> String {
    let (sign, digits, decade) = parts(number);
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let plus = if decade < 0 { "" } else { plus };
    format!("{sign}{first}{point}{rest}{letter}{plus}{decade}")
}

// The numbers of a set are written within a range, so that the types of programs can hold them. Whole numbers
// fit 64 bits and have at most 19 digits, or 20 in a set without negative numbers, whose types are unsigned;
// others fit an `f64`. If the set itself names a number beyond that (a bound, a single number or a divisor),
// or has no other numbers, the next wider type is taken; beyond an `f64` there are no edges. So a set that is
// not empty has a number within its edges, and a finite set all of its numbers: they lie between its cuts,
// and are no less in size than its divisors.

/// The least and greatest numbers to be written, and the smallest in size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ExtremeNumbers {
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
const SIGNED_DIGITS: u32 = 19;
/// Number of digits of the largest `u64`, up to which those of a set without negative numbers are written.
const UNSIGNED_DIGITS: u32 = 20;

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
fn whole_digits(reals: &Reals) -> [Option<u32>; 2] {
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
    fn of_64_bits(unsigned: bool) -> Self {
        let most = if unsigned { u64::MAX } else { 10_u64.pow(SIGNED_DIGITS) - 1 };
        let most = Decimal::new(BigInt::from(most), 0);
        Self { least: Some(Decimal::from(i64::MIN)), most: Some(most), smallest: None }
    }

    /// The edges of an `f64`.
    fn of_floats() -> Self {
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
