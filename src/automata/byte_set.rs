//! Sets of bytes.

/// A set of bytes, as 256 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    /// All bytes.
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    /// Returns the number of its bytes that are below `byte`.
    pub(crate) fn rank(&self, byte: u8) -> usize {
        let word = usize::from(byte / 64);
        let below = self.0[word] & ((1 << (byte % 64)) - 1);
        let ones = self.0[..word].iter().map(|word| word.count_ones()).sum::<u32>() + below.count_ones();
        ones as usize
    }

    pub(crate) fn union_with(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Have the two sets a byte in common?
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(word, other)| word & other != 0)
    }
}

impl Extend<u8> for ByteSet {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        bytes.into_iter().for_each(|byte| self.insert(byte));
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::default();
        set.extend(bytes);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_counts_the_members_below_a_byte() {
        let all = [0, 1, 63, 64, 65, 127, 128, 200, 255];
        let set: ByteSet = all.into_iter().collect();
        for byte in 0..=u8::MAX {
            assert_eq!(set.rank(byte), all.iter().filter(|&&below| below < byte).count(), "{byte}");
        }
    }
}
