//! Token <-> bytes, special tokens apart, and the ids that end a text.
//!
//! Invariant: a token is text (it has at least one byte), special (it has a name and no bytes), or neither
//! (a hole in the id range, or a token of no bytes). Only text is in the trie; at least one token is text
//! and at least one special token ends a text. Two vocabularies are equal if and only if all of this is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use super::{
    error::{VocabularyError, VocabularyErrorKind},
    token_set::TokenSet,
    trie::ByteTrie,
};
use crate::{
    ids::TokenId,
    limits::{VOCABULARY_BYTES, VOCABULARY_IDS},
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
    /// The bytes of all text tokens in order of id.
    bytes: Vec<u8>,
    /// Token `t` is `bytes[starts[t] .. starts[t + 1]]`.
    starts: Vec<u32>,
    specials: BTreeMap<TokenId, String>,
    end_of_text: Vec<TokenId>,
    trie: ByteTrie,
    fingerprint: u128,
}

/// Builds a [`Vocabulary`]; what is wrong is said by [`build`](Self::build).
#[derive(Debug, Clone, Default)]
pub struct VocabularyBuilder {
    tokens: Vec<(TokenId, Vec<u8>)>,
    specials: Vec<(TokenId, String)>,
    end_of_text: BTreeSet<TokenId>,
}

impl VocabularyBuilder {
    /// A token with its bytes. Several ids may have the same bytes. A token of no bytes is never allowed.
    #[must_use]
    pub fn token(mut self, id: TokenId, bytes: impl Into<Vec<u8>>) -> Self {
        self.tokens.push((id, bytes.into()));
        self
    }

    /// A special token: it has a name and no bytes, and no grammar allows it unless it ends the text.
    #[must_use]
    pub fn special(mut self, id: TokenId, name: impl Into<String>) -> Self {
        self.specials.push((id, name.into()));
        self
    }

    /// Marks a token as ending the text. It becomes special: bytes given for it become its name.
    #[must_use]
    pub fn end_of_text(mut self, id: TokenId) -> Self {
        self.end_of_text.insert(id);
        self
    }

    /// The vocabulary. Costs `O(n log n)` for `n` bytes of tokens, about 0.1 s for 150,000 tokens.
    ///
    /// # Errors
    /// If an id is given to two tokens or is 2^24 or more, if no token has bytes, if no token ends the
    /// text, or if the tokens have more than 2^28 bytes together.
    pub fn build(self) -> Result<Vocabulary, VocabularyError> {
        let Self { mut tokens, specials, end_of_text } = self;
        tokens.sort_by_key(|(id, _)| *id);
        let mut names = BTreeMap::new();
        for (id, name) in specials {
            if names.insert(id, name).is_some() {
                return Err(duplicate(id));
            }
        }
        check_ids(&tokens, &names, &end_of_text)?;
        tokens.retain(|(id, bytes)| {
            let ends = end_of_text.contains(id);
            if ends {
                names.insert(*id, String::from_utf8_lossy(bytes).into_owned());
            }
            !ends && !bytes.is_empty()
        });
        for id in &end_of_text {
            names.entry(*id).or_insert_with(|| format!("<end of text {id}>"));
        }
        Vocabulary::assemble(&tokens, names, end_of_text.into_iter().collect())
    }
}

/// Checks what [`VocabularyBuilder::build`] promises about ids; `tokens` are in order of id.
fn check_ids(
    tokens: &[(TokenId, Vec<u8>)],
    specials: &BTreeMap<TokenId, String>,
    end_of_text: &BTreeSet<TokenId>,
) -> Result<(), VocabularyError> {
    let twice = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0);
    let both = || tokens.iter().map(|(id, _)| *id).find(|id| specials.contains_key(id));
    if let Some(id) = twice.or_else(both) {
        return Err(duplicate(id));
    }
    let highest =
        [tokens.last().map(|(id, _)| *id), specials.keys().last().copied(), end_of_text.last().copied()];
    match highest.into_iter().flatten().max() {
        Some(id) if id.raw() >= VOCABULARY_IDS => Err(id_too_large(u64::from(id.raw()))),
        _ => Ok(()),
    }
}

fn duplicate(id: TokenId) -> VocabularyError {
    VocabularyError::new(
        VocabularyErrorKind::DuplicateId(id.raw()),
        format!("id {id} is given to two different tokens"),
    )
}

/// The error for an id that no vocabulary can have.
pub(super) fn id_too_large(id: u64) -> VocabularyError {
    VocabularyError::new(
        VocabularyErrorKind::IdTooLarge(id),
        format!("token id {id} is too large: ids must be below {VOCABULARY_IDS}"),
    )
}

impl Vocabulary {
    /// A builder.
    #[must_use]
    pub fn builder() -> VocabularyBuilder {
        VocabularyBuilder::default()
    }

