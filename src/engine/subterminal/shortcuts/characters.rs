//! Restricts rows of strings to a number of characters, such as any string of 2 to 63, by one index of the
//! vocabulary.
//!
//! The number of characters in a token is a property of the vocabulary and of a common automaton, any string.
//! So one walk over the trie serves the rows of all lengths in all schemas: a row is that of the unbounded
//! strings without the tokens that have too many characters, or too few before their closing quote.

use std::ops::{Range, RangeInclusive};

use crate::{
    ids::{TokenId, TrieNodeId, as_index},
    scanner::{NONE, TerminalDfa},
    subterminal::rows::{Ranges, TokenList, TokenRow},
    vocab::{ByteTrie, TokenSet},
};

/// Steps an automaton by one byte.
pub(super) fn next(dfa: &TerminalDfa, state: u32, byte: u8) -> Option<u32> {
    Some(dfa.row(state)[usize::from(dfa.classes()[usize::from(byte)])]).filter(|&to| to != NONE)
}

fn leads_on(dfa: &TerminalDfa, state: u32) -> bool {
    dfa.row(state).iter().any(|&to| to != NONE)
}

/// The structure of a common automaton of strings: characters that each lead back to one state, *home*, and
/// either an end past which nothing goes on, or none, so that texts may end whenever they are home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::subterminal) struct Home {
    /// The state between characters.
    state: u32,
    /// May texts end in that state, instead of by a byte that ends them?
    endless: bool,
}

impl Home {
    /// Recognises the structure. Linear in the states and bytes.
    pub(in crate::subterminal) fn of(common: &TerminalDfa) -> Option<Self> {
        let states = 0..u32::try_from(common.len()).ok()?;
        let loops = |state: &u32| (0..=u8::MAX).any(|byte| next(common, *state, byte) == Some(*state));
        let state = states.clone().find(loops)?;
        let endless = common.accepts_empty();
        let ends = |at: u32| if endless { at == state } else { !leads_on(common, at) };
        let fits = |at: u32| common.accepting()[as_index(at)] == ends(at);
        // Nothing but the end of a character leads to an end.
        let ended = |at: u32| (0..=u8::MAX).any(|byte| next(common, at, byte).is_some_and(ends));
        let whole = |at: u32| endless || at == state || !ended(at);
        states.into_iter().all(|at| fits(at) && whole(at)).then_some(Self { state, endless })
    }

    /// Returns the state between characters, if all texts end by a byte past which nothing goes on.
    pub(in crate::subterminal) fn with_an_end(self) -> Option<u32> {
        (!self.endless).then_some(self.state)
    }

    /// May this byte come between characters?
    pub(super) fn goes_on_by(self, common: &TerminalDfa, byte: u8) -> bool {
        next(common, self.state, byte).is_some()
    }

    /// Does a byte lead away from the state between characters?
    pub(super) fn is_left_by(self, common: &TerminalDfa, byte: u8) -> bool {
        next(common, self.state, byte).is_some_and(|to| to != self.state)
    }
}

/// Greatest `n` for which the set of tokens with at most `n` characters is kept. Few tokens have more.
const MOST_CUMULATED: usize = if cfg!(test) { 2 } else { 16 };

/// The tokens of a vocabulary by their characters, for a common automaton between characters.
#[derive(Debug)]
pub(in crate::subterminal) struct CharacterIndex {
    /// Number of token ids of the vocabulary.
    size: usize,
    /// Tokens that do not end the string, by the number of characters they complete or begin.
    inside: Vec<Vec<TokenId>>,
    /// Sets of the tokens with at most `n` characters, by `n`.
    up_to: Vec<TokenSet>,
    /// Trie nodes where the string has ended, ascending, with the number of characters before its end.
    ended: Vec<(u32, usize)>,
    /// Greatest number of characters of any of these.
    longest: usize,
}

