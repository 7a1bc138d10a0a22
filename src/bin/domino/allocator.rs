//! The allocator, and the time for which it keeps free memory.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// The allocator of the program. Compiling a grammar allocates many small things, which takes a quarter less
/// time with mimalloc than with glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of the option `mi_option_purge_delay` in mimalloc 2.
const PURGE_DELAY: mi_option_t = 15;

/// Time for which free memory is kept, in milliseconds; mimalloc's own value is 10.
const KEPT: c_long = 5_000;

/// Sets how long the allocator keeps free memory before it returns it to the system. Compiling a grammar
/// needs some tens of MB for a moment. Getting them from the system each time can stall a step for 5 ms, in a
/// virtual machine that gives free memory back to its host. `MIMALLOC_PURGE_DELAY` in the environment takes
/// precedence.
#[expect(unsafe_code, reason = "mimalloc's options are C functions only")]
pub(crate) fn keep_memory() {
    // SAFETY: the function stores one number in a static table, after a check that the option is in it. It is
    // not synchronised, but no other thread runs yet: `main` calls this first. Tested by
    // `keep_memory_sets_the_purge_delay_of_mimalloc`.
    unsafe { mi_option_set_default(PURGE_DELAY, KEPT) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Comparison of the value before with mimalloc's own default: it shows that `PURGE_DELAY` is the right
    /// option.
    #[test]
    #[expect(unsafe_code, reason = "mimalloc's options are C functions only")]
    fn keep_memory_sets_the_purge_delay_of_mimalloc() {
        // SAFETY: the function reads one number of a static table, after a check that the option is in it.
        // Other tests' threads may only read the number too, when they free memory; it is an aligned word.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            assert_eq!(delay(), 10);
            keep_memory();
            assert_eq!(delay(), KEPT);
        }
    }
}
