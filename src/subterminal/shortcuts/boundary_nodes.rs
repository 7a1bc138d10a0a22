//! Lists the trie nodes whose byte no text of a [level](TextLevels) has, such as those with a quote.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::product_walk::{LEVELS, TextLevels};
use crate::vocab::{ByteTrie, byte_kind};

/// Bounds: number of nodes up to which a list is made, and number of lists that are kept.
const MOST_NODES: usize = 1_024;
const MOST_LISTS: usize = 64;

/// Ascending nodes; `None` if they are too many.
type Nodes = Option<Arc<[u32]>>;

/// The lists of one vocabulary by the kinds of the nodes' bytes.
#[derive(Debug, Default)]
pub(in crate::subterminal) struct BoundaryNodes(Mutex<HashMap<u64, Nodes>>);

impl BoundaryNodes {
    /// Returns for each level all nodes whose byte no text of the level has. `None` where they are many, or
    /// the same as for the level before. A list is sorted when it is first asked for.
    pub(super) fn of(&self, trie: &ByteTrie, levels: &TextLevels) -> [Nodes; LEVELS] {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = 0;
        levels.without_kinds().map(|kinds| {
            // Some levels are one.
            if std::mem::replace(&mut before, kinds) == kinds {
                return None;
            }
            if let Some(known) = lists.get(&kinds) {
                return known.clone();
            }
            let made = nodes_with(trie, kinds);
            if lists.len() < MOST_LISTS {
                lists.insert(kinds, made.clone());
            }
            made
        })
    }

    /// Memory, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.allocation_size() + lists.values().flatten().map(|nodes| size_of_val(&**nodes)).sum::<usize>()
    }
}

/// Lists the trie nodes with a byte of these kinds, ascending; `None` if there are too many.
fn nodes_with(trie: &ByteTrie, kinds: u64) -> Nodes {
    let bytes = || (0..=u8::MAX).filter(|&byte| kinds >> byte_kind(byte) & 1 == 1);
    let lists = || bytes().map(|byte| trie.nodes_with(byte));
    if lists().map(<[u32]>::len).sum::<usize>() > MOST_NODES {
        return None;
    }
    let mut nodes = Vec::new();
    lists().for_each(|list| nodes.extend_from_slice(list));
    nodes.sort_unstable();
    Some(nodes.into())
}
