//! The tensor runner on the CPU against our own kernels. A card runs the same code on another device.

use std::path::PathBuf;

use domino::{
    TokenId,
    decode::{DrawError, KeptDrawError, Sampler, Sampling},
    model::{
        KeptRows, Model, Rows,
        candle::{
            CandleModel, Format, LoadOptions, ModelErrorKind, Placement, Precision, RandomModel, TensorModel,
        },
    },
    vocab::TokenSet,
};

use crate::model::{gguf, runner};

/// Largest difference allowed, relative to the largest logit: sums in another order.
const TOLERANCE: f32 = 1e-4;

fn fixtures() -> Vec<PathBuf> {
    let computed = |name: &&str| !ON_CPU.contains(name);
    let folders = runner::FIXTURES.into_iter().filter(computed).map(runner::fixture);
    folders.chain(gguf::FIXTURES.into_iter().filter(computed).map(gguf::gguf_fixture)).collect()
}

/// Checkpoints that only our own kernels compute.
const ON_CPU: [&str; 9] = [
    "qwen3_5_tied",
    "qwen3_5_image",
    "qwen3_moe_shares",
    "qwen3_5_moe_shared",
    "gemma4_shared",
    "gemma4_image",
    "qwen35_q8_0",
    "qwen35moe_q5_1",
    "gemma4_q4_0",
];

#[test]
fn models_that_only_our_kernels_compute_are_refused_with_who_computes_them() {
    for name in &ON_CPU[..6] {
        let error = TensorModel::load(runner::fixture(name), &LoadOptions::default(), Placement::CPU);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("computed on the CPU"), "{error}");
    }
}

fn some_tokens(count: u32, vocabulary: usize) -> Vec<TokenId> {
    let vocabulary = u32::try_from(vocabulary).unwrap();
    (0..count).map(|index| TokenId::new(index.wrapping_mul(7919) % vocabulary)).collect()
}

/// Largest difference between the rows of two models for the same tokens, given in parts of `size`.
fn distance(own: &mut CandleModel, tensors: &mut TensorModel, size: usize) -> f32 {
    let tokens = some_tokens(40, own.vocabulary_size());
    let (mut difference, mut largest) = (0.0_f32, 0.0_f32);
    for part in tokens.chunks(size) {
        let expected = own.forward(part, Rows::All).unwrap();
        let got = tensors.forward(part, Rows::All).unwrap();
        assert_eq!((got.rows(), got.width()), (part.len(), own.vocabulary_size()));
        for index in 0..got.rows() {
            for (a, b) in got.row(index).unwrap().iter().zip(expected.row(index).unwrap()) {
                difference = difference.max((a - b).abs());
                largest = largest.max(b.abs());
            }
        }
    }
    assert_eq!(tensors.position(), tokens.len());
    difference / largest
}

#[test]
fn the_logits_are_those_of_our_own_kernels() {
    for path in fixtures() {
        let mut own = CandleModel::load(&path, &gguf::exact()).unwrap();
        let mut tensors = TensorModel::load(&path, &gguf::exact(), Placement::CPU).unwrap();
        // All masks of attention: many tokens at once, some after others, one by one.
        for size in [40, 7, 1] {
            own.truncate(0).unwrap();
            tensors.truncate(0).unwrap();
            let distance = distance(&mut own, &mut tensors, size);
            assert!(distance <= TOLERANCE, "{}, {size} at a time: {distance}", path.display());
        }
    }
}

/// Quantised weights are multiplied with inputs rounded to eight bits: ours in groups of 32, Candle's partly
/// in groups of 256, which shows in models as small as these.
#[test]
fn products_with_blocks_are_nearly_those_of_our_own_kernels() {
    for path in gguf::FIXTURES.into_iter().filter(|name| !ON_CPU.contains(name)).map(gguf::gguf_fixture) {
        let mut own = CandleModel::load(&path, &LoadOptions::default()).unwrap();
        let mut tensors = TensorModel::load(&path, &LoadOptions::default(), Placement::CPU).unwrap();
        for size in [40, 7, 1] {
            own.truncate(0).unwrap();
            tensors.truncate(0).unwrap();
            let distance = distance(&mut own, &mut tensors, size);
            assert!(distance <= 2e-1, "{}: {distance}", path.display());
        }
    }
}

