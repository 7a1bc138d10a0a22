//! Makes rows of strings with bounds on their length from the rows of the same strings without bounds.
//!
//! A token may follow if the string can still end within the bound. The *need* of a token is its own
//! characters and those of the shortest end after it; it depends on the state of the automaton alone. So two
//! counts have the same row unless the need of some token lies between what is left at the one and at the
//! other. Few tokens need much: far from the bound a row is the unbounded one, and nearer to it a walk looks
//! at long tokens alone. Below the least length, counts at which the same states are live share their rows.
//! Where the bounds alone restrict the length, the index of tokens by characters gives all rows.

use std::sync::{Arc, OnceLock};

use super::{crossing::Crossing, row::TokenRow, table::TerminalTable};
use crate::{
    grammar::LengthBounded,
    ids::{TrieNodeId, saturating_u32},
    limits::{LimitExceeded, Work},
    vocab::ByteTrie,
};

/// Least length of a long token, in bytes. Some hundreds of a vocabulary are long.
const LONG: u32 = 32;

/// Number of trie nodes per unit of work.
const NODES: usize = 4;

/// The table of the unbounded strings, and the needs of long tokens.
#[derive(Debug)]
pub(super) struct Unbounded {
    table: Arc<TerminalTable>,
    /// Needs of the long tokens that may follow each state, or of their parts up to the end of the string;
    /// ascending.
    needs: Box<[OnceLock<Box<[u32]>>]>,
}

impl Unbounded {
    /// Creates it without any needs.
    pub(super) fn new(table: Arc<TerminalTable>) -> Self {
        Self { needs: (0..table.dfa().len()).map(|_| OnceLock::new()).collect(), table }
    }

    /// Returns the table of the unbounded strings.
    pub(super) fn table(&self) -> &Arc<TerminalTable> {
        &self.table
    }

