//! Serialises a vocabulary, for the cache folder and for fingerprints.
//!
//! The order of the tokens in the trie is kept, not the trie: it is a third of the size, and a trie made from
//! a checked order is right by construction.

use std::collections::BTreeMap;

use super::{
    trie::ByteTrie,
    vocabulary::{ByteSpan, Content, Vocabulary},
};
use crate::{
    ids::TokenId,
    limits::{VOCABULARY_BYTES, VOCABULARY_IDS},
    store::{Kind, PayloadKey, PayloadReader, PayloadWriter, StoreError, open, seal},
};

/// Serialises all that [`decode`] needs: the same bytes exactly for equal vocabularies. One pass, a few
/// milliseconds for 150,000 tokens.
pub(super) fn encode(content: &Content, trie: &ByteTrie) -> Vec<u8> {
    let order = trie.in_order();
    let mut writer = PayloadWriter::with_capacity(content.bytes.len() + 8 * order.len() + (1 << 16));
    writer.u64(content.size() as u64);
    writer.bytes(&content.bytes);
    writer.u32s(order.iter().map(|id| content.spans[id.index()].end));
    writer.u32s(order.iter().map(|id| id.raw()));
    writer.count(content.specials.len());
    for (id, name) in &content.specials {
        writer.u32(id.raw());
        writer.str(name);
    }
    writer.u32s(content.end_of_text.iter().map(|id| id.raw()));
    writer.finish()
}

/// Returns the fingerprint of a vocabulary: the BLAKE3 hash of the output of [`encode`].
pub(super) fn fingerprint(encoded: &[u8]) -> [u8; 32] {
    *blake3::hash(encoded).as_bytes()
}

/// Reads the output of [`encode`], or fails if no vocabulary is encoded so. One pass, about 6 ms for 130,000
/// tokens.
pub(super) fn decode(reader: &mut PayloadReader<'_>) -> Result<Vocabulary, StoreError> {
    let wrong = StoreError::malformed;
    let encoded = reader.rest();
    let size = reader.u64()?;
    if size > u64::from(VOCABULARY_IDS) {
        return Err(wrong("too many tokens"));
    }
    let bytes = reader.bytes()?.to_vec();
    let (ends, order) = (reader.u32s_in_place()?, reader.u32s_in_place()?);
    let specials = decode_specials(reader)?;
    let end_of_text: Vec<TokenId> = reader.u32s()?.into_iter().map(TokenId::new).collect();
    if ends.len() != order.len() || bytes.len() > VOCABULARY_BYTES {
        return Err(wrong("tokens that do not fit their bytes"));
    }
    let mut spans = vec![ByteSpan::default(); usize::try_from(size).unwrap_or(0)];
    let mut start = 0;
    for (end, id) in ends.clone().zip(order.clone()) {
        let span = spans.get_mut(id as usize).filter(|span| span.end == 0);
        *span.ok_or_else(|| wrong("a token twice, or past the last"))? = ByteSpan { start, end };
        if start >= end {
            return Err(wrong("tokens that do not fit their bytes"));
        }
        start = end;
    }
    if start == 0 || start as usize != bytes.len() {
        return Err(wrong("tokens that do not fit their bytes"));
    }
    let tokens = ends.zip(order).map(|(end, id)| (end as usize, TokenId::new(id)));
    let (trie, in_order) = ByteTrie::from_order(spans.len(), &bytes, tokens);
    if !in_order {
        return Err(wrong("tokens out of order"));
    }
    let content = Content { bytes, spans, specials, end_of_text };
    check(&content).map_err(wrong)?;
    let read = encoded.len() - reader.rest().len();
    Ok(Vocabulary::of(content, trie, fingerprint(&encoded[..read])))
}

impl Vocabulary {
    /// Serialises it for a file or another process, sealed with a checksum. One pass, a few milliseconds and
    /// 2 MB for 131,000 tokens.
    ///
    /// ```
    /// use domino::{TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let read = Vocabulary::from_bytes(&vocabulary.to_bytes())?;
    /// assert_eq!(read.fingerprint(), vocabulary.fingerprint());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        seal(Kind::Vocabulary, &handed_over(), &self.encode())
    }

    /// Reads what [`to_bytes`](Self::to_bytes) made. About 6 ms for 131,000 tokens.
    ///
    /// # Errors
    /// If it is something else, damaged, or was made by another version.
    pub fn from_bytes(file: &[u8]) -> Result<Self, StoreError> {
        let mut reader = PayloadReader::new(open(file, Kind::Vocabulary, &handed_over())?);
        let vocabulary = decode(&mut reader)?;
        reader.finish()?;
        Ok(vocabulary)
    }
}

/// Returns the key of all vocabularies that are handed over: which one it is stands in the file.
fn handed_over() -> PayloadKey {
    PayloadKey::of(&[b"vocabulary"])
}

/// Access for tests that show the reader payloads that nobody wrote.
#[cfg(feature = "oracle")]
impl Vocabulary {
    /// Serialises it as a cache folder does, without the seal.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        self.encode()
    }

    /// Reads the output of [`stored`](Self::stored).
    ///
    /// # Errors
    /// If there is none.
    #[doc(hidden)]
    pub fn from_stored(payload: &[u8]) -> Result<Self, StoreError> {
        let mut reader = PayloadReader::new(payload);
        let vocabulary = decode(&mut reader)?;
        reader.finish()?;
        Ok(vocabulary)
    }
}

/// Reads the special tokens, ascending by id.
fn decode_specials(reader: &mut PayloadReader<'_>) -> Result<BTreeMap<TokenId, String>, StoreError> {
    let count = reader.count(12)?;
    let mut specials = Vec::with_capacity(count);
    for _ in 0..count {
        specials.push((TokenId::new(reader.u32()?), reader.str()?.to_owned()));
    }
    // Each vocabulary has one encoding only.
    if !specials.is_sorted_by(|(a, _), (b, _)| a < b) {
        return Err(StoreError::malformed("special tokens out of order"));
    }
    Ok(BTreeMap::from_iter(specials))
}

/// Checks the content of a vocabulary, apart from the layout of its bytes; returns what is wrong.
fn check(content: &Content) -> Result<(), &'static str> {
    let size = content.size();
    if !content.specials.keys().all(|id| id.index() < size && content.text(*id).is_none()) {
        return Err("special tokens that are not special");
    }
    let last = size.checked_sub(1).and_then(TokenId::from_index).ok_or("no tokens")?;
    if content.text(last).is_none() && !content.specials.contains_key(&last) {
        return Err("ids past the last token");
    }
    let ends = &content.end_of_text;
    let special = ends.iter().all(|id| content.specials.contains_key(id));
    if ends.is_empty() || !special || !ends.is_sorted_by(|a, b| a < b) {
        return Err("tokens that cannot end a text");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
