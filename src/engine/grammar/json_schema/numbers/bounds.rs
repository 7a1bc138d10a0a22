//! Automata that compare the text of a number with a bound, digit by digit.
//!
//! A text is unsigned here, and in normal form if it has an exponent: one digit other than 0 before the
//! point, or no digit other than 0 at all. So the digits `d.dd` are compared with the bound's digits, and the
//! exponent with the bound's decade. Whether an exponent follows shows only when it comes, so both readings
//! are followed.

use std::cmp::Ordering;

use super::decimal::Decimal;
use crate::{
    grammar::json_schema::{
        dfa::{Alphabet, CharClass, CharDfa, DfaRow, explore},
        leaf::LeafError,
    },
    ids::saturating_i64,
};

/// The results of a comparison that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WantedComparison {
    pub(super) less: bool,
    pub(super) equal: bool,
    pub(super) greater: bool,
}

impl WantedComparison {
    fn has(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }
}

/// The characters of numbers, by their roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Digit(u8),
    Point,
    Exponent,
    Plus,
    Minus,
}

/// A partition of the characters, and the role of each class; `None` for characters that numbers have not.
pub(super) fn marks() -> (Alphabet, Vec<Option<Mark>>) {
    let mut marks: Vec<(CharClass, Mark)> =
        (b'0'..=b'9').map(|digit| (CharClass::one(char::from(digit)), Mark::Digit(digit - b'0'))).collect();
    marks.push((CharClass::one('.'), Mark::Point));
    marks.push((CharClass::new([('e', 'e'), ('E', 'E')]), Mark::Exponent));
    marks.push((CharClass::one('+'), Mark::Plus));
    marks.push((CharClass::one('-'), Mark::Minus));
    let sets: Vec<CharClass> = marks.iter().map(|(set, _)| set.clone()).collect();
    let (alphabet, members) = Alphabet::of(&sets);
    let classes = (0..alphabet.classes())
        .map(|class| members.iter().position(|member| member[class]).map(|set| marks[set].1))
        .collect();
    (alphabet, classes)
}

/// The unsigned texts of numbers that compare with a positive `bound` as wanted.
///
/// # Errors
/// If the bound has thousands of digits, or an exponent in the thousands.
pub(super) fn compared(bound: &Decimal, wanted: WantedComparison) -> Result<CharDfa, LeafError> {
    let (alphabet, classes) = marks();
    let digits = bound.digits();
    let point = saturating_i64(digits.len()).saturating_add(bound.exponent());
    let comparison = DecimalBound { digits, point };
    explore(alphabet, At::Start, |at| {
        let accepts = comparison.result(*at).is_some_and(|order| wanted.has(order));
        let step = |mark: &Option<Mark>| mark.and_then(|mark| comparison.step(*at, mark));
        Ok(DfaRow { accepts, to: classes.iter().map(step).collect() })
    })
}

/// A bound: `0.digits` times ten to the power of `point`.
struct DecimalBound {
    digits: Vec<u8>,
    point: i64,
}

/// A state: the place in a text, and the result of the comparison so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Start,
    /// The whole part is being read: the number of digits, up to one more than the bound has, and their
    /// comparison with its first ones.
    Whole {
        count: i64,
        order: Ordering,
    },
    /// The fraction is being read, with `after` digits: the comparison of the number as it stands, and that
    /// of its digits, if it may have an exponent.
    Fraction {
        after: i64,
        plain: Ordering,
        digits: Option<Mantissa>,
    },
    /// An `e` has been read, then perhaps a sign.
    Exponent {
        digits: Mantissa,
        sign: Option<bool>,
    },
    /// The exponent is being read: its sign, its digits without leading zeros, and their comparison with the
    /// bound's decade.
    Power {
        digits: Mantissa,
        negative: bool,
        count: usize,
        order: Ordering,
    },
}

/// The comparison of the digits before an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mantissa {
    /// All are 0.
    Zero,
    /// The result of comparing them with the bound's digits.
    Compares(Ordering),
}

impl DecimalBound {
    /// The bound's digit at a place of its mantissa; 0 outside of it.
    fn digit(&self, place: i64) -> u8 {
        usize::try_from(place).ok().and_then(|place| self.digits.get(place)).copied().unwrap_or(0)
    }

    fn compare(&self, order: Ordering, digit: u8, place: i64) -> Ordering {
        order.then_with(|| digit.cmp(&self.digit(place)))
    }

    /// The result for a whole part of `count` digits (0 for `0`); `Equal` if what follows decides.
    fn whole(&self, count: i64, order: Ordering) -> Ordering {
        count.cmp(&self.point.max(0)).then(order)
    }

    /// The number of digits of a fraction behind which only a digit other than 0 can change the result.
    fn last_place(&self) -> i64 {
        let digits = saturating_i64(self.digits.len());
        digits.max(digits.saturating_sub(self.point)).saturating_add(1)
    }

