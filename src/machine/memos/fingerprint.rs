//! Hashes of what the readers of a text know.

use crate::split_mix::mixed;

/// A hash of 128 bits. Collisions are neglected: at 2^13 entries the chance of one is below 2^-100.
pub(crate) type Fingerprint = [u64; 2];

/// Adds a number to a hash: two chains of SplitMix64 over different inputs.
pub(crate) fn with_number([one, other]: Fingerprint, value: u64) -> Fingerprint {
    [mixed(one, value), mixed(other, value ^ 0x5555_5555_5555_5555)]
}

/// Adds bytes and their length to a hash.
pub(crate) fn with_bytes(fingerprint: Fingerprint, bytes: &[u8]) -> Fingerprint {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(with_number(fingerprint, bytes.len() as u64), with_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length is part of the hash, so that bytes cannot be moved from one text to the next.
    #[test]
    fn fingerprints_of_split_texts_differ() {
        let fingerprint = |texts: [&str; 2]| {
            texts.iter().fold([0, 0], |fingerprint, text| with_bytes(fingerprint, text.as_bytes()))
        };
        let all =
            [["", "ab"], ["a", "b"], ["ab", ""], ["ab", "\0"], ["ab\0", ""], ["b", "a"], ["abcdefgh", "i"]];
        let fingerprints: std::collections::BTreeSet<Fingerprint> =
            all.into_iter().map(fingerprint).collect();
        assert_eq!(fingerprints.len(), all.len());
    }
}
