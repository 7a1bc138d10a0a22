//! Page-locked memory of the computer, through which words go to a card and come back.
//!
//! Copies from it are queued at once, while the card computes; memory that is not page-locked would first be
//! copied by the driver. Parts are handed out one behind the other and stay as they are until all are given
//! back, which the owner does once the copies are done.

use std::{ffi::c_uint, ptr::NonNull};

use candle_core::cuda_backend::cudarc::driver::result;

/// Words that no copy has in use lie behind those that are handed out.
#[derive(Debug)]
pub(super) struct PinnedWords {
    start: NonNull<u32>,
    size: usize,
    used: usize,
}

#[expect(unsafe_code, reason = "the memory is known by its address")]
// SAFETY: the memory is this value's own, and any thread may read and write it.
unsafe impl Send for PinnedWords {}

impl PinnedWords {
    /// Locks pages for `size` words, in the context that is bound to the thread. `None` if the system gives
    /// none.
    pub(super) fn new(size: usize) -> Option<Self> {
        /// Ordinary memory, which the processor reads as quickly as it writes.
        const FLAGS: c_uint = 0;
        #[expect(unsafe_code, reason = "the driver hands out memory")]
        // SAFETY: a context is bound, and what comes back has room for as many words, aligned to pages.
        let start = unsafe { result::malloc_host(size.checked_mul(size_of::<u32>())?, FLAGS) }.ok()?;
        let start = NonNull::new(start.cast::<u32>())?;
        #[expect(unsafe_code, reason = "memory of the driver's is not initialised")]
        // SAFETY: there is room for as many words.
        unsafe {
            start.as_ptr().write_bytes(0, size);
        }
        Some(Self { start, size, used: 0 })
    }

    /// True if at least `words` words are not handed out.
    pub(super) fn has(&self, words: usize) -> bool {
        words <= self.size - self.used
    }

    /// True if the whole memory has at least `words` words, handed out or not.
    pub(super) fn holds(&self, words: usize) -> bool {
        words <= self.size
    }

    /// Hands out `words` words; `None` if fewer are left.
    pub(super) fn take(&mut self, words: usize) -> Option<&mut [u32]> {
        if !self.has(words) {
            return None;
        }
        let from = self.used;
        self.used += words;
        #[expect(unsafe_code, reason = "the memory is known by its address")]
        // SAFETY: the words are inside of the memory, initialised, and no other part has them.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(from), words) })
    }

    /// Takes all words back. No copy may be under way.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }
}

impl Drop for PinnedWords {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the driver takes its memory back")]
        // SAFETY: the memory came from the driver, and no copy of it is under way: its owner has waited.
        let freed = unsafe { result::free_host(self.start.as_ptr().cast()) };
        if let Err(error) = freed {
            tracing::debug!(?error, "page-locked memory is not given back");
        }
    }
}
