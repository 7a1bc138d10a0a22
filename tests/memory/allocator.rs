//! An allocator that counts allocated bytes, and notes allocations that lift them over a ceiling.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The system's allocator, with a count of the bytes that are handed out.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CEILING: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The size of the first allocation that lifted the live bytes over the ceiling; 0 if there was none.
static BREACH: AtomicUsize = AtomicUsize::new(0);

/// Bytes over the ceiling that are handed out, so that the test can say what asked for them. Beyond them
/// allocations fail, which ends the program: what runs away does not take the machine along.
const OVER: usize = 1 << 30;

/// Counts bytes that are to be handed out. False if they must not be: then they are not counted.
fn add(bytes: usize) -> bool {
    let now = LIVE.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    let ceiling = CEILING.load(Ordering::Relaxed);
    if now > ceiling {
        let _ = BREACH.compare_exchange(0, bytes, Ordering::Relaxed, Ordering::Relaxed);
    }
    if now > ceiling.saturating_add(OVER) {
        remove(bytes);
        return false;
    }
    PEAK.fetch_max(now, Ordering::Relaxed);
    true
}

fn remove(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every call is handed on as it is to the system's allocator, which keeps the contract; the counts
// beside it allocate nothing and cannot unwind, and a null pointer is how an allocator refuses.
#[expect(unsafe_code, reason = "an allocator is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !add(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !add(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as above; what this allocator handed out came from the system's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !add(size) {
            return ptr::null_mut();
        }
        remove(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Bytes that are allocated now.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Runs `work`; also returns the peak of allocated bytes meanwhile, less those before.
pub(crate) fn peak_over<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = live();
    PEAK.store(before, Ordering::Relaxed);
    let done = work();
    (done, PEAK.load(Ordering::Relaxed).saturating_sub(before))
}

/// Runs `work` with a ceiling of `above` bytes over what is allocated before; also returns the size of the
/// first allocation that went through it.
pub(crate) fn under_ceiling<T>(above: usize, work: impl FnOnce() -> T) -> (T, Option<usize>) {
    BREACH.store(0, Ordering::Relaxed);
    CEILING.store(live() + above, Ordering::Relaxed);
    let done = work();
    CEILING.store(usize::MAX, Ordering::Relaxed);
    (done, Some(BREACH.load(Ordering::Relaxed)).filter(|&size| size > 0))
}
