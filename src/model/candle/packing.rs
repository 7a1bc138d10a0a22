//! Rows as stored -> panels of 16 rows, in which the numbers that are needed together lie together.
//!
//! Invariant: unpacked, a number is bit for bit what its format says it is in `f32`. In a panel the 16
//! numbers of one input are neighbours, so that unpacking is the same work for 16 outputs at once. A quantised
//! panel holds, per block, the 16 factors of each kind; then per chunk the 16 small scales of each kind and
//! group, and the quants in planes: the low four bits, two inputs a byte, and the bits above them.

use pulp::Simd;

use super::format::Format;

/// Outputs whose weights lie together.
pub(super) const PANEL: usize = 16;
/// Most inputs that are unpacked at once.
pub(super) const CHUNK: usize = 64;
/// Numbers in the largest block.
const LARGEST: usize = 256;

/// A number of each of a panel's rows.
type Lanes = [f32; PANEL];

/// A block of one row, taken apart. Its numbers are `scale * quant + offset`, by group.
struct Block {
    quants: [u8; LARGEST],
    /// As stored: halves.
    factors: [[u8; 2]; 2],
    /// By group, of each kind.
    scales: [[u8; 2]; 16],
}

/// A kind of quantisation: how its blocks are made up.
trait Scheme {
    /// Numbers in a block.
    const BLOCK: usize;
    /// Numbers that share scale and offset.
    const GROUP: usize;
    /// Bits above the low four.
    const HIGH: usize;
    /// Kinds of halves in a block.
    const FACTORS: usize;
    /// Kinds of small scales in a group.
    const SCALES: usize;

    /// Inputs unpacked at once.
    const CHUNK: usize = if Self::BLOCK < CHUNK { Self::BLOCK } else { CHUNK };
    /// Bytes of a chunk's planes and scales, of all rows.
    const CHUNK_BYTES: usize =
        PANEL * (Self::CHUNK / Self::GROUP * Self::SCALES + Self::CHUNK / 2 + Self::CHUNK * Self::HIGH / 8);
    /// Bytes of a block, of all rows.
    const PACKED: usize = PANEL * 2 * Self::FACTORS + Self::BLOCK / Self::CHUNK * Self::CHUNK_BYTES;

    /// Takes a stored block apart.
    fn take_apart(stored: &[u8], block: &mut Block);

    /// Scale and offset of a group.
    fn affine(factors: &[Lanes; 2], scales: [&[u8]; 2]) -> (Lanes, Lanes);
}

/// One half as scale, and a zero point or another half as offset: `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1`.
struct Legacy<const HIGH: usize, const OFFSET: bool>;

impl<const HIGH: usize, const OFFSET: bool> Scheme for Legacy<HIGH, OFFSET> {
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HIGH: usize = HIGH;
    const FACTORS: usize = if OFFSET { 2 } else { 1 };
    const SCALES: usize = 0;

    #[inline]
    fn take_apart(stored: &[u8], block: &mut Block) {
        let (factors, rest) = stored.as_chunks::<2>().0.split_at(Self::FACTORS);
        block.factors[..Self::FACTORS].copy_from_slice(factors);
        let (high, low) = rest.as_flattened().split_at(4 * HIGH);
        let high = high.as_chunks().0.first().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        for (index, &byte) in low.iter().enumerate() {
            let bit = |index: usize| if high >> index & 1 == 1 { 16 } else { 0 };
            block.quants[index] = byte & 15 | bit(index);
            block.quants[index + 16] = byte >> 4 | bit(index + 16);
        }
    }

    #[inline(always)]
    fn affine(factors: &[Lanes; 2], _scales: [&[u8]; 2]) -> (Lanes, Lanes) {
        let zero = if HIGH == 0 { -8.0 } else { -16.0 };
        let offset = if OFFSET { factors[1] } else { factors[0].map(|factor| zero * factor) };
        (factors[0], offset)
    }
}

/// Small scales and offsets of groups, times a half each: `Q4_K`, `Q5_K`.
struct ScaleAndMin<const HIGH: usize>;

impl<const HIGH: usize> Scheme for ScaleAndMin<HIGH> {
    const BLOCK: usize = 256;
    const GROUP: usize = 32;
    const HIGH: usize = HIGH;
    const FACTORS: usize = 2;
    const SCALES: usize = 2;

