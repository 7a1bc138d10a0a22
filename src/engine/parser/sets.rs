//! Canonical closed sets, hash-consed by their kernels.
//!
//! The *kernel* of a set is its items that wait for something and were predicted in an earlier set, and
//! whether the text is complete. Items predicted in the set itself follow from the kernel (see `core`);
//! complete items have done their work when the set is made.

use std::ops::Range;

use hashbrown::{HashMap, hash_map::Entry};

use super::core::{Core, CoreId, Cores, Item};
use super::lists::OpenLists;
use crate::automata::HashIndex;
use crate::ids::{SetId, as_u64};
use crate::limits::{Budget, LimitExceeded, Work};
use crate::lower::{Cfg, DottedRule};

/// A set. Its kernel ends where the next one's starts.
#[derive(Debug, Clone, Copy)]
struct Set {
    core: CoreId,
    kernel: u32,
    complete: bool,
}

/// All sets of an arena, hash-consed by kernel.
#[derive(Debug)]
pub(super) struct Sets {
    sets: Vec<Set>,
    /// The kernels, one after the other; each is sorted.
    kernels: Vec<Item>,
    index: HashIndex,
    cores: Cores,
    /// Scratch: the dotted rules of a kernel.
    dots: Vec<DottedRule>,
}

impl Sets {
    pub(super) fn new(cfg: &Cfg) -> Self {
        Self {
            sets: Vec::new(),
            kernels: Vec::new(),
            index: HashIndex::default(),
            cores: Cores::new(cfg),
            dots: Vec::new(),
        }
    }

    /// Number of sets.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Number of items of all kernels and all cores.
    pub(super) fn items_made(&self) -> u64 {
        as_u64(self.kernels.len() + self.cores.rule_count())
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.sets) + size_of_val(&*self.kernels) + self.index.bytes() + self.cores.bytes()
    }

    pub(super) fn is_complete(&self, set: SetId) -> bool {
        self.sets[set.index()].complete
    }

    pub(super) fn core(&self, set: SetId) -> &Core {
        self.cores.get(self.sets[set.index()].core)
    }

    /// The dotted rules of lists in any order.
    pub(super) fn lists(&self) -> &OpenLists {
        self.cores.lists()
    }

    pub(super) fn lists_mut(&mut self) -> &mut OpenLists {
        self.cores.lists_mut()
    }

    pub(super) fn kernel(&self, set: SetId) -> &[Item] {
        &self.kernels[self.kernel_range(set.index())]
    }

    /// Returns the numbers of the kernel items of `set` with this dotted rule.
    pub(super) fn with_dot(&self, set: SetId, dot: DottedRule) -> Range<usize> {
        let Range { start, end } = self.kernel_range(set.index());
        let kernel = &self.kernels[start..end];
        let first = start + kernel.partition_point(|item| item.dot < dot);
        let count = self.kernels[first..end].partition_point(|item| item.dot == dot);
        first..first + count
    }

    /// Returns the item with a number from [`with_dot`](Self::with_dot).
    pub(super) fn item(&self, at: usize) -> Item {
        self.kernels[at]
    }

    fn kernel_range(&self, set: usize) -> Range<usize> {
        let end = self.sets.get(set + 1).map_or(self.kernels.len(), |next| next.kernel as usize);
        self.sets[set].kernel as usize..end
    }

    /// Returns the set with this kernel (sorted, without duplicates). Linear in its items, and in those of
    /// its core if that is new.
    pub(super) fn intern(
        &mut self,
        cfg: &Cfg,
        kernel: &[Item],
        complete: bool,
        work: &mut Work,
    ) -> Result<SetId, LimitExceeded> {
        work.spend(2 * kernel.len() + 4)?;
        let hash = self.index.hash(&(kernel, complete));
        let found = self.index.find(hash, |set| {
            let at = set as usize;
            self.sets[at].complete == complete && self.kernels[self.kernel_range(at)] == *kernel
        });
        if let Some(known) = found {
            return Ok(SetId::new(known));
        }
        let mut dots = std::mem::take(&mut self.dots);
        dots.clear();
        dots.extend(kernel.iter().map(|item| item.dot));
        dots.dedup();
        let core = self.cores.intern(cfg, &dots, work);
        self.dots = dots;
        let core = core?;
        // No origin is `u32::MAX`, see `Item::START`.
        let full = || LimitExceeded::new(Budget::ParserBytes, "parser sets and items", u32::MAX as usize);
        let id = SetId::from_index(self.sets.len()).filter(|id| id.raw() < u32::MAX).ok_or_else(full)?;
        let start = u32::try_from(self.kernels.len()).map_err(|_| full())?;
        self.sets.push(Set { core, kernel: start, complete });
        self.kernels.extend_from_slice(kernel);
        self.index.insert(hash, id.raw());
        Ok(id)
    }
}

// Drops dominated items: those whose continuations another item of the set has too (see `lower::cfg`).

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
