//! The vocabulary as a byte trie, in arrays in depth-first order.
//!
//! ```text
//! tokens a ab b        node    0 root   1 "a"   2 "ab"   3 "b"
//!                      end     4        3       3        4
//! ```
//!
//! Invariants: node 0 is the root (the empty string); a node's descendants are the nodes `node + 1 ..
//! end(node)`, so skipping a subtree is one jump; siblings are in order of their bytes; the tokens of a
//! subtree are a range of the token array.
//!
//! The index of tokens by the kinds of their bytes is made by a walk over the trie, and is here too.

use std::{ops::Range, sync::OnceLock};

use hashbrown::HashMap;

use super::token_set::TokenSet;
use crate::ids::{TokenId, TrieNodeId, as_index};

/// The length of a text of which no bound is known: longer than all.
pub(crate) const ENDLESS: u32 = u32::MAX;

/// All tokens with bytes, by their bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ByteTrie {
    /// Last byte of each node's string (0 at the root).
    bytes: Vec<u8>,
    /// One past the last node of each node's subtree.
    ends: Vec<u32>,
    /// Start of each node's tokens in `tokens`, and one past the end.
    first_tokens: Vec<u32>,
    tokens: Vec<TokenId>,
    // What follows is worked out from the above.
    /// Place of each token in `tokens`.
    places: Vec<u32>,
    parents: Vec<u32>,
    /// The [kinds](super::byte_kind) of all bytes below each node, as bits.
    kinds_below: Vec<u64>,
    /// Length of the longest path down from each node in bytes, capped at 16 bits.
    heights: Vec<u16>,
    /// Nodes by their byte, ascending; those of byte `b` are `first_by_byte[b] .. first_by_byte[b + 1]`.
    by_byte: Vec<u32>,
    first_by_byte: Box<[u32; 257]>,
    root_children: Box<[u32; 256]>,
    everything: TokenSet,
    /// See [`tokens_by_kind`](Self::tokens_by_kind).
    by_kind: OnceLock<TokensByKind>,
}

impl ByteTrie {
    /// Memory, in bytes, without the index by kinds.
    pub(crate) fn memory(&self) -> usize {
        let lists = [&self.ends, &self.first_tokens, &self.places, &self.parents, &self.by_byte];
        let numbers: usize = lists.iter().map(|list| size_of_val(&***list)).sum();
        let kinds = size_of_val(&*self.kinds_below) + size_of_val(&*self.heights);
        self.bytes.len() + numbers + size_of_val(&*self.tokens) + kinds + self.everything.bytes()
    }

    /// The root: the empty string.
    pub(crate) const ROOT: TrieNodeId = TrieNodeId::new(0);

    /// Builds the trie of tokens below `size` from their order. Returns whether it was in order: no bytes
    /// twice with one id, none empty, increasing by bytes, then by id; if not, it is some trie. Each token
    /// comes with its end in `texts`, where it begins at the end of the one before. One pass, about 6 ms for
    /// 130,000 tokens.
    pub(super) fn from_order(
        size: usize,
        texts: &[u8],
        tokens: impl ExactSizeIterator<Item = (usize, TokenId)>,
    ) -> (Self, bool) {
        // Two new nodes a token are usual.
        let room = 1 + 3 * tokens.len();
        let mut bytes = Vec::with_capacity(room);
        bytes.push(0);
        let mut parents = Vec::with_capacity(room);
        parents.push(0);
        let mut first_tokens = Vec::with_capacity(room + 1);
        first_tokens.push(0);
        let mut ids = Vec::with_capacity(tokens.len());
        // The next node, and the place of the next token: a vocabulary has few enough of both.
        let (mut node, mut place) = (1_u32, 0_u32);
        // The last node of each depth.
        let mut path: Vec<u32> = vec![0];
        let mut before = (OrderedBytes::new(&[], 0, 0), TokenId::new(0));
        let mut in_order = true;
        let mut start = 0;
        for (end, token) in tokens {
            let text = OrderedBytes::new(texts, start, end);
            let shared = text.shared(&before.0);
            in_order &= start < end && before < (text, token);
            let added = &text.bytes()[shared..];
            if !added.is_empty() {
                let chain = (node..).take(added.len());
                parents.push(path[shared]);
                parents.extend(chain.clone().skip(1).map(|node| node - 1));
                path.truncate(shared + 1);
                path.extend(chain);
                node = path[path.len() - 1] + 1;
                bytes.extend_from_slice(added);
                first_tokens.resize(bytes.len(), place);
            }
            ids.push(token);
            place += 1;
            before = (text, token);
            start = end;
        }
        first_tokens.push(place);
        (Self::from_arrays(size, (bytes, node), parents, first_tokens, ids), in_order)
    }

