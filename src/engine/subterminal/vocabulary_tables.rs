//! The tables of one vocabulary: shared by grammars, made ahead on an idle core, and kept between runs in a
//! cache folder.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::table::TerminalTable;
use crate::limits::{Limits, TABLE_BYTES, Work};
use crate::store::{CacheFolder, Kind, PayloadKey, PayloadReader, PayloadWriter};
use crate::{cores, grammar::Automaton, scanner::TerminalDfa, vocab::Vocabulary};

/// The tables of one vocabulary, in memory and, where there is one, in a cache folder. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) struct VocabularyTables {
    vocabulary: Vocabulary,
    cache: CacheFolder,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tables: HashMap<Arc<TerminalDfa>, Arc<TerminalTable>>,
    /// Tables that notations share, the oldest first.
    common: Vec<(Automaton, Arc<TerminalTable>)>,
    /// Tables that grammars still use, though others have replaced them.
    replaced: Vec<Arc<TerminalTable>>,
    /// Number of tables added since memory was last checked, and memory of their automata, in bytes.
    added: usize,
    added_bytes: usize,
    /// Counts the requests for tables: the time of their last use.
    clock: u64,
}

/// Memory of the tables of a vocabulary, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TableMemory {
    /// Memory of all tables.
    pub(crate) all: usize,
    /// Memory of the tables that neither a grammar nor a notation uses.
    pub(crate) unused: usize,
    /// Memory of the tables that more than one grammar uses, but no notation.
    pub(crate) shared: usize,
}

/// Number of automata that notations share, some for each set of options, that are kept.
const MOST_COMMON: usize = 16;

/// Memory is checked whenever this many tables were added, or a quarter of those there are, as a check is
/// linear in them; and whenever automata of this many bytes were.
const ADDED_BEFORE_A_LOOK: usize = 64;
const BYTES_BEFORE_A_LOOK: usize = TABLE_BYTES / 16;

/// Least number of bytes that may begin a terminal in the cache folder; others, such as literals, are made
/// quicker.
const FIRST_WORTH_A_FILE: usize = 3;

/// Drops tables on another core, if there is one: freeing megabytes takes tens of milliseconds.
fn give_back(tables: Vec<(Arc<TerminalDfa>, Arc<TerminalTable>)>) {
    cores::start(move || drop(tables));
}

impl Known {
    /// Returns the table of a terminal; makes it if there is none.
    fn of(&mut self, dfa: &Arc<TerminalDfa>, common: &[Arc<TerminalTable>]) -> Arc<TerminalTable> {
        self.clock += 1;
        if let Some(table) = self.tables.get(dfa) {
            table.asked_for(self.clock);
            return Arc::clone(table);
        }
        self.added += 1;
        self.added_bytes += dfa.bytes_alone();
        let many = self.added >= ADDED_BEFORE_A_LOOK.max(self.tables.len() / 4);
        if many || self.added_bytes >= BYTES_BEFORE_A_LOOK {
            self.trim_all();
        }
        let table = match (dfa.bounded(), dfa.spelled()) {
            (Some((_, unbounded)), _) => TerminalTable::bounded(Arc::clone(dfa), self.of(unbounded, common)),
            (_, Some((_, unbounded))) => {
                let unbounded = unbounded.map(|unbounded| self.of(unbounded, common));
                TerminalTable::spelled(Arc::clone(dfa), unbounded)
            }
            _ => {
                // The common terminals that can begin with a byte that this one begins with.
                let begins = |byte: u8| dfa.takes(0, [byte]);
                let alike = |table: &&Arc<TerminalTable>| table.first().iter().any(|&(byte, _)| begins(byte));
                let common = common.iter().filter(|table| dfa.is_table() && alike(table)).cloned();
                TerminalTable::new(Arc::clone(dfa), common)
            }
        };
        let table = Arc::new(table);
        table.asked_for(self.clock);
        self.tables.insert(Arc::clone(dfa), Arc::clone(&table));
        table
    }

    /// Does a notation use it?
    fn is_common(&self, table: &Arc<TerminalTable>) -> bool {
        self.common.iter().any(|(_, common)| Arc::ptr_eq(common, table))
    }

    /// Makes way for a new table of a terminal if texts have come to so many of its states that they take
    /// more than `most` bytes. Grammars that use the old one keep it.
    fn renew(&mut self, dfa: &Arc<TerminalDfa>, most: usize) {
        if dfa.spelled().is_none() || self.tables.get(dfa).is_none_or(|table| table.dfa().met_bytes() <= most)
        {
            return;
        }
        self.replaced.extend(self.tables.remove(dfa));
        self.forget_replaced();
    }