    /// Memory of the lists of needs, in bytes.
    pub(super) fn bytes(&self) -> usize {
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
            let is_short = trie.height(node).is_some_and(|height| depth.saturating_add(height) < LONG);
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
    pub(super) fn bounded_row(
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
            let known = match first != state && room >= LONG {
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
        if room < LONG {
            return self.sparse_row(trie, state, Some((row, room)), work);
        }
        let needs = unbounded.needs(trie, bounded, of, work)?;
        let (fitting, others) = needs.split_at(needs.partition_point(|need| *need <= left));
        if others.is_empty() {
            return Ok(row);
        }
        // Room beyond the needs of all tokens makes no difference; short tokens need no more than this.
        let short = left - room + LONG;
        let needed = fitting.last().map_or(short, |need| short.max(*need));
        let alike = bounded.state(of, count + left - needed);
        self.sparse_row(trie, alike, Some((row, room - (left - needed))), work)
    }

    /// Makes a row by a walk over the trie. `known` is a row that is right for all tokens up to a number of
    /// bytes: then only longer tokens are walked.
    pub(super) fn sparse_row(
        &self,
        trie: &ByteTrie,
        state: u32,
        known: Option<(Arc<TokenRow>, u32)>,
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        let make = || {
            let Some((row, room)) = known else { return self.walk(trie, state) };
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        Limits,
        grammar::{
            Automaton, Expr, PatternKind,
            json_schema::{Escapes, SchemaOptions},
            spelled::Unfolded,
        },
        scanner::TerminalDfa,
        subterminal::reference_rows_tests::{dfa, inner, trie},
    };

    const PATTERNS: [&str; 8] = [
        "^[ab]+(-[ab]+)*$",
        r"^(\\S+ ){0,3}\\S+$",
        "^(aa)*b?$",
        "a.*b",
        "^[^a]{3,}$",
        "^é(,|ab)*$",
        "^[^-]*$",
        "",
    ];

    /// Returns the automaton of the strings of a pattern.
    fn automaton(pattern: &str) -> Automaton {
        let schema = format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#);
        let options = SchemaOptions::default().with_escapes(Escapes::All);
        let grammar = options.parse(&schema, &Limits::default()).unwrap().grammar;
        let leaf = |expr: &Expr| match expr {
            Expr::Pattern(pattern) => match pattern.kind() {
                PatternKind::Automaton(automaton) => Some(automaton.clone()),
                _ => None,
            },
            _ => None,
        };
        grammar.exprs().find_map(|(_, expr)| leaf(expr)).unwrap()
    }

    fn dfa_of(automaton: &Automaton) -> Arc<TerminalDfa> {
        Arc::new(TerminalDfa::from_minimal(automaton).unwrap())
    }

    /// Returns tables with and without that of the unbounded strings, the latter, and their automata; beside
    /// any string or not.
    fn tables(
        pattern: &str,
        (min, max): (u32, u32),
        beside: bool,
    ) -> Option<(TerminalTable, TerminalTable, Arc<TerminalTable>, LengthBounded)> {
        let bounded = LengthBounded::new(&automaton(pattern), min, max)?;
        let dfa = Arc::new(TerminalDfa::of_bounded(&bounded));
        let (_, unbounded) = dfa.bounded()?;
        let common = || Arc::new(TerminalTable::new(dfa_of(&automaton("")), None));
        let unbounded = Arc::new(TerminalTable::new(Arc::clone(unbounded), beside.then(common)));
        let alone = TerminalTable::new(Arc::clone(&dfa), None);
        Some((TerminalTable::bounded(dfa, Arc::clone(&unbounded)), alone, unbounded, bounded))
    }

    proptest! {
        #[test]
        fn bounded_rows_are_those_of_walks(
            tokens in prop::collection::vec(
                r#"[ab"\\n, -]{1,6}|[ab]{1,3}"[, ]{1,3}|[abé]{8,60}|-{9,20}|\\u00(61|e9)|"[ab]{0,20}"#,
                1..60,
            ),
            pattern in prop::sample::select(&PATTERNS[..]),
            min in 0..12_u32,
            more in 0..60_u32,
            backwards: bool,
            beside: bool,
        ) {
            let Some((table, alone, _, bounded)) = tables(pattern, (min, min + more), beside) else {
                return Ok(());
            };
            let (trie, work) = (trie(&tokens), &mut Work::unlimited());
            let comma = Arc::new(TerminalTable::new(dfa("[ ]*,[ ]*"), None));
            let mut states = bounded.reached(100_000).unwrap();
            if backwards {
                states.reverse();
            }
            for state in states {
                let rows = [&table, &alone].map(|table| table.row(&trie, state, work).unwrap());
                let place = bounded.place(state);
                prop_assert!(rows[0].tokens().iter().eq(rows[1].tokens().iter()), "tokens at {:?}", place);
                prop_assert_eq!(inner(&trie, &rows[0]), inner(&trie, &rows[1]), "exits at {:?}", place);
                let crossed =
                    [&table, &alone].map(|table| table.crossing(&trie, state, &comma, work).unwrap());
                prop_assert!(crossed[0].tokens().iter().eq(crossed[1].tokens().iter()), "into {:?}", place);
                prop_assert_eq!(inner(&trie, &crossed[0]), inner(&trie, &crossed[1]));
            }
        }
    }

    /// Far from the bound, rows are those of the unbounded strings, also where some tokens are long.
    #[test]
    fn rows_far_from_the_bound_are_shared() {
        let mut tokens: Vec<String> =
            ["a", "b", "-", "ab", "a-b", "b\"", "\",", "\""].map(String::from).into();
        for long in [None, Some(80)] {
            tokens.extend(long.map(|length| "ab".repeat(length / 2)));
            let longest = u32::try_from(tokens.iter().map(String::len).max().unwrap()).unwrap();
            let trie = trie(&tokens);
            let (table, _, unbounded, bounded) = tables("^[ab]+(-[ab]+)*$", (1, 200), false).unwrap();
            let work = &mut Work::unlimited();
            let (mut shared, mut others) = (0, HashSet::new());
            for state in bounded.reached(100_000).unwrap() {
                let (of, count) = bounded.place(state);
                let row = table.row(&trie, state, work).unwrap();
                let theirs = unbounded.row(&trie, of, work).unwrap();
                // After a dash a letter has to come.
                if count >= 1 && count + longest.max(LONG) < 200 {
                    assert!(Arc::ptr_eq(&row, &theirs), "{of} after {count} characters");
                    shared += 1;
                } else if count >= 1 && count + LONG <= 180 && !Arc::ptr_eq(&row, &theirs) {
                    others.insert(Arc::as_ptr(&row).addr());
                }
            }
            assert!(shared > 400, "{shared} rows are shared");
            // Without the long token, behind a letter and behind a dash.
            assert!(others.len() <= 2 && others.is_empty() == long.is_none(), "{} others", others.len());
        }
    }
}