    /// Builds the trie of these arrays, which hold the invariants. The bytes of the nodes come with their
    /// number. Linear.
    fn from_arrays(
        size: usize,
        (bytes, count): (Vec<u8>, u32),
        parents: Vec<u32>,
        first_tokens: Vec<u32>,
        tokens: Vec<TokenId>,
    ) -> Self {
        let mut ends = vec![0; bytes.len()];
        let mut kinds_below = vec![0_u64; bytes.len()];
        let mut heights = vec![0_u16; bytes.len()];
        let mut first_by_byte = Box::new([0_u32; 257]);
        let mut root_children = Box::new([0; 256]);
        ends[0] = count;
        // Backwards: all that is below a node, and first its last child, comes before it.
        for (number, node) in (1..count).zip(1..bytes.len()).rev() {
            let (byte, parent) = (usize::from(bytes[node]), parents[node] as usize);
            let end = if ends[node] == 0 { number + 1 } else { ends[node] };
            ends[node] = end;
            if ends[parent] == 0 {
                ends[parent] = end;
            }
            kinds_below[parent] |= kinds_below[node] | 1 << BYTE_KINDS[byte];
            heights[parent] = heights[parent].max(heights[node].saturating_add(1));
            first_by_byte[byte + 1] += 1;
            if parent == 0 {
                root_children[byte] = number;
            }
        }
        for byte in 0..256 {
            first_by_byte[byte + 1] += first_by_byte[byte];
        }
        let mut by_byte = vec![0; bytes.len() - 1];
        let mut next = first_by_byte.clone();
        for (node, &byte) in (1..).zip(&bytes[1..]) {
            let place = &mut next[usize::from(byte)];
            by_byte[as_index(*place)] = node;
            *place += 1;
        }
        let mut everything = TokenSet::zeros(size);
        let mut places = vec![u32::MAX; size];
        for (place, &token) in (0..).zip(&tokens) {
            everything.insert(token);
            places[token.index()] = place;
        }
        Self {
            bytes,
            ends,
            first_tokens,
            tokens,
            places,
            parents,
            kinds_below,
            heights,
            by_byte,
            first_by_byte,
            root_children,
            everything,
            by_kind: OnceLock::new(),
        }
    }

