//! The texts of numbers that parsers of typed languages read.
//!
//! A set of whole numbers is written in digits alone. Other sets have decimal fractions, and one digit, a
//! fraction and an exponent, without zeros that say nothing; and a number that stands alone, as those of
//! `enum` and `const` do, has the one text that ECMAScript writes. No text is of a number that 64 bits or an
//! `f64` do not hold, unless the set asks for it ([`Edges`]).
//!
//! In draft 4 a number written without fraction and exponent is another thing than the same number with one;
//! where only the latter is in a set, it is written with `.0`.

use super::{
    NumberSet,
    decimal::Decimal,
    edges::Edges,
    reals::Reals,
    texts::{self, Language, parts},
};
use crate::grammar::json_schema::{automata::AutomataCache, dfa::CharDfa, leaf::LeafError};

/// Decades in which ECMAScript writes no exponent: from `0.000001` to `999999999999999999999`.
const FIXED: std::ops::Range<i64> = -6..21;

/// The texts of the numbers of a set.
///
/// # Errors
/// As [`texts::texts`].
pub(super) fn texts(set: &NumberSet, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let is_whole = set.values.is_whole();
    let Some(integers) = &set.plain else {
        return if is_whole { whole(&set.values, automata) } else { fractions(&set.values, automata) };
    };
    let mut sum = whole(integers, automata)?;
    if !is_whole {
        sum = sum.or(&fractions(&set.values, automata)?.minus(&texts::plain_integers(automata)?)?)?;
    }
    let others = set.values.whole()?.combine(integers, |values, integers| values && !integers)?;
    sum.or(&match texts::language(&others, automata)? {
        Language::Listed(numbers) => CharDfa::of(numbers.iter().map(|number| digits(number) + ".0"))?,
        Language::Texts(texts) => {
            texts.and(&Edges::of(&others, true)?.cut(&texts::point_zero(automata)?)?)?
        }
    })
}

/// The numbers of a set that have a text.
///
/// # Errors
/// As [`Reals::combine`].
pub(super) fn written(reals: &Reals) -> Result<Reals, LeafError> {
    let (alone, others) = reals.alone()?;
    let within = Edges::of(&others, reals.is_whole())?.within(&others)?;
    within.combine(&Reals::of(alone), |one, other| one || other)
}

/// The texts of a set of whole numbers.
fn whole(reals: &Reals, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let (alone, others) = reals.alone()?;
    let others = match texts::language(&others, automata)? {
        Language::Listed(numbers) => CharDfa::of(numbers.iter().map(digits))?,
        Language::Texts(texts) => {
            let edges = Edges::of(&others, true)?;
            texts.and(&match edges == Edges::of_64_bits() {
                true => texts::digits_of_64_bits(automata)?,
                false => edges.cut(&texts::digits(automata)?)?,
            })?
        }
    };
    others.or(&CharDfa::of(alone.iter().map(digits))?)
}

/// The texts of any other set.
fn fractions(reals: &Reals, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let (alone, others) = reals.alone()?;
    let others = match texts::language(&others, automata)? {
        Language::Listed(numbers) => CharDfa::of(numbers.iter().flat_map(short))?,
        Language::Texts(texts) => {
            let edges = Edges::of(&others, false)?;
            texts.and(&match edges == Edges::of_floats() {
                true => texts::short_of_floats(automata)?,
                false => edges.cut(&texts::short(automata)?)?,
            })?
        }
    };
    others.or(&CharDfa::of(alone.iter().map(one))?)
}

/// A whole number in digits.
fn digits(number: &Decimal) -> String {
    fixed(number)
}

/// The one text of a number: in digits where it is whole and has less than 22 of them, as `Number::toString`
/// of ECMAScript writes it.
fn one(number: &Decimal) -> String {
    if number.is_zero() || FIXED.contains(&parts(number).2) {
        fixed(number)
    } else {
        scientific(number, "e", "+")
    }
}

/// All texts of a number without zeros that say nothing.
fn short(number: &Decimal) -> Vec<String> {
    let mut found = vec![fixed(number)];
    if !number.is_zero() && parts(number).2 != 0 {
        for (letter, plus) in [("e", ""), ("e", "+"), ("E", ""), ("E", "+")] {
            found.push(scientific(number, letter, plus));
        }
    }
    found
}

/// A number without exponent.
pub(super) fn fixed(number: &Decimal) -> String {
    let (sign, digits, decade) = parts(number);
    if number.is_zero() {
        return "0".to_owned();
    }
    let places = usize::try_from(decade.unsigned_abs()).unwrap_or(usize::MAX);
    if decade < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(places - 1));
    }
    match digits.len().checked_sub(places + 1) {
        None => format!("{sign}{digits}{}", "0".repeat(places + 1 - digits.len())),
        Some(0) => format!("{sign}{digits}"),
        Some(_) => format!("{sign}{}.{}", &digits[..=places], &digits[places + 1..]),
    }
}

/// A number with an exponent, whose sign is `plus` or a minus.
fn scientific(number: &Decimal, letter: &str, plus: &str) -> String {
    let (sign, digits, decade) = parts(number);
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let plus = if decade < 0 { "" } else { plus };
    format!("{sign}{first}{point}{rest}{letter}{plus}{decade}")
}
