//! GGUF files against what `transformers`, sentencepiece and tokenizers compute, and against themselves.

use std::path::{Path, PathBuf};

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Decoder, Sampling},
    model::{
        Model, Rows,
        candle::{CandleModel, Format, KvFormat, LoadOptions},
    },
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
    shipped,
    vocab::Tokenizer,
};
use serde::Deserialize;

use crate::model::runner::fixture;

/// Files that experiments/train/fixtures/make_gguf_fixtures.py writes. All quantisations are among them.
pub(crate) const FIXTURES: [&str; 13] = [
    "llama_q8_0",
    "llama_q4_0",
    "mistral_f16",
    "qwen2_q4_k_m",
    "qwen3_q5_k_m",
    "mistral_q6_k",
    "gemma3_q5_0",
    "lfm2_q4_0",
    "smollm3_q8_0",
    "granite_q8_0",
    "qwen35_q8_0",
    "qwen35moe_q5_1",
    "gemma4_q4_0",
];

/// Largest difference allowed, relative to the largest logit. Weights are the same numbers, so only the order
/// of sums differs, as for safetensors.
const TOLERANCE: f32 = 1e-4;

/// Largest error allowed where inputs or weights are rounded to eight bits, relative to the logits (root mean
/// square). The models' weights are random, so errors grow from layer to layer as they would not in a trained
/// model.
const ROUNDED: f64 = 0.06;

/// Texts of each model, written twice.
const SEEDS: u64 = 200;

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    logits: Vec<Vec<f32>>,
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
}

pub(crate) fn gguf_fixture(name: &str) -> PathBuf {
    Path::new(env!("DOMINO_ROOT")).join("tests/fixtures/gguf").join(format!("{name}.gguf"))
}

