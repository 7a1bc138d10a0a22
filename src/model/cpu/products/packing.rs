//! Packing of stored rows into panels of 16 rows, in which the numbers that are needed together lie together.
//!
//! In a panel the 16 numbers of one input are neighbours, so that unpacking is the same work for 16 outputs
//! at once. Narrow numbers lie in planes of 16 words of 32 bits, one for each row:
//!
//! ```text
//! panel    [ block 0 ][ block 1 ] ...
//! block    16 factors of each kind, then its chunks
//! chunk    16 small scales of each kind and group, then planes of quants:
//!          the low four bits, eight inputs a word, the first lowest; then the bits above them
//! ```
//!
//! Of eight inputs, those of even and those of odd number are each the four bytes of a word after one shift
//! and one mask of a plane, which is how products of whole numbers take them ([`integer`](super::integer)).
//! Whole bytes and the bits above the low four lie in that order.
//!
//! Panels are prefetched by instructions. The processor's own prefetcher stops at each page of 4 KB, which is
//! the size of a chunk of a panel. Without them, the first rows that a chunk is multiplied with wait for
//! memory, and nothing is loaded while the others are computed.
//!
//! Invariant: unpacked, a number is bit for bit what its format says in `f32`.

#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Sse;
use pulp::{Simd, bytemuck::pod_read_unaligned};

use super::{BIAS, Block, CHUNK, LARGEST, Lanes, Legacy, PANEL, PLANE, ScaleAndMin, Scheme, SignedScale};
use crate::model::formats::Format;

/// Bytes of a panel of `inputs` inputs, which are whole blocks.
pub(crate) fn panel_bytes(format: Format, inputs: usize) -> usize {
    if matches!(format, Format::F16 | Format::Bf16) {
        return inputs.div_ceil(2) * PLANE;
    }
    inputs / format.block()
        * match format {
            Format::F32 | Format::F16 | Format::Bf16 => 4 * PANEL,
            Format::Q8_0 => 2 * PANEL + 32 * PANEL,
            Format::Q4_0 => Legacy::<0, false>::PACKED,
            Format::Q4_1 => Legacy::<0, true>::PACKED,
            Format::Q5_0 => Legacy::<1, false>::PACKED,
            Format::Q5_1 => Legacy::<1, true>::PACKED,
            Format::Q4K => ScaleAndMin::<0>::PACKED,
            Format::Q5K => ScaleAndMin::<1>::PACKED,
            Format::Q6K => SignedScale::PACKED,
        }
}

/// Inputs unpacked at once: whole chunks of a format.
pub(crate) fn chunk(format: Format) -> usize {
    match format.block() {
        32 => 32,
        _ => CHUNK,
    }
}

/// Writes a stored row to its place in a panel that is all zeros there.
pub(crate) fn pack(format: Format, stored: &[u8], lane: usize, panel: &mut [u8]) {
    match format {
        Format::F32 => spread::<4>(stored, lane, panel),
        Format::F16 | Format::Bf16 => {
            for (input, stored) in stored.as_chunks().0.iter().enumerate() {
                set::<16>(panel, input, lane, u16::from_le_bytes(*stored).into());
            }
        }
        Format::Q8_0 => {
            let blocks = panel.chunks_exact_mut(34 * PANEL);
            for (stored, packed) in stored.chunks_exact(34).zip(blocks) {
                spread::<2>(&stored[..2], lane, packed);
                let eights = stored[2..].as_chunks::<8>().0;
                let pairs = packed[2 * PANEL..].as_chunks_mut::<PLANE>().0.as_chunks_mut::<2>().0;
                for (eight, pair) in eights.iter().zip(pairs) {
                    for (word, plane) in pair.iter_mut().enumerate() {
                        let own = [0, 2, 4, 6].map(|input| eight[input + word].wrapping_add(BIAS));
                        set_word(plane, lane, joined(own, |byte| 8 * byte));
                    }
                }
            }
        }
        Format::Q4_0 => pack_blocks::<Legacy<0, false>>(format, stored, lane, panel),
        Format::Q4_1 => pack_blocks::<Legacy<0, true>>(format, stored, lane, panel),
        Format::Q5_0 => pack_blocks::<Legacy<1, false>>(format, stored, lane, panel),
        Format::Q5_1 => pack_blocks::<Legacy<1, true>>(format, stored, lane, panel),
        Format::Q4K => pack_blocks::<ScaleAndMin<0>>(format, stored, lane, panel),
        Format::Q5K => pack_blocks::<ScaleAndMin<1>>(format, stored, lane, panel),
        Format::Q6K => pack_blocks::<SignedScale>(format, stored, lane, panel),
    }
}

/// Number of the word of whole bytes that an input lies in: of eight inputs, even and odd ones have one each.
fn byte_word(input: usize) -> usize {
    input / 8 * 2 + input % 2
}

