//! Models behind one trait: [`Model`]. Logits are plain `f32`; no tensor type leaves this folder.

mod batch;
#[cfg(feature = "candle")]
pub mod candle;
#[cfg(feature = "candle")]
mod cpu;
#[cfg(feature = "candle")]
mod error;
#[cfg(feature = "candle")]
mod files;
#[cfg(feature = "candle")]
mod formats;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(feature = "experiments")]
mod known_prompts;
mod kv_copy;
#[expect(clippy::module_inception, reason = "the trait is what the folder is named for")]
mod model;
#[cfg(feature = "candle")]
mod options;
pub mod passes;
mod pending_logits;
mod scripted;
mod serial_batch;

pub use batch::{BatchInput, BatchModel, OneByOne, OneByOneError};
#[cfg(feature = "experiments")]
pub(crate) use known_prompts::KnownPrompts;
pub use kv_copy::KvCopy;
pub use model::{Batch, Kept, Logits, Model, Rows};
pub use pending_logits::{GumbelDraw, KeptRows, RowAnswer, RowChoice};
pub use scripted::{Fault, ScriptedError, ScriptedModel};
pub use serial_batch::InTurns;