    /// The vocabulary of `tokens` (in order of id, none of them special or empty) and `specials`.
    fn assemble(
        tokens: &[(TokenId, Vec<u8>)],
        specials: BTreeMap<TokenId, String>,
        end_of_text: Vec<TokenId>,
    ) -> Result<Self, VocabularyError> {
        if end_of_text.is_empty() {
            let message = "no token ends the text: name at least one end-of-text token";
            return Err(VocabularyError::new(VocabularyErrorKind::NoEndOfText, message));
        }
        let total: usize = tokens.iter().map(|(_, bytes)| bytes.len()).sum();
        if total == 0 {
            return Err(VocabularyError::new(VocabularyErrorKind::NoTokens, "no token has any bytes"));
        }
        if total > VOCABULARY_BYTES {
            let message =
                format!("the tokens have {total} bytes in all; at most {VOCABULARY_BYTES} are possible");
            return Err(VocabularyError::new(VocabularyErrorKind::TooManyBytes, message));
        }
        let last_text = tokens.last().map(|(id, _)| *id);
        let highest = last_text.max(specials.keys().last().copied());
        let size = highest.map_or(0, |id| id.index() + 1);
        let mut bytes = Vec::with_capacity(total);
        let mut starts = Vec::with_capacity(size + 1);
        for (id, token) in tokens {
            starts.resize(id.index() + 1, offset(bytes.len()));
            bytes.extend_from_slice(token);
        }
        starts.resize(size + 1, offset(bytes.len()));
        let trie = ByteTrie::new(size, tokens.iter().map(|(id, bytes)| (bytes.as_slice(), *id)));
        let fingerprint = fingerprint(tokens, &specials, &end_of_text);
        let inner = Inner { bytes, starts, specials, end_of_text, trie, fingerprint };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The same vocabulary with other end-of-text ids. Ids that were end of text before stay special.
    /// Costs about as much as building it.
    ///
    /// # Errors
    /// If `ids` is empty, holds an id of 2^24 or more, or leaves no token with bytes.
    pub fn with_end_of_text(&self, ids: impl IntoIterator<Item = TokenId>) -> Result<Self, VocabularyError> {
        let mut builder = Self::builder();
        builder.tokens = self.text_tokens().map(|(id, bytes)| (id, bytes.to_vec())).collect();
        builder.specials = self.inner.specials.iter().map(|(id, name)| (*id, name.clone())).collect();
        builder.end_of_text = ids.into_iter().collect();
        builder.build()
    }

    /// One more than the highest token id: the number of bits of a [`TokenSet`] over this vocabulary.
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.starts.len() - 1
    }

    /// The number of tokens that have bytes or are special; holes are not counted. One pass.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.text_tokens().count() + self.inner.specials.len()
    }

    /// The bytes of a token, at least one; `None` for special tokens, holes and tokens of no bytes.
    ///
    /// They are the bytes in the middle of a text: a SentencePiece `▁the` is ` the`.
    #[must_use]
    pub fn bytes(&self, token: TokenId) -> Option<&[u8]> {
        let start = *self.inner.starts.get(token.index())?;
        let end = *self.inner.starts.get(token.index() + 1)?;
        self.inner.bytes.get(start as usize..end as usize).filter(|bytes| !bytes.is_empty())
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
        self.inner.specials.contains_key(&token)
    }

    /// The name of a special token, such as `<|im_end|>`; `None` for all others.
    #[must_use]
    pub fn name(&self, token: TokenId) -> Option<&str> {
        self.inner.specials.get(&token).map(String::as_str)
    }

    /// The special tokens with their names, in order of id.
    pub fn special_tokens(&self) -> impl Iterator<Item = (TokenId, &str)> {
        self.inner.specials.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// The ids that end a text, sorted; at least one.
    #[must_use]
    pub fn end_of_text(&self) -> &[TokenId] {
        &self.inner.end_of_text
    }

    /// Does this token end a text?
    #[must_use]
    pub fn is_end_of_text(&self, token: TokenId) -> bool {
        self.inner.end_of_text.binary_search(&token).is_ok()
    }

    /// A hash of everything above, the same on every machine and in every version of this library that
    /// can read tables written with it.
    #[must_use]
    pub fn fingerprint(&self) -> u128 {
        self.inner.fingerprint
    }

    /// The bytes of `tokens`, one after the other; special tokens and unknown ids have none.
    #[must_use]
    pub fn concat(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().filter_map(|&token| self.bytes(token)).flatten().copied().collect()
    }

    /// No token allowed.
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
            .field("fingerprint", &format_args!("{:032x}", self.fingerprint()))
            .finish_non_exhaustive()
    }
}

/// An offset into the token bytes; [`VOCABULARY_BYTES`] keeps it in range.
fn offset(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The 128-bit FNV-1a hash of all tokens, each written with its kind, its id and its length.
fn fingerprint(
    tokens: &[(TokenId, Vec<u8>)],
    specials: &BTreeMap<TokenId, String>,
    end_of_text: &[TokenId],
) -> u128 {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = START;
    let mut write = |kind: u8, id: TokenId, bytes: &[u8]| {
        let length = offset(bytes.len()).to_le_bytes();
        let head = std::iter::once(kind).chain(id.raw().to_le_bytes()).chain(length);
        for byte in head.chain(bytes.iter().copied()) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    };
    tokens.iter().for_each(|(id, bytes)| write(0, *id, bytes));
    specials.iter().for_each(|(id, name)| write(1, *id, name.as_bytes()));
    end_of_text.iter().for_each(|id| write(2, *id, &[]));
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn holes_empties_specials_and_duplicates() {
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
    fn equality_is_of_content() {
        let one = small().build().unwrap();
        let other = small().token(id(1), "").token(id(9), "").build().unwrap();
        assert_eq!(one, other, "a token of no bytes is as good as a hole");
        assert_eq!(one.fingerprint(), 0x7e18_ec58_8df5_a888_d7a7_1297_ef77_f68b);
        assert_ne!(one, small().token(id(1), "b").build().unwrap());
        let changed = one.with_end_of_text([id(7)]).unwrap();
        assert_ne!(one, changed);
        assert_eq!(changed.end_of_text(), [id(7)]);
        assert!(changed.is_special(id(6)));
        assert_eq!(changed.with_end_of_text([id(6)]).unwrap(), one);
    }

    #[test]
    fn errors() {
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
