//! The rows of a table, and those that are taken over from another state of the terminal.

use std::{ops::Range, sync::Arc};

use super::{ROW_WORK, Relative, TerminalTable, walking};
use crate::limits::{LimitExceeded, Work};
use crate::subterminal::{
    crossing::Crossing,
    rows::{Ranges, TokenRow},
    shortcuts::{PatchedRow, have_same_row},
};
use crate::{ids::as_index, vocab::ByteTrie};

/// The effect of a state on all tokens.
#[derive(Debug)]
pub(in crate::subterminal) struct TableRow {
    pub(in crate::subterminal) reach: Arc<TokenRow>,
    /// The part that was taken over from another row.
    pub(in crate::subterminal) taken: Option<Taken>,
    /// Length of the longest text of the vocabulary with which the terminal goes on, in bytes; `None` if it
    /// was not found.
    pub(super) longest: Option<u32>,
}

impl TableRow {
    /// A row of which nothing else is known.
    pub(in crate::subterminal) fn new(reach: Arc<TokenRow>) -> Self {
        Self { reach, taken: None, longest: None }
    }

    /// Is it also the row of a state that treats all texts of less than `from` bytes alike?
    pub(super) fn is_alike(&self, trie: &ByteTrie, from: u32) -> bool {
        self.longest.or(trie.height(ByteTrie::ROOT)).is_some_and(|longest| have_same_row(longest, from))
    }
}

/// The part of a row that is that of a common terminal.
#[derive(Debug)]
pub(in crate::subterminal) struct Taken {
    /// Whole subtrees, in order.
    pub(super) nodes: Box<[Range<u32>]>,
    /// Exits outside of those subtrees.
    pub(super) exits: Ranges,
}

/// A row made by a walk.
pub(in crate::subterminal) struct WalkedRow {
    pub(in crate::subterminal) reach: Arc<TokenRow>,
    /// Number of trie nodes looked at.
    pub(super) walked: usize,
    /// Length of the longest text with which the terminal goes on, in bytes.
    pub(super) longest: u32,
}

impl From<WalkedRow> for (Arc<TokenRow>, usize) {
    fn from(WalkedRow { reach, walked, .. }: WalkedRow) -> Self {
        (reach, walked)
    }
}

impl TerminalTable {
    /// Makes the row of a state by a walk, and counts the trie nodes.
    pub(in crate::subterminal) fn walk(&self, trie: &ByteTrie, state: u32) -> WalkedRow {
        let dfa = self.dfa.of_a_walk();
        let mut crossing = Crossing::new(trie, &dfa, self.loops());
        if state == 0 && self.spelling.is_none() {
            // Most terminals begin with few bytes.
            let enter = |&(byte, to): &(u8, u32)| Some((trie.root_child(byte)?, to));
            self.first.iter().filter_map(enter).for_each(|(node, to)| crossing.at(node, to));
        } else {
            crossing.root(dfa.same_as(&self.dfa, state));
        }
        let Crossing { stays, exits, walked, longest, .. } = crossing;
        let reach = Arc::new(TokenRow::new(trie, stays, exits));
        self.add_bytes(reach.bytes());
        WalkedRow { reach, walked, longest }
    }

    /// Makes the row of a state beside that of its partner in a common terminal. `look` is the work of a look
    /// at all of the automaton.
    pub(super) fn row_beside(
        &self,
        trie: &ByteTrie,
        state: u32,
        (common, delta, row): Relative<'_>,
        (look, work): (usize, &mut Work),
    ) -> Result<&Arc<TokenRow>, LimitExceeded> {
        let mut made = Ok(());
        let row = self.rows()[as_index(state)].get_or_init(|| {
            if delta.is_same(state) {
                return TableRow::new(row);
            }
            let PatchedRow { reach, taken, exits, walked } =
                delta.row(trie, (&self.dfa, self.loops()), state, &row, &common.breaks);
            made = work.spend(look + ROW_WORK + walking(walked) + reach.work());
            self.add_bytes(reach.bytes());
            self.alike.note(state, walked);
            let taken = delta.has_exits().then(|| Taken { nodes: taken.into(), exits });
            TableRow { taken, ..TableRow::new(Arc::new(reach)) }
        });
        made.map(|()| &row.reach)
    }

    /// Returns the known row of the state that is most like this one, and the length below which the two
    /// treat all texts alike; `None` where that saves little.
    pub(super) fn like(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<Option<(&TableRow, u32)>, LimitExceeded> {
        let longest = trie.height_or_endless(ByteTrie::ROOT);
        let is_known = |state: u32| self.rows()[as_index(state)].get().is_some();
        let like = self.alike.like(&self.dfa, (state, longest), is_known, work)?;
        Ok(like.and_then(|(other, from)| Some((self.rows()[as_index(other)].get()?, from))))
    }

    /// Makes the row of a state from another that differs only on texts of `from` bytes and more.
    pub(super) fn spliced(
        &self,
        trie: &ByteTrie,
        state: u32,
        (known, from): (&TableRow, u32),
        work: &mut Work,
    ) -> Result<&Arc<TokenRow>, LimitExceeded> {
        let mut made = Ok(());
        let row = self.rows()[as_index(state)].get_or_init(|| {
            let mut crossing = Crossing::new(trie, &self.dfa, self.loops()).knowing(from);
            crossing.root(state);
            let Crossing { stays, exits, walked, longest, taken, .. } = crossing;
            let theirs = (known.reach.tokens(), known.reach.exits());
            let reach = TokenRow::spliced(trie, (stays, exits), &taken, theirs);
            made = work.spend(ROW_WORK + walking(walked) + reach.work());
            self.add_bytes(reach.bytes());
            let longest = known.longest.map(|theirs| theirs.max(longest));
            TableRow { longest, ..TableRow::new(Arc::new(reach)) }
        });
        made.map(|()| &row.reach)
    }

    /// Returns the length of the longest text of the vocabulary with which the terminal goes on from a state,
    /// in bytes. Makes the state's row, or walks as for it.
    pub(in crate::subterminal) fn longest_text(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<u32, LimitExceeded> {
        self.row_in_table(trie, state, work)?;
        if let Some(longest) = self.rows()[as_index(state)].get().and_then(|row| row.longest) {
            return Ok(longest);
        }
        let WalkedRow { walked, longest, .. } = self.walk(trie, state);
        work.spend(walking(walked)).map(|()| longest)
    }
}