    /// Drops replaced tables that nobody uses any more.
    fn forget_replaced(&mut self) {
        self.replaced.retain(|table| Arc::strong_count(table) > 1);
    }

    /// Adds up the memory of all tables.
    fn weights(&self) -> TableMemory {
        let mut weights = TableMemory::default();
        for table in self.tables.values().chain(&self.replaced) {
            let bytes = table.bytes();
            weights.all += bytes;
            match table.users() {
                _ if self.is_common(table) => {}
                0 => weights.unused += bytes,
                1 => {}
                _ => weights.shared += bytes,
            }
        }
        weights.all += self.tables.allocation_size();
        weights
    }

    /// Drops unused tables, the least recently used first (LRU), until the rest of them take at most `most`
    /// bytes.
    fn trim(&mut self, most: usize) {
        self.forget_replaced();
        // What a table used that goes may go after it.
        for _ in 0..2 {
            let is_idle = |table: &Arc<TerminalTable>| Arc::strong_count(table) == 1;
            let idle = self.tables.values().filter(|table| is_idle(table));
            let mut idle: Vec<(u64, usize)> =
                idle.map(|table| (table.last_asked_for(), table.bytes())).collect();
            idle.sort_unstable();
            let mut bytes: usize = idle.iter().map(|(_, bytes)| bytes).sum();
            let mut last = None;
            for (asked, weight) in idle {
                if bytes <= most {
                    break;
                }
                bytes = bytes.saturating_sub(weight);
                last = Some(asked);
            }
            let Some(last) = last else { return };
            let goes = |table: &Arc<TerminalTable>| is_idle(table) && table.last_asked_for() <= last;
            give_back(self.tables.extract_if(|_, table| goes(table)).collect());
        }
        self.tables.shrink_to_fit();
        self.tables.values().for_each(|table| table.forget_dead_crossings());
    }

    /// Drops unused tables if all tables take more than [`TABLE_BYTES`].
    fn trim_all(&mut self) {
        (self.added, self.added_bytes) = (0, 0);
        let TableMemory { all, unused, .. } = self.weights();
        if let Some(excess) = all.checked_sub(TABLE_BYTES) {
            self.trim(unused.saturating_sub(excess));
        }
    }
}

impl VocabularyTables {
    /// Creates an empty collection.
    pub(crate) fn new(vocabulary: Vocabulary, cache: CacheFolder) -> Self {
        Self { vocabulary, cache, known: Arc::default() }
    }

    /// Returns the table of a terminal, which may resemble one of `common`. Tables that no grammar uses any
    /// more are kept for the next one, until all tables together take more than [`TABLE_BYTES`].
    pub(crate) fn of(&self, dfa: &Arc<TerminalDfa>, common: &[Arc<TerminalTable>]) -> Arc<TerminalTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).of(dfa, common)
    }

    /// Returns the table of a terminal of a grammar whose automata may take `room` bytes: a new one, if
    /// states that earlier texts have come to would take much of that.
    pub(crate) fn of_within(
        &self,
        dfa: &Arc<TerminalDfa>,
        common: &[Arc<TerminalTable>],
        room: usize,
    ) -> Arc<TerminalTable> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.renew(dfa, room / 4);
        known.of(dfa, common)
    }

    /// Memory of all tables. Linear in their number.
    pub(crate) fn weights(&self) -> TableMemory {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).weights()
    }

    /// Drops unused tables, the least recently used first (LRU), until the rest of them take at most `most`
    /// bytes.
    pub(crate) fn trim(&self, most: usize) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).trim(most);
    }

    /// Returns the table of an automaton that grammars of a notation share; `None` if `dfa` is none.
    pub(crate) fn of_common(
        &self,
        automaton: &Automaton,
        dfa: impl FnOnce() -> Option<TerminalDfa>,
    ) -> Option<Arc<TerminalTable>> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |known: &Known| {
            let mut common = known.common.iter();
            common.find(|(one, _)| one == automaton).map(|(_, table)| Arc::clone(table))
        };
        if let Some(table) = known(&lock()) {
            return Some(table);
        }
        let table = self.of(&Arc::new(dfa()?), &[]);
        let mut known = lock();
        if known.common.len() == MOST_COMMON {
            known.common.remove(0);
        }
        known.common.push((automaton.clone(), Arc::clone(&table)));
        Some(table)
    }

    /// Loads the rows of a table from the cache folder, if they are there.
    pub(crate) fn load(&self, table: &TerminalTable) {
        if let Some(unbounded) = table.unbounded() {
            return self.load(unbounded);
        }
        let worth_a_file = table.dfa().is_table() && table.first().len() >= FIRST_WORTH_A_FILE;
        if self.cache.path().is_some() && worth_a_file && !table.is_stored() {
            let read = |reader: &mut PayloadReader<'_>| table.read(reader, self.vocabulary.trie());
            if self.cache.get(Kind::TerminalTables, &self.key(table), read).is_some() {
                table.set_stored();
            }
        }
    }

    /// Saves the rows of a table that are made in the cache folder, unless it came from there.
    pub(crate) fn save(&self, table: &TerminalTable) {
        if let Some(unbounded) = table.unbounded() {
            return self.save(unbounded);
        }
        if self.cache.path().is_some()
            && table.first().len() >= FIRST_WORTH_A_FILE
            && table.has_rows()
            && !table.set_stored()
        {
            self.cache.put(Kind::TerminalTables, &self.key(table), &table.write());
        }
    }

    fn key(&self, table: &TerminalTable) -> PayloadKey {
        let mut writer = PayloadWriter::default();
        table.dfa().write(&mut writer);
        PayloadKey::of(&[self.vocabulary.fingerprint(), &writer.finish()])
    }

    /// The cache folder.
    pub(crate) fn cache(&self) -> &CacheFolder {
        &self.cache
    }

    /// The vocabulary.
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