fn expected(name: &str) -> Expected {
    let text = std::fs::read_to_string(gguf_fixture(name).with_extension("json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn tokens(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId::new).collect()
}

/// Options for products without rounding of inputs.
pub(crate) fn exact() -> LoadOptions {
    let mut options = LoadOptions::default();
    options.exact_products = true;
    options
}

#[test]
fn the_logits_are_those_of_transformers_with_the_dequantised_weights() {
    for name in FIXTURES {
        let expected = expected(name);
        for (options, is_exact) in [(exact(), true), (LoadOptions::default(), false)] {
            let mut model = CandleModel::load(gguf_fixture(name), &options).unwrap();
            let logits = model.forward(&tokens(&expected.tokens), Rows::All).unwrap();
            let (mut largest, mut difference) = (0.0_f32, 0.0_f32);
            let (mut squares, mut errors, mut by_row) = (0.0_f64, 0.0_f64, Vec::new());
            for (index, expected) in expected.logits.iter().enumerate() {
                let row = logits.row(index).unwrap();
                assert_eq!(row.len(), expected.len());
                let before = (squares, errors);
                for (got, expected) in row.iter().zip(expected) {
                    largest = largest.max(expected.abs());
                    difference = difference.max((got - expected).abs());
                    squares += f64::from(*expected).powi(2);
                    errors += f64::from(got - expected).powi(2);
                }
                by_row.push(((errors - before.1) / (squares - before.0)).sqrt());
            }
            if is_exact {
                assert!(difference <= TOLERANCE * largest, "{name}: {difference} of {largest}");
            }
            // Where experts are almost equally likely, rounding chooses others, which changes a whole row.
            by_row.sort_by(f64::total_cmp);
            let error =
                if name.contains("moe") { by_row[by_row.len() / 2] } else { (errors / squares).sqrt() };
            assert!(error <= ROUNDED, "{name}: {error} of the logits, root mean square");
        }
    }
}

#[test]
fn however_the_tokens_are_split_the_rows_are_the_same_bits() {
    for name in FIXTURES {
        let mut model = CandleModel::load(gguf_fixture(name), &LoadOptions::default()).unwrap();
        let tokens = tokens(&expected(name).tokens);
        let whole = model.forward(&tokens, Rows::All).unwrap();
        for size in [1, 3, 7] {
            model.truncate(0).unwrap();
            let mut index = 0;
            for part in tokens.chunks(size) {
                let rows = model.forward(part, Rows::All).unwrap();
                for row in 0..rows.rows() {
                    assert_eq!(rows.row(row), whole.row(index), "{name}, {size} at a time, row {index}");
                    index += 1;
                }
            }
        }
    }
}

/// Texts of each model with the JSON grammar: those with drafts are those without.
#[test]
fn drafts_change_no_token_of_any_architecture() {
    let grammar = Grammar::parse(Syntax::Gbnf, shipped::text("json").unwrap(), &Limits::default()).unwrap();
    let mut drafted = 0;
    for name in FIXTURES {
        let vocabulary = Vocabulary::from_tokenizer_file(gguf_fixture(name)).unwrap();
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap();
        let mut options = LoadOptions::default();
        options.kv = if name.starts_with("lfm2") { KvFormat::Q8_0 } else { KvFormat::F16 };
        let mut decoder = Decoder::builder(CandleModel::load(gguf_fixture(name), &options).unwrap())
            .vocabulary(vocabulary)
            .constraint(compiled.constraint())
            .sampling(Sampling::with_temperature(0.8).unwrap())
            .max_new_tokens(40)
            .build()
            .unwrap();
        let prompt = tokens(&expected(name).tokens[..9]);
        for seed in 0..SEEDS {
            decoder.options_mut().seed = seed;
            decoder.set_drafter(None);
            let plain = decoder.generate(&prompt).unwrap();
            let counts = CountProposer::new(Prior::new(&compiled), Learning::PerText);
            let length = DraftLength::up_to(5, 0.0).unwrap();
            decoder.set_drafter(Some(Drafter::new(Box::new(counts), length)));
            let fast = decoder.generate(&prompt).unwrap();
            assert_eq!(fast.tokens, plain.tokens, "{name}, seed {seed}");
            drafted += plain.stats.passes.saturating_sub(fast.stats.passes);
        }
    }
    assert!(drafted > 0, "no draft was taken");
}

#[test]
fn prompts_are_split_as_their_makers_split_them() {
    for name in FIXTURES {
        let tokenizer = Tokenizer::from_tokenizer_file(gguf_fixture(name)).unwrap();
        for Text { text, ids } in expected(name).texts {
            assert_eq!(tokenizer.encode(&text, true).unwrap(), tokens(&ids), "{name}: {text:?}");
        }
    }
}

#[test]
fn the_bytes_of_a_prompts_tokens_are_the_prompt() {
    for name in FIXTURES {
        let vocabulary = Vocabulary::from_tokenizer_file(gguf_fixture(name)).unwrap();
        let tokenizer = Tokenizer::from_tokenizer_file(gguf_fixture(name)).unwrap();
        for Text { text, .. } in expected(name).texts {
            let bytes = vocabulary.concat(&tokenizer.encode(&text, false).unwrap());
            // SentencePiece puts a space before a text that has none of its own.
            let bytes = bytes.strip_prefix(b" ").filter(|_| !text.starts_with(' ')).unwrap_or(&bytes);
            let doubled = bytes.strip_prefix(b" ").filter(|rest| *rest == text.as_bytes()).unwrap_or(bytes);
            assert_eq!(String::from_utf8_lossy(doubled), text, "{name}");
        }
        let ends: Vec<&str> =
            vocabulary.end_of_text().iter().filter_map(|&token| vocabulary.name(token)).collect();
        assert!(ends.contains(&"<|im_end|>"), "{name}: {ends:?}");
        assert!(ends.contains(&"</s>") || ends.contains(&"<|endoftext|>"), "{name}: {ends:?}");
    }
}

/// Checkpoints quantised while loading have nearly the same logits, in less memory.
#[test]
fn a_checkpoint_of_floats_can_be_quantised() {
    let (folder, tokens) = (fixture("mistral_tied"), tokens(&[1, 7, 30, 2, 5, 11]));
    let load = |quantize| {
        let mut options = exact();
        options.quantize = quantize;
        let weights = CandleModel::estimate(&folder, &options).unwrap().weights;
        let mut model = CandleModel::load(&folder, &options).unwrap();
        let logits = model.forward(&tokens, Rows::All).unwrap();
        let rows = (0..logits.rows()).flat_map(|row| logits.row(row).unwrap().to_vec());
        (weights, rows.collect::<Vec<f32>>())
    };
    let (floats, exact) = load(None);
    // Its rows have 32 and 64 numbers, so there are no blocks of 256.
    for (format, same) in
        [(Format::Q8_0, Format::Q4K), (Format::Q4_0, Format::Q4_0), (Format::F16, Format::F32)]
    {
        let (weights, logits) = load(Some(format));
        assert_eq!((weights, &logits), (load(Some(same)).0, &load(Some(same)).1), "{format}");
        let squares: f64 = exact.iter().map(|value| f64::from(*value).powi(2)).sum();
        let errors: f64 = exact.iter().zip(&logits).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let error = (errors / squares).sqrt();
        let (most, bytes) = match format {
            Format::Q8_0 => (ROUNDED, 34.0 / 128.0),
            // Steps are 16 times as wide; the logits of another model would be 1.4 away.
            Format::Q4_0 => (16.0 * ROUNDED, 18.0 / 128.0),
            _ => (0.0, 1.0),
        };
        assert!(error <= most && (error > 0.0) == format.is_quantised(), "{format}: {error}");
        #[expect(clippy::cast_precision_loss, reason = "small files")]
        let share = weights as f64 / floats as f64;
        // Norms stay floats.
        assert!(share >= bytes && share < bytes + 0.05, "{format}: {weights} of {floats} bytes");
    }
}

#[test]
fn the_memory_estimate_is_that_of_the_quantised_weights() {
    let memory = CandleModel::estimate(gguf_fixture("llama_q4_0"), &LoadOptions::default()).unwrap();
    let file = std::fs::metadata(gguf_fixture("llama_q4_0")).unwrap().len();
    // All tensors but the head of the file.
    assert!(memory.weights < file && memory.weights > file * 7 / 10, "{memory:?} {file}");
}
