//! Vocabulary x terminal: for each state of a terminal, what it does to every token. Does not depend on the grammar,
//! so grammars that have a terminal in common share its table: the inside of a JSON string is worked out once.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use hashbrown::HashMap;

use super::{
    crossing::{Crossing, Loops},
    reach::Reach,
};
use crate::{
    ids::TrieNodeId,
    limits::{LimitExceeded, TABLE_BYTES, Work},
    scanner::{NONE, TerminalDfa},
    store::{CacheFolder, Key, Kind, Reader, StoreError, Writer},
    vocab::{ByteTrie, Vocabulary},
};

/// Work of making a row or a node, apart from its tokens, which are a unit each, the trie nodes walked, and a look at all
/// of the automaton before its first row.
const ROW_WORK: usize = 80;
const ENTER_WORK: usize = 8;

/// Work of walking so many trie nodes: an automaton and a trie that are both too large for the caches are 1.5 units each.
fn walking(nodes: usize) -> usize {
    nodes + nodes / 2
}

/// The table of one terminal. Rows are made when they are first asked for, by whoever asks.
#[derive(Debug)]
pub(crate) struct TerminalTable {
    dfa: Arc<TerminalDfa>,
    loops: OnceLock<Loops>,
    rows: Box<[OnceLock<Arc<Reach>>]>,
    /// Bytes with which the terminal can begin, and where they lead.
    first: Box<[(u8, u32)]>,
    bytes: AtomicUsize,
    /// Is it in the cache folder?
    stored: AtomicBool,
}

impl TerminalTable {
    /// A table without rows.
    fn new(dfa: Arc<TerminalDfa>) -> Self {
        let step = |byte: u8| {
            let to = dfa.transitions()[usize::from(dfa.classes()[usize::from(byte)])];
            (to != NONE).then_some((byte, to))
        };
        let first = (0..=u8::MAX).filter_map(step).collect();
        let rows = (0..dfa.len()).map(|_| OnceLock::new()).collect();
        Self {
            dfa,
            loops: OnceLock::new(),
            rows,
            first,
            bytes: AtomicUsize::new(0),
            stored: AtomicBool::new(false),
        }
    }

    /// Bytes with which the terminal can begin, ascending, and the states that they lead to.
    pub(crate) fn first(&self) -> &[(u8, u32)] {
        &self.first
    }

    /// What the terminal does to all tokens when it is in `state`. First use walks the trie; the row is kept also if
    /// that was too much work.
    pub(crate) fn row(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<&Arc<Reach>, LimitExceeded> {
        let mut made = Ok(());
        let look = if self.loops.get().is_none() { self.dfa.transitions().len() / 8 } else { 0 };
        let row = self.rows[state as usize].get_or_init(|| {
            let mut crossing = Crossing::new(trie, &self.dfa, self.loops());
            if state == 0 {
                // Most terminals begin with few bytes.
                let enter = |&(byte, to): &(u8, u32)| Some((trie.root_child(byte)?, to));
                self.first.iter().filter_map(enter).for_each(|(node, to)| crossing.at(node, to));
            } else {
                crossing.root(state);
            }
            let walked = crossing.walked;
            let reach = Arc::new(Reach::new(trie, crossing.stays, crossing.exits));
            made = work.spend(look + ROW_WORK + walking(walked) + reach.work());
            self.bytes.fetch_add(reach.bytes(), Ordering::Relaxed);
            reach
        });
        made.map(|()| row)
    }

    /// What the terminal does to the tokens at and below trie nodes that it has just entered, each in a state. Linear in
    /// the nodes walked and the tokens found.
    pub(crate) fn enter(
        &self,
        trie: &ByteTrie,
        entered: impl Iterator<Item = (u32, u32)>,
        work: &mut Work,
    ) -> Result<Reach, LimitExceeded> {
        let mut crossing = Crossing::new(trie, &self.dfa, self.loops());
        let mut paid = 0;
        for (node, state) in entered {
            crossing.at(TrieNodeId::new(node), state);
            let walked = walking(crossing.walked);
            work.spend(walked - paid)?;
            paid = walked;
        }
        let reach = Reach::new(trie, crossing.stays, crossing.exits);
        work.spend(ENTER_WORK + reach.work())?;
        Ok(reach)
    }

    fn loops(&self) -> &Loops {
        self.loops.get_or_init(|| Loops::new(&self.dfa))
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.rows.len() * 32 + self.bytes.load(Ordering::Relaxed)
    }

    fn is_full(&self) -> bool {
        self.rows.iter().all(|row| row.get().is_some())
    }

    fn write(&self, trie: &ByteTrie) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.count(self.rows.len());
        for state in (0..).take(self.rows.len()) {
            // Unlimited work is never used up.
            if let Ok(row) = self.row(trie, state, &mut Work::unlimited()) {
                row.write(&mut writer);
            }
        }
        writer.finish()
    }

