//! The threads that share the work of a pass: those of rayon's global pool.
//!
//! A pass is some dozens of products, of tens of microseconds each. A thread that is not of the pool has each of them done
//! by others, and waits; to wake a thread, and to be woken, takes about as long as a small product.

/// How many threads share the work of a pass: `RAYON_NUM_THREADS`, or as many as there are processors.
#[must_use]
pub fn threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let here = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.filter(|&threads| threads > 0).unwrap_or_else(here)
}

/// Makes the calling thread one of those that share the work of passes, in place of one that would be made for it: for a
/// program's main thread, where that is what makes passes. It must come before anything uses rayon's global pool. What
/// passes compute is the same either way; the shipped model's take about a tenth less time.
///
/// Returns whether it did: not where the pool is there already, nor where it is of one thread, as that would have nobody
/// to do what other threads ask for.
pub fn join_threads() -> bool {
    let threads = threads();
    threads > 1
        && rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build_global().is_ok()
}

/// Makes a pass. If it is a large one, by one of the pool's threads: so that as a whole it is handed over once, if at all.
pub(super) fn together<R: Send>(large: bool, pass: impl FnOnce() -> R + Send) -> R {
    if large && rayon::current_thread_index().is_none() { rayon::scope(|_| pass()) } else { pass() }
}
