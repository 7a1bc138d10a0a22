//! Remainder automata: the texts of the multiples of a number.
//!
//! The divisor is `n * 10^e`. Digits are read into a remainder modulo `n`. Where `e < 0`, the remainder goes
//! on into the fraction, for `-e` digits. Where `e > 0`, the last `e` digits must be 0, so zeros are held
//! back until it shows what follows. With an exponent, `M * 10^p` (`M` without trailing zeros) is a multiple
//! if and only if `p >= e` and `n` divides `M * 10^(p-e)`, which holds from some exponent on, or never. So
//! the automaton remembers the least such exponent.
//!
//! ```text
//! multiples of 0.25:   1.5 -> 15 mod 25 = 15, one more digit: 150 mod 25 = 0, so "1.5" is one
//! ```

use super::{
    bounds::{Mark, marks},
    decimal::Decimal,
};
use crate::grammar::json_schema::{
    dfa::{CharDfa, DfaRow, explore},
    leaf::LeafError,
};

/// Limit on the remainders that one automaton tells apart.
const MAX_REMAINDERS: u64 = 5_000;
/// Limit on the digits behind the point of numbers with an exponent, if their remainder matters. An `f64`
/// needs 16.
const FRACTION: u64 = 20;
/// Number of remainders above which no fraction may stand before an exponent, to keep automata small.
const FEW_REMAINDERS: u64 = 100;

/// Limit on the digits between point and exponent where remainders of this divisor matter.
pub(super) fn fraction_digits(divisor: &Decimal) -> u64 {
    if divisor.mantissa().is_some_and(|n| n <= FEW_REMAINDERS) { FRACTION } else { 0 }
}

/// The unsigned texts, in normal form, of the multiples of a positive number.
///
/// Texts with an exponent have at most `fraction` digits between point and exponent, and end there in a digit
/// other than 0 or have nothing but zeros.
///
/// # Errors
/// If there are too many remainders.
pub(super) fn multiples(divisor: &Decimal, fraction: u64) -> Result<CharDfa, LeafError> {
    let n = divisor.mantissa().filter(|n| *n <= MAX_REMAINDERS).ok_or(LeafError::Budget {
        what: "remainders of a multiple, unless bounds leave few numbers",
        limit: 5_000,
    })?;
    let exponent = divisor.exponent();
    let remainders = Remainders {
        n,
        exponent,
        scale: u64::try_from(-exponent).unwrap_or(0),
        zeros: u64::try_from(exponent).unwrap_or(0),
        fraction,
    };
    let (alphabet, classes) = marks();
    explore(alphabet, At::Start, |at| {
        let step = |mark: &Option<Mark>| mark.and_then(|mark| remainders.step(*at, mark));
        Ok(DfaRow { accepts: remainders.accepts(*at), to: classes.iter().map(step).collect() })
    })
}

/// A divisor, `n * 10^exponent`, and what its automaton needs to know.
#[derive(Debug, Clone, Copy)]
struct Remainders {
    n: u64,
    exponent: i64,
    /// The number of digits of a fraction that matter.
    scale: u64,
    /// The number of zeros that must stand at the end of the whole part.
    zeros: u64,
    fraction: u64,
}

/// A state: the place in a text, and the remainders so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Start,
    /// A `0` has been read.
    Zero,
    /// The whole part is being read: the remainder of all digits but the last `zeros`, which are 0; the digit
    /// if there is only one.
    Whole {
        rest: u64,
        zeros: u64,
        only: Option<u8>,
    },
    /// The fraction is being read: the number as it stands, and the same digits before an exponent.
    Fraction {
        plain: Option<Plain>,
        scientific: Option<Scientific>,
        digits: bool,
    },
    /// The exponent of 0 is being read: its `e`, its sign, then its digits.
    ZeroPower {
        signed: bool,
        digits: bool,
    },
    /// An `e` has been read, then perhaps a sign: the least exponent that makes a multiple.
    Exponent {
        least: i64,
        negative: Option<bool>,
    },
    /// The exponent is being read: its digits without leading zeros, compared with those of `least`.
    Power {
        least: i64,
        negative: bool,
        count: usize,
        order: std::cmp::Ordering,
    },
}

