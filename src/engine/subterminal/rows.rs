//! The effect of a terminal on tokens, which is the contents of a tree's node: the tokens that end inside it,
//! and the exits, which are the trie nodes where it may end while tokens go on.
//!
//! A set of tokens is a list or bits, whichever is smaller. Bits are shared with the masks that are equal to
//! them.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::ids::TokenId;
use crate::limits::{LimitExceeded, Work};
use crate::store::{PayloadReader, PayloadWriter, StoreError};
use crate::vocab::{ByteTrie, TokenSet};

/// A set of tokens as a list or as bits, whichever is smaller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TokenList {
    /// A sorted list.
    Few(Box<[TokenId]>),
    /// A bitset, shared with masks that are equal to it.
    Many(Arc<TokenSet>),
}

/// The tokens that end inside a terminal or just as it may end, and the exits where it may end while tokens
/// go on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TokenRow {
    tokens: TokenList,
    /// Trie nodes where the terminal may end; those without children do not matter.
    exits: Ranges,
}

impl TokenRow {
    /// Creates it from places of the trie order and trie nodes. Linear in the tokens, or in those left out if
    /// fewer.
    pub(crate) fn new(trie: &ByteTrie, mut stays: Ranges, mut exits: Ranges) -> Self {
        stays.normalise();
        exits.normalise();
        exits.shrink();
        Self { tokens: TokenList::new(trie, &stays), exits }
    }

    /// Creates it from the tokens and the exits themselves.
    pub(super) fn of(tokens: TokenList, mut exits: Ranges) -> Self {
        exits.normalise();
        exits.shrink();
        Self { tokens, exits }
    }

    /// Merges what a walk found with what another row or crossing holds in the subtrees `taken`, which are in
    /// order and the same in both. Linear in what was found and in the tokens of `taken`, or in all others if
    /// these are fewer.
    pub(super) fn spliced(
        trie: &ByteTrie,
        (mut stays, mut exits): (Ranges, Ranges),
        taken: &[Range<u32>],
        (tokens, others): (&TokenList, &Ranges),
    ) -> Self {
        stays.normalise();
        others.within(taken, |range| exits.push(range));
        exits.normalise();
        exits.shrink();
        let found = stays.iter().flat_map(|range| trie.tokens_at(range)).copied();
        let places = || taken.iter().map(|nodes| trie.tokens_within(nodes.clone()));
        let tokens = match tokens {
            TokenList::Few(few) => {
                let is_below = below(trie, taken, few.len());
                let kept = few.iter().copied().filter(|&token| is_below(token));
                TokenList::listed(trie, kept.chain(found).collect())
            }
            TokenList::Many(all)
                if places().map(|places| places.len()).sum::<usize>() * 2 > trie.token_count() =>
            {
                let mut set = TokenSet::clone(all);
                left_out(trie, taken).for_each(|token| set.remove(token));
                found.for_each(|token| set.insert(token));
                TokenList::Many(Arc::new(set))
            }
            TokenList::Many(all) => {
                let taken = places().flat_map(|places| trie.tokens_at(places)).copied();
                let kept = taken.filter(|&token| all.contains(token));
                TokenList::listed(trie, found.chain(kept).collect())
            }
        };
        Self { tokens, exits }
    }

    /// Adds what another holds in these subtrees, which are in order.
    pub(super) fn with(&self, trie: &ByteTrie, taken: &[Range<u32>], other: &Self) -> Self {
        let exits = self.exits.clone();
        let Self { tokens, exits } =
            Self::spliced(trie, (Ranges::new(), exits), taken, (&other.tokens, &other.exits));
        let mut own = self.tokens.iter();
        let tokens = match tokens {
            TokenList::Few(few) => TokenList::listed(trie, few.iter().copied().chain(own).collect()),
            TokenList::Many(many) => {
                let mut set = Arc::unwrap_or_clone(many);
                own.by_ref().for_each(|token| set.insert(token));
                TokenList::Many(Arc::new(set))
            }
        };
        Self { tokens, exits }
    }

