//! Asks the processor for memory before it is needed.
//!
//! Its own foresight ends with each page of 4 KB, which is what the numbers of a chunk of a panel take:
//! without this, the first rows that a chunk is multiplied with wait for it, and while the others are
//! computed nothing comes.

#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Sse;

/// Bytes that come together.
const LINE: usize = 64;

/// Asks for memory, where the processor has an instruction for it; else does nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead {
    #[cfg(target_arch = "x86_64")]
    sse: Option<Sse>,
}

impl Ahead {
    /// What this processor can do.
    pub(super) fn new() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            sse: Sse::try_new(),
        }
    }

    /// Asks for a line of `bytes`, by its number; past their end there is nothing to ask for.
    #[inline(always)]
    pub(super) fn ask(self, bytes: &[u8], line: usize) {
        #[cfg(target_arch = "x86_64")]
        if let (Some(sse), Some(byte)) = (self.sse, bytes.get(line * LINE)) {
            sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(byte).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (self, bytes, line * LINE);
    }

    /// The same for a line that will be read later, to the second cache: the first has no room beside rows of
    /// inputs.
    #[inline(always)]
    pub(super) fn ask_far(self, bytes: &[u8], line: usize) {
        #[cfg(target_arch = "x86_64")]
        if let (Some(sse), Some(byte)) = (self.sse, bytes.get(line * LINE)) {
            sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(std::ptr::from_ref(byte).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (self, bytes, line * LINE);
    }
}
