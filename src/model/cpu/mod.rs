//! Models on the CPU, with matrix products of our own; what they take of the
//! computer, its memory and its threads.
//!
//! Invariants: a call that fails leaves the cache as it was; a row of logits has the same bits however the
//! tokens were split into passes. Weights stay in the formats that they are stored in; everything is computed
//! in `f32`.
//!
//! Threads that share the work of a pass are those of rayon's global pool. A pass is some dozens of products,
//! of tens of microseconds each. A thread outside of the pool hands each of them to the pool, and waits;
//! waking a thread, and being woken, takes about as long as a small product.

pub(super) mod attention;
pub(super) mod batch;
mod delta;
mod experts;
mod kv;
mod layer_inputs;
pub(super) mod load;
pub(super) mod ops;
pub(super) mod pages;
pub(super) mod products;
pub(super) mod transformer;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use self::{delta::DeltaState, kv::KEYS};
use super::{files::config::Config, formats::KvFormat};
use crate::ids::as_u64;

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
    /// [`LoadOptions::tokens`](crate::model::candle::LoadOptions::tokens) says otherwise), the states of each
    /// sequence, and the rotation tables.
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
    /// for `tokens` in all, of some sequences, whose keys and values are kept as `kv`.
    pub(crate) fn new(
        config: &Config,
        kv: KvFormat,
        [context, tokens, sequences]: [usize; 3],
        weights: u64,
    ) -> Self {
        let bytes = |size: usize, factors: &[usize]| {
            factors.iter().fold(as_u64(size), |bytes, &factor| bytes.saturating_mul(as_u64(factor)))
        };
        let product = |factors: &[usize]| bytes(size_of::<f32>(), factors);
        let Config { hidden, heads, head_dim, vocabulary, .. } = *config;
        let (caches, positions) = (config.caches(), tokens.checked_next_multiple_of(KEYS).unwrap_or(tokens));
        let of_heads = |&[layers, heads, size]: &[usize; 3]| {
            bytes(kv.bytes(size).unwrap_or(usize::MAX), &[2, layers, heads, positions])
        };
        let tables = config.ropes().map(|(_, size)| product(&[context, size]));
        let longest = caches.iter().map(|[_, _, size]| *size).fold(head_dim, usize::max);
        let inputs = config.layer_inputs.map_or(0, |size| config.layers.saturating_mul(size));
        let intermediate = config.intermediate.max(config.shared.intermediate);
        let queries = CHUNK.min(context);
        let of_state = config.delta.as_ref().map_or(0, |own| 3 * own.channels() + 4 * own.values());
        let mixed = of_state.max(3 * heads * longest);
        let row = 3 * intermediate + 4 * hidden + mixed + vocabulary + 3 * inputs;
        let state = config.delta.as_ref().map_or(0, DeltaState::bytes);
        let states = bytes(state, &[config.state_layers(), sequences]);
        Self {
            weights,
            context,
            cache: caches.iter().map(of_heads).chain(tables).fold(states, u64::saturating_add),
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

/// Default number of threads that share the work of a pass: `RAYON_NUM_THREADS`, or the number of physical
/// cores. Two threads of one core would share its multipliers.
#[must_use]
pub fn threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let here = || {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        sysinfo::System::physical_core_count()
            .filter(|&cores| cores > 0)
            .map_or(processors, |cores| processors.min(cores))
    };
    asked.filter(|&threads| threads > 0).unwrap_or_else(here)
}

/// Makes the calling thread one of those that share the work of passes, in place of a new one: for the main
/// thread of a program that makes passes there. Must be called before anything uses rayon's global pool. The
/// shipped model's passes take about a tenth less time; their results are the same.
///
/// The pool has `asked` threads, or as many as [`threads`] says.
///
/// Returns false if it could not: the pool exists already, or has one thread, which could not do what other
/// threads ask for.
pub fn join_threads(asked: Option<NonZeroUsize>) -> bool {
    let threads = asked.map_or_else(threads, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let joins = threads > 1;
    let pool = if joins { pool.use_current_thread() } else { pool };
    pool.build_global().is_ok() && joins
}

/// Time that threads look for the next product before they sleep. Waking takes tens of microseconds, and a
/// layer has four products with little between them.
const LINGER: Duration = Duration::from_micros(60);

/// Keeps the other threads of the pool spinning for a moment, after a product that they shared.
fn linger() {
    let Some(own) = rayon::current_thread_index() else { return };
    for _ in 1..rayon::current_num_threads() {
        rayon::spawn(move || {
            let begun = Instant::now();
            // The thread that continues the pass may get this task while it waits for another; it must not
            // linger.
            while rayon::current_thread_index() != Some(own) && begun.elapsed() < LINGER {
                match rayon::yield_now() {
                    Some(rayon::Yield::Executed) => return,
                    _ => std::hint::spin_loop(),
                }
            }
        });
    }
}

/// Makes a pass. A large one is made by a thread of the pool, so that it is handed over once as a whole.
pub(crate) fn together<R: Send>(large: bool, pass: impl FnOnce() -> R + Send) -> R {
    if large && rayon::current_thread_index().is_none() { rayon::scope(|_| pass()) } else { pass() }
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
