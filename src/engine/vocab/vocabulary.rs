//! A vocabulary: tokens and their bytes, special tokens apart, and the ids that end a text.
//!
//! Invariant: a token is text (it has at least one byte), special (it has a name and no bytes), or neither (a
//! hole in the id range, or a token of no bytes). Only text is in the trie; at least one token is text and at
//! least one special token ends a text. Two vocabularies are equal if and only if all of this is.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use super::{
    builder::VocabularyBuilder,
    error::VocabularyError,
    json_index::{ItemEnds, Quoted},
    stored,
    token_set::TokenSet,
    trie::ByteTrie,
};
use crate::{
    ids::{TokenId, TrieNodeId},
    special,
};

/// The tokens of a language model. Cloning costs one reference count; `Eq` and `Hash` are by fingerprint.
///
/// ```
/// use domino::{TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::builder()
///     .token(TokenId::new(0), "a")
///     .token(TokenId::new(1), "ab")
///     .special(TokenId::new(2), "<eos>")
///     .end_of_text(TokenId::new(2))
///     .build()?;
/// assert_eq!(vocabulary.bytes(TokenId::new(1)), Some(&b"ab"[..]));
/// assert_eq!(vocabulary.bytes(TokenId::new(2)), None);
/// # Ok::<(), domino::VocabularyError>(())
/// ```
#[derive(Clone)]
pub struct Vocabulary {
    inner: Arc<Inner>,
}

struct Inner {
    content: Content,
    trie: ByteTrie,
    fingerprint: [u8; 32],
    quoted: OnceLock<Quoted>,
    item_ends: OnceLock<ItemEnds>,
}

/// The defining data of a vocabulary; everything else follows from it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The bytes of all text tokens, in the trie's order: by bytes, then by id.
    pub(super) bytes: Vec<u8>,
    /// Span of each token's bytes, by id; empty for all but text tokens.
    pub(super) spans: Vec<ByteSpan>,
    pub(super) specials: BTreeMap<TokenId, String>,
    pub(super) end_of_text: Vec<TokenId>,
}

/// The range `bytes[start..end]` of a [`Content`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ByteSpan {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Content {
    /// One more than the highest id.
    pub(super) fn size(&self) -> usize {
        self.spans.len()
    }

    /// Returns the bytes of a text token, `None` for all others.
    pub(super) fn text(&self, token: TokenId) -> Option<&[u8]> {
        let span = self.spans.get(token.index())?;
        self.bytes.get(span.start as usize..span.end as usize).filter(|bytes| !bytes.is_empty())
    }
}

impl Vocabulary {
    /// Creates a builder.
    #[must_use]
    pub fn builder() -> VocabularyBuilder {
        VocabularyBuilder::default()
    }

    /// Creates the vocabulary of this content with the trie that it is laid out by and their
    /// [`stored::fingerprint`].
    pub(super) fn of(content: Content, trie: ByteTrie, fingerprint: [u8; 32]) -> Self {
        Self {
            inner: Arc::new(Inner {
                content,
                trie,
                fingerprint,
                quoted: OnceLock::new(),
                item_ends: OnceLock::new(),
            }),
        }
    }

    /// Serialises the vocabulary; see [`stored`].
    pub(super) fn encode(&self) -> Vec<u8> {
        stored::encode(self.content(), self.trie())
    }

    /// The tokens with quotes. Computed on first use.
    pub(crate) fn quoted(&self) -> &Quoted {
        self.inner.quoted.get_or_init(|| Quoted::new(self))
    }

    /// The tokens that may end items of arrays. Computed on first use.
    pub(crate) fn item_ends(&self) -> &ItemEnds {
        self.inner.item_ends.get_or_init(|| ItemEnds::new(self))
    }

    /// Memory of its tokens and of the trie, in bytes, without indices that are computed on demand.
    pub(crate) fn memory(&self) -> usize {
        let Content { bytes, spans, specials, .. } = self.content();
        let names: usize = specials.values().map(String::len).sum();
        bytes.len() + size_of_val(&**spans) + names + self.trie().memory()
    }

    fn content(&self) -> &Content {
        &self.inner.content
    }

    /// Replaces the end-of-text ids. Ids that were end of text before stay special. Costs about as much as
    /// building it.
    ///
    /// # Errors
    /// If `ids` is empty, holds an id of 2^24 or more, or leaves no token with bytes.
    pub fn with_end_of_text(&self, ids: impl IntoIterator<Item = TokenId>) -> Result<Self, VocabularyError> {
        let mut builder = Self::builder();
        self.text_tokens().for_each(|(id, bytes)| builder.add(id, bytes));
        let builder = self.special_tokens().fold(builder, |builder, (id, name)| builder.special(id, name));
        ids.into_iter().fold(builder, VocabularyBuilder::end_of_text).build()
    }

