//! Memory and users of tables, and the times of their last use.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{Crossed, MOST_CROSSINGS, TerminalTable};

/// The users of a table.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Number of compiled grammars.
    grammars: AtomicUsize,
    /// Time when a grammar last asked for it, by the clock of all tables of a vocabulary.
    last: AtomicU64,
    /// Memory of the crossings, in bytes.
    pub(super) crossings: AtomicUsize,
}

impl TerminalTable {
    /// Memory of the table and its automaton, in bytes. Constant time. Parts of another table are counted
    /// there.
    pub(crate) fn bytes(&self) -> usize {
        let kept = [
            self.dfa.bytes_alone(),
            self.dfa.bounded().map_or(0, |(bounded, _)| bounded.automaton().bytes()),
            self.loops.get().map_or(0, |loops| loops.bytes()),
            size_of_val(&*self.common) + size_of_val(&*self.first),
            self.ends.get().map_or(0, |ends| size_of_val(&**ends)),
            self.rows.get().map_or(0, |rows| size_of_val(&**rows)),
            self.sparse.bytes() + self.breaks.bytes() + self.alike.bytes(),
            self.strings.get().map_or(0, |strings| strings.bytes()),
            self.unbounded.as_ref().map_or(0, |unbounded| unbounded.bytes()),
            self.spelling().map_or(0, |spelling| spelling.bytes()),
            self.crossings().allocation_size() + self.usage.crossings.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        ];
        size_of::<Self>() + kept.iter().sum::<usize>()
    }

    /// Counts one more grammar that uses it.
    pub(crate) fn enlist(&self) {
        self.usage.grammars.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one grammar less.
    pub(crate) fn release(&self) {
        self.usage.grammars.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of compiled grammars that use it; bounded strings beside it do not count.
    pub(crate) fn users(&self) -> usize {
        self.usage.grammars.load(Ordering::Relaxed)
    }

    /// Records that a grammar asks for it now.
    pub(in crate::subterminal) fn asked_for(&self, now: u64) {
        self.usage.last.store(now, Ordering::Relaxed);
    }

    /// Time when a grammar last asked for it.
    pub(in crate::subterminal) fn last_asked_for(&self) -> u64 {
        self.usage.last.load(Ordering::Relaxed)
    }

    /// Drops the crossings into terminals that no longer exist.
    pub(in crate::subterminal) fn forget_dead_crossings(&self) {
        let mut crossings = self.crossings();
        let mut freed = 0;
        crossings.retain(|_, known| {
            let lives = known.into.strong_count() > 0;
            freed += if lives { 0 } else { known.bytes };
            lives
        });
        if crossings.len() < crossings.capacity() / 4 {
            crossings.shrink_to_fit();
        }
        self.usage.crossings.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Keeps a crossing, if there is room.
    pub(super) fn keep_crossing(&self, key: (u32, usize), crossed: Crossed) {
        if self.crossings().len() >= MOST_CROSSINGS {
            self.forget_dead_crossings();
        }
        let mut crossings = self.crossings();
        if crossings.len() < MOST_CROSSINGS {
            self.usage.crossings.fetch_add(crossed.bytes, Ordering::Relaxed);
            if let Some(before) = crossings.insert(key, crossed) {
                self.usage.crossings.fetch_sub(before.bytes, Ordering::Relaxed);
            }
        }
    }
}