/// A fraction of `after` digits so far (counted as far as they matter), and the remainder of all digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Plain {
    rest: u64,
    after: u64,
}

/// The digits before an exponent: the first, the remainder of all, the number behind the point; `ends` is
/// true if the last one is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Scientific {
    /// The first digit, as long as only zeros follow it.
    only: Option<u8>,
    rest: u64,
    after: u64,
    ends: bool,
}

impl Remainders {
    fn next(&self, rest: u64, digit: u8) -> u64 {
        (rest * 10 + u64::from(digit)) % self.n
    }

    /// The least number of zeros to append to digits with this remainder so that `n` divides them.
    fn missing_zeros(&self, mut rest: u64) -> Option<i64> {
        // `n` has fewer than 64 factors of 2 or 5, so more zeros do not change what it divides.
        (0..64).find(|_| {
            let divides = rest == 0;
            rest = self.next(rest, 0);
            divides
        })
    }

    /// The least exponent that makes a multiple of digits with this remainder, `after` of them behind the
    /// point.
    fn least(&self, rest: u64, after: u64) -> Option<i64> {
        Some(self.exponent + i64::try_from(after).ok()? + self.missing_zeros(rest)?)
    }

    /// The state after a mark; `None` if no multiple goes on with it. While the whole part has one digit, the
    /// number is read both as a plain decimal and as the mantissa of one with an exponent.
    fn step(&self, at: At, mark: Mark) -> Option<At> {
        match (at, mark) {
            (At::Start, Mark::Digit(0)) => Some(At::Zero),
            (At::Start, Mark::Digit(digit)) => {
                Some(At::Whole { rest: self.next(0, digit), zeros: 0, only: Some(digit) })
            }
            (At::Zero, Mark::Point) => {
                let scientific = Scientific { only: Some(0), rest: 0, after: 0, ends: false };
                Some(At::Fraction {
                    plain: Some(Plain { rest: 0, after: 0 }),
                    scientific: Some(scientific),
                    digits: false,
                })
            }
            (At::Zero, Mark::Exponent) => Some(At::ZeroPower { signed: false, digits: false }),
            (At::ZeroPower { .. }, Mark::Digit(_)) => Some(At::ZeroPower { signed: true, digits: true }),
            (At::ZeroPower { signed: false, digits: false }, Mark::Plus | Mark::Minus) => {
                Some(At::ZeroPower { signed: true, digits: false })
            }
            (At::Whole { rest, zeros, .. }, Mark::Digit(digit)) => Some(self.whole(rest, zeros, digit)),
            (At::Whole { rest, zeros, only }, Mark::Point) => {
                let plain = (zeros >= self.zeros).then_some(Plain { rest, after: 0 });
                let scientific = only.map(|digit| Scientific {
                    only: Some(digit),
                    rest: self.next(0, digit),
                    after: 0,
                    ends: false,
                });
                Some(At::Fraction { plain, scientific, digits: false })
            }
            (At::Whole { only: Some(digit), .. }, Mark::Exponent) => {
                Some(At::Exponent { least: self.least(self.next(0, digit), 0)?, negative: None })
            }
            (At::Fraction { plain, scientific, .. }, Mark::Digit(digit)) => {
                self.fraction(plain, scientific, digit)
            }
            (
                At::Fraction { scientific: Some(Scientific { only, rest, after, ends }), .. },
                Mark::Exponent,
            ) if after > 0 => {
                let least = match only {
                    Some(0) => return Some(At::ZeroPower { signed: false, digits: false }),
                    Some(digit) => self.least(self.next(0, digit), 0)?,
                    None if ends => self.least(rest, after)?,
                    None => return None,
                };
                Some(At::Exponent { least, negative: None })
            }
            (At::Exponent { least, negative: None }, Mark::Plus | Mark::Minus) => {
                Some(At::Exponent { least, negative: Some(mark == Mark::Minus) })
            }
            (At::Exponent { least, negative }, Mark::Digit(digit)) => {
                Some(power(least, negative == Some(true), 0, std::cmp::Ordering::Equal, digit))
            }
            (At::Power { least, negative, count, order }, Mark::Digit(digit)) => {
                Some(power(least, negative, count, order, digit))
            }
            _ => None,
        }
    }

