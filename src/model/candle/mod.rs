//! Models from Hugging Face folders and GGUF files, with Candle: on the CPU with
//! matrix products of our own ([`CandleModel`]), on a card with kernels of our own,
//! and for prompts with Candle's ([`TensorModel`]).
//!
//! Models are read by `files`, run on the CPU by `cpu`, and here on devices, as tensors.

mod card;
mod description;
mod tensor;

pub use card::CardFault;
pub use description::{FormatShare, ModelDescription};
pub use tensor::{DeviceRows, Placement, Precision, TensorModel};

pub use super::cpu::load::{CandleModel, LoadOptions};
pub use super::cpu::{MemoryEstimate, available_memory, batch::CandleBatch, join_threads, threads};
pub use super::error::{ModelError, ModelErrorKind};
pub use super::files::random::RandomModel;
pub use super::formats::{Format, Instructions, KvFormat};
