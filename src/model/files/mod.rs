//! Models as they are stored: configurations and tensors of Hugging Face folders and GGUF files, or made up.

pub(super) mod config;
mod config_gguf;
mod config_json;
mod gguf_weights;
pub(super) mod open;
pub(super) mod quantized;
pub(super) mod random;
pub(super) mod rope;
mod safetensors;
pub(super) mod weights;
