//! Token names are spelt as the `tokenizers` crate decodes them.

use std::collections::{BTreeMap, HashMap, HashSet};

use domino::{TokenId, Vocabulary};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::{Decoder, DecoderWrapper};

use crate::support::shared_data::shared;

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");
const SENTENCEPIECE: &str = include_str!("../fixtures/sentencepiece.json");
/// A name in front of the others, since decoders may drop a space in front of a text.
const GUARD: &str = "!";

fn is_byte(name: &str) -> bool {
    name.len() == 6
        && name.starts_with("<0x")
        && name.ends_with('>')
        && name[3..5].chars().all(|c| c.is_ascii_hexdigit())
}

/// Decodes names one after another by the crate.
fn shown(names: &[&str], decoder: &DecoderWrapper) -> String {
    let names = std::iter::once(GUARD).chain(names.iter().copied()).map(str::to_owned);
    let text = decoder.decode(names.collect()).unwrap();
    text.strip_prefix(GUARD).unwrap().to_owned()
}

/// Holds all tokens of a file against the crate; returns their number.
fn check(json: &str) -> usize {
    let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
    let file: Value = serde_json::from_str(json).unwrap();
    let decoder: DecoderWrapper = serde_json::from_value(file["decoder"].clone()).unwrap();
    let id = |value: &Value| TokenId::new(u32::try_from(value.as_u64().unwrap()).unwrap());
    let vocab = file["model"]["vocab"].as_object().unwrap();
    let mut names: BTreeMap<TokenId, &str> =
        vocab.iter().map(|(name, number)| (id(number), name.as_str())).collect();
    let mut added = HashSet::new();
    for token in file["added_tokens"].as_array().unwrap() {
        if token["special"] == true {
            names.remove(&id(&token["id"]));
        } else {
            names.insert(id(&token["id"]), token["content"].as_str().unwrap());
            added.insert(id(&token["id"]));
        }
    }
    names.retain(|id, _| !vocabulary.is_end_of_text(*id));
    let spelt: BTreeMap<TokenId, &[u8]> = vocabulary.text_tokens().collect();
    let mut of_byte: HashMap<u8, &str> = HashMap::new();
    for (id, name) in &names {
        let bytes = spelt.get(id).copied().unwrap_or_default();
        let text = shown(&[name], &decoder);
        if added.contains(id) && text.contains('\u{fffd}') && !name.contains('\u{fffd}') && !is_byte(name) {
            assert_eq!(bytes, name.as_bytes(), "{name:?}");
        } else {
            assert_eq!(String::from_utf8_lossy(bytes), text, "{name:?}");
        }
        if let &[byte] = bytes {
            of_byte.insert(byte, name);
        }
    }
    assert!(spelt.keys().all(|id| names.contains_key(id)));
    // Characters tell apart bytes that the crate shows alike by themselves.
    let beyond = ['\u{800}', '\u{fff}', '\u{d7ff}', '\u{e000}', '\u{10000}', '\u{3ffff}', '\u{10ffff}'];
    for c in ('\u{80}'..'\u{800}').chain(beyond) {
        let bytes = c.to_string().into_bytes();
        let names: Option<Vec<&str>> = bytes.iter().map(|byte| of_byte.get(byte).copied()).collect();
        if let Some(names) = names {
            assert_eq!(shown(&names, &decoder), c.to_string());
        }
    }
    let all: Vec<TokenId> = spelt.keys().copied().collect();
    for some in all.chunks(5) {
        let bytes: Vec<u8> = some.iter().flat_map(|id| spelt[id]).copied().collect();
        let whole =
            some.iter().all(|id| !added.contains(id)).then(|| String::from_utf8(bytes).ok()).flatten();
        if let Some(text) = whole {
            let names: Vec<&str> = some.iter().map(|id| names[id]).collect();
            assert_eq!(shown(&names, &decoder), text);
        }
    }
    spelt.len()
}

#[test]
fn token_names_of_the_fixtures_are_spelt_as_by_the_crate() {
    assert!(check(BYTE_LEVEL) > 250);
    assert!(check(SENTENCEPIECE) > 250);
}

#[test]
fn token_names_of_the_shipped_vocabulary_are_spelt_as_by_it() {
    let shipped = concat!(env!("DOMINO_ROOT"), "/models/domino-small/tokenizer.json");
    assert!(check(&std::fs::read_to_string(shipped).unwrap()) > 31_000);
}

#[test]
fn token_names_of_real_vocabularies_are_spelt_as_by_the_crate() {
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
    let strip = json!({"type": "Strip", "content": " ", "start": 1, "stop": 0});
    prop::sample::select(vec![
        sequence(&[&space, &fallback, &json!({"type": "Fuse"})]),
        sequence(&[&replace("_", " "), &fallback]),
        sequence(&[&replace("▁", "x"), &fallback]),
        sequence(&[&replace("ab", " "), &fallback]),
        sequence(&[&space, &replace("a", " "), &fallback]),
        sequence(&[&sequence(&[&space]), &fallback, &json!({"type": "Fuse"}), &strip]),
        sequence(&[&level]),
        fallback,
        level,
    ])
}

proptest! {
    /// Random names. `<0x+1>` is left out: the crate reads it as a byte, since Rust reads `+1` as a number.
    #[test]
    fn random_token_names_are_spelt_as_by_the_crate(
        names in prop::collection::btree_set(
            prop_oneof!["[ab▁_ !ĠĊÿ\u{100}\u{143}\u{144}é<>0x]{1,5}", "<0x[0-9A-Fa-fg▁]{0,3}>?", ".{1,4}"],
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
        let file = json!({
            "added_tokens": added, "decoder": decoder, "model": {"type": "BPE", "vocab": vocab},
        });
        check(&file.to_string());
    }
}