    /// Is everything in these subtrees, which are in order?
    pub(super) fn is_within(&self, trie: &ByteTrie, taken: &[Range<u32>]) -> bool {
        let mut exits = 0;
        self.exits.within(taken, |range| exits += range.len());
        exits == self.exits.total()
            && match &self.tokens {
                TokenList::Few(few) => few.iter().all(|&token| is_below(trie, token, taken)),
                TokenList::Many(all) => !left_out(trie, taken).any(|token| all.contains(token)),
            }
    }

    /// Are there no tokens and no exits?
    pub(crate) fn is_empty(&self) -> bool {
        self.exits.is_empty() && self.tokens.is_empty()
    }

    pub(crate) fn tokens(&self) -> &TokenList {
        &self.tokens
    }

    pub(crate) fn exits(&self) -> &Ranges {
        &self.exits
    }

    /// Units of work that it took to sort its tokens.
    pub(super) fn work(&self) -> usize {
        match &self.tokens {
            TokenList::Few(tokens) => tokens.len(),
            TokenList::Many(tokens) => tokens.size() / 16,
        }
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.exits.bytes() + self.tokens.bytes()
    }

    /// Writes the row: its tokens, then its exits.
    pub(crate) fn write(&self, writer: &mut PayloadWriter) {
        match &self.tokens {
            TokenList::Few(tokens) => {
                writer.u8(0);
                writer.u32s(tokens.iter().map(|token| token.raw()));
            }
            TokenList::Many(tokens) => {
                writer.u8(1);
                writer.u64s(tokens.words().iter().copied());
            }
        }
        let bounds: Vec<u32> = self.exits.bounds().collect();
        writer.u32s(bounds.into_iter());
    }

    /// If the bytes are no such value over this vocabulary.
    pub(crate) fn read(reader: &mut PayloadReader<'_>, trie: &ByteTrie) -> Result<Self, StoreError> {
        let size = trie.everything().size();
        let tokens = match reader.u8()? {
            0 => {
                let tokens = reader.u32s()?;
                let ascending = tokens.windows(2).all(|pair| pair[0] < pair[1]);
                if !ascending || tokens.last().is_some_and(|&last| last as usize >= size) {
                    return Err(StoreError::malformed("tokens out of order or past the vocabulary"));
                }
                TokenList::Few(tokens.into_iter().map(TokenId::new).collect())
            }
            1 => {
                let set = TokenSet::from_words(reader.u64s()?, size)
                    .ok_or_else(|| StoreError::malformed("a token set of another size"))?;
                TokenList::Many(Arc::new(set))
            }
            _ => return Err(StoreError::malformed("an unknown form of token set")),
        };
        let exits = Ranges::from_bounds(&reader.u32s()?)
            .filter(|exits| exits.end() as usize <= trie.len())
            .ok_or_else(|| StoreError::malformed("trie nodes out of order or past the trie"))?;
        Ok(Self { tokens, exits })
    }
}

/// Returns a test for membership in one of these subtrees, which are in order, to be called for this number
/// of `tokens`: a binary search each, or a bitmap of the trie's places if they are many.
fn below<'a>(trie: &'a ByteTrie, taken: &'a [Range<u32>], tokens: usize) -> impl Fn(TokenId) -> bool + 'a {
    let mut bits = Vec::new();
    if tokens >= trie.token_count() / 512 {
        bits.resize(trie.token_count().div_ceil(64), 0_u64);
        for nodes in taken {
            let places = trie.tokens_within(nodes.clone());
            let (mut from, end) = (places.start, places.end);
            while from < end {
                let to = end.min((from / 64 + 1) * 64);
                bits[from as usize / 64] |= (u64::MAX >> (64 - (to - from))) << (from % 64);
                from = to;
            }
        }
    }
    move |token| match bits.is_empty() {
        true => is_below(trie, token, taken),
        false => {
            let place = trie.place(token);
            bits[place as usize / 64] >> (place % 64) & 1 == 1
        }
    }
}

/// Is the token in one of these subtrees, which are in order?
fn is_below(trie: &ByteTrie, token: TokenId, taken: &[Range<u32>]) -> bool {
    let place = trie.place(token);
    let next = taken.partition_point(|nodes| trie.tokens_within(nodes.clone()).end <= place);
    taken.get(next).is_some_and(|nodes| trie.tokens_within(nodes.clone()).start <= place)
}

