//! An LRU cache that is bounded by the weight of its values: the least recently used go first.

use std::{collections::HashMap, hash::Hash};

/// An LRU cache: values by key.
#[derive(Debug)]
pub(crate) struct Shelf<K, V> {
    values: HashMap<K, ShelfEntry<V>>,
    /// Number of uses so far; a use is dated by it.
    clock: u64,
}

#[derive(Debug)]
struct ShelfEntry<V> {
    value: V,
    used: u64,
}

impl<K: Eq + Hash + Clone, V> Shelf<K, V> {
    pub(crate) fn new() -> Self {
        Self { values: HashMap::new(), clock: 0 }
    }

    /// Returns the value, and counts that as a use.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        self.clock += 1;
        let kept = self.values.get_mut(key)?;
        kept.used = self.clock;
        Some(&kept.value)
    }

    /// Inserts a value, and counts that as a use.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.clock += 1;
        self.values.insert(key, ShelfEntry { value, used: self.clock });
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.values.remove(key);
    }

    /// Evicts the least recently used values until the rest weigh at most `most`, but never the value used
    /// last. Weighs every value anew, since weights may change. Returns how many went.
    pub(crate) fn trim(&mut self, most: usize, weigh: impl Fn(&V) -> usize) -> usize {
        let mut weights: Vec<(u64, usize, K)> =
            self.values.iter().map(|(key, kept)| (kept.used, weigh(&kept.value), key.clone())).collect();
        weights.sort_unstable_by_key(|&(used, ..)| used);
        let mut total = weights.iter().fold(0_usize, |sum, &(_, weight, _)| sum.saturating_add(weight));
        // The last one stays.
        weights.pop();
        let mut gone = 0;
        for (_, weight, key) in weights {
            if total <= most {
                break;
            }
            self.values.remove(&key);
            total = total.saturating_sub(weight);
            gone += 1;
        }
        gone
    }

    /// All values, in no order.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.values.values().map(|kept| &kept.value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_most_recently_used_value_stays_whatever_it_weighs() {
        let mut shelf = Shelf::new();
        shelf.insert("a", 100);
        assert_eq!(shelf.trim(10, |&weight| weight), 0);
        shelf.insert("b", 1);
        shelf.get(&"a");
        assert_eq!(shelf.trim(10, |&weight| weight), 1);
        assert!(shelf.get(&"b").is_none() && shelf.get(&"a").is_some());
    }

    proptest! {
        /// Holds the cache to a plain list in the order of use.
        #[test]
        fn the_cache_agrees_with_a_list_in_order_of_use(
            uses in prop::collection::vec((0_u8..8, 0_usize..5), 1..60),
            most in 0_usize..20,
        ) {
            let mut shelf = Shelf::new();
            let mut list: Vec<(u8, usize)> = Vec::new();
            for (key, weight) in uses {
                let known = shelf.get(&key).copied();
                let place = list.iter().position(|&(other, _)| other == key);
                prop_assert_eq!(known, place.map(|place| list[place].1));
                match place {
                    Some(place) => {
                        let entry = list.remove(place);
                        list.push(entry);
                    }
                    None => {
                        shelf.insert(key, weight);
                        list.push((key, weight));
                    }
                }
                shelf.trim(most, |&weight| weight);
                while list.len() > 1 && list.iter().map(|&(_, weight)| weight).sum::<usize>() > most {
                    list.remove(0);
                }
                prop_assert_eq!(shelf.values().len(), list.len());
            }
        }
    }
}
