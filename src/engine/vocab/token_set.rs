//! Sets of tokens: a sorted list while they are few, a bit for each token of the vocabulary otherwise.
//!
//! Most masks of structured text allow a handful of tokens. A list of those is made, hashed, compared and
//! kept in a fraction of the time and memory that 16 kB of mostly zero bits take. Invariants: a list is
//! ascending and no longer than [`most_listed`], and bits past the vocabulary's size are zero.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
};

use crate::ids::{TokenId, saturating_u32};

/// Number of tokens in a word of bits.
const WORD: usize = 64;
/// Number of ids of the vocabulary for each token that a list may have: it then takes a quarter of the memory
/// of bits.
const IDS_OF_LISTED: usize = 128;

/// A set of the tokens of one vocabulary.
#[derive(Clone)]
pub struct TokenSet {
    held: Held,
    size: u32,
}

#[derive(Clone)]
enum Held {
    /// A list, ascending.
    Listed(Vec<TokenId>),
    /// Words of bits: token `t` is bit `t % 64` of word `t / 64`. After removals there may be as few tokens
    /// as in a list.
    Bits(Box<[u64]>),
}

/// The tokens of a set in the form in which they are stored.
#[derive(Debug, Clone, Copy)]
pub enum Contents<'a> {
    /// The tokens, ascending.
    Listed(&'a [TokenId]),
    /// Token `t` is bit `t % 64` of word `t / 64`.
    Bits(&'a [u64]),
}

impl TokenSet {
    /// Creates the empty set over ids `0..size`.
    #[must_use]
    pub fn empty(size: usize) -> Self {
        Self { held: Held::Listed(Vec::new()), size: saturating_u32(size) }
    }

    /// Creates the empty set over ids `0..size`, stored as bits: for many tokens in any order.
    pub(crate) fn zeros(size: usize) -> Self {
        let mut set = Self::empty(size);
        set.bits();
        set
    }

    /// Creates the set of these tokens over ids `0..size`; ids past the end are ignored. Sorts them if they
    /// are few.
    pub(crate) fn of(mut tokens: Vec<TokenId>, size: usize) -> Self {
        if tokens.len() > most_listed(size) {
            let mut set = Self::zeros(size);
            tokens.into_iter().for_each(|token| set.insert(token));
            return set;
        }
        let empty = Self::empty(size);
        tokens.retain(|token| token.raw() < empty.size);
        tokens.sort_unstable();
        tokens.dedup();
        Self { held: Held::Listed(tokens), ..empty }
    }

    /// Creates the set over ids `0..size` with these words; `None` if their number is wrong or they have bits
    /// past the end.
    pub(crate) fn from_words(words: Vec<u64>, size: usize) -> Option<Self> {
        let past = words.last().map_or(0, |last| last >> (size % WORD));
        let fits = words.len() == size.div_ceil(WORD) && (size.is_multiple_of(WORD) || past == 0);
        let held = Held::Bits(words.into());
        fits.then_some(Self { held, size: u32::try_from(size).ok()? })
    }

    /// The set can hold ids `0..size`.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Is `token` in the set? `false` for ids past the end. A binary search if the tokens are few.
    #[must_use]
    pub fn contains(&self, token: TokenId) -> bool {
        match &self.held {
            Held::Listed(tokens) => tokens.binary_search(&token).is_ok(),
            Held::Bits(words) => {
                let index = token.index();
                words.get(index / WORD).is_some_and(|word| word >> (index % WORD) & 1 == 1)
            }
        }
    }

    /// Adds `token`; ids past the end are ignored.
    pub fn insert(&mut self, token: TokenId) {
        if token.raw() >= self.size {
            return;
        }
        let most = most_listed(self.size());
        match &mut self.held {
            Held::Bits(words) => set_bit(words, token),
            Held::Listed(tokens) => {
                let at = match tokens.last() {
                    Some(&last) if last >= token => tokens.binary_search(&token),
                    _ => Err(tokens.len()),
                };
                let Err(at) = at else { return };
                if tokens.len() < most {
                    tokens.insert(at, token);
                } else {
                    set_bit(self.bits(), token);
                }
            }
        }
    }

    /// Removes `token`.
    pub fn remove(&mut self, token: TokenId) {
        match &mut self.held {
            Held::Listed(tokens) => {
                if let Ok(at) = tokens.binary_search(&token) {
                    tokens.remove(at);
                }
            }
            Held::Bits(words) => {
                let index = token.index();
                if let Some(word) = words.get_mut(index / WORD) {
                    *word &= !(1 << (index % WORD));
                }
            }
        }
    }

    /// Number of tokens in the set. One pass over the words, unless they are few.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.held {
            Held::Listed(tokens) => tokens.len(),
            Held::Bits(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// Is the set empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.held {
            Held::Listed(tokens) => tokens.is_empty(),
            Held::Bits(words) => words.iter().all(|&word| word == 0),
        }
    }

    /// The set as a bit for each id, token `t` as bit `t % 64` of word `t / 64`. Computed if the tokens are
    /// few.
    #[must_use]
    pub fn words(&self) -> Cow<'_, [u64]> {
        match &self.held {
            Held::Listed(tokens) => {
                let mut words = vec![0; self.size().div_ceil(WORD)];
                tokens.iter().for_each(|&token| set_bit(&mut words, token));
                Cow::Owned(words)
            }
            Held::Bits(words) => Cow::Borrowed(words),
        }
    }

    /// Writes the set as a bit for each id into `row`, token `t` as bit `t % 32` of `row[t / 32]`: the masks
    /// that samplers in Python take. Clears what lies past the set; leaves out tokens past the end of `row`.
    pub fn write_bits32(&self, row: &mut [i32]) {
        match &self.held {
            Held::Listed(tokens) => {
                row.fill(0);
                for index in tokens.iter().copied().map(TokenId::index) {
                    row.get_mut(index / 32).into_iter().for_each(|half| *half |= 1 << (index % 32));
                }
            }
            Held::Bits(words) => {
                row.get_mut(2 * words.len()..).unwrap_or_default().fill(0);
                let (pairs, last) = row.as_chunks_mut::<2>();
                if let ([last], Some(&word)) = (last, words.get(pairs.len())) {
                    *last = halves(word)[0];
                }
                pairs.iter_mut().zip(words).for_each(|(pair, &word)| *pair = halves(word));
            }
        }
    }

    /// Returns the tokens in the form in which they are stored.
    #[doc(hidden)]
    #[must_use]
    pub fn contents(&self) -> Contents<'_> {
        match &self.held {
            Held::Listed(tokens) => Contents::Listed(tokens),
            Held::Bits(words) => Contents::Bits(words),
        }
    }

    /// Turns bits into a list if it may be one, without spare capacity. A pass over the words, as long as
    /// tokens are few.
    pub(crate) fn settle(&mut self) {
        if let Held::Bits(words) = &self.held {
            let mut room = Some(most_listed(self.size()));
            for word in words {
                room = room.and_then(|room| room.checked_sub(word.count_ones() as usize));
                if room.is_none() {
                    return;
                }
            }
            self.held = Held::Listed(self.iter().collect());
        }
        if let Held::Listed(tokens) = &mut self.held {
            tokens.shrink_to_fit();
        }
    }

    /// Memory beside the set itself, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match &self.held {
            Held::Listed(tokens) => tokens.capacity() * size_of::<TokenId>(),
            Held::Bits(words) => size_of_val::<[u64]>(words),
        }
    }

    /// Hashes the set; equal sets that are [settled](Self::settle) have equal hashes. Four independent lanes:
    /// about 0.2 us for the bits of 32,768 tokens.
    pub(crate) fn hash64(&self) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
        match &self.held {
            Held::Listed(tokens) => tokens.iter().fold(5, |hash, token| mix(hash, u64::from(token.raw()))),
            Held::Bits(words) => {
                let mut lanes = [1_u64, 2, 3, 4];
                let chunks = words.chunks_exact(4);
                let rest = chunks.remainder();
                for chunk in chunks {
                    for (lane, &word) in lanes.iter_mut().zip(chunk) {
                        *lane = mix(*lane, word);
                    }
                }
                lanes.iter().chain(rest).fold(0, |hash, &word| mix(hash, word))
            }
        }
    }

    /// Adds all tokens of `other`, a set over the same vocabulary.
    pub fn union_with(&mut self, other: &Self) {
        debug_assert_eq!(self.size, other.size);
        match &other.held {
            Held::Listed(tokens) => tokens.iter().for_each(|&token| self.insert(token)),
            Held::Bits(more) => {
                for (word, &more) in self.bits().iter_mut().zip(more) {
                    *word |= more;
                }
            }
        }
    }

    /// Is every token of `self` in `other`?
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        match (&self.held, &other.held) {
            (Held::Bits(these), Held::Bits(those)) => these
                .iter()
                .enumerate()
                .all(|(index, &word)| word & !those.get(index).copied().unwrap_or(0) == 0),
            _ => self.iter().all(|token| other.contains(token)),
        }
    }

    /// Iterates over the tokens, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        let (listed, words): (&[TokenId], &[u64]) = match &self.held {
            Held::Listed(tokens) => (tokens, &[]),
            Held::Bits(words) => (&[], words),
        };
        listed.iter().copied().chain(of_words(words.iter().copied()))
    }

    /// Iterates over the tokens that are in `other` too, ascending.
    pub(crate) fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = TokenId> + 'a {
        let ((listed, rest), words): ((&[TokenId], &Self), _) = match (&self.held, &other.held) {
            (Held::Listed(tokens), _) => ((tokens, other), None),
            (_, Held::Listed(tokens)) => ((tokens, self), None),
            (Held::Bits(these), Held::Bits(those)) => ((&[], other), Some(these.iter().zip(those))),
        };
        let words = words.into_iter().flatten().map(|(&word, &other)| word & other);
        listed.iter().copied().filter(|&token| rest.contains(token)).chain(of_words(words))
    }

    /// Keeps only the tokens that are in `other` too.
    pub(crate) fn keep(&mut self, other: &Self) {
        let others = other.words();
        let others = others.iter().chain(std::iter::repeat(&0));
        self.bits().iter_mut().zip(others).for_each(|(word, other)| *word &= other);
    }

    /// Converts the set to bits; returns its words.
    fn bits(&mut self) -> &mut [u64] {
        if let Held::Listed(_) = self.held {
            self.held = Held::Bits(self.words().into_owned().into_boxed_slice());
        }
        match &mut self.held {
            Held::Bits(words) => words,
            Held::Listed(_) => &mut [],
        }
    }
}

