//! Makes rows of states inside a repeated class of bytes, such as `[a-z0-9-]+` or the parts of a UUID, from
//! the index of tokens by their kinds of bytes.
//!
//! Such a state begins a *chain*: every byte of the class leads to the next state, and the last state leads
//! back to itself, or goes on by other bytes. All tokens with bytes of the class alone, and no more of them
//! than the chain has steps, may follow. Every other token that may follow has a byte that leaves the chain,
//! mostly a sign, so it is below a trie node with such a byte. There are few of these.

use crate::{
    ids::{TrieNodeId, as_index},
    scanner::{NONE, TerminalDfa},
    subterminal::{
        crossing::Crossing,
        rows::{TokenList, TokenRow},
        table::TerminalTable,
    },
    vocab::{ByteTrie, byte_kind},
};

/// Letters to probe. A class with neither has few tokens, so that a walk is as quick.
const LETTERS: [u8; 2] = [b'm', b'M'];

/// First byte of letters past ASCII.
const PAST_ASCII: u8 = 0xc3;

/// Number of trie nodes that leave a chain, and of its states, up to which the index is quicker than a walk.
const MOST_NODES: usize = 2_048;
const MOST_STATES: usize = 512;

/// The sequence of states that the bytes of a class lead to.
#[derive(Debug)]
struct Chain {
    states: Vec<u32>,
    /// The kinds of bytes of the class, as bits.
    kinds: u64,
    /// Does the last state lead back to itself?
    is_endless: bool,
    /// Does a class of bytes lead on from any of the states?
    live: Vec<bool>,
}

impl Chain {
    /// Finds the chain from `state`, as far as tokens of at most `longest` bytes lead. `None` if the terminal
    /// may end on it, if it goes on after it by some bytes of the class, or if there are too many states.
    /// Linear in its states and the classes of bytes.
    fn new(dfa: &TerminalDfa, state: u32, longest: usize) -> Option<Self> {
        let classes = |state: u32, to: u32| dfa.row(state).iter().map(move |&other| other == to);
        let next = |state: u32, by: u8| dfa.row(state)[usize::from(dfa.classes()[usize::from(by)])];
        let by = *LETTERS.iter().find(|&&by| next(state, by) != NONE)?;
        // Characters past ASCII are too many ways to leave a chain: most states end here.
        if ![NONE, next(state, by)].contains(&next(state, PAST_ASCII)) {
            return None;
        }
        let class: Vec<bool> = classes(state, next(state, by)).collect();
        let others = (0..=u8::MAX).filter(|&byte| !class[usize::from(dfa.classes()[usize::from(byte)])]);
        let kinds = others.fold(u64::MAX, |kinds, byte| kinds & !(1 << byte_kind(byte)));
        if kinds >> byte_kind(by) & 1 == 0 {
            return None;
        }
        let (mut states, mut last, mut is_endless) = (vec![state], state, false);
        while states.len() <= longest {
            let to = next(last, by);
            if to == NONE || !classes(last, to).eq(class.iter().copied()) {
                break;
            }
            is_endless = to == last;
            if is_endless {
                break;
            }
            if states.len() == MOST_STATES {
                return None;
            }
            states.push(to);
            last = to;
        }
        let is_of_class = |byte: u8| kinds >> byte_kind(byte) & 1 == 1;
        let more = |byte: u8| is_of_class(byte) && next(last, byte) != NONE;
        if !is_endless && states.len() <= longest && (0..=u8::MAX).any(more) {
            return None;
        }
        let mut live = vec![false; dfa.class_count()];
        for &state in &states {
            live.iter_mut().zip(dfa.row(state)).for_each(|(live, &to)| *live |= to != NONE);
        }
        let ends = states.iter().any(|&state| dfa.accepting()[as_index(state)]);
        (!ends).then_some(Self { states, kinds, is_endless, live })
    }

    /// Returns the state that the bytes before a trie node lead to, if all are of the class and no more than
    /// the chain has states.
    fn before(&self, trie: &ByteTrie, node: u32) -> Option<u32> {
        let (mut at, mut length) = (trie.parent(TrieNodeId::new(node)), 0);
        while at != ByteTrie::ROOT {
            if self.kinds >> byte_kind(trie.byte(at)) & 1 == 0 {
                return None;
            }
            length += 1;
            at = trie.parent(at);
        }
        let last = self.states.len() - 1;
        (self.is_endless || length <= last).then(|| self.states[length.min(last)])
    }
}

