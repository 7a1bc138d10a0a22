//! Makes rows of strings with bounds on their length from the rows of the same strings without bounds.
//!
//! A token may follow if the string can still end within the bound. The *need* of a token is its own
//! characters and those of the shortest end after it; it depends on the state of the automaton alone. So two
//! counts have the same row unless the need of some token lies between what is left at the one and at the
//! other. Few tokens need much: far from the bound a row is the unbounded one, and nearer to it a walk looks
//! at long tokens alone. Below the least length, counts at which the same states are live share their rows.
//! Where the bounds alone restrict the length, the index of tokens by characters gives all rows.
//!
//! Strings with large counts, whose states are made on demand, share rows in the same way.

use std::sync::{Arc, OnceLock};

use crate::grammar::{
    LengthBounded,
    spelled::{Alike, LONG, Spelled, SpelledPlace},
};
use crate::ids::{TrieNodeId, saturating_u32};
use crate::limits::{LimitExceeded, Work};
use crate::subterminal::{crossing::Crossing, rows::TokenRow, table::TerminalTable};
use crate::vocab::ByteTrie;

/// Least length of a long token, in bytes. Some hundreds of a vocabulary are long.
const LONG_TOKEN: u32 = 32;

/// Number of trie nodes per unit of work.
const NODES: usize = 4;

/// The table of the unbounded strings, and the needs of long tokens.
#[derive(Debug)]
pub(in crate::subterminal) struct Unbounded {
    table: Arc<TerminalTable>,
    /// Needs of the long tokens that may follow each state, or of their parts up to the end of the string;
    /// ascending.
    needs: Box<[OnceLock<Box<[u32]>>]>,
}

impl Unbounded {
    /// Creates it without any needs.
    pub(in crate::subterminal) fn new(table: Arc<TerminalTable>) -> Self {
        Self { needs: (0..table.dfa().len()).map(|_| OnceLock::new()).collect(), table }
    }

    /// Returns the table of the unbounded strings.
    pub(in crate::subterminal) fn table(&self) -> &Arc<TerminalTable> {
        &self.table
    }

    /// Memory of the lists of needs, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        let lists = self.needs.iter().filter_map(OnceLock::get);
        size_of_val(&*self.needs) + lists.map(|list| size_of_val(&**list)).sum::<usize>()
    }

    /// Returns the needs of the long tokens that may follow a state. The first use walks the trie, if there
    /// are any.
    fn needs(
        &self,
        trie: &ByteTrie,
        bounded: &LengthBounded,
        state: u32,
        work: &mut Work,
    ) -> Result<&[u32], LimitExceeded> {
        let mut made = Ok(());
        let needs = self.needs[state as usize].get_or_init(|| {
            let (needs, walked) = self.walk(trie, bounded, state);
            made = work.spend(walked / NODES);
            needs
        });
        made.map(|()| &**needs)
    }

    /// Finds the needs by a walk over the trie; also returns the number of nodes visited.
    fn walk(&self, trie: &ByteTrie, bounded: &LengthBounded, state: u32) -> (Box<[u32]>, usize) {
        let dfa = self.table.dfa();
        let (mut needs, mut walked) = (Vec::new(), 0);
        let last = trie.end(ByteTrie::ROOT);
        // The subtrees that the next node is in: where each ends, its state, and the characters up to there.
        let mut path = vec![(last, state, 0)];
        let mut node = TrieNodeId::new(ByteTrie::ROOT.raw() + 1);
        while node < last {
            walked += 1;
            while path.last().is_some_and(|(end, ..)| *end <= node) {
                path.pop();
            }
            let Some(&(_, from, characters)) = path.last() else { break };
            let depth = saturating_u32(path.len());
            let is_short = trie.height(node).is_some_and(|height| depth.saturating_add(height) < LONG_TOKEN);
            let to = if is_short { None } else { dfa.step(from, trie.byte(node)) };
            let Some(to) = to else {
                node = trie.end(node);
                continue;
            };
            let characters = characters + u32::from(bounded.counts(from, to));
            if dfa.accepts(to) || !trie.own_tokens(node).is_empty() {
                needs.push(characters + bounded.to_end(to));
            }
            path.push((trie.end(node), to, characters));
            node = TrieNodeId::new(node.raw() + 1);
        }
        needs.sort_unstable();
        needs.dedup();
        (needs.into(), walked)
    }
}