/// The length of the longest list in a set over ids `0..size`.
fn most_listed(size: usize) -> usize {
    size / IDS_OF_LISTED
}

/// Iterates over the tokens of words, ascending.
fn of_words(words: impl Iterator<Item = u64>) -> impl Iterator<Item = TokenId> {
    words.zip((0_u32..).step_by(WORD)).flat_map(|(word, base)| {
        std::iter::successors((word != 0).then_some(word), |&rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| TokenId::new(base + rest.trailing_zeros()))
    })
}

/// Splits a word into its lower and its upper half.
fn halves(word: u64) -> [i32; 2] {
    let [low @ .., a, b, c, d] = word.to_le_bytes();
    [low, [a, b, c, d]].map(i32::from_le_bytes)
}

/// Sets the bit of a token; tokens past the end are left out.
fn set_bit(words: &mut [u64], token: TokenId) {
    let index = token.index();
    if let Some(word) = words.get_mut(index / WORD) {
        *word |= 1 << (index % WORD);
    }
}

impl PartialEq for TokenSet {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size
            && match (&self.held, &other.held) {
                (Held::Listed(these), Held::Listed(those)) => these == those,
                (Held::Bits(these), Held::Bits(those)) => these == those,
                _ => self.len() == other.len() && self.is_subset(other),
            }
    }
}

