//! Rows rounded to eight bits, as products in whole numbers take them.

use pulp::{Simd, WithSimd};

use crate::model::formats::Instructions;

/// Inputs that share a scale.
pub(crate) const GROUP: usize = 32;

/// Distance of prefetching, in bytes: some blocks of inputs.
pub(super) const AHEAD: usize = 8192;
/// Most rows for which the weights of a cached matrix are not prefetched: they come quickly enough, and there
/// is too little arithmetic to hide the prefetch instructions behind.
pub(super) const RUNS_AHEAD: usize = 2;

/// Rows rounded to eight bits, in blocks.
#[derive(Debug)]
pub(crate) struct RoundedRows {
    /// The groups, in the order `[block][group][row]`.
    pub(super) groups: Vec<Group>,
    pub(super) count: usize,
    /// Rows of a block; the last may have fewer.
    pub(super) block: usize,
    pub(super) inputs: usize,
    pub(super) instructions: Instructions,
}

/// The rounded inputs of a group of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Group {
    /// Four of eight inputs in each word: first the even ones, then the odd ones, the first in the lowest
    /// byte.
    pub(super) words: [i32; GROUP / 4],
    /// The sums of the rounded inputs of both halves.
    pub(super) sums: [i32; 2],
    /// The scale: what the rounded inputs are multiplied by.
    pub(super) scale: f32,
    /// The sum of the rounded inputs times `scale`.
    pub(super) sum: f32,
}

impl RoundedRows {
    /// The blocks: the first row, the number of rows, and their groups, `[group][row]`.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, usize, &[Group])> {
        let (per_row, most) = ((self.inputs / GROUP).max(1), self.block);
        let blocks = self.groups.chunks(most * per_row).enumerate();
        blocks.map(move |(index, groups)| (index * most, groups.len() / per_row, groups))
    }
}

#[cfg(test)]
impl RoundedRows {
    /// The rounded rows as floats, one after the other.
    pub(crate) fn rounded(&self) -> Vec<f32> {
        let per_row = self.inputs / GROUP;
        let mut out = vec![0.0; self.count * self.inputs];
        for (first, block, groups) in self.blocks() {
            for (index, group) in groups.iter().enumerate() {
                let start = (first + index % block) * self.inputs + index / block * GROUP;
                assert!(index / block < per_row);
                for (input, out) in out[start..start + GROUP].iter_mut().enumerate() {
                    let word = group.words[input / 8 * 2 + input % 2].to_le_bytes();
                    *out = f32::from(word[input % 8 / 2].cast_signed()) * group.scale;
                }
            }
        }
        out
    }
}

/// Rounds the groups of a block of rows and puts them where the kernel reads them.
pub(super) struct Round<'a> {
    pub(super) x: &'a [[f32; GROUP]],
    pub(super) per_row: usize,
    pub(super) groups: &'a mut [Group],
}

impl WithSimd for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let rows = self.x.len() / self.per_row;
        for (row, x) in self.x.chunks_exact(self.per_row).enumerate() {
            for (groups, x) in self.groups.chunks_exact_mut(rows).zip(x) {
                groups[row] = Group::new(x);
            }
        }
    }
}

impl Group {
    #[inline(always)]
    pub(super) fn new(x: &[f32; GROUP]) -> Self {
        // Adding this rounds a small number to a whole one, which is then in the lowest bits.
        const ROUND: f32 = 12_582_912.0;
        // Magnitudes compare as their bits do, and integer maxima are associative, so the loop vectorises.
        let largest = x.iter().map(|value| value.to_bits() & (u32::MAX >> 1)).max().unwrap_or_default();
        let (inverse, scale) = factors(f32::from_bits(largest));
        let mut quants = [0_i8; GROUP];
        for (quant, value) in quants.iter_mut().zip(x) {
            #[expect(clippy::cast_possible_truncation, reason = "from -127 to 127")]
            let rounded = (value * inverse + ROUND).to_bits() as u8;
            *quant = rounded.cast_signed();
        }
        let (left, right) = quants.split_at(GROUP / 2);
        let sums = [left, right].map(|half| half.iter().map(|&quant| i32::from(quant)).sum());
        let mut words = [0; GROUP / 4];
        for (words, eight) in words.as_chunks_mut::<2>().0.iter_mut().zip(quants.as_chunks::<8>().0) {
            let eight = u64::from_le_bytes(eight.map(i8::cast_unsigned));
            *words = [even_bytes(eight), even_bytes(eight >> 8)].map(u32::cast_signed);
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 32 times 127")]
        let sum = (sums[0] + sums[1]) as f32 * scale;
        Self { words, sums, scale, sum }
    }
}

/// Factor for rounding numbers of magnitudes up to `largest`, and factor that undoes it.
#[inline(always)]
pub(super) fn factors(largest: f32) -> (f32, f32) {
    // Infinity or NaN among the inputs makes every output NaN.
    let is_finite = largest.is_finite();
    let inverse = if largest > 0.0 && is_finite { 127.0 / largest } else { 0.0 };
    // The inverse of a subnormal number overflows: such inputs are rounded to zero.
    let inverse = if inverse.is_finite() { inverse } else { 0.0 };
    (inverse, if is_finite { largest / 127.0 } else { f32::NAN })
}

/// Packs the even bytes of eight, from the lowest on, into a word.
#[inline(always)]
fn even_bytes(eight: u64) -> u32 {
    let pairs = eight & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
    let word = (fours | fours >> 16) as u32;
    word
}

/// Panels of weights as they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    /// The panels to multiply, and the rest of the matrix after them, which is prefetched.
    pub(crate) bytes: &'a [u8],
    /// True if the whole matrix is small enough to stay in a core's own cache between passes. Prefetching it
    /// for one or two rows then costs more than it saves.
    pub(crate) is_cached: bool,
}
