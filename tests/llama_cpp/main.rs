//! llama.cpp as an engine, with small models of random weights.

mod batch;
mod decoding;
mod model;
mod tokens;

use std::path::{Path, PathBuf};

use domino::TokenId;
use domino_llama_cpp::{LlamaCppModel, LlamaCppOptions};
use serde::Deserialize;

/// Files of `tests/model/gguf.rs`: all quantisations are among them.
const FIXTURES: [&str; 6] =
    ["llama_q8_0", "llama_q4_0", "mistral_f16", "qwen2_q4_k_m", "qwen3_q5_k_m", "mistral_q6_k"];

/// Largest error between rows of one model, relative to the logits (root mean square), where only the order
/// of sums differs and keys and values are halves.
const ROUNDING: f64 = 0.02;

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<u32>,
    logits: Vec<Vec<f32>>,
}

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures/gguf").join(format!("{name}.gguf"))
}

/// The tokens of a file's test, and the logits that `transformers` computes.
fn expected(name: &str) -> (Vec<TokenId>, Vec<Vec<f32>>) {
    let text = std::fs::read_to_string(fixture(name).with_extension("json")).unwrap();
    let Expected { tokens, logits } = serde_json::from_str(&text).unwrap();
    (tokens.into_iter().map(TokenId::new).collect(), logits)
}

fn load(name: &str) -> LlamaCppModel {
    LlamaCppModel::load(fixture(name), &LlamaCppOptions::default()).unwrap()
}

/// Distance of rows relative to the second ones, root mean square.
fn distance<'a>(rows: impl IntoIterator<Item = (&'a [f32], &'a [f32])>) -> f64 {
    let (mut squares, mut errors) = (0.0, 0.0);
    for (row, expected) in rows {
        assert_eq!(row.len(), expected.len());
        for (got, expected) in row.iter().zip(expected) {
            squares += f64::from(*expected).powi(2);
            errors += f64::from(got - expected).powi(2);
        }
    }
    (errors / f64::max(squares, f64::MIN_POSITIVE)).sqrt()
}
