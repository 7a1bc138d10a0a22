//! Layout of the quants, factors and small scales of a packed block, for products in whole numbers.

use super::rounded::GROUP;
use crate::model::cpu::products::{BIAS, Lanes, PANEL, Scheme};

/// Layout of the weights of a block.
pub(super) trait Source {
    /// Bytes of a block, of all outputs.
    const PACKED: usize;
    /// Groups of a block.
    const GROUPS: usize;
    /// Inputs that share a scale.
    const SHARED: usize;
    /// The quant that stands for zero; `None` if the format has offsets instead.
    const ZERO: Option<u8>;
    /// Bits above the low four; `None` if quants are whole bytes.
    const HIGH: Option<u32>;
    /// Kinds of half-precision factors in a block.
    const FACTORS: usize;
    /// Kinds of small scales.
    const SCALES: usize;
    /// Inputs whose planes lie together.
    const CHUNK: usize;

    /// Scale and offset of each output.
    fn affine(factors: &[Lanes; 2], scales: [&[u8]; 2]) -> (Lanes, Lanes);
}

/// Layout of whole bytes: `Q8_0`.
pub(super) struct Bytes;

impl Source for Bytes {
    const PACKED: usize = 34 * PANEL;
    const GROUPS: usize = 1;
    const SHARED: usize = GROUP;
    const ZERO: Option<u8> = Some(BIAS);
    const HIGH: Option<u32> = None;
    const FACTORS: usize = 1;
    const SCALES: usize = 0;
    const CHUNK: usize = GROUP;

    #[inline(always)]
    fn affine(factors: &[Lanes; 2], _scales: [&[u8]; 2]) -> (Lanes, Lanes) {
        (factors[0], [0.0; PANEL])
    }
}

/// Layout in planes of the low four bits and of the bits above them.
pub(super) struct Planes<T>(std::marker::PhantomData<T>);

impl<T: Scheme> Source for Planes<T> {
    const PACKED: usize = T::PACKED;
    const GROUPS: usize = T::BLOCK / GROUP;
    const SHARED: usize = T::GROUP;
    const ZERO: Option<u8> = T::ZERO;
    const HIGH: Option<u32> = Some(T::HIGH);
    const FACTORS: usize = T::FACTORS;
    const SCALES: usize = T::SCALES;
    const CHUNK: usize = T::CHUNK;

    #[inline(always)]
    fn affine(factors: &[Lanes; 2], scales: [&[u8]; 2]) -> (Lanes, Lanes) {
        T::affine(factors, scales)
    }
}

/// The parts of a block's chunk, of all outputs.
pub(super) struct Chunk<'a> {
    scales: &'a [u8],
    low: &'a [u8],
    high: &'a [u8],
}

/// Cuts a packed block, past its factors, into chunks.
#[inline(always)]
pub(super) fn chunks<T: Source>(packed: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let (_, chunks) = packed.split_at(2 * PANEL * T::FACTORS);
    let scale_bytes = PANEL * shares::<T>() * T::SCALES;
    let (low_bytes, high_bytes) = match T::HIGH {
        None => (PANEL * T::CHUNK, 0),
        Some(high) => (PANEL * T::CHUNK / 2, PANEL * T::CHUNK * high as usize / 8),
    };
    chunks.chunks_exact(scale_bytes + low_bytes + high_bytes).map(move |chunk| {
        let (scales, planes) = chunk.split_at(scale_bytes);
        let (low, high) = planes.split_at(low_bytes);
        Chunk { scales, low, high }
    })
}

/// Number of scales in a chunk.
#[inline(always)]
pub(super) const fn shares<T: Source>() -> usize {
    T::CHUNK / T::SHARED
}

impl<'a> Chunk<'a> {
    /// Scale and offset of a share, and its planes: the low bits (or whole bytes), and those above.
    #[inline(always)]
    pub(super) fn share<T: Source>(
        &self,
        factors: &[Lanes; 2],
        share: usize,
    ) -> ((Lanes, Lanes), &'a [u8], &'a [u8]) {
        let kind = |kind: usize| match kind < T::SCALES {
            true => &self.scales[(share * T::SCALES + kind) * PANEL..][..PANEL],
            false => &[],
        };
        let affine = T::affine(factors, [kind(0), kind(1)]);
        let (low, high) = (self.low.len() / shares::<T>(), self.high.len() / shares::<T>());
        (affine, &self.low[share * low..][..low], &self.high[share * high..][..high])
    }
}

/// Initial value of a row's sum of products: it subtracts the zero point, so that the sum becomes that of the
/// signed quants. `first` is the first input of the group that shares the scale.
#[inline(always)]
pub(super) fn start<T: Source>(sums: [i32; 2], first: usize) -> i32 {
    match T::ZERO {
        Some(zero) if T::SHARED == GROUP => -i32::from(zero) * (sums[0] + sums[1]),
        Some(zero) => -i32::from(zero) * sums[first / T::SHARED],
        None => 0,
    }
}
