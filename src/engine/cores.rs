//! Work on other cores: the threads of rayon's global pool. Without the feature `threads` there are none, and
//! the calling thread does all the work.
//!
//! Invariant: no result depends on the number of threads.

use std::io;

/// Number of threads that work at once.
pub fn count() -> usize {
    #[cfg(feature = "threads")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "threads"))]
    return 1;
}

/// Does `work` for each item; the results are in the order of the items. Neighbours may share a job: for
/// many small items.
pub fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "threads")]
    {
        use rayon::prelude::*;
        items.into_par_iter().map(&work).collect()
    }
    #[cfg(not(feature = "threads"))]
    items.into_iter().map(work).collect()
}

/// Does `work` for each item like [`map`], each as a job of its own: for few large items.
pub fn map_large<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "threads")]
    {
        use rayon::prelude::*;
        items.into_par_iter().with_max_len(1).map(&work).collect()
    }
    #[cfg(not(feature = "threads"))]
    map(items, work)
}

/// Does `here` on the calling thread and `there` on another one meanwhile, or afterwards if there is no
/// other.
pub fn beside<A, B: Send>(here: impl FnOnce() -> A, there: impl Fn() -> B + Sync) -> (A, B) {
    #[cfg(feature = "threads")]
    if count() > 1 {
        let mut made = None;
        let own = rayon::in_place_scope(|scope| {
            scope.spawn(|_| made = Some(there()));
            here()
        });
        return (own, made.unwrap_or_else(there));
    }
    (here(), there())
}

/// Starts a job on another core, for which nobody waits. If there is no other core the job is dropped undone,
/// so it must be dispensable.
pub fn start(job: impl FnOnce() + Send + 'static) {
    #[cfg(feature = "threads")]
    if count() > 1 {
        rayon::spawn(job);
        return;
    }
    drop(job);
}

/// Does `work` on a thread of its own with this name. Without the feature `threads` it is done before this
/// returns.
///
/// # Errors
/// If the system provides no thread.
pub fn in_background(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    #[cfg(feature = "threads")]
    {
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
    }
    #[cfg(not(feature = "threads"))]
    {
        let _ = name;
        work();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn parallel_results_keep_the_order_of_their_inputs() {
        let squares: Vec<usize> = (0..1000).map(|n| n * n).collect();
        assert_eq!(map((0..1000).collect(), |n| n * n), squares);
        assert_eq!(map_large((0..1000).collect(), |n| n * n), squares);
        assert_eq!(beside(|| 1, || 2), (1, 2));
    }

    /// Without threads `here` comes first, and a job is dropped.
    #[test]
    fn jobs_run_only_where_there_are_several_cores() {
        let (done, told) = mpsc::channel();
        start(move || done.send(()).unwrap());
        assert_eq!(told.recv().is_ok(), count() > 1);
        assert!(cfg!(feature = "threads") || count() == 1);
        let (done, told) = mpsc::channel();
        in_background("a test", move || done.send(std::thread::current().id()).unwrap()).unwrap();
        assert_eq!(told.recv().unwrap() != std::thread::current().id(), cfg!(feature = "threads"));
    }
}
