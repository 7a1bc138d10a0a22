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
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn encoded(vocabulary: &Vocabulary) -> Vec<u8> {
        vocabulary.encode()
    }

    fn decoded(payload: &[u8]) -> Result<Vocabulary, StoreError> {
        let mut reader = PayloadReader::new(payload);
        let vocabulary = decode(&mut reader)?;
        reader.finish()?;
        Ok(vocabulary)
    }

    /// Compares everything that can be asked of two vocabularies.
    fn assert_same(one: &Vocabulary, other: &Vocabulary) {
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert!(one.trie() == other.trie());
        assert_eq!(one.size(), other.size());
        assert_eq!(one.token_count(), other.token_count());
        assert_eq!(one.end_of_text(), other.end_of_text());
        assert!(one.text_tokens().eq(other.text_tokens()));
        assert!(one.special_tokens().eq(other.special_tokens()));
        for id in (0..one.size() + 2).filter_map(TokenId::from_index) {
            assert_eq!(one.bytes(id), other.bytes(id));
            assert_eq!(one.name(id), other.name(id));
            assert_eq!(one.is_special(id), other.is_special(id));
            assert_eq!(one.is_end_of_text(id), other.is_end_of_text(id));
        }
    }

    /// Generates vocabularies with holes, tokens of the same bytes, long tokens, names of any text.
    fn vocabularies() -> impl Strategy<Value = Vocabulary> {
        let text = prop_oneof![
            prop::collection::vec(0_u8..3, 1..6),
            prop::collection::vec(any::<u8>(), 0..4),
            (1_usize..40).prop_map(|length| vec![b' '; length]),
        ];
        let token =
            prop_oneof![6 => text.prop_map(Ok), 1 => ".{0,5}".prop_map(Err), 1 => Just(Ok(Vec::new()))];
        (prop::collection::vec(token, 0..40), 0_u32..50).prop_map(|(tokens, end)| {
            let builder = Vocabulary::builder().token(TokenId::new(60), "x").end_of_text(TokenId::new(end));
            let ids = (0..).map(TokenId::new);
            let add = |builder: super::super::VocabularyBuilder,
                       (id, token): (_, Result<Vec<u8>, String>)| {
                match token {
                    Ok(bytes) => builder.token(id, bytes),
                    Err(name) => builder.special(id, name),
                }
            };
            ids.zip(tokens).fold(builder, add).build().unwrap()
        })
    }

    proptest! {
        #[test]
        fn an_encoded_vocabulary_is_decoded_unchanged(vocabulary in vocabularies()) {
            assert_same(&decoded(&encoded(&vocabulary)).unwrap(), &vocabulary);
        }

        /// If bytes are changed despite the seal, reading fails or gives a valid vocabulary: the one with
        /// these bytes.
        #[test]
        fn damage_is_refused_or_is_another_vocabulary(
            vocabulary in vocabularies(),
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), prop_oneof![0_u8..4, any::<u8>()]),
                1..4,
            ),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut payload = encoded(&vocabulary);
            for (place, value) in changes {
                let place = place.index(payload.len());
                payload[place] = value;
            }
            if let Some(cut) = cut {
                payload.truncate(cut.index(payload.len()));
            }
            if let Ok(read) = decoded(&payload) {
                prop_assert_eq!(encoded(&read), payload);
                let mut builder = Vocabulary::builder();
                for (id, bytes) in read.text_tokens() {
                    builder = builder.token(id, bytes);
                }
                for (id, name) in read.special_tokens() {
                    builder = builder.special(id, name);
                }
                for &end in read.end_of_text() {
                    builder = builder.end_of_text(end);
                }
                assert_same(&read, &builder.build().unwrap());
            }
        }
    }

    #[test]
    fn the_shipped_vocabulary_is_decoded_unchanged() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/domino-small");
        let vocabulary = Vocabulary::from_tokenizer_file(folder).unwrap();
        assert_same(&decoded(&encoded(&vocabulary)).unwrap(), &vocabulary);
    }

    /// Each part that is checked is wrong on its own.
    #[test]
    fn encodings_with_one_wrong_part_are_refused() {
        let id = TokenId::new;
        let vocabulary = Vocabulary::builder()
            .token(id(0), "ab")
            .token(id(1), "a")
            .special(id(2), "<pad>")
            .special(id(4), "</s>")
            .end_of_text(id(4))
            .build()
            .unwrap();
        struct Parts {
            size: u64,
            bytes: &'static [u8],
            ends: Vec<u32>,
            order: Vec<u32>,
            specials: Vec<u32>,
            end_of_text: Vec<u32>,
        }
        let kind = |change: &dyn Fn(&mut Parts)| {
            let mut parts = Parts {
                size: 5,
                bytes: b"aab",
                ends: vec![1, 3],
                order: vec![1, 0],
                specials: vec![2, 4],
                end_of_text: vec![4],
            };
            change(&mut parts);
            let mut writer = PayloadWriter::default();
            writer.u64(parts.size);
            writer.bytes(parts.bytes);
            writer.u32s(parts.ends.into_iter());
            writer.u32s(parts.order.into_iter());
            writer.count(parts.specials.len());
            for special in parts.specials {
                writer.u32(special);
                writer.str(if special == 2 { "<pad>" } else { "</s>" });
            }
            writer.u32s(parts.end_of_text.into_iter());
            decoded(&writer.finish()).map_err(|error| error.to_string())
        };
        assert_eq!(kind(&|_| ()), Ok(vocabulary));
        let changes: [&dyn Fn(&mut Parts); 16] = [
            &|parts| parts.size = 1 << 40,
            &|parts| parts.size = 4,
            &|parts| parts.size = 6,
            &|parts| parts.bytes = b"aabb",
            &|parts| parts.bytes = b"aa",
            &|parts| parts.bytes = b"baa",
            &|parts| parts.ends = vec![3, 3],
            &|parts| parts.ends = vec![u32::MAX, 3],
            &|parts| parts.ends = vec![1],
            &|parts| parts.order = vec![1, 1],
            &|parts| parts.order = vec![1, 2],
            &|parts| parts.order = vec![1, 9],
            &|parts| parts.specials = vec![4, 2],
            &|parts| parts.specials = vec![2, 2, 4],
            &|parts| parts.end_of_text = vec![],
            &|parts| parts.end_of_text = vec![0],
        ];
        for (number, change) in changes.iter().enumerate() {
            assert!(kind(change).is_err(), "change {number}");
        }
        assert!(kind(&|parts| parts.end_of_text = vec![4, 4]).is_err());
        let none: &dyn Fn(&mut Parts) = &|parts| {
            (parts.bytes, parts.ends, parts.order) = (b"", vec![], vec![]);
        };
        assert!(kind(none).is_err());
    }
}