/// Iterates over the tokens in none of these subtrees, which are in order.
fn left_out<'a>(trie: &'a ByteTrie, taken: &'a [Range<u32>]) -> impl Iterator<Item = TokenId> + 'a {
    let end = trie.subtree_tokens(ByteTrie::ROOT).end;
    let starts = taken.iter().map(|nodes| trie.tokens_within(nodes.clone()).start).chain([end]);
    let ends = taken.iter().map(|nodes| trie.tokens_within(nodes.clone()).end);
    let gaps = std::iter::once(0).chain(ends).zip(starts);
    gaps.flat_map(|(from, to)| trie.tokens_at(from..to)).copied()
}

impl TokenList {
    /// Is the set empty?
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Few(tokens) if tokens.is_empty())
    }

    /// Stores a set in its smaller form.
    pub(super) fn of(set: TokenSet) -> Self {
        if set.len() < set.size() / 32 { Self::Few(set.iter().collect()) } else { Self::Many(Arc::new(set)) }
    }

    /// Stores these tokens, each given once.
    pub(super) fn listed(trie: &ByteTrie, mut tokens: Vec<TokenId>) -> Self {
        let size = trie.everything().size();
        if tokens.len() < size / 32 {
            // Stable, as it is quick where the tokens come in a few ascending runs.
            tokens.sort();
            return Self::Few(tokens.into());
        }
        let mut set = TokenSet::zeros(size);
        tokens.into_iter().for_each(|token| set.insert(token));
        Self::Many(Arc::new(set))
    }

    /// Collects the tokens of these ranges, in the smaller form.
    fn new(trie: &ByteTrie, stays: &Ranges) -> Self {
        let (count, size) = (stays.total(), trie.everything().size());
        // A set has a bit for each token of the vocabulary, a list 32 bits for each token in it.
        if count < size / 32 {
            return Self::listed(
                trie,
                stays.iter().flat_map(|range| trie.tokens_at(range)).copied().collect(),
            );
        }
        let mut set;
        if count * 2 > trie.token_count() {
            set = trie.everything().clone();
            let mut next = 0;
            for range in stays.iter() {
                trie.tokens_at(next..range.start).iter().for_each(|&token| set.remove(token));
                next = range.end;
            }
            let end = trie.subtree_tokens(ByteTrie::ROOT).end;
            trie.tokens_at(next..end).iter().for_each(|&token| set.remove(token));
        } else {
            set = TokenSet::zeros(size);
            for range in stays.iter() {
                trie.tokens_at(range).iter().for_each(|&token| set.insert(token));
            }
        }
        Self::Many(Arc::new(set))
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Few(tokens) => size_of_val::<[TokenId]>(tokens),
            Self::Many(tokens) => tokens.bytes(),
        }
    }
}

// Sets of trie nodes are sorted ranges: nodes are numbered in depth-first order, so a whole subtree is one
// range.
//
// Invariant after `normalise`: ranges are ascending, not empty, and neither overlap nor touch.

/// A set of 32-bit numbers. After [`normalise`](Self::normalise): ascending, disjoint, not touching.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ranges {
    ranges: Vec<Range<u32>>,
    sorted: bool,
}

impl Ranges {
    /// The empty set.
    pub(crate) fn new() -> Self {
        Self { ranges: Vec::new(), sorted: true }
    }

