//! Mixing of words into a hash.

/// An odd number with well-mixed bits.
pub(crate) const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash.
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(HASH_FACTOR).rotate_left(29)
}