// Rows are made ahead of their use, on an idle core. The first mask inside an object needs a row of each of
// its keys and, for "any other key", a comparison with a common terminal: tens of microseconds that a text
// would wait for. Neither depends on the text. So compiling a grammar starts a job that makes the rows of
// each terminal's first states, strings first. It also makes the index of tokens by their kinds of bytes;
// rows that are made before it do without.

/// Work after which a job yields to others of the thread pool, such as a model's pass; some 0.1 ms.
const PIECE: usize = if cfg!(test) { 500 } else { 20_000 };

/// A job in progress.
struct WarmupJob {
    tables: Vec<Arc<TerminalTable>>,
    vocabulary: Vocabulary,
    /// Units of work left to the job: those of [`Limits::ahead`]. It ends before if it is cancelled.
    limits: Limits,
}

/// Starts a job on another core that makes the rows of the first states of each terminal, for as much work as
/// [`Limits::ahead`] says, unless it is cancelled before. The rows are those that texts would make; a text
/// waits for a row that is being made.
pub(crate) fn make_ahead(tables: &[Arc<TerminalTable>], vocabulary: &Vocabulary, limits: &Limits) {
    if limits.ahead > 0 && cores::count() > 1 {
        // Rows of strings that count characters are mostly those of the strings of any length.
        let tables = tables.iter().map(|table| table.unbounded().unwrap_or(table)).cloned().collect();
        let mut job = WarmupJob { tables, vocabulary: vocabulary.clone(), limits: limits.clone() };
        cores::start(move || {
            // From the last one on.
            job.tables.retain(|table| table.dfa().is_table());
            job.tables.reverse();
            job.tables.sort_by_key(|table| table.is_string());
            if job.tables.last().is_some_and(|table| table.is_string()) {
                job.vocabulary.trie().sort_by_kind();
            }
            job.go_on();
        });
    }
}

