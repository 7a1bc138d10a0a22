//! Stored vocabularies, and encodings with one wrong part.

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
    let token = prop_oneof![6 => text.prop_map(Ok), 1 => ".{0,5}".prop_map(Err), 1 => Just(Ok(Vec::new()))];
    (prop::collection::vec(token, 0..40), 0_u32..50).prop_map(|(tokens, end)| {
        let builder = Vocabulary::builder().token(TokenId::new(60), "x").end_of_text(TokenId::new(end));
        let ids = (0..).map(TokenId::new);
        let add =
            |builder: super::super::VocabularyBuilder, (id, token): (_, Result<Vec<u8>, String>)| match token
            {
                Ok(bytes) => builder.token(id, bytes),
                Err(name) => builder.special(id, name),
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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/domino-small");
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