impl TerminalTable {
    /// Makes the row of a state of a terminal that counts characters.
    pub(in crate::subterminal) fn bounded_row(
        &self,
        unbounded: &Unbounded,
        bounded: &LengthBounded,
        (trie, state): (&ByteTrie, u32),
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        let (of, count) = bounded.place(state);
        // Where only the bounds restrict the length, the index by characters gives the row.
        if bounded.is_free(of)
            && let Some(index) = unbounded.table.strings_at(trie, of, work)?
        {
            let row = unbounded.table.row(trie, of, work)?;
            let [least, most] = [bounded.lengths().start(), bounded.lengths().end()]
                .map(|bound| bound.saturating_sub(count) as usize);
            if least == 0 && index.longest() <= most {
                return Ok(row);
            }
            let make = || (Arc::new(index.within(trie, &row, least..=most)), 0);
            return self.sparse().row(state, make, work);
        }
        // Below the least length: counts at which the same states are live share a row.
        let Some(room) = bounded.room(state) else {
            let alike = bounded.alike(count);
            let (first, room) = (bounded.state(of, *alike.start()), alike.end() - count);
            // With less than a token's room the two have little in common.
            let known = match first != state && room >= LONG_TOKEN {
                true => Some((self.sparse_row(trie, first, None, work)?, room)),
                false => None,
            };
            return self.sparse_row(trie, state, known, work);
        };
        // Within the bounds: the unbounded row, without the tokens that need more than is left.
        let row = unbounded.table.row(trie, of, work)?;
        if trie.height(ByteTrie::ROOT).is_some_and(|longest| longest <= room) {
            return Ok(row);
        }
        let left = bounded.lengths().end() - count;
        if room < LONG_TOKEN {
            return self.sparse_row(trie, state, Some((row, room)), work);
        }
        let needs = unbounded.needs(trie, bounded, of, work)?;
        let (fitting, others) = needs.split_at(needs.partition_point(|need| *need <= left));
        if others.is_empty() {
            return Ok(row);
        }
        // Room beyond the needs of all tokens makes no difference; short tokens need no more than this.
        let short = left - room + LONG_TOKEN;
        let needed = fitting.last().map_or(short, |need| short.max(*need));
        let alike = bounded.state(of, count + left - needed);
        self.sparse_row(trie, alike, Some((row, room - (left - needed))), work)
    }

    /// Makes a row by a walk over the trie. `known` is a row that is right for all tokens up to a number of
    /// bytes: then only longer tokens are walked.
    fn sparse_row(
        &self,
        trie: &ByteTrie,
        state: u32,
        known: Option<(Arc<TokenRow>, u32)>,
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        let make = || {
            let Some((row, room)) = known else { return self.walk(trie, state).into() };
            let dfa = self.dfa().of_a_walk();
            let mut crossing = Crossing::new(trie, &dfa, self.loops()).knowing(room + 1);
            crossing.root(dfa.same_as(self.dfa(), state));
            let (walked, taken) = (crossing.walked, std::mem::take(&mut crossing.taken));
            let theirs = (row.tokens(), row.exits());
            let reach = TokenRow::spliced(trie, (crossing.stays, crossing.exits), &taken, theirs);
            if reach == *row {
                return (row, walked);
            }
            self.add_bytes(reach.bytes());
            (Arc::new(reach), walked)
        };
        self.sparse().row(state, make, work)
    }
}

// The effect of a state of a string with large counts on the tokens of a vocabulary depends only on texts as
// long as tokens. Far from the end of a count all its states have the same effect, so they share one row;
// nearer to it they differ on long tokens alone, and only those are walked. Where the number of characters is
// bounded, rows are those of the unbounded strings, until few characters may still come.

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
mod spelled_tests;

#[cfg(test)]
mod tests;
