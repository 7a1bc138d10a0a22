//! Threads that share the work of a pass: those of rayon's global pool.
//!
//! A pass is some dozens of products, of tens of microseconds each. A thread outside of the pool hands each
//! of them to the pool, and waits; waking a thread, and being woken, takes about as long as a small product.

use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

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
pub(crate) fn linger() {
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
