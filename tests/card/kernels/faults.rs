//! Failures of a card, as its driver words them, and weights that are no numbers: what ends, what is said,
//! and what goes on.

use std::{error::Error, fs, num::NonZeroUsize, path::Path};

use domino::{
    TokenId,
    decode::{DecodeError, DecodeErrorKind, Decoder, DrawError, KeptDrawError, Sampler, Sampling},
    model::{
        Model, Rows,
        candle::{CardFault, LoadOptions, ModelError, ModelErrorKind, Placement, Precision, TensorModel},
    },
    proposer::{DraftLength, Drafter},
    vocab::TokenSet,
};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    emulated,
    lossless::{Liar, vocabulary},
    some_tokens,
};
use crate::model::runner::fixture;

const FAULTS: [CardFault; 6] = [
    CardFault::Driver,
    CardFault::Missing,
    CardFault::Held,
    CardFault::Capability,
    CardFault::Memory,
    CardFault::Dead,
];

fn failing(fault: CardFault, after: u64) -> Result<TensorModel, ModelError> {
    let place = Placement::emulated(false).with_precision(Precision::Bf16).failing(fault, after);
    TensorModel::load(fixture("mistral_tied"), &LoadOptions::default(), place)
}

/// Loads the model on an emulated card that does not fail.
fn sound() -> TensorModel {
    emulated(&fixture("mistral_tied"), Precision::Bf16)
}

/// The number of calls to the card while a model is loaded.
fn calls_of_loading() -> u64 {
    (0..).find(|&after| failing(CardFault::Memory, after).is_ok()).unwrap()
}

fn decoder(card: TensorModel) -> Decoder<TensorModel> {
    let vocabulary = vocabulary(card.vocabulary_size());
    let mut decoder = Decoder::builder(card).vocabulary(vocabulary).max_new_tokens(5).build().unwrap();
    decoder.options_mut().sampling = Sampling::with_temperature(0.7).unwrap();
    decoder
}

