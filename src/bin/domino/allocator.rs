//! The allocator, and how long it keeps memory that is free.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// Compiling a grammar allocates many small things, which takes a quarter less time with this allocator than
/// with glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2.
const PURGE_DELAY: mi_option_t = 15;

/// Milliseconds; mimalloc's own value is 10.
const KEPT: c_long = 5_000;

/// Gives memory back to the system only after seconds. Each grammar needs some tens of MB for a moment; to
/// get them anew each time makes some steps wait 5 ms for the system to find pages that are next to each
/// other. `MIMALLOC_PURGE_DELAY` in the environment goes before.
#[expect(unsafe_code, reason = "mimalloc's options are C functions only")]
pub(crate) fn keep_memory() {
    // SAFETY: the function sets one number of a table, after a check that the option is in it. No other thread
    // runs yet: this is the first thing that the program does. Tested by `memory_is_kept` below.
    unsafe { mi_option_set_default(PURGE_DELAY, KEPT) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is that of the option that is meant: mimalloc's own value is there before.
    #[test]
    #[expect(unsafe_code, reason = "mimalloc's options are C functions only")]
    fn memory_is_kept() {
        // SAFETY: the function reads one number of a table, after a check that the option is in it.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            assert_eq!(delay(), 10);
            keep_memory();
            assert_eq!(delay(), KEPT);
        }
    }
}
