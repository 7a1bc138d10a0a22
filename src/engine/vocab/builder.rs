//! Builds a vocabulary from tokens one by one, or reports what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    error::{VocabularyError, VocabularyErrorKind},
    stored,
    trie::{ByteTrie, OrderedBytes},
    vocabulary::{ByteSpan, Content, Vocabulary},
};
use crate::{
    ids::TokenId,
    limits::{VOCABULARY_BYTES, VOCABULARY_IDS},
};

/// Builds a [`Vocabulary`]; [`build`](Self::build) reports errors.
#[derive(Debug, Clone, Default)]
pub struct VocabularyBuilder {
    /// Bytes of all tokens in the order in which they were given.
    bytes: Vec<u8>,
    tokens: Vec<Given>,
    specials: Vec<(TokenId, String)>,
    end_of_text: BTreeSet<TokenId>,
}

/// A token as it was given: `bytes[start..end]` of the builder.
#[derive(Debug, Clone, Copy)]
struct Given {
    id: TokenId,
    start: usize,
    end: usize,
}

impl VocabularyBuilder {
    /// Adds a token with its bytes. Several ids may have the same bytes. A token of no bytes is never
    /// allowed.
    #[must_use]
    pub fn token(mut self, id: TokenId, bytes: impl AsRef<[u8]>) -> Self {
        self.add(id, bytes.as_ref());
        self
    }

    /// Adds a token for each byte: ids 0 to 255.
    #[must_use]
    pub fn all_bytes(self) -> Self {
        (0..=u8::MAX).fold(self, |builder, byte| builder.token(TokenId::new(byte.into()), [byte]))
    }

    /// Adds a special token: it has a name and no bytes, and no grammar allows it unless it ends the text.
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

    /// Adds a token like [`token`](Self::token), for loops.
    pub(super) fn add(&mut self, id: TokenId, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.tokens.push(Given { id, start, end: self.bytes.len() });
    }

    /// The tokens given so far, in the order in which they were given.
    pub(super) fn tokens(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        self.tokens.iter().map(|given| (given.id, self.text(given)))
    }

    /// The special tokens given so far, in the order in which they were given.
    pub(super) fn specials(&self) -> &[(TokenId, String)] {
        &self.specials
    }

    fn text(&self, given: &Given) -> &[u8] {
        &self.bytes[given.start..given.end]
    }

    /// Builds the vocabulary. Costs `O(n log n)` for `n` bytes of tokens, about 30 ms for 150,000 tokens.
    ///
    /// # Errors
    /// If an id is given to two tokens or is 2^24 or more, if no token has bytes, if no token ends the
    /// text, or if the tokens have more than 2^28 bytes together.
    pub fn build(mut self) -> Result<Vocabulary, VocabularyError> {
        self.tokens.sort_by_key(|given| given.id);
        let mut names = BTreeMap::new();
        for (id, name) in std::mem::take(&mut self.specials) {
            if names.insert(id, name).is_some() {
                return Err(duplicate(id));
            }
        }
        self.check_ids(&names)?;
        let mut texts: Vec<Given> = Vec::with_capacity(self.tokens.len());
        for given in &self.tokens {
            if self.end_of_text.contains(&given.id) {
                names.insert(given.id, String::from_utf8_lossy(self.text(given)).into_owned());
            } else if given.start < given.end {
                texts.push(*given);
            }
        }
        for id in &self.end_of_text {
            names.entry(*id).or_insert_with(|| format!("<end of text {id}>"));
        }
        if self.end_of_text.is_empty() {
            let message = "no token ends the text: name at least one end-of-text token";
            return Err(VocabularyError::new(VocabularyErrorKind::NoEndOfText, message));
        }
        let total: usize = texts.iter().map(|given| given.end - given.start).sum();
        if total == 0 {
            return Err(VocabularyError::new(VocabularyErrorKind::NoTokens, "no token has any bytes"));
        }
        if total > VOCABULARY_BYTES {
            return Err(too_many_bytes(total));
        }
        let highest = texts.last().map(|given| given.id).max(names.keys().last().copied());
        let size = highest.map_or(0, |id| id.index() + 1);
        self.lay_out(&texts, size, names)
    }

    /// Builds the vocabulary of these text tokens, of special tokens with these names, and of `size` ids.
    fn lay_out(
        &self,
        texts: &[Given],
        size: usize,
        specials: BTreeMap<TokenId, String>,
    ) -> Result<Vocabulary, VocabularyError> {
        let text = |given: &Given| (OrderedBytes::new(&self.bytes, given.start, given.end), given.id);
        let mut sorted: Vec<(OrderedBytes<'_>, TokenId)> = texts.iter().map(text).collect();
        sorted.sort_unstable();
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut spans = vec![ByteSpan::default(); size];
        let mut start = 0;
        for (text, id) in &sorted {
            bytes.extend_from_slice(text.bytes());
            let end = u32::try_from(bytes.len()).map_err(|_| too_many_bytes(bytes.len()))?;
            spans[id.index()] = ByteSpan { start, end };
            start = end;
        }
        let ends = sorted.iter().map(|(_, id)| (spans[id.index()].end as usize, *id));
        let (trie, in_order) = ByteTrie::from_order(size, &bytes, ends);
        debug_assert!(in_order, "sorted, and no id twice");
        let end_of_text = self.end_of_text.iter().copied().collect();
        let content = Content { bytes, spans, specials, end_of_text };
        let fingerprint = stored::fingerprint(&stored::encode(&content, &trie));
        Ok(Vocabulary::of(content, trie, fingerprint))
    }

    /// Checks the promises of [`build`](Self::build) about ids; the tokens are in order of id.
    fn check_ids(&self, specials: &BTreeMap<TokenId, String>) -> Result<(), VocabularyError> {
        let twice = self.tokens.windows(2).find(|pair| pair[0].id == pair[1].id).map(|pair| pair[0].id);
        let both = || self.tokens.iter().map(|given| given.id).find(|id| specials.contains_key(id));
        if let Some(id) = twice.or_else(both) {
            return Err(duplicate(id));
        }
        let last = self.tokens.last().map(|given| given.id);
        let highest = [last, specials.keys().last().copied(), self.end_of_text.last().copied()];
        match highest.into_iter().flatten().max() {
            Some(id) if id.raw() >= VOCABULARY_IDS => Err(id_too_large(u64::from(id.raw()))),
            _ => Ok(()),
        }
    }
}

fn duplicate(id: TokenId) -> VocabularyError {
    VocabularyError::new(
        VocabularyErrorKind::DuplicateId(id.raw()),
        format!("id {id} is given to two different tokens"),
    )
}

/// Creates the error for an id that no vocabulary can have.
pub(super) fn id_too_large(id: u64) -> VocabularyError {
    VocabularyError::new(
        VocabularyErrorKind::IdTooLarge(id),
        format!("token id {id} is too large: ids must be below {VOCABULARY_IDS}"),
    )
}

/// Creates the error for tokens with this many bytes in all.
fn too_many_bytes(total: usize) -> VocabularyError {
    VocabularyError::new(
        VocabularyErrorKind::TooManyBytes,
        format!("the tokens have {total} bytes in all; at most {VOCABULARY_BYTES} are possible"),
    )
}
