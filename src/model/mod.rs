//! Models behind one trait: [`Model`]. Logits are plain `f32`; no tensor type leaves this folder.

mod batch;
#[cfg(feature = "candle")]
pub mod candle;
#[cfg(feature = "hub")]
pub mod hub;
mod in_turns;
mod kept;
mod kv_copy;
#[expect(clippy::module_inception, reason = "the trait is what the folder is named for")]
mod model;
pub mod passes;
mod scripted;

pub use batch::{BatchInput, BatchModel, OneByOne, OneByOneError};
pub use in_turns::InTurns;
pub use kept::{GumbelDraw, KeptRows, RowAnswer, RowChoice};
pub use kv_copy::KvCopy;
pub use model::{Batch, Kept, Logits, Model, Rows};
pub use scripted::{Fault, ScriptedError, ScriptedModel};
