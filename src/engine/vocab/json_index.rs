//! Indexes tokens by what they may do to JSON: end a key or begin another, end an item of an array or begin
//! another.

use hashbrown::HashMap;

use super::{token_set::TokenSet, vocabulary::Vocabulary};
use crate::ids::{TokenId, TrieNodeId};

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
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
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
fn end_of_string(bytes: &[u8]) -> Option<usize> {
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

/// Tokens of a vocabulary in which items may end or begin.
#[derive(Debug)]
pub(crate) struct ItemEnds {
    /// Tokens whose first quote ends a string, by the bytes before it; nothing is escaped there.
    pub(crate) by_end: HashMap<Box<[u8]>, Vec<TokenId>>,
    /// Length of the longest such beginning, in bytes.
    pub(crate) longest: usize,
    /// Tokens with more behind the quote that ends a string than marks and white space.
    pub(crate) past_end: Vec<TokenId>,
    /// Tokens outside of strings that end a value, with a mark or white space behind it, and have more than
    /// marks.
    pub(crate) ends: Vec<TokenId>,
    /// Tokens of `past_end` and of `ends` in which an array begins.
    pub(crate) past_end_opening: Vec<TokenId>,
    pub(crate) ends_opening: Vec<TokenId>,
    /// Tokens of digits alone.
    pub(crate) digits: Vec<TokenId>,
    /// Commas and closing brackets, with white space and nothing else.
    pub(crate) marks: Vec<TokenId>,
    /// White space and colons alone.
    pub(crate) blanks: Vec<TokenId>,
    /// Tokens in which the next item may begin: those that begin inside a string and end it, and those that
    /// begin outside of strings.
    pub(crate) renewing_in_string: Renewing,
    pub(crate) renewing: Renewing,
    /// Tokens outside of strings in which an object or array may end, or an array begin.
    pub(crate) bracketed: Vec<TokenId>,
    /// Union of `ends`, of tokens without quotes (and of `0`, after which no digit may come), and of tokens
    /// with a quote other than a single one in front; excludes `opening`.
    pub(crate) outside: TokenSet,
    /// White space and the beginning of a string, with one quote.
    pub(crate) opening: TokenSet,
    /// Length of the longest `opening` token, in bytes.
    pub(crate) longest_opening: usize,
}

/// Tokens with a comma outside of strings.
#[derive(Debug, Default)]
pub(crate) struct Renewing {
    /// All such tokens.
    pub(crate) any: Commas,
    /// Tokens with a bracket or a closing brace before a comma.
    pub(crate) behind_bracket: Commas,
}

/// Tokens with a comma, by what else is in them.
#[derive(Debug, Default)]
pub(crate) struct Commas {
    /// Tokens of marks and white space alone, except for the end of a string.
    pub(crate) alone: Vec<TokenId>,
    pub(crate) with_more: Vec<TokenId>,
}

impl Renewing {
    /// Adds a token; `bytes` may be its part past the end of a string.
    fn add(&mut self, token: TokenId, bytes: &[u8]) {
        let Some(comma) = bytes.iter().rposition(|&byte| byte == b',') else { return };
        let is_alone = bytes.iter().all(|&byte| is_mark(byte) || matches!(byte, b'}' | b':'));
        let list = |commas: &mut Commas| {
            if is_alone { commas.alone.push(token) } else { commas.with_more.push(token) }
        };
        list(&mut self.any);
        if has_bracket(&bytes[..comma]) {
            list(&mut self.behind_bracket);
        }
    }
}

/// May an object or array end in these bytes, or an array begin?
pub(crate) fn has_bracket(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b'}' | b'[' | b']'))
}

