//! Makes rows of counted strings, such as any string of 2 to 63 characters, from one index of the vocabulary.
//!
//! Such an automaton is the product of a common one, any string, and a counter of characters. The number of
//! characters in a token is a property of the vocabulary and the common automaton alone. So one walk over the
//! trie serves the rows of all lengths in all schemas: a row is the common one's without the tokens that have
//! too many characters, or too few before their closing quote.

use std::{
    collections::VecDeque,
    ops::{Range, RangeInclusive},
};

use crate::{
    ids::{TokenId, TrieNodeId},
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
        let fits = |at: u32| common.accepting()[at as usize] == ends(at);
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
    /// Tokens that stay in the string, whether or not they end it.
    all: TokenSet,
    count: usize,
    /// Tokens that do not end the string, by the number of characters they complete or begin.
    inside: Vec<Vec<TokenId>>,
    /// Sets of the tokens with at most `n` characters, by `n`.
    up_to: Vec<TokenSet>,
    /// Trie nodes after whole characters that have children which go on, by the number of those characters;
    /// ascending.
    homes: Vec<Vec<u32>>,
    /// Trie nodes where the string has ended, ascending, with the number of characters before its end.
    ended: Vec<(u32, usize)>,
    /// Greatest number of characters of any of these.
    longest: usize,
}

/// Returns the list for a number of characters, making room for it.
fn at<T>(lists: &mut Vec<Vec<T>>, count: usize) -> &mut Vec<T> {
    if lists.len() <= count {
        lists.resize_with(count + 1, Vec::new);
    }
    &mut lists[count]
}

impl CharacterIndex {
    /// Builds the index by one walk over the trie.
    pub(in crate::subterminal) fn new(trie: &ByteTrie, common: &TerminalDfa, home: Home) -> Self {
        let mut found = Self {
            all: TokenSet::zeros(trie.everything().size()),
            count: 0,
            inside: Vec::new(),
            up_to: Vec::new(),
            homes: Vec::new(),
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
            tokens.iter().for_each(|&token| found.all.insert(token));
            found.count += tokens.len();
            // The terminal ends at this node: nothing below it is inside of the terminal.
            if !home.endless && common.accepting()[to as usize] {
                found.ended.push((node, characters));
                node = end;
                continue;
            }
            at(&mut found.inside, characters + 1).extend_from_slice(tokens);
            // A character is complete when the automaton is back home.
            let characters = characters + usize::from(to == home.state);
            if to == home.state && trie.has_children(here) {
                at(&mut found.homes, characters).push(node);
            }
            path.push((end, to, characters));
            node += 1;
        }
        let ended = found.ended.iter().map(|(_, characters)| *characters).max();
        found.longest = found.inside.len().saturating_sub(1).max(ended.unwrap_or(0));
        // Cumulated, so that a row takes one set for all tokens of up to `n` characters.
        let mut sum = TokenSet::zeros(found.all.size());
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
                    TokenList::Few(few) => TokenSet::of(few.to_vec(), self.all.size()),
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
        let nodes = self.homes.iter().map(Vec::capacity).sum::<usize>();
        let sets = (1 + self.up_to.len()) * self.all.size() / 8;
        sets + 4 * (self.count + nodes) + size_of_val(&*self.ended)
    }

    /// Returns the number of characters before these nodes, if it is the same for all and no other node has
    /// it.
    fn characters_before(&self, nodes: &Ranges) -> Option<usize> {
        let first = nodes.iter().next()?.start;
        let count = self.homes.iter().position(|homes| homes.first() == Some(&first))?;
        nodes.iter().flatten().eq(self.homes[count].iter().copied()).then_some(count)
    }
}

/// A counter of characters that, in product with a common automaton, makes up another one.
#[derive(Debug)]
pub(in crate::subterminal) struct Counted {
    home: Home,
    /// Number of characters before each state that is between characters.
    numbers: Box<[Option<usize>]>,
    /// May the string be closed after this number of characters?
    closes: Vec<bool>,
    /// May the terminal end after this number of characters?
    stops: Vec<bool>,
    /// Is every number of characters past the listed ones allowed, and the end after each?
    free: bool,
}

/// An automaton beside a common one, as [`Counted::new`] takes it.
pub(in crate::subterminal) struct DfaPair<'a> {
    pub(in crate::subterminal) dfa: &'a TerminalDfa,
    pub(in crate::subterminal) common: &'a TerminalDfa,
    /// A byte of each kind that either automaton distinguishes.
    pub(in crate::subterminal) bytes: &'a [u8],
}

