//! Memory taken from the system before it is needed.

/// As much as the tables of a vocabulary may grow to and half of that for grammars, in pieces that each fill
/// what the allocator asks the system for at once, so that it keeps them for whatever comes.
const PIECES: usize = 12;
const PIECE: usize = 30 << 20;

/// Writes to 360 MB of memory and frees them, so that the allocator has them at hand: a tenth of a second. In
/// a virtual machine whose host lends memory out, 2 MB from the system can take 5 ms, which would be those of
/// the first grammars' masks.
pub(crate) fn take_ahead() {
    let pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; PIECE]).collect();
    drop(std::hint::black_box(pieces));
}
