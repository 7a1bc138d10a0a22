//! The model runner against logits that `transformers` computed, and against itself.

use std::path::{Path, PathBuf};

use domino::{
    TokenId,
    model::{
        Logits, Model, Rows,
        candle::{CandleModel, KvFormat, LoadOptions, ModelErrorKind},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Deserialize;

/// Checkpoints that experiments/train/fixtures/make_model_fixtures.py writes.
pub(crate) const FIXTURES: [&str; 25] = [
    "mistral_tied",
    "mistral_untied_window",
    "llama_mha_untied",
    "llama_gqa_head_dim",
    "mistral_bf16",
    "llama_f16_sharded",
    "llama3_scaling",
    "llama_biases_linear",
    "qwen2_tied_yarn",
    "qwen2_untied_window",
    "qwen3_tied",
    "qwen3_biases_untied",
    "gemma3_tied",
    "gemma3_image",
    "qwen2_5_vl",
    "qwen3_vl",
    "lfm2_tied",
    "smollm3_tied",
    "granite_biases",
    "qwen3_5_tied",
    "qwen3_5_image",
    "qwen3_moe_shares",
    "qwen3_5_moe_shared",
    "gemma4_shared",
    "gemma4_image",
];

/// Largest difference allowed, relative to the largest logit.
const TOLERANCE: f32 = 1e-4;

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    logits: Vec<Vec<f32>>,
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("DOMINO_ROOT")).join("tests/fixtures/model").join(name)
}

fn load(name: &str) -> CandleModel {
    CandleModel::load(fixture(name), &LoadOptions::default()).unwrap()
}

/// Options for each number format of keys and values.
pub(crate) fn kv_formats() -> impl Iterator<Item = LoadOptions> {
    [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0].into_iter().map(|kv| {
        let mut options = LoadOptions::default();
        options.kv = kv;
        options
    })
}

fn expected(name: &str) -> (Vec<TokenId>, Vec<Vec<f32>>) {
    let text = std::fs::read_to_string(fixture(name).join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&text).unwrap();
    (expected.tokens.into_iter().map(TokenId::new).collect(), expected.logits)
}

/// Largest difference, relative to the largest logit.
fn distance<'a>(rows: impl IntoIterator<Item = &'a [f32]>, expected: &[Vec<f32>]) -> f32 {
    let largest = expected.iter().flatten().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let mut count = 0;
    let mut difference = 0.0_f32;
    for (row, expected) in rows.into_iter().zip(expected) {
        assert_eq!(row.len(), expected.len());
        assert!(row.iter().all(|value| value.is_finite()));
        difference = row.iter().zip(expected).fold(difference, |d, (a, b)| d.max((a - b).abs()));
        count += 1;
    }
    assert_eq!(count, expected.len());
    difference / largest
}

fn rows(logits: &Logits) -> Vec<Vec<f32>> {
    (0..logits.rows()).map(|index| logits.row(index).unwrap().to_vec()).collect()
}

#[test]
fn the_logits_are_those_of_transformers() {
    for name in FIXTURES {
        let mut model = load(name);
        let (tokens, expected) = expected(name);
        let logits = model.forward(&tokens, Rows::All).unwrap();
        let distance = distance(rows(&logits).iter().map(Vec::as_slice), &expected);
        assert!(distance <= TOLERANCE, "{name}: {distance}");
        assert_eq!(model.position(), tokens.len());
    }
}

#[test]
fn however_the_tokens_are_split_the_rows_are_the_same_bits() {
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = StdRng::seed_from_u64(seed);
    for (name, options) in FIXTURES.into_iter().flat_map(|name| kv_formats().map(move |kv| (name, kv))) {
        let mut model = CandleModel::load(fixture(name), &options).unwrap();
        let (tokens, _) = expected(name);
        let whole = rows(&model.forward(&tokens, Rows::All).unwrap());
        // One by one, then at random.
        for round in 0..6 {
            model.truncate(0).unwrap();
            let mut got = Vec::new();
            let mut rest = &tokens[..];
            while !rest.is_empty() {
                let count = if round == 0 { 1 } else { random.random_range(1..=rest.len()) };
                let (part, after) = rest.split_at(count);
                got.extend(rows(&model.forward(part, Rows::All).unwrap()));
                rest = after;
            }
            assert_eq!(got, whole, "{name}, {}, seed {seed}, round {round}", options.kv);
        }
    }
}

#[test]
fn truncated_tokens_leave_no_trace() {
    for (name, options) in FIXTURES.into_iter().flat_map(|name| kv_formats().map(move |kv| (name, kv))) {
        let (tokens, _) = expected(name);
        for keep in [0, 1, 7, 12] {
            let (start, rest) = tokens.split_at(keep);
            let run = |detour: &[TokenId]| {
                let mut model = CandleModel::load(fixture(name), &options).unwrap();
                if !start.is_empty() {
                    model.forward(start, Rows::Last).unwrap();
                }
                if !detour.is_empty() {
                    model.forward(detour, Rows::Last).unwrap();
                    model.truncate(keep).unwrap();
                }
                model.forward(rest, Rows::All).unwrap()
            };
            let detour: Vec<TokenId> = tokens.iter().rev().copied().take(15).collect();
            // The very same bits.
            assert_eq!(run(&detour), run(&[]), "{name}, {keep}");
        }
    }
}

