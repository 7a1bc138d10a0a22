//! Tests the card's kernels on the CPU, thread by thread, against the CPU's own runner and against
//! themselves.
//!
//! These tests do not cover captured graphs, cuBLAS (sums in another order stand for it), races between
//! barriers that two orders of threads do not find, and times.

mod bits;
mod choice;
mod draws;
mod faults;
mod logits;
mod lossless;
mod several;
mod shapes;

use std::path::{Path, PathBuf};

use domino::{
    TokenId,
    model::candle::{LoadOptions, Placement, Precision, TensorModel},
};

use crate::model::{gguf, runner};

/// Architectures that the kernels do not compute: a card runs them by Candle's, as `tests/model/tensor.rs`
/// tests, or not at all.
const BY_CANDLE: [&str; 8] =
    ["gemma3", "gemma4", "granite", "lfm2", "qwen35", "qwen3_5", "qwen3_moe", "smollm3"];

/// All checkpoints that the kernels compute: each way of attention, norms, biases and number formats of them.
fn fixtures() -> Vec<PathBuf> {
    let computed = |name: &&str| !BY_CANDLE.iter().any(|other| name.starts_with(other));
    let folders = runner::FIXTURES.into_iter().filter(computed).map(runner::fixture);
    folders.chain(gguf::FIXTURES.into_iter().filter(computed).map(gguf::gguf_fixture)).collect()
}

fn emulated(path: &Path, precision: Precision) -> TensorModel {
    let placement = Placement::emulated(false).with_precision(precision);
    TensorModel::load(path, &LoadOptions::default(), placement).unwrap()
}

/// Some tokens of a vocabulary, the same each time.
fn some_tokens(count: usize, vocabulary: usize) -> Vec<TokenId> {
    (0..count).map(|index| TokenId::from_index(index * 7919 % vocabulary).unwrap()).collect()
}
