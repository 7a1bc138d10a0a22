//! String counts by state of a terminal, with a lower bound for terminals that count characters.

use super::table::TerminalTable;
use crate::scanner::{StringCounts, Strings};

impl TerminalTable {
    /// The strings that may become of its states, if they are listed. Counted when they are first asked for.
    fn counts(&self) -> &StringCounts {
        self.strings.get_or_init(|| StringCounts::new(self.dfa()))
    }

    /// If it counts characters, the table of the strings of any number of them, the state there of one of
    /// its states, and how many characters may still come.
    fn measured_at(&self, state: u32) -> Option<(&Self, u32, u32)> {
        let ((measured, _), unbounded) = self.dfa().measured().zip(self.unbounded())?;
        let (of, count) = measured.place(state);
        Some((&**unbounded, of, measured.lengths().end().saturating_sub(count)))
    }

    /// The strings that may become of a state between the characters of a string.
    pub(crate) fn strings(&self, state: u32) -> Strings {
        match self.measured_at(state) {
            Some((table, of, left)) if table.counts().are_many_within(table.dfa(), of, left) => Strings::MANY,
            Some(_) => Strings::UNKNOWN,
            None => self.counts().at(state),
        }
    }

    /// Can there be a beginning, inside of quotes, that only finitely many strings have?
    pub(crate) fn may_run_out(&self) -> bool {
        self.counts().may_run_out()
    }

    /// Does every continuation of at most `bytes` bytes from this state, which is between characters, keep
    /// [many strings](Strings::are_many)?
    pub(crate) fn never_runs_out(&self, state: u32, bytes: u32) -> bool {
        let Some((table, of, left)) = self.measured_at(state) else {
            return self.counts().never_run_out(state, bytes);
        };
        let (counts, dfa, least) = (table.counts(), table.dfa(), left.saturating_sub(bytes));
        counts.are_many_within(dfa, of, left) && counts.are_always_many_within(dfa, least)
    }
}