    /// Builds the trie of these tokens below `size`, in any order; empty tokens are left out.
    #[cfg(test)]
    pub(crate) fn new<'a>(size: usize, tokens: impl IntoIterator<Item = (&'a [u8], TokenId)>) -> Self {
        let mut sorted: Vec<_> = tokens.into_iter().filter(|(bytes, _)| !bytes.is_empty()).collect();
        sorted.sort_unstable();
        Self::in_this_order(size, &sorted).0
    }

    /// Builds the trie of these tokens below `size`; returns whether they are in order.
    #[cfg(test)]
    fn in_this_order(size: usize, tokens: &[(&[u8], TokenId)]) -> (Self, bool) {
        let texts: Vec<u8> = tokens.iter().flat_map(|(bytes, _)| *bytes).copied().collect();
        let mut end = 0;
        let ends: Vec<(usize, TokenId)> = tokens
            .iter()
            .map(|(bytes, id)| {
                end += bytes.len();
                (end, *id)
            })
            .collect();
        Self::from_order(size, &texts, ends.into_iter())
    }

    /// Returns all tokens in the order of their bytes, then of their ids.
    pub(super) fn in_order(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Number of nodes, the root included.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the last byte of the node's string (0 at the root).
    pub(crate) fn byte(&self, node: TrieNodeId) -> u8 {
        self.bytes[node.index()]
    }

    /// Returns one past the last node of the subtree.
    pub(crate) fn end(&self, node: TrieNodeId) -> TrieNodeId {
        TrieNodeId::new(self.ends[node.index()])
    }

    /// Returns the node without its last byte; the root is its own parent.
    pub(crate) fn parent(&self, node: TrieNodeId) -> TrieNodeId {
        TrieNodeId::new(self.parents[node.index()])
    }

    /// Does any token go on past this node?
    pub(crate) fn has_children(&self, node: TrieNodeId) -> bool {
        self.ends[node.index()] > node.raw() + 1
    }

    /// The [kinds](super::byte_kind) of all bytes below the node, as bits.
    pub(crate) fn kinds_below(&self, node: TrieNodeId) -> u64 {
        self.kinds_below[node.index()]
    }

    /// Length of the longest token below the node, without the node's own string, in bytes; `None` if it is
    /// very long.
    pub(crate) fn height(&self, node: TrieNodeId) -> Option<u32> {
        Some(self.heights[node.index()]).filter(|height| *height < u16::MAX).map(u32::from)
    }

    /// Length of the longest token below the node as [`height`](Self::height), or [`ENDLESS`].
    pub(crate) fn height_or_endless(&self, node: TrieNodeId) -> u32 {
        self.height(node).unwrap_or(ENDLESS)
    }

    /// Returns all nodes whose last byte is `byte`, ascending.
    pub(crate) fn nodes_with(&self, byte: u8) -> &[u32] {
        let byte = usize::from(byte);
        &self.by_byte[as_index(self.first_by_byte[byte])..as_index(self.first_by_byte[byte + 1])]
    }

    /// Returns the node of a string of one byte.
    pub(crate) fn root_child(&self, byte: u8) -> Option<TrieNodeId> {
        match self.root_children[usize::from(byte)] {
            0 => None,
            node => Some(TrieNodeId::new(node)),
        }
    }

    /// Returns the node of the string with one more byte. Looks at each child up to that one.
    pub(crate) fn child(&self, node: TrieNodeId, byte: u8) -> Option<TrieNodeId> {
        let end = self.end(node);
        let mut child = TrieNodeId::new(node.raw() + 1);
        while child < end && self.byte(child) < byte {
            child = self.end(child);
        }
        (child < end && self.byte(child) == byte).then_some(child)
    }

    /// Returns the range, in trie order, of the tokens that are exactly the node's string.
    pub(crate) fn own_tokens(&self, node: TrieNodeId) -> Range<u32> {
        self.first_tokens[node.index()]..self.first_tokens[node.index() + 1]
    }

    /// Returns the range, in trie order, of the tokens of the node and its subtree.
    pub(crate) fn subtree_tokens(&self, node: TrieNodeId) -> Range<u32> {
        self.first_tokens[node.index()]..self.first_tokens[as_index(self.ends[node.index()])]
    }

    /// Returns the range, in trie order, of the tokens of these nodes, which are whole subtrees.
    pub(crate) fn tokens_within(&self, nodes: Range<u32>) -> Range<u32> {
        self.first_tokens[as_index(nodes.start)]..self.first_tokens[as_index(nodes.end)]
    }

    /// Returns the tokens in this range of the trie order.
    pub(crate) fn tokens_at(&self, places: Range<u32>) -> &[TokenId] {
        &self.tokens[as_index(places.start)..as_index(places.end)]
    }

    /// Returns the place of a token that has bytes in trie order.
    pub(crate) fn place(&self, token: TokenId) -> u32 {
        self.places[token.index()]
    }

    /// Number of tokens.
    pub(crate) fn token_count(&self) -> usize {
        self.tokens.len()
    }

    /// All tokens of the trie.
    pub(crate) fn everything(&self) -> &TokenSet {
        &self.everything
    }

    /// Builds the index of all tokens by the kinds of their bytes: some milliseconds for 130,000 tokens.
    pub(crate) fn sort_by_kind(&self) {
        self.by_kind.get_or_init(|| TokensByKind::new(self));
    }

    /// The index of tokens by the kinds of their bytes, once it was [built](Self::sort_by_kind).
    pub(crate) fn tokens_by_kind(&self) -> Option<&TokensByKind> {
        self.by_kind.get()
    }
}

