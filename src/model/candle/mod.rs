//! Llama, Mistral and Qwen models from Hugging Face folders and GGUF files, with Candle: on the CPU with
//! matrix products of our own ([`CandleModel`]), on a card with kernels of our own,
//! and for prompts with Candle's ([`TensorModel`]).
//!
//! Models are read by `files`, run on the CPU by `cpu`, and here on devices, as tensors.

mod card;
mod description;
mod kv_cache;
mod tensor;

pub use self::{
    card::{CardFault, CardMode},
    description::{FormatShare, ModelDescription},
    tensor::{DeviceRows, Placement, Precision, TensorModel},
};
pub use super::{
    cpu::{
        batch::CandleBatch,
        load::CandleModel,
        memory::{MemoryEstimate, available_memory},
        threads::{join_threads, threads},
    },
    error::{ModelError, ModelErrorKind},
    files::random::RandomModel,
    formats::{format::Format, instructions::Instructions, kv_format::KvFormat},
    options::LoadOptions,
};
