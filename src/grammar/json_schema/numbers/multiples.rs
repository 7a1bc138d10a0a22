//! Is the text of a number one of a multiple? A remainder automaton.
//!
//! The divisor is `n` times a power of ten, `10^e`. Digits are read into a remainder modulo `n`. Where `e <
//! 0`, the remainder goes on into the fraction, for `-e` digits; where `e > 0`, the last `e` digits must be
//! 0, so they are held back until it is known what follows. With an exponent, `M * 10^p` (`M` without
//! trailing zeros) is a multiple if and only if `p >= e` and `n` divides `M * 10^(p-e)`: from some exponent
//! on, or never. So the automaton remembers from which.

use super::{
    bounds::{Mark, marks},
    decimal::Decimal,
};
use crate::grammar::json_schema::{
    dfa::{CharDfa, Row, explore},
    leaf::LeafError,
};

/// Remainders that an automaton may have to tell apart.
const MAX_REMAINDERS: u64 = 5_000;
/// Digits after the point that numbers with an exponent may have, where their remainder matters: `f64` needs
/// 16.
const FRACTION: u64 = 20;
/// Remainders from which on only digits without fraction may stand before an exponent, to keep automata
/// small.
const FEW_REMAINDERS: u64 = 100;

/// How many digits may stand between point and exponent where remainders of this divisor are looked at.
pub(super) fn fraction_digits(divisor: &Decimal) -> u64 {
    if divisor.mantissa().is_some_and(|n| n <= FEW_REMAINDERS) { FRACTION } else { 0 }
}

/// The unsigned texts, in normal form, of multiples of a positive number; those with an exponent have at most
/// as many digits between point and exponent as given, of which only all or the last is not 0.
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
        Ok(Row { accepts: remainders.accepts(*at), to: classes.iter().map(step).collect() })
    })
}

/// A divisor: `n * 10^exponent`.
#[derive(Debug, Clone, Copy)]
struct Remainders {
    n: u64,
    exponent: i64,
    /// Digits of a fraction that count.
    scale: u64,
    /// Zeros that must stand at the end of the whole part.
    zeros: u64,
    fraction: u64,
}

/// Where in a text one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Start,
    /// After `0`.
    Zero,
    /// In the whole part: the remainder of the digits but the last `zeros`, which are 0; the digit if there
    /// is one only.
    Whole {
        rest: u64,
        zeros: u64,
        only: Option<u8>,
    },
    /// In the fraction: the number as it stands, and as digits before an exponent.
    Fraction {
        plain: Option<Plain>,
        scientific: Option<Scientific>,
        digits: bool,
    },
    /// After `e` of 0; after its sign; in its digits.
    ZeroPower {
        signed: bool,
        digits: bool,
    },
    /// After `e`: the least exponent; after its sign, if any.
    Exponent {
        least: i64,
        negative: Option<bool>,
    },
    /// In the exponent: digits without leading zeros, compared with those of `least`.
    Power {
        least: i64,
        negative: bool,
        count: usize,
        order: std::cmp::Ordering,
    },
}

/// A fraction of `after` digits so far (no more than count); the remainder of all digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Plain {
    rest: u64,
    after: u64,
}

/// Digits before an exponent: the first, the remainder of all, how many after the point; is the last one not
/// 0?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Scientific {
    /// While there are only zeros after it.
    only: Option<u8>,
    rest: u64,
    after: u64,
    ends: bool,
}

impl Remainders {
    fn next(&self, rest: u64, digit: u8) -> u64 {
        (rest * 10 + u64::from(digit)) % self.n
    }

    /// The least number of zeros to append to digits of this remainder so that `n` divides them.
    fn missing_zeros(&self, mut rest: u64) -> Option<i64> {
        // 64 doublings and more do not change what divides.
        (0..64).find(|_| {
            let divides = rest == 0;
            rest = self.next(rest, 0);
            divides
        })
    }

    /// The least exponent of digits with this remainder, `after` of them behind the point.
    fn least(&self, rest: u64, after: u64) -> Option<i64> {
        Some(self.exponent + i64::try_from(after).ok()? + self.missing_zeros(rest)?)
    }

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

    /// One more digit of the whole part. A zero may be one of the last; then it only counts once others
    /// follow.
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
            // Zeros that end the digits may be any number; others count.
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

/// One more digit of an exponent that is to be at least `least`.
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
