//! Vocabularies of real tokenizers spell the texts that the reference tokenizers split.

use std::{collections::HashSet, path::Path};

use domino::{
    TokenId, Vocabulary,
    vocab::{Tokenizer, VocabularyErrorKind},
};
use serde::Deserialize;
use tokenizers::{NormalizedString, Normalizer, normalizers::unicode::NFC};

use crate::support::shared_data::shared;

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");
const SENTENCEPIECE: &str = include_str!("../fixtures/sentencepiece.json");

#[derive(Deserialize)]
struct Row {
    text: String,
    ids: Vec<u32>,
}

/// Form of the concatenated bytes of a row's tokens.
#[derive(Clone, Copy)]
enum Form {
    Plain,
    /// The text with a space in front, which the normaliser puts there.
    Spaced,
    /// The NFC form of the text.
    Nfc,
}

fn expected(text: &str, form: Form) -> String {
    match form {
        Form::Plain => text.to_owned(),
        Form::Spaced => format!(" {text}"),
        Form::Nfc => {
            let mut normalized = NormalizedString::from(text);
            NFC.normalize(&mut normalized).unwrap();
            normalized.get().to_owned()
        }
    }
}

/// Checks all rows of `name`'s golden file; returns its vocabulary.
fn golden(name: &str, form: Form, size: usize, ends: &[&str]) -> Option<Vocabulary> {
    let folder = shared(&format!("data/tokenizers/{name}"))?;
    let vocabulary = Vocabulary::from_tokenizer_file(&folder).unwrap();
    assert_eq!(vocabulary.size(), size);
    let names: Vec<_> = vocabulary.end_of_text().iter().map(|&id| vocabulary.name(id).unwrap()).collect();
    assert_eq!(names, ends);
    let rows = std::fs::read_to_string(folder.join("golden.jsonl")).unwrap();
    let mut count = 0;
    for line in rows.lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let ids: Vec<TokenId> = row.ids.iter().copied().map(TokenId::new).collect();
        for &id in &ids {
            assert!(vocabulary.bytes(id).is_some(), "{name}: token {id} of {:?} has no bytes", row.text);
        }
        let text = if row.text.is_empty() { String::new() } else { expected(&row.text, form) };
        assert_eq!(
            String::from_utf8_lossy(&vocabulary.concat(&ids)),
            text,
            "{name}: {:?} is {:?}",
            row.text,
            row.ids
        );
        count += 1;
    }
    assert_eq!(count, 300);
    check_bytes_and_specials(&vocabulary, &folder);
    Some(vocabulary)
}

