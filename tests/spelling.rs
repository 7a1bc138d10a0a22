//! Names spelt character by character are what `toktrie_hf_tokenizers` makes of them whole.

use std::collections::{BTreeMap, HashMap};

use domino::{TokenId, Vocabulary};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::{DecoderWrapper, Tokenizer, models::wordlevel::WordLevel};
use toktrie_hf_tokenizers::ByteTokenizer;

use crate::shared_data::shared;

const BYTE_LEVEL: &str = include_str!("fixtures/byte_level.json");
const SENTENCEPIECE: &str = include_str!("fixtures/sentencepiece.json");
/// In front of names that the library would trip over, and taken off again.
const GUARD: &str = "!";

fn is_byte(name: &str) -> bool {
    name.len() == 6
        && name.starts_with("<0x")
        && name.ends_with('>')
        && name[3..5].chars().all(|c| c.is_ascii_hexdigit())
}

/// The bytes of names, by the library alone.
fn whole<'a>(names: impl Iterator<Item = &'a str>, decoder: &Value) -> HashMap<&'a str, Vec<u8>> {
    let names: Vec<&str> = names.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    let guarded = |name: &str| name.starts_with("<0x") && !is_byte(name);
    let asked =
        names.iter().map(|name| if guarded(name) { format!("{GUARD}{name}") } else { (*name).to_owned() });
    let vocab = asked.zip(0..).collect();
    let mut tokenizer = Tokenizer::new(WordLevel::builder().vocab(vocab).build().unwrap());
    tokenizer.with_decoder(Some(serde_json::from_value::<DecoderWrapper>(decoder.clone()).unwrap()));
    let bytes = ByteTokenizer::from_tokenizer(tokenizer).unwrap().token_bytes();
    let of = |name: &'a str, bytes: Vec<u8>| match bytes {
        bytes if bytes.is_empty() => name.as_bytes().to_vec(),
        bytes if guarded(name) => bytes[GUARD.len()..].to_vec(),
        bytes => bytes,
    };
    names.into_iter().zip(bytes).map(|(name, bytes)| (name, of(name, bytes))).collect()
}

/// Holds all tokens of a file against the library.
fn check(json: &str) -> usize {
    let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
    let file: Value = serde_json::from_str(json).unwrap();
    let added = file["added_tokens"].as_array().unwrap();
    let special = |token: &&Value| token["special"] == true;
    let content = |token: &'_ Value| token["content"].as_str().unwrap().to_owned();
    let id = |value: &Value| TokenId::new(u32::try_from(value.as_u64().unwrap()).unwrap());
    let vocab = file["model"]["vocab"].as_object().unwrap();
    let ordinary: Vec<(TokenId, String)> = added
        .iter()
        .filter(|token| !special(token))
        .map(|token| (id(&token["id"]), content(token)))
        .collect();
    let names = vocab.keys().map(String::as_str).chain(ordinary.iter().map(|(_, name)| name.as_str()));
    let bytes = whole(names, &file["decoder"]);
    let mut expected: BTreeMap<TokenId, &[u8]> =
        vocab.iter().map(|(name, number)| (id(number), &*bytes[name.as_str()])).collect();
    for (id, name) in &ordinary {
        let spelt = &*bytes[name.as_str()];
        let text = is_byte(name) || std::str::from_utf8(spelt).is_ok();
        expected.insert(*id, if text { spelt } else { name.as_bytes() });
    }
    for token in added.iter().filter(special) {
        expected.remove(&id(&token["id"]));
    }
    expected.retain(|id, bytes| !bytes.is_empty() && !vocabulary.is_end_of_text(*id));
    assert!(vocabulary.text_tokens().eq(expected.iter().map(|(id, bytes)| (*id, *bytes))));
    expected.len()
}

#[test]
fn fixtures() {
    assert!(check(BYTE_LEVEL) > 250);
    assert!(check(SENTENCEPIECE) > 250);
}

#[cfg(not(packaged))]
#[test]
fn the_shipped_vocabulary() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/models/domino-small/tokenizer.json");
    assert!(check(&std::fs::read_to_string(shipped).unwrap()) > 31_000);
}

#[test]
fn real_vocabularies() {
    for name in [
        "mistral-v1-32k",
        "mistral-v3-32k",
        "gpt2-50k",
        "cl100k-100k",
        "tekken-131k",
        "qwen2-152k",
        "o200k-200k",
    ] {
        let Some(file) = shared(&format!("data/tokenizers/{name}/tokenizer.json")) else { continue };
        assert!(check(&std::fs::read_to_string(file).unwrap()) > 31_000, "{name}");
    }
}

fn decoders() -> impl Strategy<Value = Value> {
    let replace =
        |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let fallback = json!({"type": "ByteFallback"});
    let sequence = |decoders: &[&Value]| json!({"type": "Sequence", "decoders": decoders});
    let space = replace("▁", " ");
    prop::sample::select(vec![
        sequence(&[&space, &fallback, &json!({"type": "Fuse"})]),
        sequence(&[&replace("_", " "), &fallback]),
        sequence(&[&replace("▁", "x"), &fallback]),
        sequence(&[&replace("ab", " "), &fallback]),
        sequence(&[&space, &replace("a", " "), &fallback]),
        sequence(&[&level, &fallback]),
        sequence(&[&level]),
        fallback,
        level,
    ])
}

proptest! {
    #[test]
    fn any_names(
        names in prop::collection::btree_set(
            prop_oneof!["[ab▁_ !ĠĊÿ\u{100}\u{143}\u{144}é<>0x]{1,5}", "<0x[0-9A-Fa-f+g▁]{0,3}>?", ".{1,4}"],
            1..30,
        ),
        added in prop::collection::vec(prop_oneof!["[abĠé▁ÿ]{1,3}", "<0x[0-9A-F]{2}>"], 0..3),
        decoder in decoders(),
    ) {
        let vocab: serde_json::Map<String, Value> = names.into_iter().zip((0..).map(Value::from)).collect();
        let added = added.into_iter().filter(|name| !vocab.contains_key(name)).zip(100..);
        let mut added: Vec<Value> =
            added.map(|(content, id)| json!({"id": id, "content": content, "special": false})).collect();
        added.push(json!({"id": 200, "content": "</s>", "special": true}));
        let file = json!({"added_tokens": added, "decoder": decoder, "model": {"type": "BPE", "vocab": vocab}});
        check(&file.to_string());
    }
}
