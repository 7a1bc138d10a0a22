//! llama.cpp itself: initialised once in a process, with its log in `tracing`.

use std::sync::OnceLock;

use domino::model::candle::{ModelError, ModelErrorKind};
use llama_cpp_2::{
    LlamaBackendDeviceType, LogOptions, list_llama_ggml_backend_devices, llama_backend::LlamaBackend,
    send_logs_to_tracing,
};

/// Lives until the process ends, so models need not say how long.
static BACKEND: OnceLock<Option<LlamaBackend>> = OnceLock::new();

/// llama.cpp, initialised.
///
/// # Errors
/// If another part of the program has initialised it for itself.
pub(crate) fn backend() -> Result<&'static LlamaBackend, ModelError> {
    let backend = BACKEND.get_or_init(|| {
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init().ok()
    });
    backend.as_ref().ok_or_else(|| engine_error("another part of this program has initialised llama.cpp"))
}

/// An error of this engine, in words.
pub(crate) fn engine_error(reason: impl Into<String>) -> ModelError {
    ModelErrorKind::Engine(format!("llama.cpp: {}", reason.into())).into()
}

/// Name of the card that models run on, in small letters: `cuda`, `metal`, `vulkan`; `None` if there is none.
pub(crate) fn card() -> Option<String> {
    let cards = [LlamaBackendDeviceType::Gpu, LlamaBackendDeviceType::IntegratedGpu];
    let devices = list_llama_ggml_backend_devices();
    let card = devices.into_iter().find(|device| cards.contains(&device.device_type))?;
    Some(card.backend.to_lowercase())
}