impl CharacterIndex {
    /// Builds the index by one walk over the trie.
    pub(in crate::subterminal) fn new(trie: &ByteTrie, common: &TerminalDfa, home: Home) -> Self {
        let mut found = Self {
            size: trie.everything().size(),
            inside: Vec::new(),
            up_to: Vec::new(),
            ended: Vec::new(),
            longest: 0,
        };
        // The nodes above: the end of each subtree, the automaton's state after the node, and its characters.
        let mut path: Vec<(u32, u32, usize)> = Vec::new();
        let (mut node, last) = (1, trie.end(ByteTrie::ROOT).raw());
        while node < last {
            // Leave the subtrees that end before this node.
            while path.last().is_some_and(|&(end, ..)| end <= node) {
                path.pop();
            }
            let (state, characters) =
                path.last().map_or((home.state, 0), |&(_, state, characters)| (state, characters));
            let here = TrieNodeId::new(node);
            let end = trie.end(here).raw();
            // A byte that the terminal does not take ends the subtree.
            let Some(to) = next(common, state, trie.byte(here)) else {
                node = end;
                continue;
            };
            let tokens = trie.tokens_at(trie.own_tokens(here));
            // The terminal ends at this node: nothing below it is inside of the terminal.
            if !home.endless && common.accepting()[as_index(to)] {
                found.ended.push((node, characters));
                node = end;
                continue;
            }
            if found.inside.len() <= characters + 1 {
                found.inside.resize_with(characters + 2, Vec::new);
            }
            found.inside[characters + 1].extend_from_slice(tokens);
            // A character is complete when the automaton is back home.
            let characters = characters + usize::from(to == home.state);
            path.push((end, to, characters));
            node += 1;
        }
        let ended = found.ended.iter().map(|(_, characters)| *characters).max();
        found.longest = found.inside.len().saturating_sub(1).max(ended.unwrap_or(0));
        // Cumulated, so that a row takes one set for all tokens of up to `n` characters.
        let mut sum = TokenSet::zeros(found.size);
        for tokens in found.inside.iter().take(MOST_CUMULATED + 1) {
            tokens.iter().for_each(|&token| sum.insert(token));
            found.up_to.push(sum.clone());
        }
        found
    }

    /// Greatest number of characters of a token, or before the end of a string in one.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Restricts a row to `lengths`: tokens that stay in the string may have up to the greatest number of
    /// characters, and those that end it a number within the bounds. The row is that of a state between
    /// characters of an automaton whose strings are all among the common ones. Linear in the vocabulary, by
    /// words of bits, and in the tokens that end a string or are too long.
    pub(super) fn within(&self, trie: &ByteTrie, row: &TokenRow, lengths: RangeInclusive<usize>) -> TokenRow {
        let most = *lengths.end();
        let closing = |node: u32| trie.tokens_at(trie.own_tokens(TrieNodeId::new(node)));
        let (within, others): (Vec<_>, Vec<_>) =
            self.ended.iter().partition(|(_, characters)| lengths.contains(characters));
        let tokens = match (row.tokens(), self.up_to.get(most)) {
            (TokenList::Many(many), Some(short)) => {
                let mut set = short.clone();
                within.iter().flat_map(|(node, _)| closing(*node)).for_each(|&token| set.insert(token));
                set.keep(many);
                TokenList::Many(set.into())
            }
            (tokens, _) => {
                let mut set = match tokens {
                    TokenList::Few(few) => TokenSet::of(few.to_vec(), self.size),
                    TokenList::Many(many) => TokenSet::clone(many),
                };
                let longer = self.inside.iter().skip(most.saturating_add(1)).flatten();
                let others = others.iter().flat_map(|(node, _)| closing(*node));
                longer.chain(others).for_each(|&token| set.remove(token));
                match tokens {
                    TokenList::Few(_) => TokenList::listed(trie, set.iter().collect()),
                    TokenList::Many(_) => TokenList::Many(set.into()),
                }
            }
        };
        let ends: Vec<Range<u32>> = within.iter().map(|&(node, _)| node..node + 1).collect();
        let mut exits = Ranges::new();
        row.exits().within(&ends, |range| exits.push(range));
        TokenRow::of(tokens, exits)
    }

    /// Memory, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        let tokens = self.inside.iter().map(Vec::capacity).sum::<usize>();
        (self.up_to.len() * self.size).div_ceil(8) + 4 * tokens + size_of_val(&*self.ended)
    }
}