/// Returns the kind of a byte, a number below 64. Terminals mostly treat the bytes of a kind alike: letters
/// that are hex digits, other letters, digits, each sign of its own, and the bytes of UTF-8 by their role.
pub(crate) const fn byte_kind(byte: u8) -> u8 {
    match byte {
        b'a'..=b'f' => 0,
        b'g'..=b'z' => 1,
        b'A'..=b'F' => 2,
        b'G'..=b'Z' => 3,
        b'0'..=b'9' => 4,
        b'\t' => 5,
        b'\n' => 6,
        b'\r' => 7,
        0..=0x1f => 8,
        // 16 signs before the digits, then 7, 6 and 4.
        b' '..=b'/' => 9 + (byte - b' '),
        b':'..=b'@' => 25 + (byte - b':'),
        b'['..=b'`' => 32 + (byte - b'['),
        b'{'..=b'~' => 38 + (byte - b'{'),
        0x7f => 42,
        0x80..=0x8f => 43,
        0x90..=0x9f => 44,
        0xa0..=0xbf => 45,
        0xc0..=0xc1 | 0xf5..=0xff => 46,
        0xc3..=0xdf => 47,
        0xe0 => 48,
        0xe4..=0xec | 0xee => 49,
        0xed => 50,
        0xf0 => 51,
        0xf1..=0xf3 => 52,
        0xf4 => 53,
        // Line separators and most spaces, which patterns leave out; all others.
        0xe2 => 54,
        0xc2 => 55,
        0xe1 => 56,
        0xe3 => 57,
        0xef => 58,
    }
}

/// The kind of each byte.
const BYTE_KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0_u8;
    loop {
        kinds[byte as usize] = byte_kind(byte);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    kinds
};

/// Greatest `n` for which the set of tokens with at most `n` bytes is kept. Few tokens have more.
const MOST_CUMULATED: usize = if cfg!(test) { 2 } else { 16 };

/// The tokens of a vocabulary by the kinds of their bytes, and by their length.
///
/// A vocabulary of 130,000 tokens has some 2,200 sets of kinds. So the tokens of certain kinds alone, such as
/// letters and digits, are the union of few sets of tokens, where a walk over the trie looks at thousands of
/// nodes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TokensByKind {
    /// Sets of kinds, as bits, and for each the tokens that have a byte of each of them and no others.
    kinds: Vec<u64>,
    tokens: Vec<TokenSet>,
    /// Sets of the tokens with at most `n` bytes, by `n`.
    up_to: Vec<TokenSet>,
    /// Longer tokens, with their lengths in bytes.
    longer: Vec<(u32, TokenId)>,
    size: usize,
}

impl TokensByKind {
    /// Indexes all tokens of a trie. A pass over the nodes.
    pub(super) fn new(trie: &ByteTrie) -> Self {
        let size = trie.everything().size();
        let mut sets: HashMap<u64, Vec<TokenId>> = HashMap::new();
        let mut up_to = vec![TokenSet::zeros(size); MOST_CUMULATED + 1];
        let mut longer = Vec::new();
        // By node: the kinds and the number of the bytes of its string.
        let mut known = vec![(0_u64, 0_u32); trie.len()];
        for node in (1..trie.len()).filter_map(TrieNodeId::from_index) {
            let (kinds, length) = known[trie.parent(node).index()];
            let (kinds, length) = (kinds | 1 << byte_kind(trie.byte(node)), length.saturating_add(1));
            known[node.index()] = (kinds, length);
            let tokens = trie.tokens_at(trie.own_tokens(node));
            if !tokens.is_empty() {
                sets.entry(kinds).or_default().extend_from_slice(tokens);
                match up_to.get_mut(length as usize) {
                    Some(set) => tokens.iter().for_each(|&token| set.insert(token)),
                    None => longer.extend(tokens.iter().map(|&token| (length, token))),
                }
            }
        }
        for length in 1..up_to.len() {
            let (shorter, set) = up_to.split_at_mut(length);
            shorter.last().into_iter().for_each(|shorter| set[0].union_with(shorter));
        }
        let set = |(kinds, tokens)| (kinds, TokenSet::of(tokens, size));
        let (kinds, tokens) = sets.into_iter().map(set).unzip();
        Self { kinds, tokens, up_to, longer, size }
    }

