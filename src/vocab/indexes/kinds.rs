//! Kinds of bytes, and the index of tokens by the kinds of their bytes.

use hashbrown::HashMap;

use crate::{
    ids::{TokenId, TrieNodeId},
    vocab::{token_set::TokenSet, trie::ByteTrie},
};

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
pub(in crate::vocab) const BYTE_KINDS: [u8; 256] = {
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
    pub(in crate::vocab) fn new(trie: &ByteTrie) -> Self {
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

#[cfg(test)]
mod tests {
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
