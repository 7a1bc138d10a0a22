//! Memory that a model takes, and memory that is available.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use super::kv::KEYS;
use crate::{
    ids::as_u64,
    model::{files::config::Config, formats::kv_format::KvFormat},
};

/// Tokens run at a time, so that the memory of a long prompt's pass is bounded.
pub(crate) const CHUNK: usize = 512;

/// Memory that a model takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// Weights, as they are kept.
    pub weights: u64,
    /// Tokens of the context.
    pub context: usize,
    /// Keys and values of all tokens there is room for (of each sequence the whole context, unless
    /// [`LoadOptions::tokens`](crate::model::candle::LoadOptions::tokens) says otherwise), and the rotation
    /// tables.
    pub cache: u64,
    /// The most that one pass over at most 256 tokens takes on top.
    pub pass: u64,
}

impl MemoryEstimate {
    /// The sum of all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.cache).saturating_add(self.pass)
    }

    /// The need of a model whose weights take `weights` bytes, with a context of `context` tokens and room
    /// for `tokens` in all, whose keys and values are kept as `kv`.
    pub(crate) fn new(config: &Config, kv: KvFormat, context: usize, tokens: usize, weights: u64) -> Self {
        let bytes = |size: usize, factors: &[usize]| {
            factors.iter().fold(as_u64(size), |bytes, &factor| bytes.saturating_mul(as_u64(factor)))
        };
        let product = |factors: &[usize]| bytes(size_of::<f32>(), factors);
        let Config { hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary, .. } = *config;
        let queries = CHUNK.min(context);
        let row = 3 * intermediate + 4 * hidden + 3 * heads * head_dim + vocabulary;
        let rows = [2, layers, kv_heads, tokens.checked_next_multiple_of(KEYS).unwrap_or(tokens)];
        Self {
            weights,
            context,
            cache: bytes(kv.bytes(head_dim).unwrap_or(usize::MAX), &rows)
                .saturating_add(product(&[context, head_dim])),
            pass: product(&[heads, context]).saturating_add(product(&[queries, row])),
        }
    }
}

/// Bytes of memory that can be had without swapping, within the limits of a container; `None` if the system
/// does not say.
#[must_use]
pub fn available_memory() -> Option<u64> {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return None;
    }
    let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(refresh);
    let container = system.cgroup_limits().map(|limits| (limits.total_memory, limits.rss));
    Some(can_be_had(system.available_memory(), container)).filter(|&free| free > 0)
}

/// Memory available in the whole system, but no more than the container's limit leaves. Files in the page
/// cache do not count as used, neither in the container nor in the system: the kernel gives their memory back
/// when it is asked for.
fn can_be_had(system: u64, container: Option<(u64, u64)>) -> u64 {
    container.map_or(system, |(limit, held)| limit.saturating_sub(held).min(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_containers_free_memory_is_its_limit_less_the_memory_in_use() {
        assert_eq!(can_be_had(20, None), 20);
        assert_eq!(can_be_had(20, Some((16, 3))), 13);
        assert_eq!(can_be_had(20, Some((64, 3))), 20);
        assert_eq!(can_be_had(20, Some((2, 3))), 0);
    }

    #[test]
    fn available_memory_is_at_most_all_memory() {
        let total = {
            let mut system = System::new();
            system.refresh_memory();
            system.total_memory()
        };
        let free = available_memory();
        assert!(free.is_none_or(|free| free <= total), "{free:?} of {total}");
    }
}