impl WarmupJob {
    /// Does a piece of the work, then queues the rest.
    fn go_on(mut self) {
        let mut work = Work::unlimited();
        while work.spent() < PIECE.min(self.limits.ahead) && self.limits.look().is_ok() {
            let Some(table) = self.tables.pop() else { return };
            table.begin(self.vocabulary.trie(), &mut work);
        }
        self.limits.ahead = self.limits.ahead.saturating_sub(work.spent());
        if self.limits.ahead > 0 && !self.tables.is_empty() && self.limits.look().is_ok() {
            cores::start(move || self.go_on());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::TokenId, subterminal::shortcuts::reference_rows_tests::dfa};

    fn tables() -> VocabularyTables {
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        VocabularyTables::new(builder.build().unwrap(), CacheFolder::none())
    }

    #[test]
    fn a_table_without_rows_is_small() {
        let dfa = dfa(r#""[a-z]{8}""#);
        let least = size_of::<TerminalTable>();
        let bytes = tables().of(&dfa, &[]).bytes();
        assert!((least..least + 64 * dfa.len()).contains(&bytes), "{bytes} bytes");
    }

    /// A table is compared with common ones that some byte begins as well, and keeps only those alive.
    #[test]
    fn a_table_keeps_common_tables_that_begin_alike() {
        let tables = tables();
        let [text, number] = [r#""[^"]*""#, "[0-9]+"].map(|common| tables.of(&dfa(common), &[]));
        let users = || [&text, &number].map(Arc::strong_count);
        let [texts, numbers] = users();
        let common = [Arc::clone(&text), Arc::clone(&number)];
        let table = tables.of(&dfa(r#""[^"]{9}""#), &common);
        drop(common);
        assert_eq!(users(), [texts + 1, numbers]);
        drop(table);
    }

    #[test]
    fn unused_tables_are_evicted_in_order_of_use() {
        let tables = tables();
        let patterns = ["[0-9]{1,50}", "[a-f]{1,50}", "[x-z]{1,50}"].map(dfa);
        let bytes = patterns.each_ref().map(|pattern| tables.of(pattern, &[]).bytes());
        assert_eq!(tables.weights().unused, bytes.iter().sum::<usize>());
        tables.of(&patterns[0], &[]);
        tables.trim(bytes[0] + bytes[1] / 2);
        assert_eq!(tables.weights().unused, bytes[0], "the one that was asked for last");
        let [used, other] = [0, 2].map(|at: usize| tables.of(&patterns[at], &[]));
        other.enlist();
        tables.trim(0);
        assert!(Arc::ptr_eq(&used, &tables.of(&patterns[0], &[])));
        assert_eq!((tables.weights().unused, other.users()), (bytes[0], 1));
        other.release();
        drop((used, other));
        tables.trim(0);
        assert_eq!(tables.weights().unused, 0);
    }

    /// The index of the vocabulary by characters is made once, for strings alone.
    #[test]
    fn the_index_by_characters_is_made_once_for_strings() {
        let tables = tables();
        let text = tables.of(&dfa(r#""[^"]*""#), &[]);
        let prepare = |pattern: &str| {
            let table = tables.of(&dfa(pattern), &[Arc::clone(&text)]);
            table.prepare(tables.vocabulary().trie());
            text.bytes()
        };
        let before = text.bytes();
        assert_eq!(prepare(r#""name of a property""#), before);
        let made = prepare(r#""[^"]{1}""#);
        assert!(made > before, "{made} bytes");
        assert_eq!(prepare(r#""[^"]{2,63}""#), made);
    }
}

#[cfg(test)]
mod ahead_tests {
    use std::time::{Duration, Instant};

    use super::VocabularyTables;
    use super::*;
    use crate::{
        Cancel, ids::TokenId, store::CacheFolder, subterminal::shortcuts::reference_rows_tests::dfa,
    };

    /// Waits for what other threads do.
    fn comes_true(what: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !what() && start.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        what()
    }

    #[test]
    fn first_states_have_rows_made_ahead() {
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        let tables = VocabularyTables::new(builder.build().unwrap(), CacheFolder::none());
        let text = tables.of(&dfa(r#""[^"]*""#), &[]);
        let patterns = [r#""[^"]{1,9}""#, "[a-f]+", r#""name""#, "[0-9]{2}", "x|y|zz"];
        let made: Vec<_> = patterns.map(|one| tables.of(&dfa(one), &[Arc::clone(&text)])).into();
        let is_begun = |table: &Arc<TerminalTable>| {
            table.first().iter().all(|&(_, state)| table.rows()[state as usize].get().is_some())
        };
        let limits = |ahead| Limits { ahead, ..Limits::default() };
        make_ahead(&made, tables.vocabulary(), &limits(0));
        make_ahead(&made, tables.vocabulary(), &limits(usize::MAX));
        if cores::count() > 1 {
            assert!(comes_true(|| made.iter().all(is_begun)));
        }
    }

    /// A job that may do no more than a piece leaves the rest, and it is strings that come first.
    #[test]
    fn work_ahead_is_bounded_and_strings_come_first() {
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        let vocabulary = builder.build().unwrap();
        let tables = VocabularyTables::new(vocabulary.clone(), CacheFolder::none());
        let [number, text] = ["[0-9]+", r#""[^"]*""#].map(|one| tables.of(&dfa(one), &[]));
        let job = |limits| WarmupJob {
            tables: vec![Arc::clone(&number), Arc::clone(&text)],
            vocabulary: vocabulary.clone(),
            limits,
        };
        let is_begun = |table: &TerminalTable| table.rows().iter().any(|row| row.get().is_some());
        job(Limits::default().cancelled_by(&Cancel::at_look(0))).go_on();
        assert!(!is_begun(&text) && !is_begun(&number));
        job(Limits { ahead: 1, ..Limits::default() }).go_on();
        assert!(is_begun(&text) && !is_begun(&number));
    }
}
