//! Exact decimal numbers of any length.

use std::{cmp::Ordering, fmt};

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};

use crate::{grammar::json_schema::leaf::LeafError, ids::saturating_usize};

/// Limit on the digits of a number, and on the size of its exponent.
const MAX_DIGITS: usize = 5_000;

/// Greatest power of ten by which a number of 64 bits can be scaled within 128 bits.
const MOST_SMALL: u32 = 19;

/// A decimal number: an integer that 10 does not divide, times a power of ten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) struct Decimal {
    mantissa: BigInt,
    /// The power of ten; 0 for the number 0.
    exponent: i64,
}

impl Decimal {
    /// Memory of the number beyond its own size, in bytes.
    pub(super) fn bytes(&self) -> usize {
        saturating_usize(self.mantissa.bits().div_ceil(64)).saturating_mul(size_of::<u64>())
    }

    /// Reads a JSON number. Takes time quadratic in its digits.
    ///
    /// # Errors
    /// If the text is not a JSON number, has more than 5,000 digits, or an exponent beyond 5,000 to either
    /// side.
    pub(in super::super) fn parse(text: &str) -> Result<Self, LeafError> {
        let wrong = || {
            let start: String = text.chars().take(40).collect();
            LeafError::Number(format!("`{start}` is not a JSON number"))
        };
        let long = || LeafError::Number(format!("a number has more than {MAX_DIGITS} digits"));
        // Split the text into sign, whole part, fraction and exponent.
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (text, None),
        };
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(wrong()),
            None => (unsigned, ""),
        };
        // JSON wants a digit before the point, and no needless zero there.
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let leads = whole.len() > 1 && whole.starts_with('0');
        if whole.is_empty() || leads || !digits(whole) || !digits(fraction) {
            return Err(wrong());
        }
        if whole.len() + fraction.len() > MAX_DIGITS {
            return Err(long());
        }
        // An exponent of any length is read; its size is checked below, as 0 may have any.
        let power = match exponent {
            None => 0,
            Some(exponent) => {
                let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if unsigned.is_empty() || !digits(unsigned) {
                    return Err(wrong());
                }
                let size = unsigned.trim_start_matches('0');
                let size = if size.is_empty() { 0 } else { size.parse::<i64>().unwrap_or(i64::MAX) };
                if exponent.starts_with('-') { -size } else { size }
            }
        };
        let value = BigUint::parse_bytes(format!("{whole}{fraction}").as_bytes(), 10).ok_or_else(wrong)?;
        if value.is_zero() {
            return Ok(Self::new(BigInt::zero(), 0));
        }
        if power.unsigned_abs() > MAX_DIGITS as u64 {
            return Err(long());
        }
        let sign = if mantissa.starts_with('-') { Sign::Minus } else { Sign::Plus };
        let shift = i64::try_from(fraction.len()).map_err(|_| long())?;
        Ok(Self::new(BigInt::from_biguint(sign, value), power - shift))
    }

    /// The number `mantissa` times ten to the power of `exponent`.
    pub(super) fn new(mantissa: BigInt, exponent: i64) -> Self {
        if mantissa.is_zero() {
            return Self { mantissa, exponent: 0 };
        }
        if let Some(mut small) = mantissa.to_i64() {
            let mut exponent = exponent;
            while small % 10 == 0 {
                (small, exponent) = (small / 10, exponent + 1);
            }
            return Self { mantissa: BigInt::from(small), exponent };
        }
        let (sign, digits) = (mantissa.sign(), mantissa.magnitude().to_str_radix(10));
        let kept = digits.trim_end_matches('0');
        let zeros = digits.len() - kept.len();
        if zeros == 0 {
            return Self { mantissa, exponent };
        }
        let kept = BigUint::parse_bytes(kept.as_bytes(), 10).unwrap_or_default();
        Self {
            mantissa: BigInt::from_biguint(sign, kept),
            exponent: exponent + i64::try_from(zeros).unwrap_or(0),
        }
    }

    /// True if the number is less than zero.
    pub(in super::super) fn is_negative(&self) -> bool {
        self.mantissa.sign() == Sign::Minus
    }

    /// True if the number is zero.
    pub(in super::super) fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    /// True if the number is whole.
    pub(in super::super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The value, if it is whole, not negative and below 2^64.
    pub(in super::super) fn to_u64(&self) -> Option<u64> {
        if self.is_negative() || !self.is_integer() || self.exponent > 20 {
            return None;
        }
        self.scaled(0).to_u64()
    }

    /// The digits of the mantissa, each from 0 to 9.
    pub(super) fn digits(&self) -> Vec<u8> {
        self.mantissa.magnitude().to_radix_be(10)
    }

    /// The power of ten of the mantissa.
    pub(super) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The absolute value of the mantissa, if it fits 64 bits.
    pub(super) fn mantissa(&self) -> Option<u64> {
        self.mantissa.magnitude().to_u64()
    }

    /// The number in units of ten to the power of `exponent`, which is at most its own exponent.
    fn scaled(&self, exponent: i64) -> BigInt {
        let power = u32::try_from(self.exponent - exponent).unwrap_or(0);
        &self.mantissa * BigInt::from(10).pow(power)
    }

    /// Scales two numbers to the finer of their units; returns both, and the exponent of that unit.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let unit = self.exponent.min(other.exponent);
        (self.scaled(unit), other.scaled(unit), unit)
    }

    /// [`aligned`](Self::aligned), if both are small, as nearly all numbers are.
    fn aligned_small(&self, other: &Self) -> Option<(i128, i128)> {
        let unit = self.exponent.min(other.exponent);
        let scaled = |number: &Self| {
            let power = u32::try_from(number.exponent - unit).ok().filter(|power| *power <= MOST_SMALL)?;
            Some(i128::from(number.mantissa.to_i64()?) * 10_i128.pow(power))
        };
        Some((scaled(self)?, scaled(other)?))
    }

    /// True if the number is a multiple of `divisor`, which is not zero.
    pub(in super::super) fn is_multiple_of(&self, divisor: &Self) -> bool {
        if let Some((value, divisor)) = self.aligned_small(divisor) {
            return divisor != 0 && value % divisor == 0;
        }
        let (value, divisor, _) = self.aligned(divisor);
        !divisor.is_zero() && (value % divisor).is_zero()
    }

    /// The least common multiple of two positive numbers.
    pub(super) fn lcm(&self, other: &Self) -> Self {
        let (left, right, unit) = self.aligned(other);
        Self::new(left.lcm(&right), unit)
    }

    /// The number divided by a positive `unit`, rounded down; true if there is no remainder.
    pub(super) fn units(&self, unit: &Self) -> (BigInt, bool) {
        let (value, unit, _) = self.aligned(unit);
        let (count, rest) = value.div_mod_floor(&unit);
        (count, rest.is_zero())
    }

    /// The number times `count`.
    pub(super) fn times(&self, count: &BigInt) -> Self {
        Self::new(&self.mantissa * count, self.exponent)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(BigInt::from(value), 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        if let Some((left, right)) = self.aligned_small(other) {
            return left.cmp(&right);
        }
        let (left, right, _) = self.aligned(other);
        left.cmp(&right)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exponent {
            0..=20 => write!(f, "{}", self.scaled(0)),
            exponent => write!(f, "{}e{exponent}", self.mantissa),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers with mantissas of about 64 bits, and some that are larger.
    fn number() -> impl Strategy<Value = Decimal> {
        let mantissa = prop_oneof![any::<i64>().prop_map(i128::from), any::<i128>(), -20..20_i128];
        (mantissa, -24..24_i64)
            .prop_map(|(mantissa, exponent)| Decimal::new(BigInt::from(mantissa), exponent))
    }

    proptest! {
        /// The fast path of small numbers agrees with the general path.
        #[test]
        fn the_fast_path_of_small_numbers_agrees_with_the_general(left in number(), right in number()) {
            let (one, other, _) = left.aligned(&right);
            prop_assert_eq!(left.cmp(&right), one.cmp(&other));
            let divides = !other.is_zero() && (one % other).is_zero();
            prop_assert_eq!(left.is_multiple_of(&right), divides);
        }

        #[test]
        fn trailing_zeros_of_a_decimal_are_removed(
            digits in any::<i128>(), zeros in 0..30_u32, exponent in -9..9_i64,
        ) {
            let made = Decimal::new(BigInt::from(digits) * BigInt::from(10).pow(zeros), exponent);
            let text = format!("{digits}{}e{exponent}", "0".repeat(zeros as usize));
            prop_assert_eq!(&made, &Decimal::parse(&text).unwrap());
            prop_assert!(made.is_zero() || made.digits().last() != Some(&0));
        }
    }
}
