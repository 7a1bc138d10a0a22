//! Measures rows of masks filled from Rust, as `rows.py` does through Python.
//!
//!     cargo run --release --example rows -- TOKENIZER GRAMMAR.gbnf TRACES.json

use std::time::Instant;

use domino::{CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
use rayon::prelude::*;

/// Passes over all texts; only the last counts.
const PASSES: usize = 7;
/// Constraints of a batch.
const BATCH: usize = 256;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures the nanoseconds of each mask with its row and its step, in the last pass.
fn steps(compiled: &CompiledGrammar, texts: &[Vec<TokenId>], row: &mut [i32]) -> Fallible<Vec<u128>> {
    let mut taken = Vec::new();
    for _ in 0..PASSES {
        taken.clear();
        for text in texts {
            let mut constraint = compiled.constraint();
            for &token in text {
                let begun = Instant::now();
                constraint.mask()?.write_bits32(row);
                constraint.advance(token)?;
                taken.push(begun.elapsed().as_nanos());
            }
        }
    }
    taken.sort_unstable();
    Ok(taken)
}

/// Measures the median microseconds of a batch that is filled on `threads` threads.
fn batch(compiled: &CompiledGrammar, texts: &[Vec<TokenId>], words: usize, threads: usize) -> Fallible<u128> {
    let mut rows = vec![0; BATCH * words];
    let mut all = Vec::new();
    for number in 0..BATCH {
        let text = &texts[number % texts.len()];
        let mut constraint = compiled.constraint();
        text[..number % text.len()].iter().try_for_each(|&token| constraint.advance(token))?;
        all.push(constraint);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut taken: Vec<u128> = Vec::new();
    for _ in 0..51 {
        let begun = Instant::now();
        pool.install(|| {
            rows.par_chunks_mut(words)
                .zip(&mut all)
                .with_min_len(4)
                .try_for_each(|(row, constraint)| constraint.mask().map(|mask| mask.write_bits32(row)))
        })?;
        taken.push(begun.elapsed().as_micros());
    }
    taken.sort_unstable();
    Ok(taken[taken.len() / 2])
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, grammar, traces] = &arguments[..] else { return Err("see the head of this file".into()) };
    let vocabulary = Vocabulary::from_tokenizer_file(tokenizer)?;
    let words = vocabulary.size().div_ceil(32);
    let grammar = Grammar::parse(Syntax::Gbnf, &std::fs::read_to_string(grammar)?, &Limits::default())?;
    let compiled = Compiler::new(vocabulary).compile(&grammar)?;
    let traces: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(traces)?)?;
    let ids = |trace: &serde_json::Value| serde_json::from_value::<Vec<u32>>(trace["tokens"].clone());
    let texts = traces["traces"].as_array().ok_or("no traces")?.iter().map(ids);
    let texts: Vec<Vec<u32>> = texts.collect::<Result<_, _>>()?;
    let texts: Vec<Vec<TokenId>> =
        texts.into_iter().map(|text| text.into_iter().map(TokenId::new).collect()).collect();
    let taken = steps(&compiled, &texts, &mut vec![0; words])?;
    println!(
        "mask, row and step: p50 {} ns, p99 {} ns",
        taken[taken.len() / 2],
        taken[taken.len() * 99 / 100]
    );
    for threads in [1, 2, 4] {
        println!("{BATCH} rows on {threads} threads: {} us", batch(&compiled, &texts, words, threads)?);
    }
    Ok(())
}
