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
//! In draft 4 a number written without fraction and exponent is another value than the same number written
//! with one. If only the latter is in a set, it is written with `.0`.

use super::{
    decimal::Decimal,
    edges::ExtremeNumbers,
    reals::Reals,
    texts::{self, NumberLanguage, parts},
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

/// Names of the automata of texts within the usual edges, which most sets share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Within {
    /// Whole numbers of 64 bits.
    Bits,
    /// Numbers that an `f64` holds; with `exponents_alone` only texts with an exponent are restricted.
    Floats { exponents_alone: bool },
}
recipe!(Within, |_| 0, |_| true);

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
    if !whole && others.has_divisors() {
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
            bounded(
                texts,
                &match edges == ExtremeNumbers::of_64_bits() {
                    true => automata.language(Within::Bits, cut)?,
                    false => cut()?,
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
    let texts = match texts::language(&others, automata)? {
        NumberLanguage::Listed(numbers) => CharDfa::of(numbers.iter().flat_map(usual))?,
        NumberLanguage::Texts(texts) => {
            // The product of remainders and a count of digits would be a large automaton.
            let exponents_alone = others.has_divisors();
            let edges = ExtremeNumbers::of(&others, false);
            let cut = || edges.cut(&texts::usual(automata)?, exponents_alone, automata);
            texts.and(&match edges == ExtremeNumbers::of_floats() {
                true => automata.language(Within::Floats { exponents_alone }, cut)?,
                false => cut()?,
            })?
        }
    };
    without_needed_exponents(texts, &others)?.or(&CharDfa::of(alone.iter().map(one))?)
}

/// Removes the texts whose digits are outside of the set until the exponent comes, such as `2e-1` where
/// numbers are at most 1. A model that has written the 2 cannot end there, and goes on with a fraction that
/// never ends. The number of each removed text keeps a text without exponent.
///
/// Exponents stay where ECMAScript writes them: all if every number of the set is small, and those that are
/// not negative if some may be large. They also stay where the automaton would be over its budget.
fn without_needed_exponents(texts: CharDfa, reals: &Reals) -> Result<CharDfa, LeafError> {
    let up_to =
        |exponent| Reals::range(Decimal::new((-1).into(), exponent), Decimal::new(1.into(), exponent));
    let always = reals.are_in(&up_to(FIXED.end));
    if texts.is_empty() || !may_need_exponents(reals, always) || reals.are_in(&up_to(FIXED.start)) {
        return Ok(texts);
    }
    match texts::without_needed_exponents(&texts, always) {
        Err(LeafError::Budget { .. }) => Ok(texts),
        fewer => fewer,
    }
}

/// Tells by value whether [`without_needed_exponents`] may remove a text; most sets end here, at no cost.
///
/// It removes none if all numbers from 1 to 10 are in the set, since then all digits before an exponent are
/// of a number in it. And it removes no negative exponent if no number from 0 to 1 is in the set, since all
/// of them lead there. Both hold for each sign by itself.
fn may_need_exponents(reals: &Reals, always: bool) -> bool {
    let both = |one: bool, other: bool| one && other;
    [1, -1].into_iter().any(|sign| {
        let one = Decimal::from(sign);
        let range =
            |least: &Decimal, most: &Decimal| Reals::range(least.min(most).clone(), least.max(most).clone());
        let digits = range(&one, &Decimal::from(10 * sign));
        let reached = || reals.combine(&range(&Decimal::from(0), &one), both);
        !digits.are_in(reals) && (always || !reached().is_ok_and(|reached| reached.is(false)))
    })
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
