//! Items that are not needed, because another one of the set allows all that they do: see `lower::ranks`.

use hashbrown::{HashMap, hash_map::Entry};

use super::item::Item;
use crate::lower::{Cfg, Dot};

/// Of the items of a set so far that can be compared, the first of each class and origin.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    /// By class, which stands where an item has its dotted rule.
    places: HashMap<Item, u32>,
}

impl Firsts {
    /// Nothing met yet.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// Notes an item. Returns whether it is needed so far.
    pub(super) fn meet(&mut self, cfg: &Cfg, item: Item) -> bool {
        let Some(rank) = cfg.rank(item.dot) else { return true };
        match self.places.entry(Item { dot: Dot(rank.class), ..item }) {
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

    /// Is an item needed, now that all were met?
    pub(super) fn keeps(&self, cfg: &Cfg, item: Item) -> bool {
        cfg.rank(item.dot).is_none_or(|rank| {
            self.places.get(&Item { dot: Dot(rank.class), ..item }).is_none_or(|&first| first == rank.place)
        })
    }
}
