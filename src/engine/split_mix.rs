//! SplitMix64 (Steele, Lea and Flood, 2014): mixes 64 bits, for hashes and for random numbers.
//!
//! Invariant: the bits are a promise. Draws, keys of counts in users' files and models of random weights
//! follow from them, so they are the same on every machine and in every version.

/// The odd number nearest to 2^64 over the golden ratio: the step from one state to the next.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Mixes a state into the number that it stands for: a bijection in which each bit depends on all.
#[inline(always)]
pub fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Mixes `value` into `hash`; the order counts.
pub fn mixed(hash: u64, value: u64) -> u64 {
    finalise((hash ^ value).wrapping_add(GOLDEN))
}

/// Random numbers, the same for the same seed.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Starts before the first number of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        finalise(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the authors' program for the seed 1234567.
    #[test]
    fn random_numbers_are_those_of_the_reference() {
        let mut random = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| random.bits()), expected);
    }

    #[test]
    fn a_hash_is_the_next_number_of_its_state() {
        for (hash, value) in [(0, 0), (1, 2), (u64::MAX, 1), (GOLDEN, GOLDEN.wrapping_neg())] {
            assert_eq!(mixed(hash, value), SplitMix64::new(hash ^ value).bits());
        }
        assert_ne!(mixed(mixed(0, 1), 2), mixed(mixed(0, 2), 1), "the order counts");
    }
}