impl Eq for TokenSet {}

impl Hash for TokenSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.size.hash(state);
        self.iter().for_each(|token| token.hash(state));
    }
}

impl std::fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(TokenId::raw)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeSet, hash_map::DefaultHasher},
        hash::BuildHasher,
    };

    use proptest::prelude::*;

    use super::*;

    fn hash(set: &TokenSet) -> u64 {
        std::hash::BuildHasherDefault::<DefaultHasher>::default().hash_one(set)
    }

    fn tokens(set: &BTreeSet<u32>) -> Vec<TokenId> {
        set.iter().copied().map(TokenId::new).collect()
    }

    proptest! {
        /// Whatever is added and removed, lists and bits are the same set as a sorted set.
        #[test]
        fn lists_and_bits_are_the_same_sets(
            size in prop_oneof![Just(0_usize), 1..700_usize, Just(2_048)],
            steps in prop::collection::vec((any::<bool>(), 0..2_200_u32), 0..60),
            other in prop::collection::btree_set(0..2_048_u32, 0..40),
        ) {
            let mut set = TokenSet::empty(size);
            let mut expected = BTreeSet::new();
            for (adds, token) in steps {
                if adds {
                    set.insert(TokenId::new(token));
                    if (token as usize) < size {
                        expected.insert(token);
                    }
                } else {
                    set.remove(TokenId::new(token));
                    expected.remove(&token);
                }
            }
            let other: BTreeSet<u32> = other.into_iter().filter(|&token| (token as usize) < size).collect();
            let bits = TokenSet::from_words(set.words().into_owned(), size).unwrap();
            let another = TokenSet::of(tokens(&other), size);
            for set in [&set, &bits, &TokenSet::of(tokens(&expected), size)] {
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), tokens(&expected));
                prop_assert_eq!((set.len(), set.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert!(expected.iter().all(|&token| set.contains(TokenId::new(token))));
                prop_assert_eq!(set.contains(TokenId::new(7)), expected.contains(&7));
                prop_assert_eq!((set, hash(set)), (&bits, hash(&bits)));
                prop_assert_eq!(set.is_subset(&another), expected.is_subset(&other));
                prop_assert_eq!(another.is_subset(set), other.is_subset(&expected));
                let shared: BTreeSet<u32> = &expected & &other;
                let mut row = vec![-1; 75 + size % 2];
                set.write_bits32(&mut row);
                let mut short = [-1; 9];
                set.write_bits32(&mut short);
                prop_assert_eq!(&short[..], &row[..9]);
                let is_set = |index: &usize| row[index / 32] >> (index % 32) & 1 == 1;
                let ids: Vec<usize> = set.iter().map(TokenId::index).collect();
                prop_assert_eq!((0..2_400).filter(is_set).collect::<Vec<_>>(), ids);
                prop_assert_eq!(set.common(&another).collect::<Vec<_>>(), tokens(&shared));
                prop_assert_eq!(another.common(set).collect::<Vec<_>>(), tokens(&shared));
                prop_assert_eq!(bits.common(set).count(), expected.len());
                let mut kept = set.clone();
                kept.keep(&another);
                prop_assert_eq!(kept.iter().collect::<Vec<_>>(), tokens(&shared));
                prop_assert_eq!(*set == another, expected == other);
                let mut union = set.clone();
                union.union_with(&another);
                prop_assert_eq!(union, TokenSet::of(tokens(&(&expected | &other)), size));
                let mut union = another.clone();
                union.union_with(set);
                prop_assert_eq!(union.iter().collect::<Vec<_>>(), tokens(&(&expected | &other)));
            }
            let [mut one, mut other] = [bits, set];
            [&mut one, &mut other].into_iter().for_each(TokenSet::settle);
            prop_assert_eq!((&one, one.hash64()), (&other, other.hash64()));
            prop_assert_eq!(matches!(one.contents(), Contents::Listed(_)), expected.len() <= size / 128);
        }
    }
}
