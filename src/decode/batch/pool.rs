//! Work that each sequence of a pass has for itself, done by the threads that share the work of passes.

use crate::cores;

/// Does `work` for each: in parallel for those that are not `shared`, if there are threads, and then the
/// others one after the other. The results are in the order of `all`.
pub(super) fn each<T: Send, R: Send>(
    all: Vec<T>,
    shared: impl Fn(&T) -> bool + Sync,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if all.len() < 2 || cores::count() < 2 {
        return all.into_iter().map(work).collect();
    }
    let own = |item| if shared(&item) { Err(item) } else { Ok(work(item)) };
    let done: Vec<Result<R, T>> = cores::map_large(all, own);
    done.into_iter().map(|done| done.unwrap_or_else(&work)).collect()
}
