//! Broken and odd `tokenizer.json` files.

use domino::{
    TokenId, Vocabulary,
    vocab::{Tokenizer, VocabularyErrorKind as Kind},
};

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");
const SENTENCEPIECE: &str = include_str!("../fixtures/sentencepiece.json");

/// A byte-level tokenizer with these added tokens and this model.
fn file(added: &str, model: &str) -> String {
    let decoder = r#"{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}"#;
    format!(r#"{{"added_tokens":{added},"decoder":{decoder},"model":{model}}}"#)
}

const END: &str = r#"[{"id":9,"content":"</s>","special":true}]"#;

fn kind(json: &str) -> Kind {
    Vocabulary::from_tokenizer_json(json).unwrap_err().kind().clone()
}

fn text(vocabulary: &Vocabulary, id: u32) -> Option<&[u8]> {
    vocabulary.bytes(TokenId::new(id))
}

#[test]
fn every_truncation_is_an_error() {
    for json in [BYTE_LEVEL, SENTENCEPIECE] {
        for end in (0..json.len() - 1).filter(|end| json.is_char_boundary(*end)).step_by(7) {
            assert_eq!(kind(&json[..end]), Kind::NotJson, "cut at {end}");
        }
        assert!(Tokenizer::from_tokenizer_json(&json[..json.len() / 2]).is_err());
    }
}

#[test]
fn values_of_wrong_types_are_malformed() {
    for json in [
        "[]",
        "3",
        "null",
        "\"x\"",
        "{}",
        r#"{"model":3}"#,
        r#"{"model":{"vocab":{"a":0}},"added_tokens":{}}"#,
    ] {
        assert_eq!(kind(json), Kind::Malformed, "{json}");
    }
    for vocab in [
        "3",
        "null",
        r#"{"a":-1}"#,
        r#"{"a":"0"}"#,
        r#"{"a":1.5}"#,
        r#"["a"]"#,
        r#"{"a":99999999999999999999}"#,
    ] {
        let model = format!(r#"{{"type":"BPE","vocab":{vocab}}}"#);
        assert_eq!(kind(&file(END, &model)), Kind::Malformed, "{vocab}");
    }
    for added in [r#"[{"id":0}]"#, r#"[{"content":"x"}]"#, r#"[{"id":-3,"content":"x"}]"#, "[7]"] {
        assert_eq!(kind(&file(added, r#"{"vocab":{"a":0}}"#)), Kind::Malformed, "{added}");
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(kind(&nested), Kind::Malformed);
    assert_eq!(kind(&format!(r#"{{"decoder":{nested}}}"#)), Kind::NotJson);
}

#[test]
fn unsupported_kinds_of_tokenizers_are_refused() {
    for model in [
        r#"{"type":"WordPiece","vocab":{"a":0}}"#,
        r#"{"type":"Mystery","vocab":{"a":0}}"#,
        r#"{"type":"BPE","end_of_word_suffix":"</w>","vocab":{"a":0}}"#,
        r###"{"type":"BPE","continuing_subword_prefix":"##","vocab":{"a":0}}"###,
    ] {
        assert_eq!(kind(&file(END, model)), Kind::Unsupported, "{model}");
    }
    for decoder in [
        "null",
        "{}",
        r#"{"type":"Mystery"}"#,
        r#"{"type":"WordPiece","prefix":"x","cleanup":true}"#,
        "7",
        r#"{"type":"Fuse"}"#,
        r#"{"type":"Sequence","decoders":[{"type":"ByteLevel"},{"type":"ByteFallback"}]}"#,
        r#"{"type":"Sequence","decoders":[
            {"type":"Replace","pattern":{"String":""},"content":"a"},{"type":"ByteFallback"}]}"#,
        r#"{"type":"Sequence","decoders":[
            {"type":"Replace","pattern":{"Regex":"a+"},"content":"a"},{"type":"ByteFallback"}]}"#,
    ] {
        let json = format!(r#"{{"added_tokens":{END},"decoder":{decoder},"model":{{"vocab":{{"a":0}}}}}}"#);
        assert_eq!(kind(&json), Kind::Unsupported, "{decoder}");
    }
}

#[test]
fn doubled_and_too_large_ids_are_refused() {
    assert_eq!(kind(&file(END, r#"{"vocab":{"a":0,"b":0}}"#)), Kind::DuplicateId(0));
    assert_eq!(kind(&file(END, r#"{"vocab":{"a":9}}"#)), Kind::DuplicateId(9));
    let twice = r#"[{"id":9,"content":"</s>","special":true},{"id":9,"content":"x"}]"#;
    assert_eq!(kind(&file(twice, r#"{"vocab":{"a":0}}"#)), Kind::DuplicateId(9));
    assert_eq!(kind(&file(END, r#"{"vocab":{"a":16777216}}"#)), Kind::IdTooLarge(1 << 24));
    assert_eq!(kind(&file(END, r#"{"vocab":{"a":18446744073709551615}}"#)), Kind::IdTooLarge(u64::MAX));
    let largest = Vocabulary::from_tokenizer_json(&file(END, r#"{"vocab":{"a":16777215}}"#)).unwrap();
    assert_eq!(largest.size(), 1 << 24);
}

#[test]
fn doubled_and_empty_tokens_are_read() {
    let model = r#"{"vocab":{"a":0,"":1,"a":2,"</s>":9,"b":3,"b":3}}"#;
    let vocabulary = Vocabulary::from_tokenizer_json(&file(END, model)).unwrap();
    assert_eq!(text(&vocabulary, 0), Some(&b"a"[..]));
    assert_eq!(text(&vocabulary, 1), None);
    assert_eq!(text(&vocabulary, 2), Some(&b"a"[..]));
    assert_eq!(text(&vocabulary, 3), Some(&b"b"[..]));
    assert_eq!(vocabulary.end_of_text(), [TokenId::new(9)]);
}

#[test]
fn vocabularies_without_text_or_end_are_refused() {
    assert_eq!(kind(&file(END, r#"{"vocab":{}}"#)), Kind::NoTokens);
    assert_eq!(kind(&file(END, r#"{"vocab":{"":0}}"#)), Kind::NoTokens);
    assert_eq!(kind(&file("[]", r#"{"vocab":{"a":0}}"#)), Kind::NoEndOfText);
    assert_eq!(kind(&file("null", r#"{"vocab":{"a":0,"</s>":1}}"#)), Kind::NoEndOfText);
    let unknown = r#"[{"id":1,"content":"<done>","special":true}]"#;
    assert_eq!(kind(&file(unknown, r#"{"vocab":{"a":0}}"#)), Kind::NoEndOfText);
}

/// Names that look like bytes, and names outside the byte-level alphabet, stand for themselves.
#[test]
fn odd_token_names_stand_for_themselves() {
    let decoder = r#"{"type":"Sequence","decoders":[
        {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"}]}"#;
    let vocab = r#"{"<0x41>":0,"<0xZZ>":1,"<0x":2,"<0x▁1>":3,"<0x+1>":4,"<0xé>":5,"!<0x1":6}"#;
    let json = format!(r#"{{"added_tokens":{END},"decoder":{decoder},"model":{{"vocab":{vocab}}}}}"#);
    let vocabulary = Vocabulary::from_tokenizer_json(&json).unwrap();
    let names: Vec<_> = (0..7).map(|id| String::from_utf8_lossy(text(&vocabulary, id).unwrap())).collect();
    assert_eq!(names, ["A", "<0xZZ>", "<0x", "<0x 1>", "<0x+1>", "<0xé>", "!<0x1"]);
    let byte_level =
        Vocabulary::from_tokenizer_json(&file(END, r#"{"vocab":{"Ġa":0,"\u2581 b":1,"<0x4":2}}"#)).unwrap();
    assert_eq!(text(&byte_level, 0), Some(&b" a"[..]));
    assert_eq!(text(&byte_level, 1), Some("\u{2581} b".as_bytes()));
    assert_eq!(text(&byte_level, 2), Some(&b"<0x4"[..]));
}

/// Files with random bytes changed, cut out or doubled are read or refused.
#[test]
fn randomly_damaged_files_are_read_or_refused() {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    let mut random = StdRng::seed_from_u64(7);
    let mut read = 0;
    for round in 0..1500 {
        let mut json = [BYTE_LEVEL, SENTENCEPIECE][round % 2].as_bytes().to_vec();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..json.len());
            let end = (at + random.random_range(1..12)).min(json.len());
            match random.random_range(0..4) {
                0 => json[at] = random.random_range(32..127),
                1 => drop(json.drain(at..end)),
                2 => drop(json.splice(at..at, json[at..end].to_vec())),
                _ => json[at] = b"\"{}[],:0"[random.random_range(0..8)],
            }
        }
        let Ok(json) = String::from_utf8(json) else { continue };
        read += u32::from(Vocabulary::from_tokenizer_json(&json).is_ok());
        // The `tokenizers` crate must not bring the program down either.
        drop(Tokenizer::from_tokenizer_json(&json));
    }
    assert!(read > 20, "{read} files were read");
}