/// The possible continuations after a number of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CountedPlace {
    state: u32,
    goes_on: bool,
    closes: bool,
    stops: bool,
}

impl Counted {
    /// Recognises a counter in an automaton whose states run beside `partner`, and treat all texts as it does
    /// where they are the `same`. `None` if it is more than a counter. Linear in the states and bytes.
    ///
    /// Each state is labelled with the number of characters before it, breadth-first from the state after the
    /// opening; a state with two labels is more than a counter. Then each number must have a place between
    /// characters, up to where counts end or no longer matter.
    pub(in crate::subterminal) fn new(
        beside: &DfaPair<'_>,
        home: Home,
        partner: impl Fn(u32) -> u32,
        same: impl Fn(u32) -> bool,
    ) -> Option<Self> {
        let DfaPair { dfa, .. } = *beside;
        if partner(0) == home.state && same(0) {
            return None;
        }
        let mut numbers: Vec<Option<usize>> = vec![None; dfa.len()];
        let mut places: Vec<CountedPlace> = Vec::new();
        let mut free = None;
        let first = if partner(0) == home.state { 0 } else { entrance(beside, home)? };
        let mut labels: Vec<Option<usize>> = vec![None; dfa.len()];
        labels[first as usize] = Some(0);
        // Breadth-first: if more than lengths tells strings apart, two states have the same count soon.
        let mut open = VecDeque::from([first]);
        while let Some(state) = open.pop_front() {
            let count = labels[state as usize]?;
            let is_home = partner(state) == home.state;
            let place = beside.place(home, state, partner(state), &partner)?;
            if is_home {
                if places.len() <= count {
                    let none = CountedPlace { state: NONE, goes_on: false, closes: false, stops: false };
                    places.resize(count + 1, none);
                }
                if places[count].state != NONE {
                    return None;
                }
                places[count] = place;
                numbers[state as usize] = Some(count);
            }
            for &byte in beside.bytes {
                let Some(to) = next(dfa, state, byte) else { continue };
                if !home.endless && dfa.accepting()[to as usize] {
                    continue;
                }
                let after = count + usize::from(partner(to) == home.state);
                if same(to) {
                    free = Some(free.map_or(count + 1, |free: usize| free.min(count + 1)));
                    continue;
                }
                match labels[to as usize] {
                    Some(known) if known == after => {}
                    Some(_) => return None,
                    None => {
                        labels[to as usize] = Some(after);
                        open.push_back(to);
                    }
                }
            }
        }
        // Every number of characters has its place, up to where counts end or do not matter any more.
        let whole = places.iter().all(|place| place.state != NONE);
        let ends = match (free, places.last()) {
            (Some(free), _) => places.len() == free && places.iter().all(|place| place.goes_on),
            (None, Some(last)) => !last.goes_on,
            (None, None) => false,
        };
        (whole && ends).then(|| Self {
            home,
            numbers: numbers.into_boxed_slice(),
            closes: places.iter().map(|place| place.closes).collect(),
            stops: places.iter().map(|place| place.stops).collect(),
            free: free.is_some(),
        })
    }

    /// Returns the number of characters before a state that is between characters.
    pub(in crate::subterminal) fn number(&self, state: u32) -> Option<usize> {
        self.numbers[state as usize]
    }

    /// Memory, in bytes.
    pub(in crate::subterminal) fn bytes(&self) -> usize {
        size_of_val(&*self.numbers) + 2 * self.closes.len()
    }

    /// Makes the row of the terminal after `at` characters.
    pub(in crate::subterminal) fn row(&self, trie: &ByteTrie, index: &CharacterIndex, at: usize) -> TokenRow {
        self.after(trie, index, (0, at))
    }

    /// Returns the effect of the terminal, entered between characters, on the tokens that go on at `exits`.
    /// `None` unless those are all the places after some number of characters.
    pub(in crate::subterminal) fn crossing(
        &self,
        trie: &ByteTrie,
        index: &CharacterIndex,
        exits: &Ranges,
    ) -> Option<TokenRow> {
        let before = index.characters_before(exits)?;
        self.number(0).map(|number| self.after(trie, index, (before, number)))
    }

