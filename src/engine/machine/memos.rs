//! Memos of the machine: what they keep, without how it is found. Counts of the memory of grammars and
//! compilers are here too.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::ids::{StateId, TokenId};
use crate::{program::Thread, split_mix::mixed, vocab::TokenSet};

/// Scanner states and parser state of a text, as two hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Context {
    pub(super) alpha: u64,
    pub(super) beta: u64,
}

impl Context {
    /// Hash of the terminals that the text is inside of or may begin, each with the state of its scanner.
    #[must_use]
    pub fn alpha(self) -> u64 {
        self.alpha
    }

    /// Hash of the dotted rules in which those terminals were started. The sets where these were predicted
    /// are forgotten, and so is the stack.
    #[must_use]
    pub fn beta(self) -> u64 {
        self.beta
    }
}

/// Number of contexts that are kept, at 32 bytes each. Past it all are forgotten and computed again on
/// demand.
const MOST: usize = 1 << 16;

/// The contexts of states that were asked for.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    known: HashMap<StateId, Context>,
}

impl Contexts {
    /// The context of `state`, if it was asked for before.
    pub(super) fn get(&self, state: StateId) -> Option<Context> {
        self.known.get(&state).copied()
    }

    /// Files the context of `state`.
    pub(super) fn keep(&mut self, state: StateId, context: Context) {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(state, context);
    }
}

/// A hash of 128 bits. Collisions are neglected: at 2^13 entries the chance of one is below 2^-100.
pub(crate) type Fingerprint = [u64; 2];

/// Adds a number to a hash: two chains of SplitMix64 over different inputs.
pub(crate) fn with_number([one, other]: Fingerprint, value: u64) -> Fingerprint {
    [mixed(one, value), mixed(other, value ^ 0x5555_5555_5555_5555)]
}

/// Adds bytes and their length to a hash.
pub(crate) fn with_bytes(fingerprint: Fingerprint, bytes: &[u8]) -> Fingerprint {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(with_number(fingerprint, bytes.len() as u64), with_number)
}

/// Bounds of the memo: number of entries, at 80 bytes each, and of refused tokens in all, at 4 bytes each.
const PLACES: usize = 1 << 13;
const TOKENS: usize = 1 << 18;

/// Memo of the tokens that readers refused, by state and fingerprint of the readers. `None` means no token.
#[derive(Debug, Default)]
pub(crate) struct RefusalCache {
    known: HashMap<(StateId, Fingerprint), Option<Arc<[TokenId]>>>,
    tokens: usize,
}

impl RefusalCache {
    pub(crate) fn get(&self, state: StateId, fingerprint: Fingerprint) -> Option<Option<Arc<[TokenId]>>> {
        self.known.get(&(state, fingerprint)).cloned()
    }

    /// Files refused tokens. Clears the memo when it is full.
    pub(crate) fn keep(&mut self, state: StateId, fingerprint: Fingerprint, refused: &[TokenId]) {
        if self.known.len() >= PLACES || self.tokens + refused.len() > TOKENS {
            (self.known, self.tokens) = (HashMap::new(), 0);
        }
        if refused.len() <= TOKENS {
            self.tokens += refused.len();
            self.known.insert((state, fingerprint), (!refused.is_empty()).then(|| refused.into()));
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.known.allocation_size() + self.tokens * size_of::<TokenId>()
    }
}

/// Bytes of the kinds in `kinds` all lead from a state to `next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindEdge {
    pub(super) next: u32,
    pub(super) kinds: u64,
}

/// A walk in progress. Invariant: all nodes before `next` are done, and `path` holds the ancestors of `next`
/// with the ends of their subtrees and the states that they lead to.
#[derive(Debug)]
pub(super) struct TrieWalk {
    pub(super) mask: TokenSet,
    pub(super) path: Vec<(u32, u32)>,
    pub(super) next: u32,
    /// Runs by state.
    pub(super) runs: HashMap<u32, KindEdge>,
    /// Work that may still go into runs; bounds the loss where they save nothing.
    pub(super) room: usize,
    /// At finite lookahead, the bound and the sets that states are the numbers of.
    pub(super) counted: Option<(u32, CountedSets)>,
}

/// A thread, and the least number of terminals that the token has begun past its first one on the way to it.
pub(super) type CountedThread = (Thread, u32);

/// Hash-consed sets of counted threads, and the moves between them: the memo of one walk over the trie.
#[derive(Debug)]
pub(super) struct CountedSets {
    pub(super) sets: Vec<Box<[CountedThread]>>,
    /// Number of threads before the token that are inside a terminal.
    pub(super) inside: usize,
    pub(super) index: HashMap<Box<[CountedThread]>, u32>,
    /// Moves by set and byte class.
    pub(super) moves: HashMap<(u32, usize), Option<u32>>,
}