    #[inline]
    fn take_apart(stored: &[u8], block: &mut Block) {
        let (factors, rest) = stored.as_chunks::<2>().0.split_at(2);
        block.factors.copy_from_slice(factors);
        let (packed, rest) = rest.as_flattened().split_at(12);
        for group in 0..8 {
            // Six bits each: four groups in the low bits, four in two parts.
            block.scales[group] = match group {
                0..4 => [packed[group] & 63, packed[group + 4] & 63],
                _ => [
                    packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
                    packed[group + 4] >> 4 | packed[group] >> 6 << 4,
                ],
            };
        }
        let (high, low) = rest.split_at(32 * HIGH);
        for (index, quant) in block.quants.iter_mut().enumerate() {
            let (pair, side, place) = (index / 64, index / 32 % 2, index % 32);
            let bit = high.get(place).map_or(0, |byte| byte >> (2 * pair + side) & 1);
            *quant = low[32 * pair + place] >> (4 * side) & 15 | bit << 4;
        }
    }

    #[inline(always)]
    fn affine(factors: &[Lanes; 2], scales: [&[u8]; 2]) -> (Lanes, Lanes) {
        let [mut scale, mut offset] = *factors;
        for lane in 0..PANEL {
            scale[lane] *= f32::from(scales[0][lane]);
            offset[lane] *= -f32::from(scales[1][lane]);
        }
        (scale, offset)
    }
}

/// Signed small scales of groups of 16, times a half: `Q6_K`.
struct SignedScale;

impl Scheme for SignedScale {
    const BLOCK: usize = 256;
    const GROUP: usize = 16;
    const HIGH: usize = 2;
    const FACTORS: usize = 1;
    const SCALES: usize = 1;

    #[inline]
    fn take_apart(stored: &[u8], block: &mut Block) {
        let (low, rest) = stored.split_at(128);
        let (high, rest) = rest.split_at(64);
        let (scales, factor) = rest.split_at(16);
        block.factors[0].copy_from_slice(factor);
        for (own, &scale) in block.scales.iter_mut().zip(scales) {
            own[0] = scale;
        }
        for (index, quant) in block.quants.iter_mut().enumerate() {
            let (half, quarter, place) = (index / 128, index / 32 % 4, index % 32);
            let low = low[64 * half + 32 * (quarter % 2) + place] >> (4 * (quarter / 2)) & 15;
            let high = high[32 * half + place] >> (2 * quarter) & 3;
            *quant = low | high << 4;
        }
    }

    #[inline(always)]
    fn affine(factors: &[Lanes; 2], scales: [&[u8]; 2]) -> (Lanes, Lanes) {
        let mut scale = factors[0];
        for lane in 0..PANEL {
            scale[lane] *= f32::from(scales[0][lane].cast_signed());
        }
        (scale, scale.map(|scale| -32.0 * scale))
    }
}

