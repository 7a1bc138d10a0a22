//! Hash consing: equal values get the same number.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Finds the number of a value. The user stores the values.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    /// The hash and number of each value, so that growing need not look at the values.
    table: HashTable<(u32, u32)>,
    hasher: DefaultHashBuilder,
}

impl HashIndex {
    /// Returns the hash of a value; it means nothing to other indices.
    pub(crate) fn hash(&self, value: &(impl Hash + ?Sized)) -> u32 {
        let hash = self.hasher.hash_one(value);
        // Half of a good hash is a good hash.
        (hash >> 32) as u32
    }

    /// Returns the number with this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(spread(hash), |&(other, number)| other == hash && is_it(number)).map(|entry| entry.1)
    }

    /// Adds a value that is not there.
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        self.table.insert_unique(spread(hash), (hash, number), |&(hash, _)| spread(hash));
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.table.allocation_size()
    }
}

/// Spreads 32 bits over 64, so that the low and the high bits differ, which tables look at.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