    /// Returns the tokens whose bytes are all of these kinds, given as bits, and no more than `most` bytes,
    /// if that is given. Linear in the sets of kinds, and by words of bits or in the tokens of those that
    /// fit.
    pub(crate) fn within(&self, kinds: u64, most: Option<u32>) -> TokenSet {
        let mut tokens = TokenSet::zeros(self.size);
        let fit = self.kinds.iter().zip(&self.tokens).filter(|(of, _)| **of & !kinds == 0);
        fit.for_each(|(_, set)| tokens.union_with(set));
        let Some(most) = most else { return tokens };
        match self.up_to.get(most as usize) {
            Some(short) => tokens.keep(short),
            None => {
                let longer = self.longer.iter().filter(|(length, _)| *length > most);
                longer.for_each(|&(_, token)| tokens.remove(token));
            }
        }
        tokens
    }
}

/// Bytes, with the first eight of them as a number that compares in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderedBytes<'a> {
    first: u64,
    bytes: &'a [u8],
}

impl<'a> OrderedBytes<'a> {
    /// Creates the text `bytes[start..end]`, or the empty one if that is out of range.
    pub(super) fn new(bytes: &'a [u8], start: usize, end: usize) -> Self {
        let text = bytes.get(start..end).unwrap_or_default();
        // Eight bytes at once, then those past the end taken off.
        let first = match bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(first) if text.len() >= 8 => u64::from_be_bytes(*first),
            Some(first) => u64::from_be_bytes(*first) & !(u64::MAX >> (8 * text.len())),
            None => text.iter().rev().fold(0, |number, &byte| number >> 8 | u64::from(byte) << 56),
        };
        Self { first, bytes: text }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the length of the common prefix.
    pub(super) fn shared(&self, other: &Self) -> usize {
        let most = self.bytes.len().min(other.bytes.len());
        let first = (self.first ^ other.first).leading_zeros() as usize / 8;
        if first < 8 || most <= 8 {
            return first.min(most);
        }
        let rest = self.bytes[8..].iter().zip(&other.bytes[8..]);
        8 + rest.take_while(|(a, b)| a == b).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trie_has_its_nodes_and_tokens_in_depth_first_order() {
        let tokens: [(&[u8], u32); 6] = [(b"b", 0), (b"ab", 1), (b"abc", 2), (b"a", 3), (b"ab", 4), (b"", 5)];
        let trie = ByteTrie::new(6, tokens.map(|(bytes, id)| (bytes, TokenId::new(id))));
        // root, a, ab, abc, b
        assert_eq!(trie.len(), 5);
        let node = TrieNodeId::new;
        assert_eq!((trie.byte(node(1)), trie.end(node(1))), (b'a', node(4)));
        assert_eq!((trie.byte(node(4)), trie.end(node(4))), (b'b', node(5)));
        assert_eq!(trie.tokens_at(trie.own_tokens(node(2))), [TokenId::new(1), TokenId::new(4)]);
        assert!(trie.own_tokens(ByteTrie::ROOT).is_empty());
        assert_eq!(trie.subtree_tokens(node(1)), 0..4);
        assert!(trie.has_children(node(2)) && !trie.has_children(node(4)));
        assert_eq!((trie.parent(node(3)), trie.parent(node(4))), (node(2), ByteTrie::ROOT));
        assert_eq!(trie.nodes_with(b'b'), [2, 4]);
        assert_eq!((trie.root_child(b'b'), trie.root_child(b'c')), (Some(node(4)), None));
        assert_eq!(trie.kinds_below(node(1)), 1 << BYTE_KINDS[usize::from(b'b')]);
        assert_eq!(trie.everything().len(), 5);
    }

    #[test]
    fn tokens_out_of_order_are_noticed() {
        let in_order = |tokens: &[(&[u8], u32)]| {
            let tokens: Vec<_> = tokens.iter().map(|(bytes, id)| (*bytes, TokenId::new(*id))).collect();
            ByteTrie::in_this_order(9, &tokens).1
        };
        assert!(in_order(&[]));
        for wrong in [
            &[(&b"b"[..], 0), (b"a", 1)][..],
            &[(b"a", 1), (b"a", 0)],
            &[(b"a", 1), (b"a", 1)],
            &[(b"", 0)],
            &[(b"a", 0), (b"", 1)],
            &[(b"ab", 0), (b"a", 1)],
            &[(b"abcdefghi", 0), (b"abcdefgh", 1)],
            &[(b"abcdefghz", 0), (b"abcdefgha", 1)],
            &[(b"a\0", 0), (b"a", 1)],
        ] {
            assert!(!in_order(wrong), "{wrong:?}");
        }
        assert!(in_order(&[(b"a", 1), (b"a\0", 0), (b"a\0\0", 5), (b"abcdefgh", 0), (b"abcdefgh\0", 2)]));
    }
}

#[cfg(test)]
mod kinds_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_have_at_most_64_kinds() {
        assert!((0..=u8::MAX).all(|byte| byte_kind(byte) < 64));
        assert_ne!(byte_kind(b' '), byte_kind(b'!'));
        assert_eq!((byte_kind(b'/'), byte_kind(b':'), byte_kind(b'['), byte_kind(b'{')), (24, 25, 32, 38));
    }

