//! Makes rows of strings with large counts, whose states are made on demand.
//!
//! The effect of a state on the tokens of a vocabulary depends only on texts as long as tokens. Far from the
//! end of a count all its states have the same effect, so they share one row; nearer to it they differ on
//! long tokens alone, and only those are walked. Where the number of characters is bounded, rows are those of
//! the unbounded strings, until few characters may still come.

use std::sync::{Arc, OnceLock};

use crate::{
    grammar::spelled::{Alike, LONG, Spelled, SpelledPlace},
    limits::{LimitExceeded, Work},
    subterminal::{rows::TokenRow, tables::TerminalTable},
    vocab::ByteTrie,
};

/// Facts about such strings, kept by a table.
#[derive(Debug, Default)]
pub(in crate::subterminal) struct SpelledFacts {
    /// The table of the unbounded strings, where the number of characters is bounded.
    unbounded: Option<Arc<TerminalTable>>,
    /// Groups of states with the same effect on all tokens.
    alike: OnceLock<Alike>,
}

impl SpelledFacts {
    /// Creates it without facts.
    pub(in crate::subterminal) fn new(unbounded: Option<Arc<TerminalTable>>) -> Self {
        Self { unbounded, alike: OnceLock::new() }
    }

    /// Memory, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        self.alike.get().map_or(0, Alike::bytes)
    }

    fn alike(&self, spelled: &Spelled, longest: u32) -> &Alike {
        self.alike.get_or_init(|| spelled.alike(longest))
    }
}

/// Returns the length of the longest token in bytes, if the trie knows it.
fn longest(trie: &ByteTrie) -> Option<u32> {
    trie.height(ByteTrie::ROOT)
}

impl TerminalTable {
    /// Returns the table of the unbounded strings, if this one counts characters.
    pub(crate) fn of_any_length(&self) -> Option<&Arc<Self>> {
        let spelled = self.spelling().and_then(|spelling| spelling.unbounded.as_ref());
        self.unbounded().or(spelled)
    }

    /// Returns a table and state with the same effect on all tokens, if they are others.
    pub(in crate::subterminal) fn spelled_like(&self, trie: &ByteTrie, state: u32) -> Option<(&Self, u32)> {
        let (spelling, (spelled, _)) = self.spelling().zip(self.dfa().spelled())?;
        let (place, longest) = (spelled.place(state)?, longest(trie)?);
        let Some(unbounded) = &spelling.unbounded else {
            let like = spelling.alike(spelled, longest).to_all(place.state);
            let other = spelled.state(SpelledPlace { state: like, ..place }).ok()?;
            return (other != state).then_some((self, other));
        };
        match spelled.room(place) {
            Some(room) if room >= longest => Some((unbounded, unbounded.free_state(place)?)),
            Some(_) => None,
            None => {
                let like = |state: u32| spelling.alike(spelled, longest).to_all(state);
                let other = spelled.state(spelled.least_alike(place, longest, like)).ok()?;
                (other != state).then_some((self, other))
            }
        }
    }

    /// Returns the state of a place in the unbounded strings.
    fn free_state(&self, place: SpelledPlace) -> Option<u32> {
        self.dfa().spelled()?.0.state(SpelledPlace { count: 0, ..place }).ok()
    }

    /// Makes the row of a state of such strings.
    pub(in crate::subterminal) fn spelled_row(
        &self,
        spelling: &SpelledFacts,
        (trie, state): (&ByteTrie, u32),
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        if let Some((table, other)) = self.spelled_like(trie, state) {
            return table.row(trie, other, work);
        }
        let known = self.known_of(spelling, (trie, state), work)?;
        self.sparse_row(trie, state, known, work)
    }

    /// Returns a row with the same effect on all texts up to a number of bytes, and that number.
    fn known_of(
        &self,
        spelling: &SpelledFacts,
        (trie, state): (&ByteTrie, u32),
        work: &mut Work,
    ) -> Result<Option<(Arc<TokenRow>, u32)>, LimitExceeded> {
        let place = self.dfa().spelled().and_then(|(spelled, _)| Some((spelled, spelled.place(state)?)));
        let Some(((spelled, place), longest)) = place.zip(longest(trie)) else { return Ok(None) };
        let near = match &spelling.unbounded {
            Some(unbounded) => {
                let room = spelled.room(place).filter(|room| *room >= LONG);
                room.and_then(|room| Some((&**unbounded, unbounded.free_state(place)?, room)))
            }
            None => {
                let like = spelling.alike(spelled, longest).to_short(place.state);
                let other =
                    spelled.state(SpelledPlace { state: like, ..place }).ok().filter(|other| *other != state);
                other.map(|other| (self, other, LONG))
            }
        };
        let Some((table, other, room)) = near else { return Ok(None) };
        Ok(Some((table.row(trie, other, work)?, room)))
    }
}

#[cfg(test)]
mod tests;
