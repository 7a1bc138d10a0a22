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
#[expect(clippy::module_inception, reason = "the trait is what the folder is named for")]
mod model;
pub mod passes;
mod scripted;

pub use batch::{BatchInput, BatchModel, InTurns, KvCopy, OneByOne, OneByOneError};
#[cfg(feature = "experiments")]
pub(crate) use known_prompts::KnownPrompts;
pub use model::{Batch, GraphCounts, GumbelDraw, Kept, KeptRows, Logits, Model, RowAnswer, RowChoice, Rows};
pub use scripted::{Fault, ScriptedError, ScriptedModel};
