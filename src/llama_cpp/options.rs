//! What can be asked of a model when it is loaded.

use std::num::NonZeroUsize;

/// Tokens of a context unless one is asked for: caches of the longest contexts would not fit in memory.
pub(crate) const USUAL_CONTEXT: usize = 4096;

/// Tokens of one call of llama.cpp. Its memory for a call grows with them, and longer ones are hardly faster.
pub(crate) const BATCH: usize = 512;

/// True if this build can run models on cards.
#[must_use]
pub const fn has_cards() -> bool {
    let apple = cfg!(all(target_os = "macos", target_arch = "aarch64"));
    cfg!(any(feature = "cuda", feature = "metal", feature = "vulkan")) || apple
}

/// What can be asked of a model when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LlamaCppOptions {
    /// Layers that a card holds, from the last one on; more than there are means all. Default: all in builds
    /// for cards, otherwise none.
    pub gpu_layers: Option<u32>,
    /// Tokens of a text, its prompt included. Default: as many as the model was made for, at most 4096.
    pub context: Option<usize>,
    /// Threads of a pass on the CPU. Default: as many as there are cores.
    pub threads: Option<NonZeroUsize>,
    /// In a batch, give the tokens of each sequence passes of their own, and its cache memory of its own: its
    /// rows do not depend on the others then, bit for bit. Default: sequences share passes.
    pub apart: bool,
}

impl LlamaCppOptions {
    /// Threads of a pass.
    pub(crate) fn thread_count(&self) -> i32 {
        let threads = self.threads.or_else(|| std::thread::available_parallelism().ok());
        threads.map_or(1, |threads| i32::try_from(threads.get()).unwrap_or(i32::MAX))
    }

    /// Layers that a card holds.
    pub(crate) fn layers_on_card(&self) -> u32 {
        self.gpu_layers.unwrap_or(if has_cards() { u32::MAX } else { 0 })
    }
}