impl ItemEnds {
    /// Classifies all tokens. Linear in the bytes of the vocabulary.
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let mut found = Self {
            by_end: HashMap::new(),
            longest: 0,
            past_end: Vec::new(),
            ends: Vec::new(),
            past_end_opening: Vec::new(),
            ends_opening: Vec::new(),
            digits: Vec::new(),
            marks: Vec::new(),
            blanks: Vec::new(),
            renewing_in_string: Renewing::default(),
            renewing: Renewing::default(),
            bracketed: Vec::new(),
            outside: TokenSet::empty(vocabulary.size()),
            opening: TokenSet::empty(vocabulary.size()),
            longest_opening: 0,
        };
        for (token, bytes) in vocabulary.text_tokens() {
            found.add(token, bytes);
        }
        found
    }

    /// Adds a token to the lists it belongs to.
    fn add(&mut self, token: TokenId, bytes: &[u8]) {
        // Tokens that begin inside of a string, and end it.
        if let Some(end) = end_of_string(bytes) {
            self.renewing_in_string.add(token, &bytes[end + 1..]);
            if !bytes[..end].contains(&b'\\') {
                self.longest = self.longest.max(end);
                self.by_end.entry(bytes[..end].into()).or_default().push(token);
            }
            if !bytes[end + 1..].iter().all(|&byte| is_mark(byte) || matches!(byte, b'}' | b':')) {
                self.past_end.push(token);
                self.past_end_opening.extend(bytes.contains(&b'[').then_some(token));
            }
        }
        // Tokens that begin outside of strings, up to their first quote.
        let bare = bytes.iter().position(|&byte| byte == b'"').unwrap_or(bytes.len());
        if bytes[..bare].iter().all(|&byte| is_bare(byte)) {
            self.renewing.add(token, bytes);
            self.bracketed.extend(has_bracket(bytes).then_some(token));
        }
        if bytes.iter().all(|&byte| is_mark(byte) || matches!(byte, b'}' | b':')) {
            let is_blank = !bytes.iter().any(|byte| matches!(byte, b',' | b']' | b'}'));
            if is_blank {
                self.blanks.push(token)
            } else {
                self.marks.push(token)
            }
            return;
        }
        if has_end(bytes) {
            self.ends.push(token);
            self.outside.insert(token);
            self.ends_opening.extend(bytes.contains(&b'[').then_some(token));
        }
        // A number of digits alone may go on, except for `0`.
        if bytes.iter().all(u8::is_ascii_digit) {
            self.digits.push(token);
            if bytes == b"0" {
                self.outside.insert(token);
            }
        } else if bytes.iter().all(|&byte| is_bare(byte)) {
            self.outside.insert(token);
        } else if let Some(at) = bytes.iter().position(|&byte| byte == b'"')
            && (at > 0 || bytes[1..].contains(&b'"'))
            && bytes[..at].iter().all(|&byte| is_bare(byte))
        {
            // A lone quote after white space begins a string, but no value ends.
            let is_opening =
                bytes[..at].iter().all(u8::is_ascii_whitespace) && !bytes[at + 1..].contains(&b'"');
            let tokens = if is_opening { &mut self.opening } else { &mut self.outside };
            tokens.insert(token);
            if is_opening {
                self.longest_opening = self.longest_opening.max(bytes.len());
            }
        }
    }
}

/// Is the byte white space, a comma or a closing bracket?
fn is_mark(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']')
}

/// May the byte stand outside of strings?
fn is_bare(byte: u8) -> bool {
    is_mark(byte) || b"0123456789-+.eE:[{}truefalsn".contains(&byte)
}

/// Does a value end in a token that begins outside of strings, with a mark behind it?
fn has_end(bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' {
            let Some(end) = end_of_string(&bytes[at + 1..]) else { return false };
            at += end + 1;
        } else if !is_bare(byte) {
            return false;
        }
        let ends_value = matches!(bytes[at], b'"' | b'0'..=b'9' | b'e' | b'l' | b']' | b'}');
        at += 1;
        if ends_value && bytes.get(at).is_some_and(|&next| is_mark(next)) {
            return true;
        }
    }
    false
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

#[cfg(test)]
mod item_ends_tests {
    use super::*;

    #[test]
    fn tokens_are_sorted_by_what_they_end() {
        let texts = [
            "a\"",
            "\",",
            "b\",\"c",
            "1,",
            "1,1]",
            "12",
            "\"x\",",
            "e]",
            "name,",
            "x\\\"y\"]",
            "[\"a",
            "]]",
            "[1,",
            " \"a",
            " \"\\\"",
        ];
        let ids = (0..).map(TokenId::new).zip(texts);
        let builder = ids.fold(Vocabulary::builder(), |builder, (id, text)| builder.token(id, text));
        let vocabulary = builder.end_of_text(TokenId::new(100)).build().unwrap();
        let found = vocabulary.item_ends();
        let texts_of = |tokens: &[TokenId]| {
            let mut texts: Vec<&str> = tokens.iter().map(|token| texts[token.index()]).collect();
            texts.sort_unstable();
            texts
        };
        assert_eq!(texts_of(&found.by_end[&b""[..]]), ["\",", "\"x\","]);
        assert_eq!(texts_of(&found.by_end[&b"b"[..]]), ["b\",\"c"]);
        assert!(found.by_end.keys().all(|text| !text.contains(&b'\\')));
        assert_eq!(texts_of(&found.past_end), [" \"\\\"", " \"a", "\"x\",", "[\"a", "b\",\"c"]);
        assert_eq!(texts_of(&found.ends), ["\"x\",", "1,", "1,1]", "[1,", "e]"]);
        assert_eq!(texts_of(&found.marks), ["]]"]);
        assert_eq!(texts_of(&found.ends_opening), ["[1,"]);
        assert_eq!(texts_of(&found.past_end_opening), ["[\"a"]);
        assert_eq!(texts_of(&found.digits), ["12"]);
        let outside: Vec<TokenId> = found.outside.iter().collect();
        // A letter of `false` may stand before a quote as well, for all that is looked at.
        assert_eq!(texts_of(&outside), [" \"\\\"", "\"x\",", "1,", "1,1]", "[\"a", "[1,", "a\"", "e]"]);
        let opening: Vec<TokenId> = found.opening.iter().collect();
        assert_eq!(texts_of(&opening), [" \"a"]);
    }
}
