//! The tables of one vocabulary: kept between grammars, and between runs in a cache folder.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::table::TerminalTable;
use crate::{
    cores,
    grammar::Automaton,
    limits::TABLE_BYTES,
    scanner::TerminalDfa,
    store::{CacheFolder, Key, Kind, Reader, Writer},
    vocab::Vocabulary,
};

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
    /// Those that notations have in common, the oldest first.
    common: Vec<(Automaton, Arc<TerminalTable>)>,
    /// Tables added since memory was last looked at.
    added: usize,
}

/// Automata that notations have in common, some for each set of options, that are kept in mind.
const MOST_COMMON: usize = 16;

/// Memory is looked at whenever this many tables were added, or a quarter of those there are, as a look is linear in them.
const ADDED_BEFORE_A_LOOK: usize = 64;

/// Tables of terminals that begin with fewer bytes, such as literals, are quicker made than read from a file.
const FIRST_WORTH_A_FILE: usize = 3;

/// Gives the memory of tables back to the system, on another core if there is one: for the megabytes that
/// they are, that takes tens of milliseconds.
fn give_back(tables: Vec<(Arc<TerminalDfa>, Arc<TerminalTable>)>) {
    cores::start(move || drop(tables));
}

impl Known {
    fn of(&mut self, dfa: &Arc<TerminalDfa>, common: &[Arc<TerminalTable>]) -> Arc<TerminalTable> {
        if let Some(table) = self.tables.get(dfa) {
            return Arc::clone(table);
        }
        self.added += 1;
        if self.added >= ADDED_BEFORE_A_LOOK.max(self.tables.len() / 4) {
            self.added = 0;
            if self.tables.values().map(|table| table.bytes()).sum::<usize>() > TABLE_BYTES {
                let unused = self.tables.extract_if(|_, table| Arc::strong_count(table) == 1).collect();
                give_back(unused);
            }
        }
        let table = match dfa.measured() {
            Some((_, unbounded)) => TerminalTable::measured(Arc::clone(dfa), self.of(unbounded, common)),
            None => {
                // Those that some byte begins as well.
                let begins = |byte: u8| dfa.step(0, byte).is_some();
                let alike = |table: &&Arc<TerminalTable>| table.first().iter().any(|&(byte, _)| begins(byte));
                let common = common.iter().filter(|table| dfa.is_table() && alike(table)).cloned();
                TerminalTable::new(Arc::clone(dfa), common)
            }
        };
        let table = Arc::new(table);
        self.tables.insert(Arc::clone(dfa), Arc::clone(&table));
        table
    }
}

impl Tables {
    /// No tables yet.
    pub(crate) fn new(vocabulary: Vocabulary, cache: CacheFolder) -> Self {
        Self { vocabulary, cache, known: Arc::default() }
    }

    /// The table of a terminal, which may have much in common with one of `common`. Tables that no grammar
    /// uses any more are kept for the next one, until all tables together take more than [`TABLE_BYTES`].
    pub(crate) fn of(&self, dfa: &Arc<TerminalDfa>, common: &[Arc<TerminalTable>]) -> Arc<TerminalTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).of(dfa, common)
    }

    /// The table of an automaton that grammars of a notation have in common; `None` if `dfa` is none.
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

    /// Takes the rows of a table from the cache folder, if they are there.
    pub(crate) fn load(&self, table: &TerminalTable) {
        if let Some(unbounded) = table.unbounded() {
            return self.load(unbounded);
        }
        let worth_a_file = table.dfa().is_table() && table.first().len() >= FIRST_WORTH_A_FILE;
        if self.cache.path().is_some() && worth_a_file && !table.is_full() {
            let read = |reader: &mut Reader<'_>| table.read(reader, self.vocabulary.trie());
            if self.cache.get(Kind::TerminalTables, &self.key(table), read).is_some() {
                table.set_stored();
            }
        }
    }

    /// Puts a table whose rows are all made into the cache folder, unless it came from there.
    pub(crate) fn save(&self, table: &TerminalTable) {
        if let Some(unbounded) = table.unbounded() {
            return self.save(unbounded);
        }
        if self.cache.path().is_some()
            && table.first().len() >= FIRST_WORTH_A_FILE
            && table.is_full()
            && !table.set_stored()
        {
            self.cache.put(Kind::TerminalTables, &self.key(table), &table.write(self.vocabulary.trie()));
        }
    }

    fn key(&self, table: &TerminalTable) -> Key {
        let mut writer = Writer::default();
        table.dfa().write(&mut writer);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::TokenId, subterminal::kin_tests::dfa};

    fn tables() -> Tables {
        let builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        Tables::new(builder.build().unwrap(), CacheFolder::none())
    }

    #[test]
    fn a_table_without_rows_is_small() {
        let dfa = dfa(r#""[a-z]{8}""#);
        let least = size_of::<TerminalTable>();
        let bytes = tables().of(&dfa, &[]).bytes();
        assert!((least..least + 64 * dfa.len()).contains(&bytes), "{bytes} bytes");
    }

    /// A table is held against common ones that some byte begins as well, and keeps only those alive.
    #[test]
    fn a_table_knows_common_ones_that_begin_as_it_does() {
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

    /// The index of the vocabulary by characters is made once, for strings alone.
    #[test]
    fn strings_are_prepared() {
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