/// The fault that ended a text.
fn fault_of(error: &DecodeError) -> CardFault {
    assert_eq!(*error.kind(), DecodeErrorKind::Model, "{error}");
    let source = error.source().and_then(|source| source.downcast_ref::<ModelError>()).expect("a model's");
    match source.kind() {
        ModelErrorKind::Card(fault) => {
            assert!(source.to_string().contains(&fault.to_string()), "{source}");
            *fault
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failure_while_a_model_is_loaded_says_what_can_be_done() {
    let calls = calls_of_loading();
    assert!(calls > 10, "{calls} calls");
    for fault in FAULTS {
        for after in [0, calls / 2, calls - 1] {
            let error = failing(fault, after).unwrap_err();
            assert_eq!(*error.kind(), ModelErrorKind::Card(fault), "{after}");
            assert_eq!(error.to_string(), format!("the card failed: {fault}"));
        }
    }
}

/// Before any weight is read, with what can be done about it.
#[test]
fn a_model_without_room_on_the_card_is_refused_by_what_it_takes() {
    let place = Placement::emulated(false).with_precision(Precision::Bf16);
    let mut options = LoadOptions::default();
    options.context = Some(64);
    options.memory_limit = Some(20_000);
    let folder = TempDir::new().unwrap();
    for entry in fs::read_dir(fixture("mistral_tied")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let error = TensorModel::load(folder.path(), &options, place).unwrap_err();
    let ModelErrorKind::CardMemory { weights, cache, context: 64, free: 20_000 } = *error.kind() else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("--context"), "{error}");
    // Two texts have room for twice as many tokens, and the way out is said.
    let two = TensorModel::load_batch(folder.path(), NonZeroUsize::new(2).unwrap(), &options, place);
    let error = two.unwrap_err();
    assert!(matches!(error.kind(), ModelErrorKind::CardMemory { context: 128, .. }), "{error}");
    assert!(error.to_string().contains("--max-seqs"), "{error}");
    // To the byte: with as much it is loaded.
    options.memory_limit = Some(weights + cache - 1);
    assert!(TensorModel::load(folder.path(), &options, place).is_err());
    options.memory_limit = Some(weights + cache);
    TensorModel::load(folder.path(), &options, place).unwrap();
}

#[test]
fn a_full_memory_ends_one_text_and_others_go_on() {
    let prompt = some_tokens(4, 90);
    let plain = decoder(sound()).generate(&prompt).unwrap();
    let loading = calls_of_loading();
    let mut failed = 0;
    // At calls of all kinds: writes, kernels, products, choices and reads.
    for after in (loading..).step_by(7) {
        let mut decoder = decoder(failing(CardFault::Memory, after).unwrap());
        match decoder.generate(&prompt) {
            Ok(text) => {
                // The text was done before the call.
                assert_eq!(text.tokens, plain.tokens);
                break;
            }
            Err(error) => assert_eq!(fault_of(&error), CardFault::Memory, "{after}"),
        }
        failed += 1;
        assert_eq!(decoder.generate(&prompt).unwrap().tokens, plain.tokens, "{after}");
    }
    assert!(failed > 15, "{failed} texts failed");
}

#[test]
fn a_pass_that_fails_leaves_the_cache_as_it_was() {
    let loading = calls_of_loading();
    let tokens = some_tokens(12, 90);
    let mut whole = sound();
    let expected = whole.forward(&tokens, Rows::Last).unwrap();
    for after in loading + 60..loading + 80 {
        let mut card = failing(CardFault::Memory, after).unwrap();
        let mut at = 0;
        let mut failures = 0;
        let mut last = None;
        while at < tokens.len() {
            match card.forward(&tokens[at..at + 3], Rows::Last) {
                Ok(rows) => {
                    last = Some(rows);
                    at += 3;
                }
                Err(error) => {
                    assert_eq!(*error.kind(), ModelErrorKind::Card(CardFault::Memory));
                    failures += 1;
                }
            }
            assert_eq!(card.position(), at, "{after}");
        }
        assert_eq!((failures, last.as_ref()), (1, Some(&expected)), "{after}");
    }
}

/// A pass with a draft that fails is made again without, so a text may go on; if not, it ends as any.
#[test]
fn drafts_of_a_pass_that_fails_change_no_text() {
    let prompt = some_tokens(4, 90);
    let plain = decoder(sound()).generate(&prompt).unwrap();
    let loading = calls_of_loading();
    let (mut ended, mut went_on) = (0, 0);
    for after in (loading..loading + 90).step_by(3) {
        let mut decoder = decoder(failing(CardFault::Memory, after).unwrap());
        let liar = Liar { truth: plain.tokens.clone(), prompt: prompt.len(), turn: after };
        decoder.set_drafter(Some(Drafter::new(Box::new(liar), DraftLength::up_to(3, 0.0).unwrap())));
        let has_ended = match decoder.generate(&prompt) {
            Ok(text) => {
                assert_eq!(text.tokens, plain.tokens, "{after}");
                false
            }
            Err(error) => {
                assert_eq!(fault_of(&error), CardFault::Memory, "{after}");
                true
            }
        };
        match decoder.generate(&prompt) {
            Ok(text) => assert_eq!(text.tokens, plain.tokens, "{after}"),
            // The first text was done before the call.
            Err(error) => {
                assert!(!has_ended && fault_of(&error) == CardFault::Memory, "{after}");
                break;
            }
        }
        ended += usize::from(has_ended);
        went_on += usize::from(!has_ended);
    }
    assert!(ended > 0 && went_on > 0, "{ended} ended, {went_on} went on");
}

#[test]
fn texts_after_a_failed_kernel_end_in_an_error() {
    let (loading, prompt) = (calls_of_loading(), some_tokens(4, 90));
    for after in [loading, loading + 9, loading + 40] {
        let mut decoder = decoder(failing(CardFault::Dead, after).unwrap());
        for _ in 0..3 {
            let error = decoder.generate(&prompt).unwrap_err();
            assert_eq!(fault_of(&error), CardFault::Dead);
            let said = error.source().unwrap().to_string();
            assert!(said.contains("start the program again"), "{said}");
        }
    }
}

/// A copy of a checkpoint in which one weight of a tensor is another number.
fn with_weight(tensor: &str, index: usize, number: f32) -> TempDir {
    let (from, to) = (fixture("mistral_tied"), TempDir::new().unwrap());
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    let file = to.path().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let head = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let names: Value = serde_json::from_slice(&bytes[8..8 + head]).unwrap();
    assert_eq!(names[tensor]["dtype"], "F32");
    let start = usize::try_from(names[tensor]["data_offsets"][0].as_u64().unwrap()).unwrap();
    let start = 8 + head + start + 4 * index;
    bytes[start..start + 4].copy_from_slice(&number.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    to
}

/// The error of a text by a model whose weights are no numbers: from rows in place, and by a decoder.
fn refused(folder: &Path, precision: Precision, sampling: Sampling) {
    let mut card = emulated(folder, precision);
    let mut allowed = TokenSet::empty(card.vocabulary_size());
    (0..card.vocabulary_size()).for_each(|id| allowed.insert(TokenId::from_index(id).unwrap()));
    let rows = card.launch(&some_tokens(3, 90), Rows::All).unwrap();
    let error = Sampler::new(sampling, 0).draw_kept(&rows, 2, &allowed, 0).unwrap_err();
    assert!(matches!(error, KeptDrawError::Draw(DrawError::NotFinite(_))), "{error:?}");
    drop(rows);
    let mut decoder = decoder(card);
    decoder.options_mut().sampling = sampling;
    for drafted in [false, true] {
        let liar = Liar { truth: some_tokens(9, 90), prompt: 3, turn: 1 };
        let drafter = Drafter::new(Box::new(liar), DraftLength::up_to(3, 0.0).unwrap());
        decoder.set_drafter(drafted.then_some(drafter));
        let error = decoder.generate(&some_tokens(3, 90)).unwrap_err();
        let DecodeErrorKind::Logits { position, error } = error.kind() else { panic!("{error}") };
        assert_eq!(*position, 3);
        assert!(matches!(error, DrawError::NotFinite(_)), "{error}");
    }
}

#[test]
fn weights_that_are_no_numbers_end_in_an_error_and_not_in_a_token() {
    for (tensor, index) in [
        ("model.norm.weight", 0),
        ("model.embed_tokens.weight", 97 * 32 - 1),
        ("model.layers.0.input_layernorm.weight", 3),
        ("model.layers.0.self_attn.q_proj.weight", 0),
        ("model.layers.0.self_attn.k_proj.weight", 100),
        ("model.layers.1.self_attn.v_proj.weight", 17),
        ("model.layers.1.self_attn.o_proj.weight", 1000),
        ("model.layers.1.mlp.gate_proj.weight", 64),
        ("model.layers.0.mlp.down_proj.weight", 2000),
    ] {
        let folder = with_weight(tensor, index, f32::NAN);
        for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
            for sampling in [Sampling::greedy(), Sampling::with_temperature(1.0).unwrap()] {
                refused(folder.path(), precision, sampling);
            }
        }
    }
}

#[test]
fn infinite_weights_end_in_an_error_too() {
    for tensor in ["model.norm.weight", "model.layers.0.self_attn.v_proj.weight"] {
        for number in [f32::INFINITY, f32::NEG_INFINITY] {
            let folder = with_weight(tensor, 5, number);
            refused(folder.path(), Precision::F32, Sampling::greedy());
        }
    }
}
