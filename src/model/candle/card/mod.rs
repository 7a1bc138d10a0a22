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

mod chooser;
#[cfg(feature = "cuda")]
mod cuda;
mod driver;
mod engine;
mod fault;
#[cfg(feature = "card-host")]
mod host;
mod mode;
#[cfg(feature = "cuda")]
mod pinned;
mod place;
mod plan;
mod weights;

pub(super) use chooser::CardChooser;
pub(super) use engine::{CardEngine, ROWS};
pub use fault::CardFault;
#[cfg(feature = "card-host")]
pub(super) use fault::HostFailure;
pub use mode::CardMode;
pub(super) use place::Where;
pub(super) use weights::{CardMatrix, LayerWeights, ModelWeights};
