//! Passes over few tokens by kernels of our own, on a card.
//!
//! Candle's tensors make 30 to 37 launches a layer, and launches are what such a pass costs. Here it is ten,
//! captured as a graph. Owns the kernels (`kernels/`, CUDA C++), the order in which a pass launches them, and
//! what runs them: a card, or, in tests, the host. Invariant: a row of logits does not depend on what else is
//! in its pass.

// Without a card or its emulation there is nothing that would run them.
#![cfg_attr(
    not(any(feature = "cuda", feature = "card-host")),
    allow(dead_code, reason = "only builds for cards and tests of the kernels run them")
)]

#[cfg(all(test, feature = "card-host"))]
mod attention_tests;
mod blocks;
mod chooser;
#[cfg(feature = "cuda")]
mod cuda;
mod driver;
mod engine;
#[cfg(feature = "card-host")]
mod host;
mod place;

pub(super) use blocks::{append_rows, kernel_format, row_bytes};
pub(super) use chooser::CardChooser;
pub use driver::CardFault;
#[cfg(feature = "card-host")]
pub(super) use driver::HostFailure;
pub(super) use engine::{
    CacheSize, CardEngine, CardMatrix, CardPart, CardRow, LayerWeights, ModelWeights, ROWS,
};
pub(super) use place::Where;
#[cfg(feature = "cuda")]
pub(super) use place::runs_blocks;
