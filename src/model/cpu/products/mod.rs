//! Products of weight matrices, packed, with a few rows: in floats, or in whole numbers; and what these
//! modules share, the sizes of panels and the structure of ggml's blocks of quantised numbers.
//!
//! Panels are rows of weights whose numbers lie together as they are needed together. Blocks have quants,
//! factors and small scales.

pub(super) mod integer;
mod kernel;
pub(in crate::model) mod matrix;
pub(in crate::model) mod packing;

/// Outputs whose weights lie together in a panel.
const PANEL: usize = 16;
/// Most inputs that are unpacked at once.
pub(crate) const CHUNK: usize = 64;
/// Bytes of a plane: a word for each row of a panel.
const PLANE: usize = 4 * PANEL;
/// Offset of signed bytes, which makes them unsigned.
const BIAS: u8 = 128;

/// One number for each of a panel's rows.
type Lanes = [f32; PANEL];
/// Numbers in the largest block.
const LARGEST: usize = 256;

/// A block of one row, taken apart. Its numbers are `scale * quant + offset`, with a scale and offset for
/// each group.
pub(crate) struct Block {
    pub(crate) quants: [u8; LARGEST],
    /// The half-precision factors, as stored.
    pub(crate) factors: [[u8; 2]; 2],
    /// Small scales of each group, by kind.
    scales: [[u8; 2]; 16],
}

/// A quantisation: the structure of its blocks.
trait Scheme {
    /// Numbers in a block.
    const BLOCK: usize;
    /// Numbers that share scale and offset, a group.
    const GROUP: usize;
    /// Bits of a quant above the low four.
    const HIGH: u32;
    /// Kinds of half-precision factors in a block.
    const FACTORS: usize;
    /// Kinds of small scales in a group.
    const SCALES: usize;
    /// The quant that stands for zero; `None` if the format has offsets instead.
    const ZERO: Option<u8>;

    /// Inputs unpacked at once.
    const CHUNK: usize = if Self::BLOCK < CHUNK { Self::BLOCK } else { CHUNK };
    /// Bytes of a chunk's planes and scales, for all rows of a panel.
    const CHUNK_BYTES: usize = PANEL
        * (Self::CHUNK / Self::GROUP * Self::SCALES
            + Self::CHUNK / 2
            + Self::CHUNK * Self::HIGH as usize / 8);
    /// Bytes of a block, for all rows of a panel.
    const PACKED: usize = PANEL * 2 * Self::FACTORS + Self::BLOCK / Self::CHUNK * Self::CHUNK_BYTES;

    /// Takes a stored block apart.
    fn take_apart(stored: &[u8], block: &mut Block);

    /// Computes scale and offset of a group.
    fn affine(factors: &[Lanes; 2], scales: [&[u8]; 2]) -> (Lanes, Lanes);
}

/// Quantisations with one factor as scale, and a zero point or another factor as offset: `Q4_0`, `Q4_1`,
/// `Q5_0`, `Q5_1`.
struct Legacy<const HIGH: u32, const OFFSET: bool>;

impl<const HIGH: u32, const OFFSET: bool> Scheme for Legacy<HIGH, OFFSET> {
    const BLOCK: usize = 32;
    const GROUP: usize = 32;
    const HIGH: u32 = HIGH;
    const FACTORS: usize = if OFFSET { 2 } else { 1 };
    const SCALES: usize = 0;
    const ZERO: Option<u8> = if OFFSET { None } else { Some(8 << HIGH) };

    #[inline]
    fn take_apart(stored: &[u8], block: &mut Block) {
        let (factors, rest) = stored.as_chunks::<2>().0.split_at(Self::FACTORS);
        block.factors[..Self::FACTORS].copy_from_slice(factors);
        let (high, low) = rest.as_flattened().split_at(4 * HIGH as usize);
        let high = high.as_chunks().0.first().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        for (index, &byte) in low.iter().enumerate() {
            let bit = |index: usize| if high >> index & 1 == 1 { 16 } else { 0 };
            block.quants[index] = byte & 15 | bit(index);
            block.quants[index + 16] = byte >> 4 | bit(index + 16);
        }
    }

    #[inline(always)]
    fn affine(factors: &[Lanes; 2], _scales: [&[u8]; 2]) -> (Lanes, Lanes) {
        let offset = match Self::ZERO {
            Some(zero) => factors[0].map(|factor| -f32::from(zero) * factor),
            None => factors[1],
        };
        (factors[0], offset)
    }
}

/// Quantisations with small scales and offsets of groups, times a factor each: `Q4_K`, `Q5_K`.
struct ScaleAndMin<const HIGH: u32>;

impl<const HIGH: u32> Scheme for ScaleAndMin<HIGH> {
    const BLOCK: usize = 256;
    const GROUP: usize = 32;
    const HIGH: u32 = HIGH;
    const FACTORS: usize = 2;
    const SCALES: usize = 2;
    const ZERO: Option<u8> = None;

    #[inline]
    fn take_apart(stored: &[u8], block: &mut Block) {
        let (factors, rest) = stored.as_chunks::<2>().0.split_at(2);
        block.factors.copy_from_slice(factors);
        let (packed, rest) = rest.as_flattened().split_at(12);
        for group in 0..8 {
            // Scales have six bits each: four groups lie in the low bits, four are split in two parts.
            block.scales[group] = match group {
                0..4 => [packed[group] & 63, packed[group + 4] & 63],
                _ => [
                    packed[group + 4] & 15 | packed[group - 4] >> 6 << 4,
                    packed[group + 4] >> 4 | packed[group] >> 6 << 4,
                ],
            };
        }
        let (high, low) = rest.split_at(32 * HIGH as usize);
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

/// Quantisation with signed small scales of groups of 16, times a factor: `Q6_K`.
struct SignedScale;

impl Scheme for SignedScale {
    const BLOCK: usize = 256;
    const GROUP: usize = 16;
    const HIGH: u32 = 2;
    const FACTORS: usize = 1;
    const SCALES: usize = 1;
    const ZERO: Option<u8> = Some(32);

    #[inline]
    fn take_apart(stored: &[u8], block: &mut Block) {
        let (low, rest) = stored.split_at(128);
        let (high, rest) = rest.split_at(64);
        let (scales, factor) = rest.split_at(16);
        block.factors[0].copy_from_slice(factor);
        for (own, &scale) in block.scales.iter_mut().zip(scales) {
            own[0] = scale.wrapping_add(BIAS);
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
            scale[lane] *= f32::from(scales[0][lane]) - f32::from(BIAS);
        }
        (scale, scale.map(|scale| -32.0 * scale))
    }
}
