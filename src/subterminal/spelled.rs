//! Makes rows of strings with large counts, whose states are made on demand.
//!
//! The effect of a state on the tokens of a vocabulary depends only on texts as long as tokens. Far from the
//! end of a count all its states have the same effect, so they share one row; nearer to it they differ on
//! long tokens alone, and only those are walked. Where the number of characters is bounded, rows are those of
//! the unbounded strings, until few characters may still come.

use std::sync::{Arc, OnceLock};

use super::{row::TokenRow, table::TerminalTable};
use crate::{
    grammar::spelled::{Alike, LONG, Spelled, SpelledPlace},
    limits::{LimitExceeded, Work},
    vocab::ByteTrie,
};

/// Facts about such strings, kept by a table.
#[derive(Debug, Default)]
pub(super) struct SpelledFacts {
    /// The table of the unbounded strings, where the number of characters is bounded.
    unbounded: Option<Arc<TerminalTable>>,
    /// Groups of states with the same effect on all tokens.
    alike: OnceLock<Alike>,
}

impl SpelledFacts {
    /// Creates it without facts.
    pub(super) fn new(unbounded: Option<Arc<TerminalTable>>) -> Self {
        Self { unbounded, alike: OnceLock::new() }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
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
    pub(super) fn spelled_like(&self, trie: &ByteTrie, state: u32) -> Option<(&Self, u32)> {
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
    pub(super) fn spelled_row(
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
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        grammar::{Automaton, json_schema::strings::pattern_as_spelled, spelled::Unfolded},
        scanner::TerminalDfa,
        subterminal::reference_rows_tests::{dfa, inner, trie},
    };

    fn table(spelled: &Spelled) -> TerminalTable {
        let dfa = Arc::new(TerminalDfa::of_spelled(spelled));
        let unbounded = dfa.spelled().and_then(|(_, unbounded)| unbounded.cloned());
        let unbounded = unbounded.map(|dfa| Arc::new(TerminalTable::spelled(dfa, None)));
        TerminalTable::spelled(dfa, unbounded)
    }

    const PATTERNS: [(&str, (u64, Option<u64>)); 10] = [
        ("^x[^\\n]{0,2000}$", (0, None)),
        ("^[ab]{1,900}-[^a]{1,900}$", (0, None)),
        ("^\\S.{0,1500}\\S$", (0, None)),
        ("^(?:[^,]{1,64},){0,29}$", (0, None)),
        ("^[a-z-]+:[ab]{0,1000}$", (0, Some(1_800))),
        ("^[a-z-]+:[ab]{0,1000}$", (99, None)),
        ("^[a-z-]*[ab]{700,1000}$", (710, Some(790))),
        ("^(?!--)[^x]{1,900}$", (0, None)),
        // As bounds behind look-ahead are taken out of a pattern.
        ("^(?!--)[^x]*$", (1, Some(1_200))),
        ("^(?:x[ab]{1,900})+$", (700, None)),
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Compares with walks of the whole vocabulary, at places that texts of some letters come to.
        #[test]
        fn rows_of_counted_strings_are_those_of_walks(
            tokens in prop::collection::vec(
                r#"[ab"\\n, :-]{1,6}|[ab]{1,3}"[, ]{1,3}|[abé]{8,60}|-{9,20}|\\u00(61|e9)|"[xab]{0,20}"#,
                1..40,
            ),
            (pattern, bounds) in prop::sample::select(&PATTERNS[..]),
            texts in prop::collection::vec(("[xab]", 0..2000_usize, r#"[,:-]?[ab,\\é-]{0,4}"#), 1..12),
        ) {
            let spelled = pattern_as_spelled(pattern, bounds);
            let (shared, alone, trie) = (table(&spelled), table(&spelled), trie(&tokens));
            let work = &mut Work::unlimited();
            let comma = Arc::new(TerminalTable::new(dfa("[ ]*,[ ]*"), None));
            for (letter, count, rest) in texts {
                let text = format!("\"{}{rest}", letter.repeat(count));
                let (mut at, mut on_the_way) = ((Some(0), Some(0)), Vec::new());
                for byte in text.bytes() {
                    let (Some(one), Some(other)) = at else { break };
                    on_the_way.push((one, other));
                    at = (shared.dfa().step(one, byte), alone.dfa().step(other, byte));
                    prop_assert_eq!(at.0.is_some(), at.1.is_some());
                }
                let places = on_the_way.len();
                let last = on_the_way.iter().skip(places.saturating_sub(5));
                for &(one, other) in last.chain(on_the_way.first()) {
                    let rows = (shared.row(&trie, one, work).unwrap(), alone.walk(&trie, other).0);
                    let same = rows.0.tokens().iter().eq(rows.1.tokens().iter());
                    prop_assert!(same, "tokens after {:?}", text);
                    prop_assert_eq!(inner(&trie, &rows.0), inner(&trie, &rows.1), "exits after {:?}", text);
                    let crossed = shared.crossing(&trie, one, &comma, work).unwrap();
                    let entrances = crate::subterminal::terminal_entry::TerminalEntry::new(
                        &trie, rows.1.exits(), comma.begins(), work).unwrap();
                    let walked = entrances.cross(&trie, &comma, work).unwrap();
                    prop_assert!(crossed.tokens().iter().eq(walked.tokens().iter()), "into {:?}", text);
                }
            }
        }
    }

    /// Far from the ends of counts, all places share one row.
    #[test]
    fn places_far_from_the_ends_of_counts_share_one_row() {
        let tokens = ["a", "b", "ab", "a-b", "b\"", "\"", "x"].map(String::from);
        let trie = trie(&tokens);
        for (pattern, bounds, most) in [
            ("^x[^\\n]{0,9000}$", (0, None), 8),
            ("^[ab]+-[^a]{1,4000}$", (0, Some(7_000)), 8),
            ("^(?:[ab]{2})*-[^a]{1,2000}$", (0, Some(20_971_520)), 8),
            ("^(?:x[ab]{1,2000})+$", (500, None), 16),
            ("^(?!--)[^x]*$", (700, Some(90_000)), 16),
        ] {
            let table = table(&pattern_as_spelled(pattern, bounds));
            let work = &mut Work::unlimited();
            let (mut rows, mut state) = (HashSet::new(), 0);
            for byte in std::iter::once(b'"').chain(*b"x").chain(std::iter::repeat_n(b'a', 3_000)) {
                let Some(to) = table.dfa().step(state, byte) else { continue };
                state = to;
                rows.insert(Arc::as_ptr(&table.row(&trie, state, work).unwrap()).addr());
            }
            assert!(rows.len() <= most, "{pattern}: {} rows", rows.len());
        }
    }

    /// Numbers of the automata of a grammar are those of its tables.
    #[test]
    fn equal_counted_strings_have_equal_automata() {
        let spelled = pattern_as_spelled("^x[^a]{0,3000}$", (0, None));
        let (one, other) = (TerminalDfa::of_spelled(&spelled), TerminalDfa::of_spelled(&spelled));
        assert!(one == other && one.bytes() > 3_000);
        let automaton: Automaton = spelled.product(1 << 18).unwrap();
        assert!(automaton.states().len() > 3_000);
    }
}