    /// The state after one more digit of the whole part. A zero may be one of the last ones, so it is held
    /// back and counts only once other digits follow.
    fn whole(&self, rest: u64, zeros: u64, digit: u8) -> At {
        if digit == 0 && zeros < self.zeros {
            return At::Whole { rest, zeros: zeros + 1, only: None };
        }
        if digit == 0 {
            return At::Whole { rest: self.next(rest, 0), zeros, only: None };
        }
        let shifted = (0..zeros).fold(rest, |rest, _| self.next(rest, 0));
        At::Whole { rest: self.next(shifted, digit), zeros: 0, only: None }
    }

    fn fraction(&self, plain: Option<Plain>, scientific: Option<Scientific>, digit: u8) -> Option<At> {
        let plain = plain.and_then(|Plain { rest, after }| {
            if after < self.scale {
                return Some(Plain { rest: self.next(rest, digit), after: after + 1 });
            }
            (digit == 0).then_some(Plain { rest, after })
        });
        let scientific = scientific.and_then(|Scientific { only: first, rest, after, .. }| {
            // Zeros that end the digits may be any number of them; other digits are counted.
            let only = first.filter(|_| digit == 0);
            if after >= self.fraction.max(1) {
                return only.map(|digit| Scientific { only: Some(digit), rest: 0, after, ends: false });
            }
            // 0 has no other digits.
            if only.is_none() && (self.fraction == 0 || first == Some(0)) {
                return None;
            }
            Some(Scientific { only, rest: self.next(rest, digit), after: after + 1, ends: digit != 0 })
        });
        let goes_on = plain.is_some() || scientific.is_some();
        goes_on.then_some(At::Fraction { plain, scientific, digits: true })
    }

    fn accepts(&self, at: At) -> bool {
        match at {
            At::Zero => true,
            At::ZeroPower { digits, .. } => digits,
            At::Whole { rest, zeros, .. } => {
                zeros >= self.zeros && (0..self.scale).fold(rest, |rest, _| self.next(rest, 0)) == 0
            }
            At::Fraction { plain: Some(Plain { rest, after }), digits: true, .. } => {
                (after..self.scale).fold(rest, |rest, _| self.next(rest, 0)) == 0
            }
            At::Power { least, negative, count, order } => {
                let size = count.cmp(&digits(least).len()).then(order);
                match (negative && count > 0, least < 0) {
                    (false, true) => true,
                    (false, false) => size.is_ge(),
                    (true, true) => size.is_le(),
                    (true, false) => false,
                }
            }
            _ => false,
        }
    }
}

/// The digits of a number without its sign; none for 0.
fn digits(number: i64) -> Vec<u8> {
    if number == 0 { Vec::new() } else { number.unsigned_abs().to_string().into_bytes() }
}

/// The state after one more digit of an exponent that is to be at least `least`.
fn power(least: i64, negative: bool, count: usize, order: std::cmp::Ordering, digit: u8) -> At {
    if count == 0 && digit == 0 {
        return At::Power { least, negative, count, order };
    }
    let least_digits = digits(least);
    let order = match least_digits.get(count) {
        Some(known) => order.then_with(|| (digit + b'0').cmp(known)),
        None => order,
    };
    At::Power { least, negative, count: (count + 1).min(least_digits.len() + 1), order }
}
