//! Llama, Mistral and Qwen models on the CPU, with matrix products of our own.
//!
//! Invariants: a call that fails leaves the cache as it was; a row of logits has the same bits however the
//! tokens were split into passes. Weights stay in the formats that they are stored in; everything is computed
//! in `f32`.

pub(super) mod attention;
pub(super) mod batch;
mod exp;
mod kv;
pub(super) mod load;
pub(super) mod memory;
mod ops;
pub(super) mod pages;
pub(super) mod products;
pub(super) mod rotation;
pub(super) mod threads;
pub(super) mod transformer;