/// Bytes of a panel of `inputs`, whole blocks of them.
pub(super) fn panel_bytes(format: Format, inputs: usize) -> usize {
    inputs / format.block()
        * match format {
            Format::F32 => 4 * PANEL,
            Format::F16 | Format::Bf16 => 2 * PANEL,
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

/// Inputs to unpack at once: whole chunks of a format.
pub(super) fn chunk(format: Format) -> usize {
    match format.block() {
        32 => 32,
        _ => CHUNK,
    }
}

/// Writes a stored row to its place in a panel that is all zeros there.
pub(super) fn pack(format: Format, stored: &[u8], lane: usize, panel: &mut [u8]) {
    match format {
        Format::F32 => spread::<4>(stored, lane, panel),
        Format::F16 | Format::Bf16 => spread::<2>(stored, lane, panel),
        Format::Q8_0 => {
            let blocks = panel.chunks_exact_mut(34 * PANEL);
            for (stored, packed) in stored.chunks_exact(34).zip(blocks) {
                spread::<2>(&stored[..2], lane, packed);
                spread::<1>(&stored[2..], lane, &mut packed[2 * PANEL..]);
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

/// Copies things of `N` bytes to their lane.
fn spread<const N: usize>(stored: &[u8], lane: usize, packed: &mut [u8]) {
    let places = packed.as_chunks_mut::<N>().0.iter_mut().skip(lane).step_by(PANEL);
    places.zip(stored.as_chunks::<N>().0).for_each(|(place, value)| *place = *value);
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
            for (input, quant) in quants.iter().enumerate() {
                low[input / 2 * PANEL + lane] |= (quant & 15) << (4 * (input % 2));
                if let Some(share) = 8_usize.checked_div(T::HIGH) {
                    high[input / share * PANEL + lane] |= quant >> 4 << (T::HIGH * (input % share));
                }
            }
        }
    }
}

/// Unpacks the numbers of inputs `first ..` of a panel, 16 for each input, until `out` is full: at most one
/// [`chunk`], starting at a multiple of it.
#[inline(always)]
pub(super) fn unpack<S: Simd>(simd: S, format: Format, panel: &[u8], first: usize, out: &mut [f32]) {
    match format {
        Format::F32 => {
            let stored = panel[4 * PANEL * first..].as_chunks().0;
            out.iter_mut().zip(stored).for_each(|(out, bytes)| *out = f32::from_le_bytes(*bytes));
        }
        Format::Bf16 => {
            let stored = panel[2 * PANEL * first..].as_chunks().0;
            let wide = |bytes: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            out.iter_mut().zip(stored).for_each(|(out, bytes)| *out = wide(bytes));
        }
        Format::F16 => {
            let stored = panel[2 * PANEL * first..].as_chunks::<{ 2 * PANEL }>().0;
            let out = out.as_chunks_mut::<PANEL>().0;
            out.iter_mut().zip(stored).for_each(|(out, bytes)| *out = halves(bytes));
        }
        Format::Q8_0 => {
            let block = &panel[first / 32 * 34 * PANEL..][..34 * PANEL];
            let (scale, quants) = block.split_at(2 * PANEL);
            let scale = halves(scale);
            let quants = quants.as_chunks::<PANEL>().0;
            for (quants, out) in quants.iter().zip(out.as_chunks_mut::<PANEL>().0) {
                for lane in 0..PANEL {
                    out[lane] = f32::from(quants[lane].cast_signed()) * scale[lane];
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
        *factors = halves(halves_of);
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
        let high_bytes = PANEL * T::GROUP * T::HIGH / 8;
        let high = &high[group * high_bytes..][..high_bytes];
        planes_to_floats::<S, T>(simd, low, high, &scale, &offset, out);
    }
}

/// `scale * quant + offset` of a group. The product is exact, so it does not matter whether it is rounded.
#[inline(always)]
fn planes_to_floats<S: Simd, T: Scheme>(
    simd: S,
    low: &[u8],
    high: &[u8],
    scale: &Lanes,
    offset: &Lanes,
    out: &mut [f32],
) {
    let (scale, offset) = (S::as_simd_f32s(scale).0, S::as_simd_f32s(offset).0);
    for (eight, out) in out.as_chunks_mut::<{ 8 * PANEL }>().0.iter_mut().enumerate() {
        let low = &low[eight * 4 * PANEL..][..4 * PANEL];
        let high = &high[eight * T::HIGH * PANEL..][..T::HIGH * PANEL];
        for (input, out) in out.as_chunks_mut::<PANEL>().0.iter_mut().enumerate() {
            let mut quants = [0.0; PANEL];
            for lane in 0..PANEL {
                let nibble = low[input / 2 * PANEL + lane] >> (4 * (input % 2)) & 15;
                let above = match T::HIGH {
                    0 => 0,
                    1 => high[lane] >> input & 1,
                    _ => high[input / 4 * PANEL + lane] >> (2 * (input % 4)) & 3,
                };
                quants[lane] = f32::from(nibble | above << 4);
            }
            let quants = S::as_simd_f32s(&quants).0;
            let out = S::as_mut_simd_f32s(out).0;
            for index in 0..out.len() {
                out[index] = simd.mul_add_e_f32s(quants[index], scale[index], offset[index]);
            }
        }
    }
}

/// Sixteen halves. Without branches, so that it becomes a few wide instructions.
#[inline(always)]
fn halves(bytes: &[u8]) -> Lanes {
    let mut out = [0.0; PANEL];
    for (out, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *out = half(u16::from_le_bytes(*bytes));
    }
    out
}

/// A half as `f32`.
#[inline(always)]
fn half(bits: u16) -> f32 {
    // Exponent and fraction moved over, and the bias mended by a power of two, which is right for subnormal
    // numbers too; then infinity and what is no number.
    let shifted = f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits((254 - 15) << 23);
    let infinite = if bits & 0x7c00 == 0x7c00 { 255 << 23 } else { 0 };
    f32::from_bits(shifted.to_bits() | infinite | u32::from(bits & 0x8000) << 16)
}

#[cfg(test)]
#[path = "packing_tests.rs"]
pub(super) mod tests;
