//! Gumbel noise as a function of (seed, position, token), the same on every machine; and argmax over a whole
//! row of logits, with this noise (Gumbel-max sampling) or without.
//!
//! Invariant of the noise: nothing here has state, and no function of the platform's mathematics library is
//! used, whose last bits differ between systems: only additions, multiplications and divisions, which do not.
//!
//! Invariant of argmax: both ways give the result of comparing all candidates one by one. Words of 64 tokens
//! are processed in wide registers, only to find those that an upper bound rules out; the rest are compared
//! one by one.
//!
//! Loops run in the widest registers of the processor (SIMD), with the feature `simd`; without it as they
//! are. The results are the same, bit for bit. A loop is compiled several times, and no compilation fuses or
//! reorders operations on floating-point numbers.

use std::cmp::Ordering;

use crate::ids::TokenId;
use crate::split_mix::{GOLDEN, finalise};
use crate::vocab::{Contents, TokenSet};

/// Number of tokens in a word of a set.
const WORD: usize = 64;
/// Number of tokens of a word up to which they are compared one by one.
const FEW: u32 = 6;

/// A token that may be drawn, and its logit over the temperature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) score: f64,
    pub(super) token: TokenId,
}

impl Candidate {
    pub(super) fn new(token: TokenId, logit: f32, temperature: f64) -> Self {
        // Adding zero makes minus zero zero, so that the two are equal in the order below.
        Self { score: f64::from(logit) / temperature + 0.0, token }
    }

    /// Compares candidates: likelier ones first, ties by lower id. Scores are never NaN.
    pub(super) fn likelier(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.token.cmp(&other.token))
    }
}

/// The Gumbel-max so far: the candidate with the largest score plus noise.
#[derive(Debug)]
pub(super) struct GumbelArgmax {
    noise: PositionNoise,
    winner: Candidate,
    /// Score plus noise of the winner.
    total: f64,
}

impl GumbelArgmax {
    pub(super) fn new(noise: PositionNoise, first: Candidate) -> Self {
        let total = first.score + gumbel(noise.bits(first.token));
        Self { noise, winner: first, total }
    }

    /// The winner.
    pub(super) fn winner(&self) -> TokenId {
        self.winner.token
    }

    /// Enters a candidate: the larger total wins, ties by lower id, in whatever order they enter.
    pub(super) fn enter(&mut self, candidate: Candidate) {
        let bits = self.noise.bits(candidate.token);
        if candidate.score + gumbel_bound(bits) < self.total {
            return;
        }
        let total = candidate.score + gumbel(bits);
        if total > self.total || total == self.total && candidate.token < self.winner.token {
            self.winner = candidate;
            self.total = total;
        }
    }

    /// Enters all allowed tokens, whose logits must be numbers and not plus infinity.
    pub(super) fn enter_all(&mut self, row: &[f32], allowed: &TokenSet, temperature: f64) {
        match allowed.contents() {
            Contents::Listed(tokens) => for_each_listed(row, tokens, |token, logit| {
                self.enter(Candidate::new(token, logit, temperature));
            }),
            Contents::Bits(words) => dispatch(All { race: self, row, words, temperature }),
        }
    }

    /// Bit mask of the 64 tokens from `first` on whose upper bound reaches the winner's total; no false
    /// negatives.
    #[inline(always)]
    fn contenders(&self, logits: &[f32; WORD], first: u64, inverse: f64) -> u64 {
        // Products with the inverse are off by less than this, as no score is far above the winner's.
        let least = self.total - 1e-9 * (self.total.abs() + 64.0);
        if !(least.is_finite() && inverse.is_finite()) {
            return u64::MAX;
        }
        let mut most = [0.0; WORD];
        let mut any = false;
        for (index, (most, &logit)) in (first..).zip(most.iter_mut().zip(logits)) {
            *most = f64::from(logit) * inverse + gumbel_bound(self.noise.bits_of(index));
            any |= *most >= least;
        }
        if !any {
            return 0;
        }
        most.iter().enumerate().fold(0, |found, (at, &most)| found | u64::from(most >= least) << at)
    }
}

struct All<'a> {
    race: &'a mut GumbelArgmax,
    row: &'a [f32],
    words: &'a [u64],
    temperature: f64,
}

impl Loop for All<'_> {
    type Found = ();

    #[inline(always)]
    fn run(self) {
        let Self { race, row, words, temperature } = self;
        let inverse = 1.0 / temperature;
        let mut first = 0_u32;
        for (logits, &word) in row.chunks(WORD).zip(words) {
            let rest = match logits.first_chunk() {
                Some(logits) if word.count_ones() > FEW => {
                    word & race.contenders(logits, u64::from(first), inverse)
                }
                _ => word,
            };
            for_each_bit(rest, logits, |bit, logit| {
                race.enter(Candidate::new(TokenId::new(first + bit), logit, temperature));
            });
            first += 64;
        }
    }
}

/// Calls `each` with the places of a word's bits and the logits there, the lowest first.
fn for_each_bit(mut word: u64, logits: &[f32], mut each: impl FnMut(u32, f32)) {
    while word != 0 {
        let bit = word.trailing_zeros();
        if let Some(&logit) = usize::try_from(bit).ok().and_then(|bit| logits.get(bit)) {
            each(bit, logit);
        }
        word &= word - 1;
    }
}

/// Calls `each` with these tokens and their logits, as far as they have any.
fn for_each_listed(row: &[f32], tokens: &[TokenId], mut each: impl FnMut(TokenId, f32)) {
    for &token in tokens {
        if let Some(&logit) = row.get(token.index()) {
            each(token, logit);
        }
    }
}

