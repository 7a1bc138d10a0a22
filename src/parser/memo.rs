//! Memoised moves: a hash map of answers by set and a second key, such as a terminal.

use std::hash::Hash;

use hashbrown::HashMap;

use crate::ids::SetId;

/// Number of sets whose answers share one table. A full table moves all it holds in one go, so one table of
/// millions would make a single step slow.
const SETS_OF_A_TABLE: usize = 64;

/// A map from a set and a second key to a set.
#[derive(Debug)]
pub(super) struct Memo<K> {
    tables: Vec<HashMap<(SetId, K), SetId>>,
    bytes: usize,
}

impl<K> Default for Memo<K> {
    fn default() -> Self {
        Self { tables: Vec::new(), bytes: 0 }
    }
}

impl<K: Copy + Eq + Hash> Memo<K> {
    pub(super) fn get(&self, set: SetId, key: K) -> Option<SetId> {
        self.tables.get(set.index() / SETS_OF_A_TABLE)?.get(&(set, key)).copied()
    }

    /// Adds an entry and its memory.
    pub(super) fn insert(&mut self, set: SetId, key: K, to: SetId) {
        let at = set.index() / SETS_OF_A_TABLE;
        if at >= self.tables.len() {
            let more = at + 1 - self.tables.len();
            self.bytes += more * size_of::<HashMap<(SetId, K), SetId>>();
            self.tables.resize_with(at + 1, HashMap::new);
        }
        let table = &mut self.tables[at];
        let before = table.allocation_size();
        table.insert((set, key), to);
        self.bytes += table.allocation_size() - before;
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