/// Number of an input's byte in its word.
fn byte_of(input: usize) -> usize {
    input % 8 / 2
}

/// Place of an input's bits above the low four in a word, in units of `high` bits: the byte in which its low
/// bits will be, those of the first word lowest.
fn high_place(high: u32, input: usize) -> usize {
    8 / high.max(1) as usize * byte_of(input) + byte_word(input)
}

/// Copies units of `N` bytes to their lane.
fn spread<const N: usize>(stored: &[u8], lane: usize, packed: &mut [u8]) {
    let places = packed.as_chunks_mut::<N>().0.iter_mut().skip(lane).step_by(PANEL);
    places.zip(stored.as_chunks::<N>().0).for_each(|(place, value)| *place = *value);
}

/// Writes `BITS` bits of an input to its place in planes that are zero there.
fn set<const BITS: usize>(planes: &mut [u8], input: usize, lane: usize, value: u32) {
    let share = 32 / BITS;
    let start = input / share * PLANE + 4 * lane;
    if let Some(word) = planes[start..].first_chunk_mut() {
        *word = (u32::from_ne_bytes(*word) | value << (BITS * (input % share))).to_ne_bytes();
    }
}

fn pack_blocks<T: Scheme>(format: Format, stored: &[u8], lane: usize, panel: &mut [u8]) {
    let mut block = Block { quants: [0; LARGEST], factors: [[0; 2]; 2], scales: [[0; 2]; 16] };
    let blocks = panel.chunks_exact_mut(T::PACKED);
    for (stored, packed) in stored.chunks_exact(format.block_bytes()).zip(blocks) {
        T::take_apart(stored, &mut block);
        let (head, chunks) = packed.split_at_mut(2 * PANEL * T::FACTORS);
        for (kind, factors) in head.chunks_exact_mut(2 * PANEL).enumerate() {
            factors[2 * lane..2 * lane + 2].copy_from_slice(&block.factors[kind]);
        }
        let groups = T::CHUNK / T::GROUP;
        for (index, chunk) in chunks.chunks_exact_mut(T::CHUNK_BYTES).enumerate() {
            let (scales, planes) = chunk.split_at_mut(PANEL * groups * T::SCALES);
            for (place, scales) in scales.chunks_exact_mut(PANEL).enumerate() {
                scales[lane] = block.scales[index * groups + place / T::SCALES][place % T::SCALES];
            }
            let (low, high) = planes.split_at_mut(PANEL * T::CHUNK / 2);
            let quants = &block.quants[index * T::CHUNK..][..T::CHUNK];
            for (eight, plane) in quants.as_chunks::<8>().0.iter().zip(low.as_chunks_mut::<PLANE>().0) {
                set_word(plane, lane, joined(eight.map(|quant| quant & 15), |input| 4 * input));
            }
            for (share, plane) in high.as_chunks_mut::<PLANE>().0.iter_mut().enumerate() {
                let word = match T::HIGH {
                    1 => high_word::<32>(T::HIGH, quants, share),
                    _ => high_word::<16>(T::HIGH, quants, share),
                };
                set_word(plane, lane, word);
            }
        }
    }
}

/// Packs the bits above the low four of inputs `N * share ..` as [`high_place`] says.
fn high_word<const N: usize>(high: u32, quants: &[u8], share: usize) -> u32 {
    let own = quants[N * share..].first_chunk::<N>().copied().unwrap_or([0; N]);
    joined(own.map(|quant| quant >> 4), |input| high as usize * high_place(high, input))
}

/// Joins values into a word, each at its bit.
#[inline(always)]
fn joined<const N: usize>(values: [u8; N], bit: impl Fn(usize) -> usize) -> u32 {
    let placed = values.iter().enumerate().map(|(input, value)| u32::from(*value) << bit(input));
    placed.fold(0, |word, value| word | value)
}

/// Writes the word of a lane.
fn set_word(plane: &mut [u8; PLANE], lane: usize, word: u32) {
    plane[4 * lane..4 * lane + 4].copy_from_slice(&word.to_ne_bytes());
}