/// Memory of a compiled grammar, in bytes: everything its sessions share and [`Limits`](crate::Limits)
/// bounds. A session's own is its [history](crate::Constraint::history_bytes).
///
/// Counts the contents in use, without the allocator's overhead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The lowered grammar: productions, names and places of the source, and data computed from them.
    pub grammar: usize,
    /// Automata of terminals, and what they do to the tokens of the vocabulary, where no other grammar uses
    /// them; see [`Limits::terminal_bytes`](crate::Limits::terminal_bytes) and
    /// [`Compiler::memory`](crate::Compiler::memory).
    pub terminals: usize,
    /// Machines that sessions share: one, and those that were replaced while sessions still run on them.
    pub machines: usize,
    /// Earley sets and the moves between them, see [`Limits::parser_bytes`](crate::Limits::parser_bytes).
    pub parser_sets: usize,
    /// Constraint states, see [`Limits::state_bytes`](crate::Limits::state_bytes).
    pub states: usize,
    /// Subterminal trees, see [`Limits::tree_bytes`](crate::Limits::tree_bytes), without what terminals have
    /// as well, which that limit counts.
    pub trees: usize,
    /// Masks, see [`Limits::mask_bytes`](crate::Limits::mask_bytes), and a memo of the tokens that readers of
    /// keys and items refuse, at most 2 MB.
    pub masks: usize,
}

/// Memory of a compiler, in bytes: what its grammars share, and what it keeps for later ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompilerMemory {
    /// Automata of terminals of all grammars, and their effect on the tokens of the vocabulary.
    pub terminals: usize,
    /// The part of `terminals` that no grammar or notation uses now. It is kept for the next grammar as long
    /// as all terminals take no more than [`TABLE_BYTES`](crate::limits::TABLE_BYTES).
    pub unused: usize,
    /// The part of `terminals` that several grammars use, without what all grammars of a notation have in
    /// common.
    pub shared: usize,
    /// [Automata of schemas](crate::AutomataCache).
    pub automata: usize,
    /// Vocabularies with special tokens spelled out, beside the one that was given.
    pub vocabularies: usize,
}

impl CompilerMemory {
    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.terminals + self.automata + self.vocabularies
    }
}

impl Memory {
    /// All of it, in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.own() + self.terminals
    }

    /// All but the terminals, which are the compiler's as well: this of all grammars and the
    /// [memory of their compiler](crate::Compiler::memory) are all that is kept, in bytes.
    #[must_use]
    pub fn own(&self) -> usize {
        self.grammar + self.parser_sets + self.states + self.trees + self.masks
    }

    /// Creates the count of one machine that keeps nothing.
    pub(super) fn of_a_machine() -> Self {
        Self { machines: 1, ..Self::default() }
    }

    /// Adds the counts of another machine.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            grammar: self.grammar + other.grammar,
            terminals: self.terminals + other.terminals,
            machines: self.machines + other.machines,
            parser_sets: self.parser_sets + other.parser_sets,
            states: self.states + other.states,
            trees: self.trees + other.trees,
            masks: self.masks + other.masks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length is part of the hash, so that bytes cannot be moved from one text to the next.
    #[test]
    fn fingerprints_of_split_texts_differ() {
        let fingerprint = |texts: [&str; 2]| {
            texts.iter().fold([0, 0], |fingerprint, text| with_bytes(fingerprint, text.as_bytes()))
        };
        let all =
            [["", "ab"], ["a", "b"], ["ab", ""], ["ab", "\0"], ["ab\0", ""], ["b", "a"], ["abcdefgh", "i"]];
        let fingerprints: std::collections::BTreeSet<Fingerprint> =
            all.into_iter().map(fingerprint).collect();
        assert_eq!(fingerprints.len(), all.len());
    }
}

#[cfg(test)]
mod refusals_tests {
    use super::*;

    fn refused(place: u64) -> Vec<TokenId> {
        (0..place % 3).map(|token| TokenId::new(u32::try_from(place + token).unwrap())).collect()
    }

    #[test]
    fn refused_tokens_are_kept_until_the_memory_limit() {
        let (mut refusals, state) = (RefusalCache::default(), StateId::new(7));
        let places = PLACES as u64;
        for place in 0..places {
            refusals.keep(state, [place, 0], &refused(place));
        }
        for place in 0..places {
            let known = refusals.get(state, [place, 0]).unwrap();
            assert_eq!(known.as_deref().unwrap_or_default(), refused(place));
        }
        assert!(refusals.get(StateId::new(8), [1, 0]).is_none() && refusals.get(state, [1, 1]).is_none());
        assert!(refusals.bytes() < 2_000_000);
        refusals.keep(state, [places, 0], &refused(places));
        assert!(refusals.get(state, [0, 0]).is_none() && refusals.get(state, [places, 0]).is_some());
        refusals.keep(state, [1, 0], &vec![TokenId::new(1); TOKENS]);
        assert_eq!(refusals.known.len(), 1);
        refusals.keep(state, [2, 0], &vec![TokenId::new(1); TOKENS + 1]);
        assert!(refusals.bytes() < 2_000_000);
    }
}

#[cfg(test)]
mod memory_tests {
    use super::*;

    #[test]
    fn memory_counts_add_up() {
        let memory = |machines, [grammar, terminals, parser_sets, states, trees, masks]: [usize; 6]| Memory {
            machines,
            grammar,
            terminals,
            parser_sets,
            states,
            trees,
            masks,
        };
        let one = memory(1, [1, 2, 20, 300, 4_000, 50_000]);
        let both = one.and(memory(2, [2, 5, 30, 500, 7_000, 110_000]));
        assert_eq!(both, memory(3, [3, 7, 50, 800, 11_000, 160_000]));
        assert_eq!((both.own(), both.total()), (171_853, 171_860));
    }
}
