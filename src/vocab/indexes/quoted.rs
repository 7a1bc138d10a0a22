//! Indexes tokens by their quotes: which of them may end a key of JSON, or begin another.

use crate::{
    ids::{TokenId, TrieNodeId},
    vocab::vocabulary::Vocabulary,
};

/// Tokens of a vocabulary with quotes or backslashes in them.
#[derive(Debug)]
pub(crate) struct Quoted {
    /// Tokens with at least one quote, two, three, four.
    pub(crate) by_count: [Vec<TokenId>; 4],
    /// Tokens with two or three quotes, by the string that begins and ends in them, if one does.
    pub(crate) enclosing: Vec<Enclosing>,
    /// Tokens in which one key can end and another begin, with at least two, three and four quotes.
    pub(crate) renewing: [Vec<TokenId>; 3],
    /// Tokens with a backslash before the first quote that ends a string.
    pub(crate) escaping: Vec<TokenId>,
    /// Tokens with a backslash, and the length of the longest in bytes.
    pub(crate) backslashed: Vec<TokenId>,
    pub(crate) longest_backslashed: usize,
    /// Greatest number of bytes before the first quote that ends a string, of any token.
    pub(crate) most_before: usize,
}

/// Tokens with the same string in their first quotes.
#[derive(Debug)]
pub(crate) struct Enclosing {
    /// The string, as it is spelt.
    pub(crate) spelt: Box<[u8]>,
    /// Greatest number of bytes before it.
    pub(crate) before: usize,
    pub(crate) tokens: Vec<TokenId>,
}

impl Quoted {
    /// Classifies all tokens. Linear in the tokens that have a quote or a backslash.
    pub(in crate::vocab) fn new(vocabulary: &Vocabulary) -> Self {
        let backslashed = tokens_with(vocabulary, b'\\');
        let bytes = |&token: &TokenId| vocabulary.bytes(token).map_or(0, <[u8]>::len);
        let mut quoted = Self {
            by_count: Default::default(),
            renewing: Default::default(),
            enclosing: Vec::new(),
            escaping: Vec::new(),
            longest_backslashed: backslashed.iter().map(bytes).max().unwrap_or(0),
            backslashed,
            most_before: 0,
        };
        for token in tokens_with(vocabulary, b'"') {
            let bytes = vocabulary.bytes(token).unwrap_or_default();
            let count = bytes.iter().filter(|&&byte| byte == b'"').count();
            quoted.by_count.iter_mut().take(count).for_each(|tokens| tokens.push(token));
            // The end of a key, its colon, a comma, and the beginning of the next.
            if has_in_order(bytes, b"\":,\"") {
                quoted.renewing.iter_mut().take(count - 1).for_each(|tokens| tokens.push(token));
            }
            if let Some(end) = end_of_string(bytes) {
                quoted.most_before = quoted.most_before.max(end);
                quoted.escaping.extend(bytes[..end].contains(&b'\\').then_some(token));
            }
            if (2..4).contains(&count)
                && let Some((before, string)) = first_string(bytes)
            {
                quoted.add(token, before, string);
            }
        }
        quoted
    }

    fn add(&mut self, token: TokenId, before: usize, string: &[u8]) {
        match self.enclosing.iter_mut().find(|known| *known.spelt == *string) {
            Some(known) => {
                known.before = known.before.max(before);
                known.tokens.push(token);
            }
            None => self.enclosing.push(Enclosing { spelt: string.into(), before, tokens: vec![token] }),
        }
    }
}

/// Finds the first quote that no backslash escapes.
pub(in crate::vocab) fn end_of_string(bytes: &[u8]) -> Option<usize> {
    let mut escaping = false;
    bytes.iter().position(|&byte| {
        let ends = byte == b'"' && !escaping;
        escaping = byte == b'\\' && !escaping;
        ends
    })
}

/// Does it have these bytes in this order, with any between?
fn has_in_order(bytes: &[u8], wanted: &[u8]) -> bool {
    let mut bytes = bytes.iter();
    wanted.iter().all(|wanted| bytes.any(|byte| byte == wanted))
}

/// Returns the contents of the first pair of quotes, if it is closed, and the number of bytes before it.
/// Nothing is escaped there.
fn first_string(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let before = bytes.iter().position(|&byte| byte == b'"')?;
    let inside = &bytes[before + 1..];
    end_of_string(inside).map(|end| (before, &inside[..end]))
}

/// Lists all tokens that have a byte, in the order of their texts.
fn tokens_with(vocabulary: &Vocabulary, byte: u8) -> Vec<TokenId> {
    let trie = vocabulary.trie();
    let (mut tokens, mut end) = (Vec::new(), 0);
    for &node in trie.nodes_with(byte) {
        // Below another one.
        if node < end {
            continue;
        }
        let node = TrieNodeId::new(node);
        end = trie.end(node).raw();
        tokens.extend_from_slice(trie.tokens_at(trie.subtree_tokens(node)));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_indexed_by_the_string_they_enclose() {
        let texts = [r#"":""#, r#",":""#, r#" "a\"b","#, r#""x"#, r#""""""#, r#"\""#, r#"\\""#, r#""\\"#];
        let ids = (0..).map(TokenId::new).zip(texts);
        let builder = ids.fold(Vocabulary::builder(), |builder, (id, text)| builder.token(id, text));
        let vocabulary = builder.end_of_text(TokenId::new(100)).build().unwrap();
        let quoted = vocabulary.quoted();
        let enclosing = |enclosing: &Enclosing| {
            let mut tokens: Vec<u32> = enclosing.tokens.iter().map(|token| token.raw()).collect();
            tokens.sort_unstable();
            (String::from_utf8_lossy(&enclosing.spelt).into_owned(), enclosing.before, tokens)
        };
        let mut found: Vec<_> = quoted.enclosing.iter().map(enclosing).collect();
        found.sort();
        // Those of one quote hold no string, and of those with four more than one may.
        assert_eq!(found, [(":".to_owned(), 1, vec![0, 1]), (r#"a\"b"#.to_owned(), 1, vec![2])]);
        // Only an even number of backslashes lets a quote end a string.
        let mut escaping: Vec<u32> = quoted.escaping.iter().map(|token| token.raw()).collect();
        escaping.sort_unstable();
        assert_eq!((escaping, quoted.most_before), (vec![6], 2));
    }

    #[test]
    fn each_token_with_a_byte_is_found_once() {
        let texts = ["a", "\"", "\"\"", "\"a\"", "a\"", "a\"\"b", "\\\"", "\\"];
        let mut builder = Vocabulary::builder();
        for (id, text) in (0..).zip(texts) {
            builder = builder.token(TokenId::new(id), text);
        }
        let vocabulary = builder.end_of_text(TokenId::new(100)).build().unwrap();
        for byte in [b'"', b'\\'] {
            let mut found = tokens_with(&vocabulary, byte);
            found.sort();
            let has = |(id, text): (u32, &&str)| text.as_bytes().contains(&byte).then(|| TokenId::new(id));
            assert_eq!(found, (0..).zip(&texts).filter_map(has).collect::<Vec<_>>());
        }
    }
}
