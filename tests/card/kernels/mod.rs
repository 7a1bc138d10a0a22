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
mod shapes;

use std::path::{Path, PathBuf};

use domino::{
    TokenId,
    model::candle::{LoadOptions, Placement, Precision, TensorModel},
};

use crate::{gguf, model};

/// All checkpoints: each way of attention, norms, biases and number formats of the runner.
fn fixtures() -> Vec<PathBuf> {
    let folders = model::FIXTURES.map(model::fixture);
    folders.into_iter().chain(gguf::FIXTURES.map(gguf::gguf_fixture)).collect()
}

fn emulated(path: &Path, precision: Precision) -> TensorModel {
    let placement = Placement::emulated(false).with_precision(precision);
    TensorModel::load(path, &LoadOptions::default(), placement).unwrap()
}

/// Some tokens of a vocabulary, the same each time.
fn some_tokens(count: usize, vocabulary: usize) -> Vec<TokenId> {
    (0..count).map(|index| TokenId::from_index(index * 7919 % vocabulary).unwrap()).collect()
}