    proptest! {
        #[test]
        fn tokens_are_found_by_the_kinds_of_their_bytes(
            tokens in prop::collection::vec("[a-hA-C0-2 \\-_é]{1,5}", 0..40),
            kinds in prop::collection::vec("[agA0 \\-_é]", 0..6),
            most in prop::option::of(0..6_u32),
        ) {
            let ids = tokens.iter().zip(0..).map(|(token, id)| (token.as_bytes(), TokenId::new(id)));
            let trie = ByteTrie::new(tokens.len(), ids);
            let kinds = kinds.concat().bytes().fold(0, |kinds, byte| kinds | 1_u64 << byte_kind(byte));
            let fits = |token: &str| {
                token.bytes().all(|byte| kinds >> byte_kind(byte) & 1 == 1)
                    && most.is_none_or(|most| token.len() <= most as usize)
            };
            let fitting = tokens.iter().zip(0..).filter(|(token, _)| fits(token));
            let expected: Vec<TokenId> = fitting.map(|(_, id)| TokenId::new(id)).collect();
            let found = TokensByKind::new(&trie).within(kinds, most);
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }
    }
}

#[cfg(test)]
mod text_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers made of bytes compare and share as the bytes do.
        #[test]
        fn sort_keys_compare_as_their_bytes_do(
            bytes in prop::collection::vec(0_u8..3, 0..24), cuts in prop::array::uniform4(0_usize..24),
        ) {
            let cut = |a: usize, b: usize| (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
            let ((a, b), (c, d)) = (cut(cuts[0], cuts[1]), cut(cuts[2], cuts[3]));
            let (one, other) = (OrderedBytes::new(&bytes, a, b), OrderedBytes::new(&bytes, c, d));
            prop_assert_eq!(one.cmp(&other), bytes[a..b].cmp(&bytes[c..d]));
            let shared = bytes[a..b].iter().zip(&bytes[c..d]).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(one.shared(&other), shared);
        }
    }
}