    /// The result at the end of the digits: equal digits are less than the bound if it has further ones.
    fn ended(&self, order: Ordering, places: i64) -> Ordering {
        let digits = saturating_i64(self.digits.len());
        order.then(if places < digits { Ordering::Less } else { Ordering::Equal })
    }

    /// The state after a mark; `None` if no number goes on with it. While the whole part has one digit, the
    /// number is read both as a plain decimal and as the mantissa of one with an exponent.
    fn step(&self, at: At, mark: Mark) -> Option<At> {
        match (at, mark) {
            (At::Start, Mark::Digit(0)) => Some(At::Whole { count: 0, order: Ordering::Equal }),
            (At::Start, Mark::Digit(digit)) => {
                Some(At::Whole { count: 1, order: self.compare(Ordering::Equal, digit, 0) })
            }
            // Counts stop one past the last that matters, which keeps the states few.
            (At::Whole { count, order }, Mark::Digit(digit)) if count > 0 => Some(At::Whole {
                count: (count + 1).min(self.point.max(1) + 1),
                order: if count < self.point { self.compare(order, digit, count) } else { order },
            }),
            (At::Whole { count, order }, Mark::Point) => {
                // Only one digit before the point can begin a number with an exponent.
                let digits = match count {
                    0 => Some(Mantissa::Zero),
                    1 => Some(Mantissa::Compares(order)),
                    _ => None,
                };
                Some(At::Fraction { after: 0, plain: self.whole(count, order), digits })
            }
            (At::Whole { count: 0, .. }, Mark::Exponent) => {
                Some(At::Exponent { digits: Mantissa::Zero, sign: None })
            }
            (At::Whole { count: 1, order }, Mark::Exponent) => {
                Some(At::Exponent { digits: Mantissa::Compares(self.ended(order, 1)), sign: None })
            }
            (At::Fraction { after, plain, digits }, Mark::Digit(digit)) => {
                let digits = match digits {
                    // A mantissa of 0 may have no other digits.
                    Some(Mantissa::Zero) if digit != 0 => None,
                    Some(Mantissa::Compares(order)) => {
                        Some(Mantissa::Compares(self.compare(order, digit, after + 1)))
                    }
                    digits => digits,
                };
                let plain = self.compare(plain, digit, self.point + after);
                Some(At::Fraction { after: (after + 1).min(self.last_place()), plain, digits })
            }
            (At::Fraction { after, digits: Some(digits), .. }, Mark::Exponent) if after > 0 => {
                let digits = match digits {
                    Mantissa::Compares(order) => Mantissa::Compares(self.ended(order, after + 1)),
                    digits => digits,
                };
                Some(At::Exponent { digits, sign: None })
            }
            (At::Exponent { digits, sign: None }, Mark::Plus | Mark::Minus) => {
                Some(At::Exponent { digits, sign: Some(mark == Mark::Minus) })
            }
            (At::Exponent { digits, sign }, Mark::Digit(digit)) => {
                let negative = sign == Some(true);
                Some(self.power(digits, negative, 0, Ordering::Equal, digit))
            }
            (At::Power { digits, negative, count, order }, Mark::Digit(digit)) => {
                Some(self.power(digits, negative, count, order, digit))
            }
            _ => None,
        }
    }

    /// The digits of the bound's decade, and true if the decade is negative.
    fn decade(&self) -> (bool, Vec<u8>) {
        let decade = self.point - 1;
        let digits = decade.unsigned_abs().to_string().into_bytes();
        (decade < 0, if decade == 0 { Vec::new() } else { digits })
    }

    /// The state after one more digit of the exponent.
    fn power(&self, digits: Mantissa, negative: bool, count: usize, order: Ordering, digit: u8) -> At {
        if count == 0 && digit == 0 {
            return At::Power { digits, negative, count, order };
        }
        let (_, decade) = self.decade();
        let order = match decade.get(count) {
            Some(known) => order.then_with(|| (digit + b'0').cmp(known)),
            None => order,
        };
        At::Power { digits, negative, count: (count + 1).min(decade.len() + 1), order }
    }

    /// The result if the text ends here; `None` if it may not.
    fn result(&self, at: At) -> Option<Ordering> {
        match at {
            At::Whole { count, order } => Some(self.ended(self.whole(count, order), count.max(self.point))),
            At::Fraction { after, plain, .. } if after > 0 => Some(self.ended(plain, self.point + after)),
            At::Power { digits: Mantissa::Zero, .. } => Some(Ordering::Less),
            At::Power { digits: Mantissa::Compares(mantissa), negative, count, order } => {
                let (bound_negative, decade) = self.decade();
                let size = count.cmp(&decade.len()).then(order);
                let power = match (negative && count > 0, bound_negative) {
                    (false, false) => size,
                    (true, true) => size.reverse(),
                    (true, false) => Ordering::Less,
                    (false, true) => Ordering::Greater,
                };
                Some(power.then(mantissa))
            }
            _ => None,
        }
    }
}