    /// Creates the set with these bounds, start and end in turn; `None` if they are not ascending.
    fn from_bounds(bounds: &[u32]) -> Option<Self> {
        let ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]) && bounds.len().is_multiple_of(2);
        let ranges = bounds.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
        ascending.then_some(Self { ranges, sorted: true })
    }

    /// Lists start and end of each range in turn.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|range| [range.start, range.end])
    }

    /// Adds a range. Constant time.
    pub(crate) fn push(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            Some(last) if last.end > range.start => {
                // Inside the last one already, as exits below exits are.
                if last.start > range.start || last.end < range.end {
                    self.sorted = false;
                    self.ranges.push(range);
                }
            }
            _ => self.ranges.push(range),
        }
    }

    /// Sorts and merges. `O(n log n)` where ranges were pushed out of order, nothing otherwise.
    pub(crate) fn normalise(&mut self) {
        if std::mem::replace(&mut self.sorted, true) {
            return;
        }
        // Several ascending runs, mostly: a stable sort merges them.
        self.ranges.sort_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<u32>> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.ranges = merged;
    }

    /// Iterates over the ranges.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Calls `take` with the intersections with these ranges, which are in order and disjoint. Needs a
    /// normalised set.
    pub(crate) fn within(&self, ranges: &[Range<u32>], mut take: impl FnMut(Range<u32>)) {
        let mut next = 0;
        for range in ranges {
            next += self.ranges[next..].partition_point(|own| own.end <= range.start);
            for own in self.ranges[next..].iter().take_while(|own| own.start < range.end) {
                take(own.start.max(range.start)..own.end.min(range.end));
            }
        }
    }

    /// Number of elements, once normalised.
    pub(crate) fn total(&self) -> usize {
        self.ranges.iter().map(|range| (range.end - range.start) as usize).sum()
    }

    /// Is the set empty?
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Memory on the heap, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Range<u32>>()
    }

    /// One past the greatest number.
    pub(crate) fn end(&self) -> u32 {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }
}

/// Work of making a row, and number of trie nodes per further unit. All rows of a text's substrings together
/// take its length times that of the longest token, so the budget, which is for hostile grammars, is not
/// about them.
const ROW_WORK: usize = 80;
const NODES: usize = 4;

/// Rows by state.
#[derive(Debug, Default)]
pub(super) struct SparseRows(Mutex<HashMap<u32, Arc<TokenRow>>>);

impl SparseRows {
    /// Returns the row of `state`. `make` makes it, and counts the trie nodes that it looked at. The row is
    /// kept even if that was too much work.
    pub(super) fn row(
        &self,
        state: u32,
        make: impl FnOnce() -> (Arc<TokenRow>, usize),
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        if let Some(row) = self.rows().get(&state) {
            return Ok(Arc::clone(row));
        }
        let (reach, walked) = make();
        self.rows().insert(state, Arc::clone(&reach));
        work.spend(ROW_WORK + walked / NODES + reach.work())?;
        Ok(reach)
    }

    /// Memory without the rows themselves, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.rows().allocation_size()
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<u32, Arc<TokenRow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_rows_take_the_smaller_of_list_and_bits() {
        let tokens: Vec<[u8; 2]> =
            (0..64_u8).flat_map(|one| (0..10).map(move |other| [one, other])).collect();
        let ids = tokens.iter().zip(0..).map(|(token, id)| (&token[..], TokenId::new(id)));
        let trie = ByteTrie::new(tokens.len(), ids);
        for count in [0, 1, 19, 20, 21, 320, 321, 640] {
            let mut stays = Ranges::new();
            stays.push(0..count);
            let reach = TokenRow::new(&trie, stays, Ranges::new());
            let count = count as usize;
            assert_eq!(reach.tokens().iter().count(), count);
            assert_eq!(reach.tokens().bytes(), (4 * count).min(tokens.len() / 8), "{count} tokens");
        }
    }
}

#[cfg(test)]
mod ranges_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_that_do_not_ascend_are_no_set() {
        for bounds in [&[3, 3][..], &[5, 2], &[1, 4, 4, 6], &[1, 4, 5]] {
            assert_eq!(Ranges::from_bounds(bounds), None, "{bounds:?}");
        }
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_set_of_numbers(
            pushed in proptest::collection::vec((0_u32..40, 0_u32..6), 0..20),
        ) {
            let mut ranges = Ranges::new();
            let mut set = std::collections::BTreeSet::new();
            for (start, length) in pushed {
                ranges.push(start..start + length);
                set.extend(start..start + length);
            }
            ranges.normalise();
            let found: Vec<u32> = ranges.iter().flatten().collect();
            prop_assert_eq!(found, set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(ranges.total(), set.len());
            let bounds: Vec<u32> = ranges.bounds().collect();
            prop_assert_eq!(Ranges::from_bounds(&bounds), Some(ranges));
        }
    }
}
