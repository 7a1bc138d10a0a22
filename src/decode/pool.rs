//! Work that sequences of a pass have each for itself, done by the threads that share the work of passes.

use rayon::prelude::*;

/// Does `work` for each: those that are not `shared` at once, where there are threads for it, and then the others one after
/// the other. The results are in the order of `all`.
pub(super) fn each<T: Send, R: Send>(
    all: Vec<T>,
    shared: impl Fn(&T) -> bool + Sync,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if all.len() < 2 || rayon::current_num_threads() < 2 {
        return all.into_iter().map(work).collect();
    }
    let own = |item| if shared(&item) { Err(item) } else { Ok(work(item)) };
    let done: Vec<Result<R, T>> = all.into_par_iter().with_max_len(1).map(own).collect();
    done.into_iter().map(|done| done.unwrap_or_else(&work)).collect()
}
