//! Gumbel noise as a function of (seed, position, token), the same on every machine.
//!
//! Invariant: nothing here has state, and no function of the platform's mathematics library is used, whose
//! last bits differ between systems: only additions, multiplications and divisions, which do not.

use crate::{
    ids::TokenId,
    split_mix::{GOLDEN, finalise},
};

/// A little more than ln 2.
const LN_2_UP: f64 = std::f64::consts::LN_2 * 1.000_000_1;
/// ln 2 in two parts, the first with zeros at its end.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// The noise of one position: a number for every token.
#[derive(Debug, Clone, Copy)]
pub(in crate::decode) struct PositionNoise {
    key: u64,
}

impl PositionNoise {
    /// Creates the noise of `position` under `seed`.
    pub(in crate::decode) fn new(seed: u64, position: u64) -> Self {
        Self { key: finalise(finalise(seed.wrapping_add(GOLDEN)) ^ finalise(position).wrapping_mul(GOLDEN)) }
    }

    /// The key, which tells it from the noise of other positions and seeds.
    pub(super) fn key(self) -> u64 {
        self.key
    }

    /// Returns 64 random bits for a token.
    pub(super) fn bits(self, token: TokenId) -> u64 {
        self.bits_of(u64::from(token.raw()))
    }

    /// Returns 64 random bits for the token with this id.
    #[inline(always)]
    pub(in crate::decode) fn bits_of(self, id: u64) -> u64 {
        finalise(self.key.wrapping_add((id + 1).wrapping_mul(GOLDEN)))
    }
}

/// Returns the Gumbel-distributed number of `bits`, about -3.6 to 37.4: `-ln(-ln(u))`, where `u` is the first
/// 53 bits as a number strictly between 0 and 1.
pub(super) fn gumbel(bits: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
    let uniform = ((bits >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0;
    -ln(-ln(uniform))
}

/// Returns an upper bound of [`gumbel`] of the same bits, and is much cheaper: bits that start with n ones
/// stand for `u <= 1 - 2^-(n+1)`, and `-ln(-ln(u)) <= -ln(1 - u)`.
#[inline(always)]
pub(super) fn gumbel_bound(bits: u64) -> f64 {
    f64::from(bits.leading_ones().min(53) + 1) * LN_2_UP
}

/// Returns the natural logarithm of a positive normal number, to about one unit in the last place (the method
/// of fdlibm: reduce to sqrt(1/2)..sqrt(2), then a polynomial in (x-1)/(x+1)).
pub(in crate::decode) fn ln(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 7] = [
        0.666_666_666_666_673_5,
        0.399_999_999_994_094_2,
        0.285_714_287_436_623_9,
        0.222_221_984_321_497_84,
        0.181_835_721_616_180_5,
        0.153_138_376_992_093_73,
        0.147_981_986_051_165_86,
    ];
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = i32::try_from(bits >> 52).unwrap_or(1023) - 1023;
    let mut reduced = f64::from_bits(bits & MANTISSA | 1023 << 52);
    if reduced > std::f64::consts::SQRT_2 {
        reduced *= 0.5;
        exponent += 1;
    }
    let exponent = f64::from(exponent);
    let f = reduced - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * z);
    let half_square = 0.5 * f * f;
    exponent * LN_2_HIGH - ((half_square - (s * (half_square + series) + exponent * LN_2_LOW)) - f)
}

/// Returns `e^x` for `x <= 0`, to about one unit in the last place; 0 below -700. (The method of fdlibm.)
pub(in crate::decode) fn exp(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 5] = [
        0.166_666_666_666_666_02,
        -0.002_777_777_777_701_559_3,
        6.613_756_321_437_934e-5,
        -1.653_390_220_546_525_2e-6,
        4.138_136_797_057_238_5e-8,
    ];
    if x < -700.0 {
        return 0.0;
    }
    let power = (x * std::f64::consts::LOG2_E - 0.5).trunc();
    let (high, low) = (x - power * LN_2_HIGH, power * LN_2_LOW);
    let reduced = high - low;
    let square = reduced * reduced;
    let series = COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * square);
    let c = reduced - series;
    let value = 1.0 - ((low - reduced * c / (2.0 - c)) - high);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "power is a whole number in -1010..=0"
    )]
    let exponent = (power + 1023.0) as u64;
    value * f64::from_bits(exponent << 52)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn noise_of_a_seed_never_changes() {
        // These are promises to users who keep seeds.
        let bits = |seed, position, token| PositionNoise::new(seed, position).bits(TokenId::new(token));
        assert_eq!(bits(0, 0, 0), 0x568A_9B0B_1A2C_05EC);
        assert_eq!(bits(1, 2, 3), 0x3619_162F_691C_BB53);
        assert_eq!(gumbel(0x8000_0000_0000_0000), 0.36651292058166435);
    }

    #[test]
    fn noise_of_extreme_bits_is_finite_and_bounded() {
        for bits in [0, 1, 1 << 11, u64::MAX, u64::MAX - (1 << 11), u64::MAX << 11, 1 << 63, !(1 << 63)] {
            let noise = gumbel(bits);
            assert!(noise.is_finite() && noise <= gumbel_bound(bits), "{bits:x}: {noise}");
        }
        for ones in 0..64 {
            let bits = !(u64::MAX >> ones);
            for bits in [bits, bits | (u64::MAX >> ones >> 1)] {
                assert!(gumbel(bits) <= gumbel_bound(bits), "{bits:x}");
            }
        }
    }

    #[test]
    fn exp_is_zero_only_far_down() {
        assert!(exp(-700.0) > 0.0);
        for x in [-700.1, -705.0, -1e9, f64::MIN, f64::NEG_INFINITY] {
            assert_eq!(exp(x), 0.0, "{x}");
        }
    }

    #[test]
    fn neighbouring_keys_have_distinct_bits() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..20 {
            for position in 0..20 {
                for token in 0..20 {
                    assert!(seen.insert(PositionNoise::new(seed, position).bits(TokenId::new(token))));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn ln_agrees_with_the_standard_library(
            x in prop_oneof![1e-17..2.0_f64, 0.9999..1.0001_f64, 1e-300..1e300_f64],
        ) {
            let (got, expected) = (ln(x), x.ln());
            let allowed = 4e-16 * expected.abs().max(1e-300);
            prop_assert!((got - expected).abs() <= allowed, "{x}: {got} {expected}");
        }

        #[test]
        fn exp_agrees_with_the_standard_library(x in prop_oneof![-700.0..=0.0_f64, -1.0..=0.0_f64]) {
            let (got, expected) = (exp(x), x.exp());
            prop_assert!((got - expected).abs() <= 4e-16 * expected, "{x}: {got} {expected}");
        }

        #[test]
        fn gumbel_noise_is_below_its_bound(bits: u64) {
            prop_assert!(gumbel(bits) <= gumbel_bound(bits));
        }
    }
}