    /// Does the same for tokens of which the terminal begins after `before` characters. Linear in the tokens,
    /// or in those left out if these are fewer, and in the exits.
    fn after(&self, trie: &ByteTrie, index: &CharacterIndex, (before, number): (usize, usize)) -> TokenRow {
        let CharacterIndex { all, count, inside, up_to, homes, ended, .. } = index;
        let may = |list: &[bool], count: usize| list.get(number + count).copied().unwrap_or(self.free);
        let may_close = |count: usize| count >= before && may(&self.closes, count - before);
        let last = if self.free { usize::MAX } else { before + self.closes.len() - 1 - number };
        let here = |count: usize| count > before && count <= last;
        let within = || inside.iter().enumerate().filter(|(count, _)| here(*count)).map(|(_, list)| list);
        let kept: usize = within().map(Vec::len).sum();
        let closing = |node: u32| trie.tokens_at(trie.own_tokens(TrieNodeId::new(node)));
        let cumulated = up_to.get(last).filter(|set| before == 0 && kept >= set.size() / 32);
        let tokens = if let Some(set) = cumulated {
            let mut set = set.clone();
            let closed = ended.iter().filter(|(_, count)| may_close(*count));
            closed.flat_map(|&(node, _)| closing(node)).for_each(|&token| set.insert(token));
            TokenList::Many(set.into())
        } else if 2 * kept > *count {
            let mut set = all.clone();
            let without = inside.iter().enumerate().filter(|(count, _)| !here(*count));
            without.flat_map(|(_, list)| list).for_each(|&token| set.remove(token));
            let without = ended.iter().filter(|(_, count)| !may_close(*count));
            without.flat_map(|&(node, _)| closing(node)).for_each(|&token| set.remove(token));
            TokenList::Many(set.into())
        } else {
            let closed = ended.iter().filter(|(_, count)| may_close(*count));
            let closed = closed.flat_map(|&(node, _)| closing(node));
            TokenList::listed(trie, within().flatten().chain(closed).copied().collect())
        };
        let mut exits = Ranges::new();
        if self.home.endless {
            let stops = |count: usize| count > before && may(&self.stops, count - before);
            let nodes = homes.iter().enumerate().filter(|(count, _)| stops(*count));
            nodes.flat_map(|(_, list)| list).for_each(|&node| exits.push(node..node + 1));
        } else {
            let closed = ended.iter().filter(|(_, count)| may_close(*count));
            let inner = closed.filter(|(node, _)| trie.has_children(TrieNodeId::new(*node)));
            inner.for_each(|&(node, _)| exits.push(node..node + 1));
        }
        TokenRow::of(tokens, exits)
    }
}

/// Returns the state in which `dfa` is home for the first time, if it is unique.
fn entrance(beside: &DfaPair<'_>, home: Home) -> Option<u32> {
    let ways = beside.bytes.iter().filter_map(|&byte| {
        let to = next(beside.dfa, 0, byte)?;
        Some((to, next(beside.common, 0, byte)?))
    });
    let mut ways: Vec<(u32, u32)> = ways.collect();
    ways.dedup();
    match ways[..] {
        [(to, other)] if other == home.state => Some(to),
        _ => None,
    }
}

impl DfaPair<'_> {
    /// Returns the continuations of a state beside one of the common automaton: all of the partner's but for
    /// ends, or between characters none but ends. `None` if there are others.
    fn place(
        &self,
        home: Home,
        state: u32,
        beside: u32,
        partner: &impl Fn(u32) -> u32,
    ) -> Option<CountedPlace> {
        let (mut goes_on, mut closes) = ([false; 2], [false; 2]);
        for &byte in self.bytes {
            let Some(other) = next(self.common, beside, byte) else {
                if next(self.dfa, state, byte).is_some() {
                    return None;
                }
                continue;
            };
            let ends = !home.endless && self.common.accepting()[other as usize];
            let to = next(self.dfa, state, byte);
            if let Some(to) = to {
                let ended = self.dfa.accepting()[to as usize] && !leads_on(self.dfa, to);
                if partner(to) != other || (!home.endless && ended != ends) {
                    return None;
                }
            }
            if ends {
                closes[usize::from(to.is_some())] = true;
            } else {
                goes_on[usize::from(to.is_some())] = true;
            }
        }
        let is_home = beside == home.state;
        let accepts = self.dfa.accepting()[state as usize];
        let torn = goes_on == [true; 2] || closes == [true; 2];
        let stuck = !is_home && (goes_on[0] || closes[0]);
        if torn || stuck || (accepts && !(home.endless && is_home)) {
            return None;
        }
        Some(CountedPlace { state, goes_on: goes_on[1], closes: closes[1], stops: accepts })
    }
}
