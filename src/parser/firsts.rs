//! Drops dominated items: those whose continuations another item of the set has too (see `lower::cfg`).

use hashbrown::{HashMap, hash_map::Entry};

use super::item::Item;
use crate::lower::{Cfg, DottedRule};

/// The first rank of each class and origin among the comparable items of a set so far.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    /// Ranks by class, which takes the place of an item's dotted rule, and origin.
    places: HashMap<Item, u32>,
}

impl Firsts {
    /// Forgets all items.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// Records an item. Returns whether no item so far dominates it.
    pub(super) fn meet(&mut self, cfg: &Cfg, item: Item) -> bool {
        let Some(rank) = cfg.rank(item.dot) else { return true };
        match self.places.entry(Item { dot: DottedRule(rank.class), ..item }) {
            Entry::Occupied(mut known) if *known.get() > rank.place => {
                known.insert(rank.place);
                true
            }
            Entry::Occupied(known) => *known.get() == rank.place,
            Entry::Vacant(unknown) => {
                unknown.insert(rank.place);
                true
            }
        }
    }

    /// Is an item not dominated, now that all were recorded?
    pub(super) fn keeps(&self, cfg: &Cfg, item: Item) -> bool {
        cfg.rank(item.dot).is_none_or(|rank| {
            self.places
                .get(&Item { dot: DottedRule(rank.class), ..item })
                .is_none_or(|&first| first == rank.place)
        })
    }
}
