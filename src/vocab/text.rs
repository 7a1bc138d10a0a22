//! The bytes of a token as a sort key: most comparisons look at one number.

/// Bytes, with the first eight of them as a number that compares in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderedBytes<'a> {
    first: u64,
    bytes: &'a [u8],
}

impl<'a> OrderedBytes<'a> {
    /// Creates the text `bytes[start..end]`, or the empty one if that is out of range.
    pub(super) fn new(bytes: &'a [u8], start: usize, end: usize) -> Self {
        let text = bytes.get(start..end).unwrap_or_default();
        // Eight bytes at once, then those past the end taken off.
        let first = match bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(first) if text.len() >= 8 => u64::from_be_bytes(*first),
            Some(first) => u64::from_be_bytes(*first) & !(u64::MAX >> (8 * text.len())),
            None => text.iter().rev().fold(0, |number, &byte| number >> 8 | u64::from(byte) << 56),
        };
        Self { first, bytes: text }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the length of the common prefix.
    pub(super) fn shared(&self, other: &Self) -> usize {
        let most = self.bytes.len().min(other.bytes.len());
        let first = (self.first ^ other.first).leading_zeros() as usize / 8;
        if first < 8 || most <= 8 {
            return first.min(most);
        }
        let rest = self.bytes[8..].iter().zip(&other.bytes[8..]);
        8 + rest.take_while(|(a, b)| a == b).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers made of bytes compare and share as the bytes do.
        #[test]
        fn sort_keys_compare_as_their_bytes_do(
            bytes in prop::collection::vec(0_u8..3, 0..24), cuts in prop::array::uniform4(0_usize..24),
        ) {
            let cut = |a: usize, b: usize| (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
            let ((a, b), (c, d)) = (cut(cuts[0], cuts[1]), cut(cuts[2], cuts[3]));
            let (one, other) = (OrderedBytes::new(&bytes, a, b), OrderedBytes::new(&bytes, c, d));
            prop_assert_eq!(one.cmp(&other), bytes[a..b].cmp(&bytes[c..d]));
            let shared = bytes[a..b].iter().zip(&bytes[c..d]).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(one.shared(&other), shared);
        }
    }
}