/// Unpacks the numbers of inputs `first ..` of a panel, 16 for each input, until `out` is full: at most one
/// [`chunk`], starting at a multiple of it.
#[inline(always)]
pub(crate) fn unpack<S: Simd>(simd: S, format: Format, panel: &[u8], first: usize, out: &mut [f32]) {
    match format {
        Format::F32 => {
            let stored = panel[4 * PANEL * first..].as_chunks().0;
            out.iter_mut().zip(stored).for_each(|(out, bytes)| *out = f32::from_le_bytes(*bytes));
        }
        Format::F16 | Format::Bf16 => {
            let planes = &panel.as_chunks::<PLANE>().0[first / 2..];
            let (pairs, last) = out.as_chunks_mut::<{ 2 * PANEL }>();
            for (plane, pair) in planes.iter().zip(&mut *pairs) {
                let (even, odd) = pair.split_at_mut(PANEL);
                narrow_to_floats::<S, 0>(simd, format, plane, even);
                narrow_to_floats::<S, 1>(simd, format, plane, odd);
            }
            if !last.is_empty() {
                narrow_to_floats::<S, 0>(simd, format, &planes[pairs.len()], last);
            }
        }
        Format::Q8_0 => {
            let block = &panel[first / 32 * 34 * PANEL..][..34 * PANEL];
            let (scale, quants) = block.split_at(2 * PANEL);
            let scale = halves(simd, scale);
            // The product is exact, and so is the sum.
            let offset = scale.map(|scale| -f32::from(BIAS) * scale);
            let pairs = quants.as_chunks::<PLANE>().0.as_chunks::<2>().0;
            for (pair, out) in pairs.iter().zip(out.as_chunks_mut::<{ 8 * PANEL }>().0) {
                for v in 0..PANEL / S::F32_LANES {
                    let words = [words::<S>(&pair[0], v), words::<S>(&pair[1], v)];
                    let (scale, offset) = (S::as_simd_f32s(&scale).0[v], S::as_simd_f32s(&offset).0[v]);
                    for (input, out) in (0..).zip(out.as_chunks_mut::<PANEL>().0) {
                        let quants = bits_of(simd, words[input as usize % 2], 8 * (input / 2), 255);
                        S::as_mut_simd_f32s(out).0[v] =
                            simd.mul_add_e_f32s(float(simd, quants), scale, offset);
                    }
                }
            }
        }
        Format::Q4_0 => unpack_chunk::<S, Legacy<0, false>>(simd, panel, first, out),
        Format::Q4_1 => unpack_chunk::<S, Legacy<0, true>>(simd, panel, first, out),
        Format::Q5_0 => unpack_chunk::<S, Legacy<1, false>>(simd, panel, first, out),
        Format::Q5_1 => unpack_chunk::<S, Legacy<1, true>>(simd, panel, first, out),
        Format::Q4K => unpack_chunk::<S, ScaleAndMin<0>>(simd, panel, first, out),
        Format::Q5K => unpack_chunk::<S, ScaleAndMin<1>>(simd, panel, first, out),
        Format::Q6K => unpack_chunk::<S, SignedScale>(simd, panel, first, out),
    }
}

#[inline(always)]
fn unpack_chunk<S: Simd, T: Scheme>(simd: S, panel: &[u8], first: usize, out: &mut [f32]) {
    let block = &panel[first / T::BLOCK * T::PACKED..][..T::PACKED];
    let (head, chunks) = block.split_at(2 * PANEL * T::FACTORS);
    let mut factors = [[0.0; PANEL]; 2];
    for (factors, halves_of) in factors.iter_mut().zip(head.chunks_exact(2 * PANEL)) {
        *factors = halves(simd, halves_of);
    }
    let chunk = &chunks[first % T::BLOCK / T::CHUNK * T::CHUNK_BYTES..][..T::CHUNK_BYTES];
    let (scales, planes) = chunk.split_at(PANEL * (T::CHUNK / T::GROUP) * T::SCALES);
    let (low, high) = planes.split_at(PANEL * T::CHUNK / 2);
    for (group, out) in out.chunks_exact_mut(T::GROUP * PANEL).enumerate() {
        let kind = |kind: usize| match kind < T::SCALES {
            true => &scales[(group * T::SCALES + kind) * PANEL..][..PANEL],
            false => &[],
        };
        let (scale, offset) = T::affine(&factors, [kind(0), kind(1)]);
        let low = &low[group * PANEL * T::GROUP / 2..][..PANEL * T::GROUP / 2];
        let high_bytes = PANEL * T::GROUP * T::HIGH as usize / 8;
        let high = &high[group * high_bytes..][..high_bytes];
        planes_to_floats::<S, T>(simd, low, high, &scale, &offset, out);
    }
}

