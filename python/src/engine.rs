//! Calls into the engine: without the interpreter's lock, and with panics caught.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::failure::{Failure, Outcome};

/// Number of forks along the line of this process and its parents.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The threads of a forked process, and the number of forks that they were made after.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Notes that this process is a fork: its parent's threads are not there.
#[pyfunction(name = "_after_fork")]
pub(crate) fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Does `work`, which may take long, without the interpreter's lock.
///
/// # Errors
/// If `work` fails or panics.
pub(crate) fn unlocked<T: Send>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    py.detach(|| match FORKS.load(Ordering::Relaxed) {
        0 => guarded(work),
        forks => pool(forks)?.install(|| guarded(work)),
    })
}

/// Does `work` with panics caught.
///
/// # Errors
/// If `work` fails or panics.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::Panic(said))
    })
}

/// Threads of this process: those of rayon's global pool have stayed in the one it was forked of, and work
/// that is given to them would never be done.
fn pool(forks: u32) -> Outcome<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((made, threads)) = &*pool
        && *made == forks
    {
        return Ok(Arc::clone(threads));
    }
    let made = rayon::ThreadPoolBuilder::new().build();
    let made = Arc::new(made.map_err(|error| Failure::Value(format!("no threads after a fork: {error}")))?);
    // The threads of one from before the fork cannot be joined.
    std::mem::forget(pool.replace((forks, Arc::clone(&made))));
    Ok(made)
}