/// Checks that every byte can be spelt, and that exactly the tokens marked special are special.
fn check_bytes_and_specials(vocabulary: &Vocabulary, folder: &Path) {
    let single: HashSet<&[u8]> =
        vocabulary.text_tokens().map(|(_, bytes)| bytes).filter(|bytes| bytes.len() == 1).collect();
    assert_eq!(single.len(), 256);
    let json = std::fs::read_to_string(folder.join("tokenizer.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut special: Vec<u64> = Vec::new();
    for token in file["added_tokens"].as_array().unwrap() {
        let id = token["id"].as_u64().unwrap();
        let name = token["content"].as_str().unwrap();
        let token_id = TokenId::new(u32::try_from(id).unwrap());
        if token["special"].as_bool().unwrap() {
            special.push(id);
            assert_eq!(vocabulary.name(token_id), Some(name));
        } else {
            assert_eq!(vocabulary.bytes(token_id), Some(name.as_bytes()));
        }
    }
    special.sort_unstable();
    let found: Vec<u64> = vocabulary.special_tokens().map(|(id, _)| u64::from(id.raw())).collect();
    assert_eq!(found, special);
}

#[test]
fn gpt2_spells_the_texts_that_its_tokenizer_splits() {
    golden("gpt2-50k", Form::Plain, 50_257, &["<|endoftext|>"]);
}

#[test]
fn cl100k_spells_its_texts_and_has_holes_between_ids() {
    let Some(vocabulary) = golden("cl100k-100k", Form::Plain, 100_277, &["<|endoftext|>"]) else { return };
    assert_eq!(vocabulary.bytes(TokenId::new(100_256)), None);
    assert!(!vocabulary.is_special(TokenId::new(100_256)));
    assert_eq!(vocabulary.name(TokenId::new(100_276)), Some("<|endofprompt|>"));
    assert_eq!(vocabulary.token_count(), 100_261);
}

#[test]
fn o200k_spells_the_texts_that_its_tokenizer_splits() {
    golden("o200k-200k", Form::Plain, 200_019, &["<|endoftext|>"]);
}

#[test]
fn qwen2_spells_the_texts_that_its_tokenizer_splits() {
    golden("qwen2-152k", Form::Nfc, 151_646, &["<|endoftext|>", "<|im_end|>"]);
}

#[test]
fn tekken_spells_the_texts_that_its_tokenizer_splits() {
    golden("tekken-131k", Form::Plain, 131_072, &["</s>"]);
}

#[test]
fn mistral_v1_spells_its_texts_and_has_two_tokens_of_one_byte() {
    let Some(vocabulary) = golden("mistral-v1-32k", Form::Spaced, 32_000, &["</s>"]) else { return };
    // `<0x41>` and `A` spell the same byte.
    let spelt_a = vocabulary.text_tokens().filter(|(_, bytes)| *bytes == b"A").count();
    assert_eq!(spelt_a, 2);
}

#[test]
fn mistral_v3_spells_the_texts_that_its_tokenizer_splits() {
    golden("mistral-v3-32k", Form::Spaced, 32_768, &["</s>"]);
}

#[test]
fn prompts_are_cut_as_by_the_reference() {
    for name in ["gpt2-50k", "mistral-v1-32k"] {
        let Some(folder) = shared(&format!("data/tokenizers/{name}")) else { continue };
        let tokenizer = Tokenizer::from_tokenizer_file(&folder).unwrap();
        let rows = std::fs::read_to_string(folder.join("golden.jsonl")).unwrap();
        for line in rows.lines() {
            let row: Row = serde_json::from_str(line).unwrap();
            let ids: Vec<TokenId> = row.ids.iter().copied().map(TokenId::new).collect();
            assert_eq!(tokenizer.encode(&row.text, false).unwrap(), ids, "{name}: {:?}", row.text);
            assert_eq!(tokenizer.decode(&ids).unwrap(), row.text);
        }
    }
}

#[test]
fn the_byte_level_fixture_has_its_tokens_as_text() {
    let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
    let names: Vec<_> = vocabulary.special_tokens().map(|(_, name)| name).collect();
    assert_eq!(names, ["<|begin|>", "<|im_end|>", "<|endoftext|>"]);
    assert_eq!(vocabulary.end_of_text().len(), 2);
    let texts: HashSet<&[u8]> = vocabulary.text_tokens().map(|(_, bytes)| bytes).collect();
    // Added tokens that are not special are text, whatever they look like.
    for text in [" the", "{\"", "\n  ", "<think>", "été"] {
        assert!(texts.contains(text.as_bytes()), "{text:?}");
    }
    let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
    let text = "{\"the\": the\n  été <think>\u{1F600}";
    assert_eq!(vocabulary.concat(&tokenizer.encode(text, true).unwrap()), text.as_bytes());
    // The crate alone would number these 274, 275, 276, 277, 278.
    let ids: Vec<u32> = tokenizer
        .encode("<|begin|><|im_end|><|endoftext|><think>été", true)
        .unwrap()
        .iter()
        .map(|id| id.raw())
        .collect();
    assert_eq!(ids, [274, 275, 278, 280, 281]);
    assert_eq!(tokenizer.decode(&[TokenId::new(280), TokenId::new(278)]).unwrap(), "<think>");
}

#[test]
fn the_sentencepiece_fixture_has_its_tokens_as_text() {
    let vocabulary = Vocabulary::from_tokenizer_json(SENTENCEPIECE).unwrap();
    let texts: HashSet<&[u8]> = vocabulary.text_tokens().map(|(_, bytes)| bytes).collect();
    for text in [&b" the"[..], b"  ", b" ", b"\xff", b"the", b"<0xyz>"] {
        assert!(texts.contains(text), "{text:?}");
    }
    let tokenizer = Tokenizer::from_tokenizer_json(SENTENCEPIECE).unwrap();
    let text = "the  bad \u{1F600}";
    assert_eq!(vocabulary.concat(&tokenizer.encode(text, true).unwrap()), format!(" {text}").as_bytes());
}

#[test]
fn a_folder_says_what_ends_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let ends = || -> Vec<u32> {
        let vocabulary = Vocabulary::from_tokenizer_file(folder.path()).unwrap();
        vocabulary.end_of_text().iter().map(|id| id.raw()).collect()
    };
    let missing = Vocabulary::from_tokenizer_file(folder.path()).unwrap_err();
    assert_eq!(*missing.kind(), VocabularyErrorKind::Io);
    write("tokenizer.json", BYTE_LEVEL);
    assert_eq!(ends(), [275, 278]);
    write("tokenizer_config.json", r#"{"eos_token": {"content": "<|im_end|>"}}"#);
    assert_eq!(ends(), [275]);
    write("config.json", r#"{"eos_token_id": 278}"#);
    assert_eq!(ends(), [278]);
    write("generation_config.json", r#"{"eos_token_id": null}"#);
    assert_eq!(ends(), [278]);
    write("generation_config.json", r#"{"eos_token_id": [274, 300]}"#);
    assert_eq!(ends(), [274, 300]);
    write("generation_config.json", r#"{"eos_token_id": "<nothing>"}"#);
    let error = Vocabulary::from_tokenizer_file(folder.path()).unwrap_err();
    assert_eq!(*error.kind(), VocabularyErrorKind::Malformed);
    assert!(error.to_string().contains("generation_config.json"), "{error}");
}