    /// Adapts it to grammars that ask for these special tokens, given with their names: each gets its name
    /// between two bytes `0xFF` as its bytes, and text tokens that hold such a byte lose theirs. Costs about
    /// as much as building it.
    ///
    /// # Errors
    /// If no token ends the text any more, or the names are too long together.
    pub fn with_spelled(&self, specials: &[(TokenId, &str)]) -> Result<Self, VocabularyError> {
        let mut builder = Self::builder();
        let is_asked = |id: TokenId| specials.iter().any(|&(asked, _)| asked == id);
        for (id, bytes) in self.text_tokens().filter(|&(id, _)| !is_asked(id)) {
            if bytes.contains(&special::MARK) {
                builder = builder.special(id, String::from_utf8_lossy(bytes));
            } else {
                builder.add(id, bytes);
            }
        }
        specials.iter().for_each(|&(id, name)| builder.add(id, &special::spelled(name)));
        for (id, name) in self.special_tokens().filter(|&(id, _)| !is_asked(id)) {
            builder = builder.special(id, name);
        }
        let ends = self.end_of_text().iter().copied().filter(|&id| !is_asked(id));
        ends.fold(builder, VocabularyBuilder::end_of_text).build()
    }

    /// One more than the highest token id: the number of bits of a [`TokenSet`] over this vocabulary.
    #[must_use]
    pub fn size(&self) -> usize {
        self.content().size()
    }

    /// The number of tokens that have bytes or are special; holes are not counted. One pass.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.text_tokens().count() + self.content().specials.len()
    }

    /// The bytes of a token, at least one; `None` for special tokens, holes and tokens of no bytes.
    ///
    /// They are the bytes in the middle of a text: a SentencePiece `▁the` is ` the`.
    #[must_use]
    pub fn bytes(&self, token: TokenId) -> Option<&[u8]> {
        self.content().text(token)
    }

    /// The tokens that have bytes, in order of id.
    pub fn text_tokens(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        (0..self.size()).filter_map(|index| {
            let id = TokenId::from_index(index)?;
            Some((id, self.bytes(id)?))
        })
    }

    /// Is this a special token? End-of-text tokens are.
    #[must_use]
    pub fn is_special(&self, token: TokenId) -> bool {
        self.content().specials.contains_key(&token)
    }

    /// The name of a special token, such as `<|im_end|>`; `None` for all others.
    #[must_use]
    pub fn name(&self, token: TokenId) -> Option<&str> {
        self.content().specials.get(&token).map(String::as_str)
    }

    /// The special tokens with their names, in order of id.
    pub fn special_tokens(&self) -> impl Iterator<Item = (TokenId, &str)> {
        self.content().specials.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// The ids that end a text, sorted; at least one.
    #[must_use]
    pub fn end_of_text(&self) -> &[TokenId] {
        &self.content().end_of_text
    }

    /// Does this token end a text?
    #[must_use]
    pub fn is_end_of_text(&self, token: TokenId) -> bool {
        self.content().end_of_text.binary_search(&token).is_ok()
    }

    /// The BLAKE3 hash of everything above, the same on every machine and in every version of this library
    /// that can read tables written with it.
    #[must_use]
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.inner.fingerprint
    }

    /// The bytes of `tokens`, one after the other; special tokens and unknown ids have none.
    #[must_use]
    pub fn concat(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().filter_map(|&token| self.bytes(token)).flatten().copied().collect()
    }

    /// Returns the first token with exactly these bytes: a walk down the trie.
    #[must_use]
    pub fn token_of(&self, bytes: &[u8]) -> Option<TokenId> {
        let node = self.node_of(bytes)?;
        self.trie().tokens_at(self.trie().own_tokens(node)).first().copied()
    }

    /// Is there a token that begins with these bytes and goes on? A walk down the trie.
    #[must_use]
    pub fn goes_on(&self, bytes: &[u8]) -> bool {
        self.node_of(bytes).is_some_and(|node| self.trie().end(node).raw() > node.raw() + 1)
    }

    fn node_of(&self, bytes: &[u8]) -> Option<TrieNodeId> {
        let (&first, rest) = bytes.split_first()?;
        rest.iter().try_fold(self.trie().root_child(first)?, |node, &byte| self.trie().child(node, byte))
    }

    /// Returns the tokens that are prefixes of `text`: a walk down the trie, as long as the longest of them.
    #[must_use]
    pub fn prefixes_of(&self, text: &[u8]) -> TokenSet {
        let (trie, mut found) = (self.trie(), self.empty_set());
        let mut node = text.first().and_then(|&byte| trie.root_child(byte));
        let mut rest = text.iter().skip(1);
        while let Some(at) = node {
            trie.tokens_at(trie.own_tokens(at)).iter().for_each(|&token| found.insert(token));
            node = rest.next().and_then(|&byte| trie.child(at, byte));
        }
        found
    }

    /// Returns the set without any token.
    #[must_use]
    pub fn empty_set(&self) -> TokenSet {
        TokenSet::empty(self.size())
    }

    /// All text tokens as a trie.
    pub(crate) fn trie(&self) -> &ByteTrie {
        &self.inner.trie
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint() == other.fingerprint()
    }
}

impl Eq for Vocabulary {}

