//! Measures how far llama.cpp and Domino's own runner agree on a model, and how long their passes take.
//!
//!     cargo run --release --package domino-llama-cpp --example agreement -- MODEL.gguf TEXT

use std::{error::Error, fs, time::Instant};

use domino::{
    TokenId,
    model::{
        Model, Rows,
        candle::{CandleModel, LoadOptions, ModelError},
    },
    vocab::Tokenizer,
};
use domino_llama_cpp::{LlamaCppModel, LlamaCppOptions};
use serde_json::json;

/// Prefixes of lines that rows are compared after.
const CONTEXTS: usize = 200;
/// Most tokens of such a prefix.
const LONGEST: usize = 64;
/// Likeliest tokens whose probabilities are compared.
const LIKELIEST: usize = 10;
/// Tokens in the cache while passes are timed, and passes of a length: the fastest one counts, since other
/// programs can only slow passes down.
const BEFORE: usize = 32;
const PASSES: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(text)) = (args.next(), args.next()) else {
        return Err("usage: agreement MODEL.gguf TEXT".into());
    };
    let contexts = contexts(&Tokenizer::from_tokenizer_file(&file)?, &fs::read_to_string(text)?)?;
    let mut theirs = LlamaCppModel::load(&file, &LlamaCppOptions::default())?;
    let mut ours = CandleModel::load(&file, &LoadOptions::default())?;

    let (mut differences, mut equal) = (Vec::new(), 0);
    for context in &contexts {
        let (our, their) = (row(&mut ours, context)?, row(&mut theirs, context)?);
        let (our, their) = (log_probabilities(&our), log_probabilities(&their));
        let (our_best, their_best) = (likeliest(&our, LIKELIEST), likeliest(&their, 1));
        equal += usize::from(our_best.first() == their_best.first());
        differences.extend(our_best.iter().map(|&token| (our[token] - their[token]).abs()));
    }
    differences.sort_by(f64::total_cmp);
    let at = |part: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let index = (part * (differences.len().max(1) - 1) as f64).round() as usize;
        differences.get(index)
    };
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let share = equal as f64 / contexts.len().max(1) as f64;
    let line = json!({
        "contexts": contexts.len(),
        "median_difference": at(0.5),
        "p99_difference": at(0.99),
        "likeliest_equal": share,
        "milliseconds": {
            "llama.cpp": [milliseconds(&mut theirs, 1)?, milliseconds(&mut theirs, 8)?],
            "domino": [milliseconds(&mut ours, 1)?, milliseconds(&mut ours, 8)?],
        },
        "tokens_of_passes": [1, 8],
    });
    println!("{line:#}");
    Ok(())
}

/// Beginnings of the text's lines, evenly spread over it and of all lengths.
fn contexts(tokenizer: &Tokenizer, text: &str) -> Result<Vec<Vec<TokenId>>, Box<dyn Error>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| tokenizer.encode(line, true)).collect::<Result<Vec<_>, _>>()?;
    let long: Vec<Vec<TokenId>> = lines.into_iter().filter(|tokens| tokens.len() > 1).collect();
    if long.is_empty() {
        return Err("the text has no lines of several tokens".into());
    }
    let prefix = |number: usize| {
        let tokens = &long[number * long.len() / CONTEXTS];
        // A stride that is coprime to the lengths' range visits all of them.
        let length = 1 + number * 37 % LONGEST.min(tokens.len());
        tokens[..length].to_vec()
    };
    Ok((0..CONTEXTS).map(prefix).collect())
}

fn row<M: Model<Error = ModelError>>(model: &mut M, tokens: &[TokenId]) -> Result<Vec<f32>, ModelError> {
    model.truncate(0)?;
    Ok(model.forward(tokens, Rows::Last)?.last().unwrap_or_default().to_vec())
}

fn log_probabilities(row: &[f32]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|logit| f64::from(logit - largest).exp()).sum();
    row.iter().map(|logit| f64::from(logit - largest) - sum.ln()).collect()
}

/// The tokens with the largest numbers, from the largest on.
fn likeliest(row: &[f64], count: usize) -> Vec<usize> {
    let mut tokens: Vec<usize> = (0..row.len()).collect();
    tokens.sort_by(|&one, &other| row[other].total_cmp(&row[one]));
    tokens.truncate(count);
    tokens
}

/// Milliseconds of a pass over this many tokens with a row for each, the fastest of some.
fn milliseconds<M: Model<Error = ModelError>>(model: &mut M, tokens: usize) -> Result<f64, ModelError> {
    let all: Vec<TokenId> = (100..).map(TokenId::new).take(BEFORE + tokens).collect();
    model.truncate(0)?;
    model.forward(&all[..BEFORE], Rows::Last)?;
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        model.forward(&all[BEFORE..], Rows::All)?;
        best = best.min(start.elapsed().as_secs_f64() * 1000.0);
        model.truncate(BEFORE)?;
    }
    Ok(best)
}
