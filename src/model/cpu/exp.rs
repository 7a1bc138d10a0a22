//! The exponential function, in a form that compilers vectorise.

use std::f32::consts::LOG2_E;

/// Adding and subtracting this rounds to a whole number, which is in the lowest bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// The natural logarithm of 2 in two parts (Cody-Waite reduction); the first has so few bits that its
/// products here are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// `e` to the power of `x`, with a relative error below 3e-7; `x` is clamped to -87 to 88. Every step is one
/// operation, so results have the same bits on every machine.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = x - whole * LN_2[0] - whole * LN_2[1];
    let mut power = 1.0 / 5040.0;
    for term in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * rest + term;
    }
    power * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_near_the_true_value_everywhere() {
        let mut x = -87.0_f32;
        while x < 88.0 {
            let (got, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got / expected - 1.0).abs() < 3e-7, "{x}: {got} {expected}");
            x += 0.000_931;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), exp(-87.0));
        assert_eq!(exp(f32::INFINITY), exp(88.0));
        assert!(exp(f32::NAN).is_nan());
    }
}
