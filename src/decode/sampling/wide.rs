//! Loops in the widest registers of the processor (SIMD), with the feature `simd`; without it as they are.
//!
//! Invariant: the results are the same, bit for bit. A loop is compiled several times, and no compilation
//! fuses or reorders operations on floating-point numbers.

/// A loop, which must be `#[inline(always)]` with all that it calls.
pub(super) trait Loop {
    /// The result type.
    type Found;

    /// Runs the loop.
    fn run(self) -> Self::Found;
}

/// Runs a loop with the widest instructions of the processor.
pub(super) fn dispatch<L: Loop>(work: L) -> L::Found {
    #[cfg(feature = "simd")]
    {
        pulp::Arch::new().dispatch(Dispatched(work))
    }
    #[cfg(not(feature = "simd"))]
    work.run()
}

#[cfg(feature = "simd")]
struct Dispatched<L>(L);

#[cfg(feature = "simd")]
impl<L: Loop> pulp::WithSimd for Dispatched<L> {
    type Output = L::Found;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) -> L::Found {
        self.0.run()
    }
}
