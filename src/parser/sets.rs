//! Canonical closed sets.
//!
//! A set is known by its *kernel*: the items that wait for something and were predicted in an earlier
//! set, and whether the text is complete. Items that were predicted in the set itself follow from the
//! kernel; items at their end have done their work when the set is made.

use std::{hash::BuildHasher, ops::Range};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::item::{Item, Origin};
use crate::{
    ids::{SetId, TerminalId},
    limits::{LimitExceeded, Limits},
    lower::{Dot, NonterminalId},
};

/// A set with its predictions, grouped by what the items wait for.
#[derive(Debug)]
pub(super) struct ClosedSet {
    kernel: Box<[Item]>,
    complete: bool,
    /// Terminals that may follow, ascending, each with its range of `by_terminal` and the set it leads to once known.
    accepts: Box<[TerminalId]>,
    /// One for each of `accepts`, and one past them.
    edges: Box<[Edge]>,
    by_terminal: Box<[(Dot, Origin)]>,
    /// Sorted by nonterminal.
    by_nonterminal: Box<[(NonterminalId, Dot, Origin)]>,
}

/// What a terminal leads to.
#[derive(Debug, Clone, Copy)]
struct Edge {
    /// Its first item of `by_terminal`; the next edge's is one past its last.
    first: u32,
    /// The set after it, once known.
    shift: Option<SetId>,
}

/// The items of a set that is being closed.
#[derive(Debug, Default)]
pub(super) struct OpenSet {
    pub(super) by_terminal: Vec<(TerminalId, Dot, Origin)>,
    pub(super) by_nonterminal: Vec<(NonterminalId, Dot, Origin)>,
}

impl OpenSet {
    pub(super) fn clear(&mut self) {
        self.by_terminal.clear();
        self.by_nonterminal.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.by_terminal.len() + self.by_nonterminal.len()
    }
}

impl ClosedSet {
    fn new(kernel: &[Item], complete: bool, open: &mut OpenSet) -> Self {
        open.by_terminal.sort_unstable_by_key(|(terminal, dot, _)| (*terminal, *dot));
        open.by_nonterminal.sort_unstable_by_key(|(nonterminal, dot, _)| (*nonterminal, *dot));
        let groups = || open.by_terminal.chunk_by(|one, other| one.0 == other.0);
        let count = groups().count();
        let (mut accepts, mut edges) = (Vec::with_capacity(count), Vec::with_capacity(count + 1));
        let mut first = 0;
        for group in groups() {
            accepts.push(group[0].0);
            edges.push(Edge { first, shift: None });
            first += u32::try_from(group.len()).unwrap_or(u32::MAX);
        }
        edges.push(Edge { first, shift: None });
        Self {
            kernel: kernel.into(),
            complete,
            accepts: accepts.into(),
            edges: edges.into(),
            by_terminal: open.by_terminal.iter().map(|&(_, dot, origin)| (dot, origin)).collect(),
            by_nonterminal: open.by_nonterminal.as_slice().into(),
        }
    }

    pub(super) fn kernel(&self) -> &[Item] {
        &self.kernel
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn accepts(&self) -> &[TerminalId] {
        &self.accepts
    }

    /// Place of a terminal among [`accepts`](Self::accepts).
    pub(super) fn place(&self, terminal: TerminalId) -> Option<usize> {
        self.accepts.binary_search(&terminal).ok()
    }

    pub(super) fn shift(&self, place: usize) -> Option<SetId> {
        self.edges[place].shift
    }

    /// The items that wait for the terminal at `place`.
    pub(super) fn waiting_at(&self, place: usize) -> &[(Dot, Origin)] {
        &self.by_terminal[self.edges[place].first as usize..self.edges[place + 1].first as usize]
    }

    /// Which of the items by nonterminal wait for this one.
    pub(super) fn waiting_for(&self, nonterminal: NonterminalId) -> Range<usize> {
        let items = &self.by_nonterminal;
        let first = items.partition_point(|(found, ..)| *found < nonterminal);
        first..first + items[first..].partition_point(|(found, ..)| *found == nonterminal)
    }

    /// An item that waits for a nonterminal.
    pub(super) fn by_nonterminal(&self, at: usize) -> (Dot, Origin) {
        let (_, dot, origin) = self.by_nonterminal[at];
        (dot, origin)
    }

    /// All items, by what they wait for.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Dot, Origin)> + '_ {
        let by_nonterminal = self.by_nonterminal.iter().map(|&(_, dot, origin)| (dot, origin));
        self.by_terminal.iter().copied().chain(by_nonterminal)
    }

    fn item_count(&self) -> usize {
        self.kernel.len() + self.by_terminal.len() + self.by_nonterminal.len()
    }
}

/// All sets of an arena, hash-consed by kernel.
#[derive(Debug)]
pub(super) struct Sets {
    sets: Vec<ClosedSet>,
    index: HashTable<SetId>,
    hasher: DefaultHashBuilder,
    items: usize,
    max_sets: usize,
    max_items: usize,
}

impl Sets {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            sets: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            items: 0,
            max_sets: limits.sets.min(u32::MAX as usize - 1),
            max_items: limits.arena_items,
        }
    }

    pub(super) fn get(&self, set: SetId) -> &ClosedSet {
        &self.sets[set.index()]
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Items in all sets.
    pub(super) fn item_count(&self) -> usize {
        self.items
    }

    pub(super) fn set_shift(&mut self, set: SetId, place: usize, to: SetId) {
        self.sets[set.index()].edges[place].shift = Some(to);
    }

    /// The set with this kernel (sorted, without duplicates); `close` makes its items if it is new.
    pub(super) fn intern<'a>(
        &mut self,
        kernel: &[Item],
        complete: bool,
        close: impl FnOnce(&[Item]) -> Result<&'a mut OpenSet, LimitExceeded>,
    ) -> Result<SetId, LimitExceeded> {
        let hash = hash_kernel(&self.hasher, kernel, complete);
        let found = self.index.find(hash, |id| {
            let set = &self.sets[id.index()];
            set.complete == complete && *set.kernel == *kernel
        });
        if let Some(&id) = found {
            return Ok(id);
        }
        if self.sets.len() >= self.max_sets {
            return Err(LimitExceeded::new("parser sets", self.max_sets));
        }
        let set = ClosedSet::new(kernel, complete, close(kernel)?);
        if self.items + set.item_count() > self.max_items {
            return Err(LimitExceeded::new("items in all parser sets", self.max_items));
        }
        self.items += set.item_count();
        let id = SetId::from_index(self.sets.len())
            .ok_or_else(|| LimitExceeded::new("parser sets", self.max_sets))?;
        self.sets.push(set);
        let (sets, hasher) = (&self.sets, &self.hasher);
        self.index.insert_unique(hash, id, |id| {
            let set = &sets[id.index()];
            hash_kernel(hasher, &set.kernel, set.complete)
        });
        Ok(id)
    }
}

fn hash_kernel(hasher: &DefaultHashBuilder, kernel: &[Item], complete: bool) -> u64 {
    hasher.hash_one((kernel, complete))
}