impl Hash for Vocabulary {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint().hash(state);
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("size", &self.size())
            .field("end_of_text", &self.end_of_text())
            .field("fingerprint", &format_args!("{}", blake3::Hash::from_bytes(*self.fingerprint()).to_hex()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::error::VocabularyErrorKind, *};

    fn id(raw: u32) -> TokenId {
        TokenId::new(raw)
    }

    fn small() -> VocabularyBuilder {
        Vocabulary::builder()
            .token(id(0), "a")
            .token(id(3), "ab")
            .token(id(5), "")
            .token(id(4), "ab")
            .special(id(7), "<pad>")
            .special(id(6), "<eos>")
            .end_of_text(id(6))
    }

    fn kind(builder: VocabularyBuilder) -> VocabularyErrorKind {
        builder.build().unwrap_err().kind().clone()
    }

    #[test]
    fn holes_empty_special_and_equal_tokens_are_allowed() {
        let vocabulary = small().build().unwrap();
        assert_eq!(vocabulary.size(), 8);
        assert_eq!(vocabulary.token_count(), 5);
        let bytes: Vec<_> = (0..9).map(|n| vocabulary.bytes(id(n))).collect();
        let ab: Option<&[u8]> = Some(b"ab");
        assert_eq!(bytes, [Some(&b"a"[..]), None, None, ab, ab, None, None, None, None]);
        assert_eq!(vocabulary.end_of_text(), [id(6)]);
        assert_eq!(vocabulary.name(id(6)), Some("<eos>"));
        assert!(vocabulary.is_special(id(7)) && !vocabulary.is_special(id(1)));
        assert_eq!(vocabulary.trie().end(ByteTrie::ROOT).raw(), 3);
    }

    #[test]
    fn end_of_text_makes_special() {
        let vocabulary = Vocabulary::builder()
            .token(id(0), "a")
            .token(id(1), "</s>")
            .end_of_text(id(1))
            .end_of_text(id(9))
            .build()
            .unwrap();
        assert_eq!(vocabulary.name(id(1)), Some("</s>"));
        assert_eq!(vocabulary.size(), 10);
        assert!(vocabulary.is_end_of_text(id(9)) && vocabulary.is_special(id(9)));
    }

    #[test]
    fn vocabularies_are_equal_by_content() {
        let one = small().build().unwrap();
        let other = small().token(id(1), "").token(id(9), "").build().unwrap();
        assert_eq!(one, other, "a token of no bytes is as good as a hole");
        let hash = blake3::Hash::from_bytes(*one.fingerprint());
        assert_eq!(
            hash.to_hex().as_str(),
            "25e28b2323f21bf7fa230ff6a5b7c48aa04f6fbb4f151d796289b097229a3b71"
        );
        assert_ne!(one, small().token(id(1), "b").build().unwrap());
        let changed = one.with_end_of_text([id(7)]).unwrap();
        assert_ne!(one, changed);
        assert_eq!(changed.end_of_text(), [id(7)]);
        assert!(changed.is_special(id(6)));
        assert_eq!(changed.with_end_of_text([id(6)]).unwrap(), one);
    }

    #[test]
    fn spelled_specials_are_text() {
        let vocabulary = small().token(id(8), b"x\xFF").token(id(9), b"\xFF").build().unwrap();
        let spelled = vocabulary.with_spelled(&[(id(7), "<pad>"), (id(11), "<x>")]).unwrap();
        assert_eq!(spelled.bytes(id(7)), Some(&b"\xFF<pad>\xFF"[..]));
        assert_eq!(spelled.bytes(id(11)), Some(&b"\xFF<x>\xFF"[..]));
        assert_eq!([spelled.bytes(id(8)), spelled.bytes(id(9))], [None, None]);
        assert_eq!((spelled.name(id(7)), spelled.size()), (None, 12));
        assert_eq!((spelled.bytes(id(3)), spelled.name(id(6))), (Some(&b"ab"[..]), Some("<eos>")));
        let error = vocabulary.with_spelled(&[(id(6), "<eos>")]).unwrap_err();
        assert_eq!(error.kind(), &VocabularyErrorKind::NoEndOfText);
    }

    #[test]
    fn each_mistake_of_a_vocabulary_has_its_error() {
        assert_eq!(kind(small().token(id(0), "b")), VocabularyErrorKind::DuplicateId(0));
        assert_eq!(kind(small().token(id(7), "b")), VocabularyErrorKind::DuplicateId(7));
        assert_eq!(kind(small().special(id(7), "<x>")), VocabularyErrorKind::DuplicateId(7));
        assert_eq!(
            kind(small().special(id(u32::MAX), "<x>")),
            VocabularyErrorKind::IdTooLarge(4_294_967_295)
        );
        assert_eq!(kind(Vocabulary::builder().token(id(0), "a")), VocabularyErrorKind::NoEndOfText);
        assert_eq!(kind(Vocabulary::builder().end_of_text(id(0))), VocabularyErrorKind::NoTokens);
        assert_eq!(kind(Vocabulary::builder()), VocabularyErrorKind::NoEndOfText);
    }
}
