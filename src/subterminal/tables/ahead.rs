//! Makes rows ahead of their use, on an idle core.
//!
//! The first mask inside an object needs a row of each of its keys and, for "any other key", a comparison
//! with a common terminal: tens of microseconds that a text would wait for. Neither depends on the text. So
//! compiling a grammar starts a job that makes the rows of each terminal's first states, strings first. It
//! also makes the index of tokens by their kinds of bytes; rows that are made before it do without.

use std::sync::Arc;

use super::table::TerminalTable;
use crate::{
    cores,
    limits::{Limits, Work},
    vocab::Vocabulary,
};

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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{
        Cancel,
        ids::TokenId,
        store::CacheFolder,
        subterminal::{shortcuts::reference_rows_tests::dfa, tables::VocabularyTables},
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
