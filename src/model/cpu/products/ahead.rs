//! Software prefetching of weights.
//!
//! The processor's own prefetcher stops at each page of 4 KB, which is the size of a chunk of a panel.
//! Without these instructions, the first rows that a chunk is multiplied with wait for memory, and nothing is
//! loaded while the others are computed.

#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Sse;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Prefetches memory where the processor has an instruction for it; else does nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefetch {
    #[cfg(target_arch = "x86_64")]
    sse: Option<Sse>,
}

impl Prefetch {
    /// Detects what this processor has.
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            sse: Sse::try_new(),
        }
    }

    /// Prefetches line number `line` of `bytes` to the first cache; nothing past their end.
    #[inline(always)]
    pub(crate) fn ask(self, bytes: &[u8], line: usize) {
        #[cfg(target_arch = "x86_64")]
        if let (Some(sse), Some(byte)) = (self.sse, bytes.get(line * LINE)) {
            sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(byte).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (self, bytes, line * LINE);
    }

    /// Prefetches a line that is needed later to the second cache: rows of inputs fill the first.
    #[inline(always)]
    pub(crate) fn ask_far(self, bytes: &[u8], line: usize) {
        #[cfg(target_arch = "x86_64")]
        if let (Some(sse), Some(byte)) = (self.sse, bytes.get(line * LINE)) {
            sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(std::ptr::from_ref(byte).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (self, bytes, line * LINE);
    }
}
