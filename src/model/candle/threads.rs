//! The threads that share the work of a pass: those of rayon's global pool.
//!
//! A pass is some dozens of products, of tens of microseconds each. A thread that is not of the pool has each
//! of them done by others, and waits; to wake a thread, and to be woken, takes about as long as a small
//! product.

use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// How many threads share the work of a pass if nobody says: `RAYON_NUM_THREADS`, or as many as there are
/// cores. Two threads of one core would share what multiplies.
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

/// Makes the calling thread one of those that share the work of passes, in place of one that would be made
/// for it: for a program's main thread, where that is what makes passes. It must come before anything uses
/// rayon's global pool. What passes compute is the same either way; the shipped model's take about a tenth
/// less time.
///
/// There are `asked` threads, or as many as [`threads`] says.
///
/// Returns whether it did: not where the pool is there already, nor where it is of one thread, as that would
/// have nobody to do what other threads ask for.
pub fn join_threads(asked: Option<NonZeroUsize>) -> bool {
    let threads = asked.map_or_else(threads, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    let joins = threads > 1;
    let pool = if joins { pool.use_current_thread() } else { pool };
    pool.build_global().is_ok() && joins
}

/// How long threads look for the next product before they sleep: to be woken takes tens of microseconds, and
/// a layer has four products with little between them.
const LINGER: Duration = Duration::from_micros(60);

/// Keeps the other threads of the pool looking for work for a moment, after a product that they shared.
pub(super) fn linger() {
    let Some(own) = rayon::current_thread_index() else { return };
    for _ in 1..rayon::current_num_threads() {
        rayon::spawn(move || {
            let begun = Instant::now();
            // The thread that goes on with the pass may get this to do while it waits for another.
            while rayon::current_thread_index() != Some(own) && begun.elapsed() < LINGER {
                match rayon::yield_now() {
                    Some(rayon::Yield::Executed) => return,
                    _ => std::hint::spin_loop(),
                }
            }
        });
    }
}

/// Makes a pass. If it is a large one, by one of the pool's threads: so that as a whole it is handed over
/// once, if at all.
pub(super) fn together<R: Send>(large: bool, pass: impl FnOnce() -> R + Send) -> R {
    if large && rayon::current_thread_index().is_none() { rayon::scope(|_| pass()) } else { pass() }
}