#[test]
fn logits_in_16_bits_are_near_those_in_32() {
    for (precision, tolerance, least) in [(Precision::F16, 2e-2, 1e-5), (Precision::Bf16, 2e-1, 1e-4)] {
        for name in ["llama_gqa_head_dim", "qwen3_tied", "qwen2_untied_window"] {
            let path = runner::fixture(name);
            let mut own = CandleModel::load(&path, &LoadOptions::default()).unwrap();
            let placement = Placement::CPU.with_precision(precision);
            let mut tensors = TensorModel::load(&path, &LoadOptions::default(), placement).unwrap();
            let distance = distance(&mut own, &mut tensors, 9);
            // More than rounding to 32 bits would give: the numbers between layers did have 16.
            assert!(distance <= tolerance && distance > least, "{name} in {precision}: {distance}");
        }
    }
}

#[test]
fn truncated_tokens_and_errors_leave_no_trace() {
    let path = runner::fixture("mistral_tied");
    let mut tensors = TensorModel::load(&path, &LoadOptions::default(), Placement::CPU).unwrap();
    let tokens = some_tokens(12, tensors.vocabulary_size());
    let whole = tensors.forward(&tokens, Rows::Last).unwrap();
    tensors.truncate(5).unwrap();
    tensors.forward(&some_tokens(3, 50), Rows::Last).unwrap();
    tensors.truncate(5).unwrap();
    for wrong in [vec![], vec![TokenId::new(1 << 20)], vec![TokenId::new(0); 1 << 16]] {
        assert!(tensors.forward(&wrong, Rows::All).is_err());
        assert_eq!(tensors.position(), 5);
    }
    assert!(matches!(tensors.truncate(6).unwrap_err().kind(), ModelErrorKind::PastEnd { .. }));
    let again = tensors.forward(&tokens[5..], Rows::Last).unwrap();
    for (a, b) in whole.last().unwrap().iter().zip(again.last().unwrap()) {
        assert!((a - b).abs() <= 1e-4, "{a} {b}");
    }
}

#[test]
fn draws_from_kept_rows_are_those_from_rows() {
    let path = runner::fixture("qwen2_tied_yarn");
    let mut tensors = TensorModel::load(&path, &LoadOptions::default(), Placement::CPU).unwrap();
    let vocabulary = tensors.vocabulary_size();
    let rows = tensors.launch(&some_tokens(20, vocabulary), Rows::All).unwrap();
    let logits = rows.fetch().unwrap();
    assert_eq!((rows.rows(), logits.rows()), (20, 20));
    let mut others = 0;
    for sampling in [Sampling::greedy(), Sampling::with_temperature(1.0).unwrap()] {
        let sampler = Sampler::new(sampling, 3);
        for position in 0..20 {
            let mut allowed = TokenSet::empty(vocabulary);
            let step = 1 + position % 5;
            (0..vocabulary).step_by(step).for_each(|id| allowed.insert(TokenId::from_index(id).unwrap()));
            let row = logits.row(position).unwrap();
            let expected = sampler.draw(row, &allowed, position).unwrap();
            assert_eq!(sampler.draw_kept(&rows, position, &allowed, position).unwrap(), expected);
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            others += usize::from(row[expected.index()] < best);
        }
    }
    assert!(others > 0, "masks and noise made a difference");
    let nothing = TokenSet::empty(vocabulary);
    let error = Sampler::new(Sampling::greedy(), 0).draw_kept(&rows, 0, &nothing, 0).unwrap_err();
    assert!(matches!(error, KeptDrawError::Draw(DrawError::NoneAllowed)), "{error:?}");
}

#[test]
fn devices_and_memory_that_are_not_there_are_refused() {
    let load = |options: &LoadOptions, placement| {
        TensorModel::load(runner::fixture("mistral_tied"), options, placement).unwrap_err()
    };
    // No machine has so many cards, so that this holds in every build that starts.
    let error = load(&LoadOptions::default(), Placement::cuda(9999));
    assert!(matches!(error.kind(), ModelErrorKind::Device { .. }), "{error}");
    assert!(error.to_string().starts_with("cuda:9999 cannot be used: "), "{error}");
    let mut options = LoadOptions::default();
    options.memory_limit = Some(1000);
    let error = load(&options, Placement::CPU);
    assert!(matches!(error.kind(), ModelErrorKind::Memory { limit: 1000, .. }), "{error}");
}

#[test]
fn random_weights_are_the_same_in_both_runners() {
    let mut random = RandomModel::preset("13m", Format::Q8_0).unwrap();
    (random.layers, random.vocabulary) = (2, 500);
    let mut options = gguf::exact();
    options.context = Some(64);
    let mut own = CandleModel::random(&random, &options).unwrap();
    let mut tensors = TensorModel::random(&random, &options, Placement::CPU).unwrap();
    let distance = distance(&mut own, &mut tensors, 16);
    assert!(distance <= TOLERANCE, "{distance}");
}