    /// Fills the table from what [`write`](Self::write) wrote. Rows that are there stay.
    fn read(&self, reader: &mut Reader<'_>, trie: &ByteTrie) -> Result<(), StoreError> {
        if reader.count(1)? != self.rows.len() {
            return Err(StoreError::malformed("a table with another number of states"));
        }
        let rows = self.rows.iter().map(|_| Reach::read(reader, trie)).collect::<Result<Vec<_>, _>>()?;
        for (row, reach) in self.rows.iter().zip(rows) {
            let bytes = reach.bytes();
            if row.set(Arc::new(reach)).is_ok() {
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// The tables of one vocabulary, in memory and, where there is one, in a cache folder. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    vocabulary: Vocabulary,
    cache: CacheFolder,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tables: HashMap<Arc<TerminalDfa>, Arc<TerminalTable>>,
    /// Tables added since memory was last looked at.
    added: usize,
}

/// Memory is looked at whenever this many tables were added, or a quarter of those there are, as a look is linear in them.
const ADDED_BEFORE_A_LOOK: usize = 64;

/// Tables of terminals that begin with fewer bytes, such as literals, are quicker made than read from a file.
const FIRST_WORTH_A_FILE: usize = 3;

impl Tables {
    /// No tables yet.
    pub(crate) fn new(vocabulary: Vocabulary, cache: CacheFolder) -> Self {
        Self { vocabulary, cache, known: Arc::default() }
    }

    /// The table of a terminal. Tables that no grammar uses any more are kept for the next one, until all tables
    /// together take more than [`TABLE_BYTES`].
    pub(crate) fn of(&self, dfa: &Arc<TerminalDfa>) -> Arc<TerminalTable> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = known.tables.get(dfa) {
            return Arc::clone(table);
        }
        known.added += 1;
        if known.added >= ADDED_BEFORE_A_LOOK.max(known.tables.len() / 4) {
            known.added = 0;
            if known.tables.values().map(|table| table.bytes()).sum::<usize>() > TABLE_BYTES {
                known.tables.retain(|_, table| Arc::strong_count(table) > 1);
            }
        }
        let table = Arc::new(TerminalTable::new(Arc::clone(dfa)));
        known.tables.insert(Arc::clone(dfa), Arc::clone(&table));
        table
    }

    /// Takes the rows of a table from the cache folder, if they are there.
    pub(crate) fn load(&self, table: &TerminalTable) {
        if self.cache.path().is_some() && table.first.len() >= FIRST_WORTH_A_FILE && !table.is_full() {
            let read = |reader: &mut Reader<'_>| table.read(reader, self.vocabulary.trie());
            if self.cache.get(Kind::TerminalTables, &self.key(table), read).is_some() {
                table.stored.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Puts a table whose rows are all made into the cache folder, unless it came from there.
    pub(crate) fn save(&self, table: &TerminalTable) {
        if self.cache.path().is_some()
            && table.first.len() >= FIRST_WORTH_A_FILE
            && table.is_full()
            && !table.stored.swap(true, Ordering::Relaxed)
        {
            self.cache.put(Kind::TerminalTables, &self.key(table), &table.write(self.vocabulary.trie()));
        }
    }

    fn key(&self, table: &TerminalTable) -> Key {
        let mut writer = Writer::default();
        table.dfa.write(&mut writer);
        Key::of(&[self.vocabulary.fingerprint(), &writer.finish()])
    }

    /// Where they are kept between runs.
    pub(crate) fn cache(&self) -> &CacheFolder {
        &self.cache
    }

    /// The vocabulary.
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}