/// Unpacks a group: `scale * quant + offset`. The product is exact, so fused or not gives the same bits.
#[inline(always)]
fn planes_to_floats<S: Simd, T: Scheme>(
    simd: S,
    low: &[u8],
    high: &[u8],
    scale: &Lanes,
    offset: &Lanes,
    out: &mut [f32],
) {
    let low = &low.as_chunks::<PLANE>().0[..T::GROUP / 8];
    let high = high.as_chunks::<PLANE>().0;
    let out = &mut out.as_chunks_mut::<PANEL>().0[..T::GROUP];
    for v in 0..PANEL / S::F32_LANES {
        let (scale, offset) = (S::as_simd_f32s(scale).0[v], S::as_simd_f32s(offset).0[v]);
        // The bits above the low four of a whole group are in one word.
        let above = if T::HIGH == 0 { simd.splat_u32s(0) } else { words::<S>(&high[0], v) };
        for ((plane, low), out) in (0..).zip(low).zip(out.as_chunks_mut::<8>().0) {
            let words = words::<S>(low, v);
            for (input, out) in (0..).zip(out) {
                let mut quants = bits_of(simd, words, 4 * input, 15);
                if T::HIGH > 0 {
                    let first = 8 * (input / 2) + T::HIGH * (2 * plane + input % 2);
                    let bits = bits_of(simd, above, first, (1 << T::HIGH) - 1);
                    quants = simd.or_u32s(quants, simd.wrapping_dyn_shl_u32s(bits, simd.splat_u32s(4)));
                }
                let number = simd.mul_add_e_f32s(float(simd, quants), scale, offset);
                S::as_mut_simd_f32s(out).0[v] = number;
            }
        }
    }
}

/// Loads vector `v` of the words of a plane.
#[inline(always)]
fn words<S: Simd>(plane: &[u8; PLANE], v: usize) -> S::u32s {
    pod_read_unaligned(&plane[v * size_of::<S::u32s>()..][..size_of::<S::u32s>()])
}

/// Extracts the bits of `mask` from bit `first` on.
#[inline(always)]
fn bits_of<S: Simd>(simd: S, words: S::u32s, first: u32, mask: u32) -> S::u32s {
    simd.and_u32s(simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(first)), simd.splat_u32s(mask))
}

/// Converts numbers below 2^23 to floats: as the lowest bits of 2^23, which is then subtracted.
#[inline(always)]
fn float<S: Simd>(simd: S, numbers: S::u32s) -> S::f32s {
    const UNIT: f32 = 8_388_608.0;
    let above = simd.transmute_f32s_u32s(simd.or_u32s(numbers, simd.splat_u32s(UNIT.to_bits())));
    simd.sub_f32s(above, simd.splat_f32s(UNIT))
}

/// Converts 16-bit numbers in the lower (`SIDE` 0) or upper (1) halves of a plane's words to floats.
#[inline(always)]
fn narrow_to_floats<S: Simd, const SIDE: u32>(simd: S, format: Format, plane: &[u8; PLANE], out: &mut [f32]) {
    for (v, out) in S::as_mut_simd_f32s(out).0.iter_mut().enumerate() {
        let own = bits_of(simd, words::<S>(plane, v), 16 * SIDE, 0xffff);
        *out = match format {
            Format::F16 => half(simd, own),
            _ => simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(own, simd.splat_u32s(16))),
        };
    }
}

/// Converts sixteen half-precision numbers to floats.
#[inline(always)]
pub(crate) fn halves<S: Simd>(simd: S, bytes: &[u8]) -> Lanes {
    let mut bits = [0; PANEL];
    for (bits, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
        *bits = u32::from(u16::from_le_bytes(*bytes));
    }
    let mut out = [0.0; PANEL];
    for (out, bits) in S::as_mut_simd_f32s(&mut out).0.iter_mut().zip(S::as_simd_u32s(&bits).0) {
        *out = half(simd, *bits);
    }
    out
}

/// Converts half-precision numbers, as 16 bits each, to floats.
#[inline(always)]
fn half<S: Simd>(simd: S, bits: S::u32s) -> S::f32s {
    // Exponent and fraction are moved over and the bias is corrected, then subnormal numbers, infinity and
    // NaN are mended. No step has subnormal floats, which are slow.
    const LEAST: u32 = (127 - 14) << 23;
    let magnitude = simd.and_u32s(bits, simd.splat_u32s(0x7fff));
    let moved = simd.wrapping_dyn_shl_u32s(magnitude, simd.splat_u32s(13));
    let normal = simd.add_u32s(moved, simd.splat_u32s((127 - 15) << 23));
    let least = simd.splat_u32s(LEAST);
    let above = simd.transmute_f32s_u32s(simd.or_u32s(moved, least));
    let subnormal = simd.transmute_u32s_f32s(simd.sub_f32s(above, simd.transmute_f32s_u32s(least)));
    let is_subnormal = simd.less_than_u32s(magnitude, simd.splat_u32s(0x400));
    let is_infinite = simd.greater_than_or_equal_u32s(magnitude, simd.splat_u32s(0x7c00));
    let infinite = simd.or_u32s(moved, simd.splat_u32s(255 << 23));
    let number = simd.select_u32s(is_subnormal, subnormal, normal);
    let number = simd.select_u32s(is_infinite, infinite, number);
    let sign = simd.and_u32s(bits, simd.splat_u32s(0x8000));
    simd.transmute_f32s_u32s(simd.or_u32s(number, simd.wrapping_dyn_shl_u32s(sign, simd.splat_u32s(16))))
}

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

#[cfg(test)]
#[path = "packing_tests.rs"]
pub(crate) mod tests;
