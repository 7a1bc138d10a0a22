//! Memory taken from the system before it is needed.

/// Number of pieces that are taken: together as much as the tables of a vocabulary may grow to, and half of
/// that for grammars. A piece is as large as what the allocator asks the system for at once, so the allocator
/// keeps it for later needs.
const PIECES: usize = 12;
const PIECE: usize = 30 << 20;

/// Memory is taken ahead only if this many times as much is free, where that is known.
const ENOUGH: u64 = 16;

/// Prefaults 360 MB of memory: writes to them and frees them, so that the allocator has them at hand. Takes a
/// tenth of a second; does nothing where `available` bytes are too few. In a virtual machine whose host lends
/// memory out, 2 MB from the system can take 5 ms, which masks of the first grammars would wait for.
pub(crate) fn take_ahead(available: Option<u64>) {
    let bytes = (PIECES * PIECE) as u64;
    if available.is_none_or(|available| available / ENOUGH > bytes) {
        let pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; PIECE]).collect();
        drop(std::hint::black_box(pieces));
    }
}
