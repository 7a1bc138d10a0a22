//! Gemma 3 270M, a real file, beside what `transformers` and llama.cpp compute with it.

use std::path::{Path, PathBuf};

use domino::{
    TokenId, Vocabulary,
    model::{
        Logits, Model, Rows,
        candle::{CandleModel, LoadOptions, ModelDescription},
    },
    vocab::Tokenizer,
};
use serde::Deserialize;

use crate::model::gguf::exact;

/// Largest difference of log-probabilities from those of `transformers`, with the same weights in 32 bits.
const TOLERANCE: f64 = 1e-3;

/// Largest difference from those of llama.cpp, which rounds inputs of products to eight bits.
const ROUNDED: f64 = 0.15;

/// Largest difference of the likeliest tokens, root mean square, where the runner rounds inputs too.
const OWN_ROUNDING: f64 = 0.15;

/// Log-probabilities that llama.cpp computes after "The capital of France is" (2026-11-28, library of
/// node-llama-cpp).
const LLAMA_CPP: [(u32, f64); 5] =
    [(506, -1.625), (496, -2.186), (9079, -2.475), (886, -2.581), (3224, -3.031)];

/// A prompt and log-probabilities by experiments/real/reference.py.
#[derive(Deserialize)]
struct Reference {
    tokens: Vec<u32>,
    rows: Vec<usize>,
    top: Vec<Vec<(u32, f64)>>,
}

/// The file, if it is there.
fn file() -> Option<PathBuf> {
    let named = std::env::var_os("DOMINO_GEMMA").map(PathBuf::from);
    let root = Path::new(env!("DOMINO_ROOT"));
    let path = named.unwrap_or_else(|| root.join("experiments/real/models/gemma-3-270m-Q4_K_M.gguf"));
    if !path.exists() {
        println!("LEFT OUT: Gemma 3 270M (experiments/real/fetch gemma, or its file in DOMINO_GEMMA)");
        return None;
    }
    Some(path)
}

fn references() -> Vec<Reference> {
    let path = Path::new(env!("DOMINO_ROOT")).join("tests/fixtures/model/gemma-3-270m.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn load(path: &Path, options: LoadOptions) -> CandleModel {
    let mut options = options;
    options.context = Some(1024);
    CandleModel::load(path, &options).unwrap()
}

/// Rows of logits after `tokens`, as log-probabilities.
fn log_probabilities(model: &mut CandleModel, tokens: &[u32]) -> Vec<Vec<f64>> {
    let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId::new).collect();
    let logits: Logits = model.forward(&tokens, Rows::All).unwrap();
    let row = |index: usize| {
        let row: Vec<f64> = logits.row(index).unwrap().iter().map(|&value| f64::from(value)).collect();
        let largest = row.iter().copied().fold(f64::MIN, f64::max);
        let sum = row.iter().map(|value| (value - largest).exp()).sum::<f64>().ln() + largest;
        row.into_iter().map(|value| value - sum).collect()
    };
    (0..logits.rows()).map(row).collect()
}

#[test]
fn gemma_computes_what_transformers_and_llama_cpp_compute() {
    let Some(path) = file() else { return };
    let [mut precise, mut rounded] = [exact(), LoadOptions::default()].map(|options| load(&path, options));
    let (mut squares, mut count) = (0.0, 0);
    for Reference { tokens, rows, top } in references() {
        precise.truncate(0).unwrap();
        rounded.truncate(0).unwrap();
        let [precise, rounded] = [&mut precise, &mut rounded].map(|model| log_probabilities(model, &tokens));
        for (row, top) in rows.into_iter().zip(top) {
            for (token, expected) in top {
                let got = precise[row][token as usize];
                assert!((got - expected).abs() <= TOLERANCE, "row {row}, token {token}: {got} {expected}");
                squares += (rounded[row][token as usize] - expected).powi(2);
                count += 1;
            }
        }
        for (token, expected) in LLAMA_CPP.into_iter().filter(|_| tokens.len() == 6) {
            let got = precise[5][token as usize];
            assert!((got - expected).abs() <= ROUNDED, "{token}: {got}, llama.cpp {expected}");
        }
    }
    let error = (squares / f64::from(count)).sqrt();
    assert!(error > 0.0 && error <= OWN_ROUNDING, "{error}");
}

#[test]
fn gemmas_tokens_are_those_of_its_file() {
    let Some(path) = file() else { return };
    let description = ModelDescription::of_model(&path).unwrap();
    assert_eq!((description.vocabulary, description.window), (262_144, Some(512)));
    let (vocabulary, tokenizer) =
        (Vocabulary::from_tokenizer_file(&path).unwrap(), Tokenizer::from_tokenizer_file(&path).unwrap());
    let text = "The capital of France is";
    let tokens = tokenizer.encode(text, true).unwrap();
    let expected = references()[0].tokens.iter().copied().map(TokenId::new).collect::<Vec<_>>();
    assert_eq!(tokens, expected);
    assert_eq!(String::from_utf8_lossy(&vocabulary.concat(&tokens[1..])), text);
}
