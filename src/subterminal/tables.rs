//! Vocabulary x terminal: for each state of a terminal, what it does to every token. Does not depend on the grammar,
//! so grammars that have a terminal in common share its table: the inside of a JSON string is worked out once.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use hashbrown::HashMap;

use super::{
    crossing::{Crossing, Loops},
    entrances::Entrances,
    kin::{self, Kin},
    ranges::Ranges,
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

/// Bytes that lead on from a state from which on it is worth a look whether a common terminal does the same.
const WORTH_KIN: usize = 48;

/// Work of walking so many trie nodes: an automaton and a trie that are both too large for the caches are 1.5 units each.
fn walking(nodes: usize) -> usize {
    nodes + nodes / 2
}

/// What a state does to all tokens.
#[derive(Debug)]
struct Row {
    reach: Arc<Reach>,
    /// What of it is another row's.
    taken: Option<Taken>,
}

/// What a row has from that of a common terminal.
#[derive(Debug)]
struct Taken {
    /// Whole subtrees, in order.
    nodes: Box<[Range<u32>]>,
    /// Exits beside those taken over.
    exits: Ranges,
}

/// What another terminal does to tokens that enter it; as long as it is used.
#[derive(Debug)]
struct Crossed {
    into: Weak<TerminalTable>,
    reach: Arc<Reach>,
}

/// Crossings that are kept of one table before those into terminals that nobody uses any more are dropped.
const MOST_CROSSINGS: usize = 1_024;

/// The table of one terminal. Rows are made when they are first asked for, by whoever asks.
#[derive(Debug)]
pub(crate) struct TerminalTable {
    dfa: Arc<TerminalDfa>,
    loops: OnceLock<Loops>,
    /// The table of a common terminal that this one may have much in common with.
    common: Option<Arc<Self>>,
    kin: OnceLock<Kin>,
    rows: Box<[OnceLock<Row>]>,
    /// Into which other terminals tokens go on from a state, and what they do there; see
    /// [`crossing`](Self::crossing).
    crossings: Mutex<HashMap<(u32, usize), Crossed>>,
    /// Bytes with which the terminal can begin, and where they lead.
    first: Box<[(u8, u32)]>,
    bytes: AtomicUsize,
    /// Is it in the cache folder?
    stored: AtomicBool,
}

impl TerminalTable {
    /// A table without rows.
    pub(super) fn new(dfa: Arc<TerminalDfa>, common: Option<Arc<Self>>) -> Self {
        let step = |byte: u8| {
            let to = dfa.transitions()[usize::from(dfa.classes()[usize::from(byte)])];
            (to != NONE).then_some((byte, to))
        };
        let first = (0..=u8::MAX).filter_map(step).collect();
        let rows = (0..dfa.len()).map(|_| OnceLock::new()).collect();
        Self {
            dfa,
            loops: OnceLock::new(),
            common,
            kin: OnceLock::new(),
            rows,
            crossings: Mutex::default(),
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
        if let Some(row) = self.rows[state as usize].get() {
            return Ok(&row.reach);
        }
        if let Some((kin, row)) = self.relative(trie, state, work)? {
            let row = self.rows[state as usize].get_or_init(|| {
                if kin.is_same(state) {
                    return Row { reach: row, taken: None };
                }
                let kin::Found { reach, taken, exits, walked } =
                    kin.row(trie, (&self.dfa, self.loops()), state, &row);
                made = work.spend(look + ROW_WORK + walking(walked) + reach.work());
                self.bytes.fetch_add(reach.bytes(), Ordering::Relaxed);
                let taken = kin.has_exits().then(|| Taken { nodes: taken.into(), exits });
                Row { reach: Arc::new(reach), taken }
            });
            return made.map(|()| &row.reach);
        }
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
            Row { reach, taken: None }
        });
        made.map(|()| &row.reach)
    }

    /// What the terminal of `into` does to the tokens that go on into it where this one, begun in `state`,
    /// may end. Kept
    /// for other grammars. Where the row is a common terminal's, in part or as a whole, so is this.
    pub(super) fn crossing(
        &self,
        trie: &ByteTrie,
        state: u32,
        into: &Arc<Self>,
        work: &mut Work,
    ) -> Result<Arc<Reach>, LimitExceeded> {
        let row = Arc::clone(self.row(trie, state, work)?);
        let key = (state, Arc::as_ptr(into).addr());
        if let Some(known) = self.crossings().get(&key).filter(|known| known.into.strong_count() > 0) {
            return Ok(Arc::clone(&known.reach));
        }
        let enter = |exits: &Ranges, work: &mut Work| {
            let entrances = Entrances::new(trie, exits, std::iter::once(into.first()), work)?;
            entrances.cross(trie, into, work)
        };
        let partner = match (&self.common, self.kin.get()) {
            (Some(common), Some(kin)) => kin.partner(state).map(|partner| (common, kin, partner)),
            _ => None,
        };
        let taken = self.rows[state as usize].get().and_then(|row| row.taken.as_ref());
        let reach = match (partner, taken) {
            (Some((common, kin, partner)), None) if kin.is_same(state) => {
                common.crossing(trie, partner, into, work)?
            }
            (Some((common, _, partner)), Some(Taken { nodes, exits })) => {
                let theirs = common.crossing(trie, partner, into, work)?;
                let own = enter(exits, work)?;
                if own.is_empty() && theirs.is_within(trie, nodes) {
                    theirs
                } else {
                    work.spend(theirs.work())?;
                    Arc::new(own.with(trie, nodes, &theirs))
                }
            }
            _ => Arc::new(enter(row.exits(), work)?),
        };
        let mut crossings = self.crossings();
        if crossings.len() >= MOST_CROSSINGS {
            crossings.retain(|_, known| known.into.strong_count() > 0);
        }
        if crossings.len() < MOST_CROSSINGS {
            self.bytes.fetch_add(reach.bytes(), Ordering::Relaxed);
            let into = Arc::downgrade(into);
            crossings.insert(key, Crossed { into, reach: Arc::clone(&reach) });
        }
        Ok(reach)
    }

    fn crossings(&self) -> MutexGuard<'_, HashMap<(u32, usize), Crossed>> {
        self.crossings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How this terminal and a common one compare, and the row of the common one's state beside `state`, if
    /// many tokens may go on there.
    fn relative(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<Option<(&Kin, Arc<Reach>)>, LimitExceeded> {
        let Some(common) = &self.common else { return Ok(None) };
        let bytes = self.dfa.classes().iter();
        let row = &self.dfa.transitions()[state as usize * self.dfa.class_count()..];
        if bytes.filter(|class| row[usize::from(**class)] != NONE).count() < WORTH_KIN {
            return Ok(None);
        }
        let mut made = Ok(());
        let kin = self.kin.get_or_init(|| {
            made = work.spend(self.dfa.transitions().len());
            let kin = Kin::new(&self.dfa, &common.dfa);
            self.bytes.fetch_add(kin.bytes(), Ordering::Relaxed);
            kin
        });
        made?;
        let Some(partner) = kin.partner(state) else { return Ok(None) };
        Ok(Some((kin, Arc::clone(common.row(trie, partner, work)?))))
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
            if row.set(Row { reach: Arc::new(reach), taken: None }).is_ok() {
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

    /// The table of a terminal, which may have much in common with one of `common`. Tables that no grammar
    /// uses any more are kept for the next one, until all tables together take more than [`TABLE_BYTES`].
    pub(crate) fn of(&self, dfa: &Arc<TerminalDfa>, common: &[Arc<TerminalTable>]) -> Arc<TerminalTable> {
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
        // The one that begins most alike, if any byte begins both.
        let begins = |byte: usize| dfa.transitions()[usize::from(dfa.classes()[byte])] != NONE;
        let alike = |table: &Arc<TerminalTable>| {
            let both = table.first.iter().filter(|&&(byte, _)| begins(usize::from(byte))).count();
            (both > 0).then(|| table.first.len() + (0..256).filter(|&byte| begins(byte)).count() - 2 * both)
        };
        let common = common.iter().filter_map(|table| Some((alike(table)?, table)));
        let common = common.min_by_key(|(apart, _)| *apart).map(|(_, table)| Arc::clone(table));
        let table = Arc::new(TerminalTable::new(Arc::clone(dfa), common));
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
