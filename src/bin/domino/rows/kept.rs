//! An LRU cache: it keeps the values used last.

use std::{collections::HashMap, hash::Hash};

/// A cache of at most `most` values, which drops the one least recently used.
#[derive(Debug)]
pub(crate) struct LastUsed<K, V> {
    most: usize,
    /// Values with the time of their last use, counted in uses.
    values: HashMap<K, (u64, V)>,
    uses: u64,
}

impl<K: Eq + Hash + Clone, V: Clone> LastUsed<K, V> {
    /// Makes a cache for `most` values, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), values: HashMap::new(), uses: 0 }
    }

    /// The value of a key, made if it is not there. A full cache searches all its values for the one to drop.
    pub(crate) fn get_or_make(&mut self, key: K, make: impl FnOnce(&K) -> V) -> V {
        self.uses += 1;
        if let Some((used, value)) = self.values.get_mut(&key) {
            *used = self.uses;
            return value.clone();
        }
        while self.values.len() >= self.most
            && let Some(oldest) = self.values.iter().min_by_key(|(_, (used, _))| *used)
        {
            let oldest = oldest.0.clone();
            self.values.remove(&oldest);
        }
        let value = make(&key);
        self.values.insert(key, (self.uses, value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let mut kept = LastUsed::new(2);
        let mut made = Vec::new();
        for key in [1, 2, 1, 3, 1, 2, 3, 3] {
            assert_eq!(
                kept.get_or_make(key, |&key| {
                    made.push(key);
                    key * 10
                }),
                key * 10
            );
        }
        assert_eq!(made, [1, 2, 3, 2, 3]);
    }
}