/// Calls `each` with the allowed tokens and their logits, lowest id first.
pub(super) fn for_each_logit(row: &[f32], allowed: &TokenSet, mut each: impl FnMut(TokenId, f32)) {
    match allowed.contents() {
        Contents::Listed(tokens) => for_each_listed(row, tokens, each),
        Contents::Bits(words) => {
            let mut first = 0_u32;
            for (logits, &word) in row.chunks(WORD).zip(words) {
                for_each_bit(word, logits, |bit, logit| each(TokenId::new(first + bit), logit));
                first += 64;
            }
        }
    }
}

/// Returns the largest allowed logit of each word of 64 tokens, minus infinity if there is none. No logit is
/// NaN. One pass over the words that have allowed tokens.
pub(super) fn tops(row: &[f32], allowed: &TokenSet) -> Vec<f32> {
    match allowed.contents() {
        Contents::Listed(tokens) => {
            let mut tops = vec![f32::NEG_INFINITY; row.len().min(allowed.size()).div_ceil(WORD)];
            for_each_listed(row, tokens, |token, logit| {
                let top = &mut tops[token.index() / WORD];
                *top = larger(*top, logit);
            });
            tops
        }
        Contents::Bits(words) => dispatch(Tops { row, words }),
    }
}

/// Returns the allowed token with the largest logit, and the logit; ties by lower id. No logit is NaN.
pub(super) fn likeliest(row: &[f32], allowed: &TokenSet) -> Option<(TokenId, f32)> {
    match allowed.contents() {
        Contents::Listed(tokens) => {
            let mut best: Option<(TokenId, f32)> = None;
            for_each_listed(row, tokens, |token, logit| {
                if best.is_none_or(|(_, top)| logit > top) {
                    best = Some((token, logit));
                }
            });
            best
        }
        Contents::Bits(words) => likeliest_of(row, words),
    }
}

/// Finds the likeliest allowed token: the best logit of each 64 tokens, then the first token with the best.
fn likeliest_of(row: &[f32], words: &[u64]) -> Option<(TokenId, f32)> {
    let tops = dispatch(Tops { row, words });
    let top = tops.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // A word without allowed tokens has the same top as one whose allowed tokens are all impossible.
    let words = row.chunks(WORD).zip(words).zip(&tops).enumerate();
    for (index, ((logits, &word), _)) in words.filter(|(_, (_, other))| **other == top) {
        let mut found = None;
        for_each_bit(word, logits, |bit, logit| {
            if logit == top && found.is_none() {
                found = Some(bit);
            }
        });
        let token = found.zip(u32::try_from(index * WORD).ok()).map(|(bit, first)| TokenId::new(first + bit));
        if let Some(token) = token {
            return Some((token, top));
        }
    }
    None
}

struct Tops<'a> {
    row: &'a [f32],
    words: &'a [u64],
}

impl Loop for Tops<'_> {
    type Found = Vec<f32>;

    #[inline(always)]
    fn run(self) -> Vec<f32> {
        let mut tops = Vec::with_capacity(self.words.len());
        for (logits, &word) in self.row.chunks(WORD).zip(self.words) {
            let top = match logits.first_chunk() {
                Some(logits) if word.count_ones() > FEW => top_of(logits, word),
                _ => {
                    let mut top = f32::NEG_INFINITY;
                    for_each_bit(word, logits, |_, logit| top = larger(top, logit));
                    top
                }
            };
            tops.push(top);
        }
        tops
    }
}

#[inline(always)]
fn larger(one: f32, other: f32) -> f32 {
    if other > one { other } else { one }
}

/// Returns the largest of a word's allowed logits: in lanes, which the compiler turns into wide registers.
#[inline(always)]
fn top_of(logits: &[f32; WORD], word: u64) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for (part, logits) in logits.as_chunks::<LANES>().0.iter().enumerate() {
        let bits = word >> (part * LANES);
        for (at, lane) in lanes.iter_mut().enumerate() {
            let logit = if bits >> at & 1 == 1 { logits[at] } else { f32::NEG_INFINITY };
            *lane = larger(*lane, logit);
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

/// Finds the first number that is NaN or plus infinity. One pass.
pub(super) fn first_not_finite(row: &[f32]) -> Option<usize> {
    dispatch(NotFinite { row })
}

struct NotFinite<'a> {
    row: &'a [f32],
}

impl Loop for NotFinite<'_> {
    type Found = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let bad = |logit: f32| logit.is_nan() || logit == f32::INFINITY;
        for (index, block) in self.row.chunks(256).enumerate() {
            // Without a branch per number.
            let mut fine = true;
            for &logit in block {
                fine &= logit < f32::INFINITY;
            }
            if !fine {
                return block.iter().position(|&logit| bad(logit)).map(|offset| index * 256 + offset);
            }
        }
        None
    }
}

/// A loop, which must be `#[inline(always)]` with all that it calls.
pub(super) trait Loop {
    /// The result type.
    type Found;

    /// Runs the loop.
    fn run(self) -> Self::Found;
}

/// Runs a loop with the widest instructions of the processor.
pub(super) fn dispatch<L: Loop>(work: L) -> L::Found {
    #[cfg(feature = "simd")]
    {
        pulp::Arch::new().dispatch(Dispatched(work))
    }
    #[cfg(not(feature = "simd"))]
    work.run()
}

#[cfg(feature = "simd")]
struct Dispatched<L>(L);

#[cfg(feature = "simd")]
impl<L: Loop> pulp::WithSimd for Dispatched<L> {
    type Output = L::Found;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> L::Found {
        self.0.run()
    }
}

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
fn gumbel_bound(bits: u64) -> f64 {
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
mod tests;

#[cfg(test)]
mod noise_tests {
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
