//! How much memory a model takes, and how much there is.

use std::num::NonZeroUsize;

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use super::{CHUNK, config::Config};

/// Memory that a model takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// Weights, as they are kept.
    pub weights: u64,
    /// Keys and values of the whole context, for each sequence there is room for, and the rotation tables.
    pub cache: u64,
    /// The most that one pass takes on top, for at most 256 tokens at once.
    pub pass: u64,
}

impl MemoryEstimate {
    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.pass)
    }

    /// Of a model whose weights take `weights` bytes, with room for so many sequences.
    pub(super) fn new(config: &Config, context: usize, sequences: NonZeroUsize, weights: u64) -> Self {
        let product = |factors: &[usize]| {
            factors
                .iter()
                .fold(4_u64, |bytes, &factor| bytes.saturating_mul(u64::try_from(factor).unwrap_or(u64::MAX)))
        };
        let Config { hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary, .. } = *config;
        let queries = CHUNK.min(context);
        let row = 3 * intermediate + 4 * hidden + 3 * heads * head_dim + vocabulary;
        Self {
            weights,
            cache: product(&[2, sequences.get(), layers, kv_heads, context, head_dim])
                .saturating_add(product(&[context, head_dim])),
            pass: product(&[heads, context]).saturating_add(product(&[queries, row])),
        }
    }
}

/// Bytes of memory that can be had without swapping, within the limits of a container; `None` if the system
/// does not say.
pub(super) fn available() -> Option<u64> {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return None;
    }
    let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(refresh);
    let free = system.available_memory();
    let limits = system.cgroup_limits().map(|limits| limits.free_memory);
    Some(limits.map_or(free, |limit| limit.min(free))).filter(|&free| free > 0)
}
