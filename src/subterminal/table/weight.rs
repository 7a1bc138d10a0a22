//! What tables weigh, who uses them, and when they were last asked for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{Crossed, MOST_CROSSINGS, TerminalTable};

/// Users of a table.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Compiled grammars.
    grammars: AtomicUsize,
    /// When a grammar last asked for it, by the clock of all tables of a vocabulary.
    last: AtomicU64,
    /// Memory of the crossings, in bytes.
    pub(super) crossings: AtomicUsize,
}

impl TerminalTable {
    /// Memory of it and of its automaton, in bytes. Constant time. What it has from another table is counted
    /// there.
    pub(crate) fn bytes(&self) -> usize {
        let kept = [
            self.dfa.bytes_alone(),
            self.dfa.measured().map_or(0, |(measured, _)| measured.automaton().bytes()),
            self.loops.get().map_or(0, |loops| loops.bytes()),
            size_of_val(&*self.common) + size_of_val(&*self.first),
            self.ends.get().map_or(0, |ends| size_of_val(&**ends)),
            self.rows.get().map_or(0, |rows| size_of_val(&**rows)),
            self.scattered.bytes() + self.breaks.bytes(),
            self.strings.get().map_or(0, |strings| strings.bytes()),
            self.unbounded.as_ref().map_or(0, |unbounded| unbounded.bytes()),
            self.spelling().map_or(0, |spelling| spelling.bytes()),
            self.crossings().allocation_size() + self.usage.crossings.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        ];
        size_of::<Self>() + kept.iter().sum::<usize>()
    }

    /// One more grammar uses it.
    pub(crate) fn enlist(&self) {
        self.usage.grammars.fetch_add(1, Ordering::Relaxed);
    }

    /// One grammar fewer uses it.
    pub(crate) fn release(&self) {
        self.usage.grammars.fetch_sub(1, Ordering::Relaxed);
    }

    /// Compiled grammars that use it; strings that are counted beside it are not among them.
    pub(crate) fn users(&self) -> usize {
        self.usage.grammars.load(Ordering::Relaxed)
    }

    /// A grammar has asked for it now.
    pub(in crate::subterminal) fn asked_for(&self, now: u64) {
        self.usage.last.store(now, Ordering::Relaxed);
    }

    /// When a grammar last asked for it.
    pub(in crate::subterminal) fn last_asked_for(&self) -> u64 {
        self.usage.last.load(Ordering::Relaxed)
    }

    /// Forgets what it does to tokens that go on into terminals which are there no more.
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
