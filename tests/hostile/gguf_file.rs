//! Damaged, incomplete or misleading GGUF files: each ends in an error that names the key or tensor and its
//! fault.

use std::{fs, path::Path};

use domino::{
    Vocabulary,
    model::candle::{CandleModel, LoadOptions, ModelError, ModelErrorKind},
    vocab::Tokenizer,
};

use crate::model::gguf::gguf_fixture;

/// Loads a file of these bytes, and returns the error.
fn refusal(bytes: &[u8]) -> ModelError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    let error = CandleModel::load(&path, &LoadOptions::default()).unwrap_err();
    assert!(!error.to_string().is_empty());
    error
}

fn whole() -> Vec<u8> {
    fs::read(gguf_fixture("llama_q4_0")).unwrap()
}

/// Offset of the bytes after a name (with its length).
fn after(bytes: &[u8], name: &str) -> usize {
    let mut with_length = u64::try_from(name.len()).unwrap().to_le_bytes().to_vec();
    with_length.extend(name.as_bytes());
    let at = bytes.windows(with_length.len()).position(|window| window == with_length);
    at.unwrap_or_else(|| panic!("no {name}")) + with_length.len()
}

/// The file with another value of a key of type `u32`.
fn with_value(key: &str, value: u32) -> Vec<u8> {
    let mut bytes = whole();
    let at = after(&bytes, key);
    assert_eq!(bytes[at..at + 4], [4, 0, 0, 0], "{key}");
    bytes[at + 4..at + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// The file with some bytes replaced by others of the same length.
fn replaced(old: &str, new: &str) -> Vec<u8> {
    let mut bytes = whole();
    let end = after(&bytes, old);
    assert_eq!(old.len(), new.len());
    bytes[end - old.len()..end].copy_from_slice(new.as_bytes());
    bytes
}

#[test]
fn files_that_are_cut_or_are_something_else_are_refused() {
    let bytes = whole();
    let lengths = (0..2000).step_by(61).chain((2000..bytes.len()).step_by(1709)).chain([bytes.len() - 1]);
    for length in lengths {
        let error = refusal(&bytes[..length]);
        assert!(matches!(error.kind(), ModelErrorKind::DamagedWeights { .. }), "{length}: {error}");
        assert!(error.to_string().contains("model.gguf"), "{error}");
    }
    let error = refusal(b"PK\x03\x04 this is no model at all, but long enough to be one");
    assert!(error.to_string().contains("not a GGUF file"), "{error}");
    for version in [0_u8, 1, 4, 255] {
        let mut bytes = whole();
        bytes[4] = version;
        assert!(refusal(&bytes).to_string().contains("version"));
    }
    let missing = CandleModel::load(Path::new("no/such.gguf"), &LoadOptions::default()).unwrap_err();
    assert!(matches!(missing.kind(), ModelErrorKind::MissingFile(_)), "{missing}");
}

#[test]
fn lengths_that_lie_are_refused() {
    for at in [8, 16] {
        for count in [u64::MAX, 1 << 40, 1 << 20] {
            let mut bytes = whole();
            bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
            assert!(matches!(refusal(&bytes).kind(), ModelErrorKind::DamagedWeights { .. }), "{at} {count}");
        }
    }
    // The list of tokens, and its first token.
    for skip in [8, 16] {
        let mut bytes = whole();
        let at = after(&bytes, "tokenizer.ggml.tokens") + skip;
        bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(refusal(&bytes).kind(), ModelErrorKind::DamagedWeights { .. }));
    }
}

#[test]
fn metadata_that_is_missing_or_wrong_names_the_key() {
    for key in ["llama.block_count", "llama.attention.head_count", "llama.context_length"] {
        let error = refusal(&replaced(key, &format!("{}x", &key[..key.len() - 1])));
        assert!(matches!(error.kind(), ModelErrorKind::InvalidMetadata(_)), "{error}");
        assert!(error.to_string().contains(key), "{error}");
        // A number of another kind.
        let mut bytes = whole();
        let at = after(&bytes, key);
        bytes[at] = 6;
        let error = refusal(&bytes);
        assert!(matches!(error.kind(), ModelErrorKind::InvalidMetadata(_)), "{error}");
        assert!(error.to_string().contains(key), "{error}");
    }
    for (key, value) in [
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count", 5),
        ("llama.attention.head_count_kv", 3),
        ("llama.context_length", 0),
    ] {
        let error = refusal(&with_value(key, value));
        assert!(matches!(error.kind(), ModelErrorKind::InvalidMetadata(_)), "{key}: {error}");
    }
}

#[test]
fn tensors_that_are_missing_or_do_not_fit_are_named() {
    for (key, value) in [
        ("llama.embedding_length", 0),
        ("llama.embedding_length", 128),
        ("llama.feed_forward_length", 128),
        ("llama.feed_forward_length", u32::MAX / 8),
        ("llama.attention.head_count_kv", 4),
    ] {
        let error = refusal(&with_value(key, value));
        assert!(
            matches!(error.kind(), ModelErrorKind::Shape { .. } | ModelErrorKind::Unsupported { .. }),
            "{key} = {value}: {error}"
        );
    }
    let missing = |bytes: &[u8]| match refusal(bytes).kind() {
        ModelErrorKind::MissingTensor(name) => name.clone(),
        other => panic!("{other:?}"),
    };
    assert!(missing(&with_value("llama.block_count", 3)).starts_with("blk.2."));
    assert!(missing(&with_value("llama.block_count", u32::MAX)).starts_with("blk.2."));
    assert_eq!(missing(&replaced("blk.1.ffn_up.weight", "blk.1.ffn_ux.weight")), "blk.1.ffn_up.weight");
}

#[test]
fn unsupported_formats_are_refused_by_name() {
    let error = refusal(&replaced("llama", "gemma"));
    assert_eq!(*error.kind(), ModelErrorKind::UnknownArchitecture("gemma".into()));
    assert!(error.to_string().contains("qwen2"), "{error}");

    let error = refusal(&replaced("linear", "longro"));
    assert!(matches!(error.kind(), ModelErrorKind::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("longro"), "{error}");

    for (number, name) in [(10_u32, "Q2_K"), (16, "IQ2_XXS"), (999, "999")] {
        let mut bytes = whole();
        // The name is followed by the number of dimensions, two, and their sizes.
        let at = after(&bytes, "blk.0.ffn_up.weight") + 4 + 16;
        assert_eq!(bytes[at..at + 4], [2, 0, 0, 0]);
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        let error = refusal(&bytes);
        let ModelErrorKind::NumberFormat { tensor, format } = error.kind() else { panic!("{error}") };
        assert!(tensor == "blk.0.ffn_up.weight" && format.contains(name), "{error}");
        assert!(error.to_string().contains("Q4_K"), "{error}");
    }
}

#[test]
fn tensors_past_the_end_or_over_each_other_are_refused() {
    for offset in [u64::MAX, 1 << 40, 32] {
        let mut bytes = whole();
        let at = after(&bytes, "blk.0.ffn_up.weight") + 4 + 16 + 4;
        bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        let error = refusal(&bytes);
        assert!(matches!(error.kind(), ModelErrorKind::DamagedWeights { .. }), "{offset}: {error}");
    }
}

#[test]
fn tokenizers_that_are_missing_or_unknown_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for (old, new, wanted) in [
        ("tokenizer.ggml.tokens", "tokenizer.ggml.tokenx", "tokenizer.ggml.tokens"),
        ("tokenizer.ggml.merges", "tokenizer.ggml.mergex", "tokenizer.ggml.merges"),
        ("gpt2", "rwkv", "rwkv"),
    ] {
        fs::write(&path, replaced(old, new)).unwrap();
        let error = Vocabulary::from_tokenizer_file(&path).unwrap_err();
        assert!(error.to_string().contains(wanted) && error.to_string().contains("model.gguf"), "{error}");
        assert!(Tokenizer::from_tokenizer_file(&path).is_err());
    }
    // Only prompts need to know how text is split.
    fs::write(&path, replaced("llama-bpe", "llama-xyz")).unwrap();
    Vocabulary::from_tokenizer_file(&path).unwrap();
    let error = Tokenizer::from_tokenizer_file(&path).unwrap_err();
    assert!(error.to_string().contains("llama-xyz"), "{error}");
    fs::write(&path, &whole()[..5000]).unwrap();
    assert!(Vocabulary::from_tokenizer_file(&path).is_err());
}
