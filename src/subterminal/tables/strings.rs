//! String counts by state of a terminal; a lower bound for terminals that count characters.

use super::table::TerminalTable;
use crate::scanner::{StringCounts, Strings};

impl TerminalTable {
    /// The numbers of strings that each state may become, counted on first use.
    fn counts(&self) -> &StringCounts {
        self.strings.get_or_init(|| StringCounts::new(self.dfa()))
    }

    /// Returns, for a terminal that counts characters, the table of the unbounded strings, the state there,
    /// and how many characters may still come.
    fn bounded_at(&self, state: u32) -> Option<(&Self, u32, u32)> {
        let ((bounded, _), unbounded) = self.dfa().bounded().zip(self.unbounded())?;
        let (of, count) = bounded.place(state);
        Some((&**unbounded, of, bounded.lengths().end().saturating_sub(count)))
    }

    /// Returns the number of strings that a state between characters may become.
    pub(crate) fn strings(&self, state: u32) -> Strings {
        match self.bounded_at(state) {
            Some((table, of, left)) if table.counts().are_many_within(table.dfa(), of, left) => Strings::MANY,
            Some(_) => Strings::UNKNOWN,
            None => self.counts().at(state),
        }
    }

    /// Has some prefix, inside the quotes, only finitely many strings?
    pub(crate) fn may_run_out(&self) -> bool {
        self.counts().may_run_out()
    }

    /// Does every continuation of at most `bytes` bytes from this state, which is between characters, keep
    /// [many strings](Strings::are_many)?
    pub(crate) fn never_runs_out(&self, state: u32, bytes: u32) -> bool {
        let Some((table, of, left)) = self.bounded_at(state) else {
            return self.counts().never_run_out(state, bytes);
        };
        let (counts, dfa, least) = (table.counts(), table.dfa(), left.saturating_sub(bytes));
        counts.are_many_within(dfa, of, left) && counts.are_always_many_within(dfa, least)
    }
}