#[test]
fn the_last_row_is_the_last_of_all_rows() {
    for name in FIXTURES {
        let (tokens, expected) = expected(name);
        let last = load(name).forward(&tokens, Rows::Last).unwrap();
        assert_eq!(last.rows(), 1);
        let distance = distance([last.last().unwrap()], &expected[expected.len() - 1..]);
        assert!(distance <= TOLERANCE, "{name}: {distance}");
    }
}

#[test]
fn a_prompt_longer_than_one_pass_takes_agrees_with_shorter_passes() {
    // The fixtures have 64 positions; a copy with more has the same weights.
    let folder = tempfile::tempdir().unwrap();
    for file in ["model.safetensors", "config.json"] {
        std::fs::copy(fixture("mistral_untied_window").join(file), folder.path().join(file)).unwrap();
    }
    let config = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
    let config = config.replace("\"max_position_embeddings\": 64", "\"max_position_embeddings\": 700");
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let tokens: Vec<TokenId> = (0..600).map(|n| TokenId::new(n * 31 % 97)).collect();
    let mut model = CandleModel::load(folder.path(), &LoadOptions::default()).unwrap();
    let whole = rows(&model.forward(&tokens, Rows::All).unwrap());
    model.truncate(0).unwrap();
    let mut parts = Vec::new();
    for part in tokens.chunks(100) {
        parts.extend(rows(&model.forward(part, Rows::All).unwrap()));
    }
    assert_eq!(parts, whole);
}

#[test]
fn a_pass_that_cannot_be_made_leaves_the_cache_alone() {
    let mut options = LoadOptions::default();
    options.context = Some(20);
    let mut model = CandleModel::load(fixture("mistral_tied"), &options).unwrap();
    let (tokens, expected) = expected("mistral_tied");
    assert_eq!(model.context(), 20);
    model.forward(&tokens[..10], Rows::Last).unwrap();
    let kind = |result: Result<Logits, domino::model::candle::ModelError>| result.unwrap_err().kind().clone();
    assert_eq!(kind(model.forward(&[], Rows::Last)), ModelErrorKind::NoTokens);
    assert_eq!(
        kind(model.forward(&[TokenId::new(1), TokenId::new(97)], Rows::Last)),
        ModelErrorKind::UnknownToken { token: TokenId::new(97), vocabulary: 97 }
    );
    assert_eq!(
        kind(model.forward(&tokens[10..21], Rows::Last)),
        ModelErrorKind::TooLong { position: 10, tokens: 11, context: 20 }
    );
    let error = model.truncate(11).unwrap_err();
    assert_eq!(*error.kind(), ModelErrorKind::PastEnd { asked: 11, position: 10 });
    assert_eq!(model.position(), 10);
    let logits = model.forward(&tokens[10..20], Rows::All).unwrap();
    let got = rows(&logits);
    assert!(distance(got.iter().map(Vec::as_slice), &expected[10..20]) <= TOLERANCE);
}

#[test]
fn fewer_bits_of_keys_and_values_move_the_logits_farther() {
    for name in FIXTURES {
        let (tokens, expected) = expected(name);
        let mut distances = Vec::new();
        for options in kv_formats() {
            let mut model = CandleModel::load(fixture(name), &options).unwrap();
            let logits = rows(&model.forward(&tokens, Rows::All).unwrap());
            distances.push(distance(logits.iter().map(Vec::as_slice), &expected));
        }
        // How far at most follows for one layer's attention (`attention_tests.rs`), not for a whole model.
        assert!(distances[1] > distances[0] && distances[2] > distances[1], "{name}: {distances:?}");
    }
}

#[test]
fn the_memory_estimate_counts_weights_and_cache() {
    let mut options = LoadOptions::default();
    options.context = Some(32);
    let memory = CandleModel::estimate(fixture("mistral_tied"), &options).unwrap();
    // The file is F32 and tied: its tensors are the weights, but for a header and the last norm.
    let file = std::fs::metadata(fixture("mistral_tied").join("model.safetensors")).unwrap().len();
    assert!(memory.weights < file && memory.weights + 4096 > file, "{memory:?}, {file}");
    // Two layers, keys and values, two heads of 8, 32 positions; rotation tables of 32 times 8.
    assert_eq!(memory.cache, 4 * (2 * 2 * 2 * 32 * 8 + 32 * 8));
    // Eight numbers of two bytes, or of one and with a factor of two.
    for (kv, bytes) in [(KvFormat::F16, 16), (KvFormat::Q8_0, 10)] {
        let mut options = options.clone();
        options.kv = kv;
        let memory = CandleModel::estimate(fixture("mistral_tied"), &options).unwrap();
        assert_eq!(memory.cache, 2 * 2 * 2 * 32 * bytes + 4 * 32 * 8);
    }
    options.memory_limit = Some(memory.total());
    CandleModel::load(fixture("mistral_tied"), &options).unwrap();
    options.memory_limit = Some(memory.total() - 1);
    let error = CandleModel::load(fixture("mistral_tied"), &options).unwrap_err();
    assert!(matches!(error.kind(), ModelErrorKind::Memory { .. }), "{error}");
}