impl TerminalTable {
    /// Makes the row of a state that begins a chain, and counts the trie nodes looked at. `None` if there is
    /// no chain, if there are many ways to leave it, or if there is no index yet.
    pub(in crate::subterminal) fn chain_row(&self, trie: &ByteTrie, state: u32) -> Option<(TokenRow, usize)> {
        let index = trie.tokens_by_kind()?;
        let (dfa, longest) = (self.dfa(), trie.height(ByteTrie::ROOT)? as usize);
        let chain = Chain::new(dfa, state, longest)?;
        let leaves = |byte: &u8| {
            chain.live[usize::from(dfa.classes()[usize::from(*byte)])]
                && chain.kinds >> byte_kind(*byte) & 1 == 0
        };
        let leaving: Vec<u8> = (0..=u8::MAX).filter(leaves).collect();
        let nodes = leaving.iter().map(|&byte| trie.nodes_with(byte).len()).sum::<usize>();
        if nodes > MOST_NODES {
            return None;
        }
        let mut crossing = Crossing::new(trie, dfa, self.loops());
        for byte in leaving {
            for &node in trie.nodes_with(byte) {
                if let Some(to) = chain.before(trie, node).and_then(|state| dfa.step(state, byte)) {
                    crossing.at(TrieNodeId::new(node), to);
                }
            }
        }
        let most = u32::try_from(chain.states.len() - 1).ok().filter(|_| !chain.is_endless);
        let mut tokens = index.within(chain.kinds, most);
        let Crossing { mut stays, exits, walked, .. } = crossing;
        stays.normalise();
        stays.iter().flat_map(|range| trie.tokens_at(range)).for_each(|&token| tokens.insert(token));
        Some((TokenRow::of(TokenList::of(tokens), exits), nodes + walked))
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

    use proptest::{
        prelude::*,
        test_runner::{Config, TestRunner},
    };

    use super::*;
    use crate::{ids::TokenId, limits::Work, subterminal::shortcuts::reference_rows_tests::dfa};

    const PATTERNS: [&str; 8] = [
        r#""[a-z]+""#,
        r#""[0-9A-Za-z]{3}(-[0-9A-Za-z]{2}){2}""#,
        r#""[a-z0-9]+(-[a-z0-9]+)*""#,
        r#""([a-z.-]|\\[a-z]){0,4}[">]"#,
        // Some letters of a kind, more of the class after the chain, and an end on it.
        r#""[a-pA-Z]{2,}""#,
        r#""[a-z]{2}[A-Z]?[a-z]""#,
        "[a-zA-Z]+x",
        "[a-z_]{2,}",
    ];

    #[test]
    fn rows_of_chains_are_those_of_walks() {
        let found = [const { Cell::new(0) }; PATTERNS.len()];
        let tokens =
            prop::collection::vec(r#"[amx]{1,5}["-]?|[aM0]{1,3}-?[aM]{0,3}|["\\az_.é-]{1,4}"#, 1..60);
        let which = 0..PATTERNS.len();
        let test = |(tokens, which): (Vec<String>, usize)| {
            let ids = || tokens.iter().zip(0..).map(|(token, id)| (token.as_bytes(), TokenId::new(id)));
            let [trie, indexed] = [(); 2].map(|()| ByteTrie::new(tokens.len(), ids()));
            indexed.sort_by_kind();
            let dfa = dfa(PATTERNS[which]);
            let [walked, table] = [(); 2].map(|()| TerminalTable::new(Arc::clone(&dfa), None));
            for state in (0..).take(dfa.len()) {
                found[which]
                    .set(found[which].get() + usize::from(table.chain_row(&indexed, state).is_some()));
                let rows = [(&walked, &trie), (&table, &indexed)]
                    .map(|(table, trie)| table.row(trie, state, &mut Work::unlimited()).unwrap());
                prop_assert!(rows[0].tokens().iter().eq(rows[1].tokens().iter()), "state {}", state);
                let inner = |reach: &TokenRow| -> Vec<u32> {
                    let nodes = reach.exits().iter().flatten();
                    nodes.filter(|&node| trie.has_children(TrieNodeId::new(node))).collect()
                };
                prop_assert_eq!(inner(&rows[0]), inner(&rows[1]), "exits of state {}", state);
            }
            Ok(())
        };
        TestRunner::new(Config { source_file: Some(file!()), ..Config::default() })
            .run(&(tokens, which), test)
            .unwrap();
        for which in [0, 1, 2, 3, 5] {
            assert!(found[which].get() > 0, "{} has no chain", PATTERNS[which]);
        }
        assert_eq!(found[4].get(), 0, "not all letters of a kind are of its class");
    }
}
