//! The product of packed quantised weights with a few rows, in whole numbers.
//!
//! Method: a row is rounded to eight bits in groups of 32 inputs with a scale each, as llama.cpp rounds it;
//! products of quants and rounded inputs are summed exactly, group by group, and each sum is multiplied by
//! the two scales. A weight is read from memory and unpacked once for all rows of a block.
//!
//! Invariant: the sums of a row's groups are added in the order of the inputs, whatever else is in the pass.
//! Processors with AVX-512 VNNI, AVX-VNNI or AVX2 give the same bits; others unpack weights to floats
//! ([`kernel`](super::kernel)).

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::model::formats::{format::Format, instructions::Instructions};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod source;
#[cfg(target_arch = "x86_64")]
mod vnni;

/// Inputs that share a scale.
pub(crate) const GROUP: usize = 32;
/// Groups from which on threads are worth waking.
const PARALLEL: usize = 1 << 12;

/// Distance of prefetching, in bytes: some blocks of inputs.
const AHEAD: usize = 8192;
/// Most rows for which the weights of a cached matrix are not prefetched: they come quickly enough, and there
/// is too little arithmetic to hide the prefetch instructions behind.
const RUNS_AHEAD: usize = 2;

/// Rows of a block, if there are `count` rows in all; the last block may have fewer.
fn rows_of_block(instructions: Instructions, count: usize) -> usize {
    match instructions {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512Vnni => vnni::block_of(count),
        #[cfg(target_arch = "x86_64")]
        Instructions::AvxVnni | Instructions::Avx2 => avx2::BLOCK,
        #[cfg(not(target_arch = "x86_64"))]
        _ => count.max(1),
    }
}

/// Rows rounded to eight bits, in blocks.
#[derive(Debug)]
pub(crate) struct RoundedRows {
    /// The groups, in the order `[block][group][row]`.
    groups: Vec<Group>,
    count: usize,
    /// Rows of a block; the last may have fewer.
    block: usize,
    inputs: usize,
    instructions: Instructions,
}

/// The rounded inputs of a group of a row.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// Four of eight inputs in each word: first the even ones, then the odd ones, the first in the lowest
    /// byte.
    words: [i32; GROUP / 4],
    /// The sums of the rounded inputs of both halves.
    sums: [i32; 2],
    /// The scale: what the rounded inputs are multiplied by.
    scale: f32,
    /// The sum of the rounded inputs times `scale`.
    sum: f32,
}

impl RoundedRows {
    /// Rounds rows of `inputs`, which are whole groups, for products with these instructions.
    pub(crate) fn new(x: &[f32], inputs: usize, instructions: Instructions) -> Self {
        let x = x.as_chunks::<GROUP>().0;
        let mut groups = vec![Group::default(); x.len()];
        let per_row = (inputs / GROUP).max(1);
        let count = x.len() / per_row;
        let block = rows_of_block(instructions, count);
        let size = block * per_row;
        let blocks = |(x, groups): (&[[f32; GROUP]], &mut [Group])| match instructions {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512Vnni => vnni::round(x, per_row, groups),
            _ => Arch::new().dispatch(Round { x, per_row, groups }),
        };
        if x.len() >= PARALLEL {
            x.par_chunks(size).zip(groups.par_chunks_mut(size)).for_each(blocks);
        } else {
            x.chunks(size).zip(groups.chunks_mut(size)).for_each(blocks);
        }
        Self { groups, count, block, inputs, instructions }
    }

    /// The blocks: the first row, the number of rows, and their groups, `[group][row]`.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, &[Group])> {
        let (per_row, most) = ((self.inputs / GROUP).max(1), self.block);
        let blocks = self.groups.chunks(most * per_row).enumerate();
        blocks.map(move |(index, groups)| (index * most, groups.len() / per_row, groups))
    }
}

/// Rounds the groups of a block of rows and puts them where the kernel reads them.
struct Round<'a> {
    x: &'a [[f32; GROUP]],
    per_row: usize,
    groups: &'a mut [Group],
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
    fn new(x: &[f32; GROUP]) -> Self {
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
fn factors(largest: f32) -> (f32, f32) {
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

/// Multiplies neighbouring panels with rows; products come in tiles `[panel][row][PANEL]`. The panels are of
/// one format and of a multiple of [`GROUP`] inputs.
pub(crate) fn multiply(format: Format, panels: Stored<'_>, rows: &RoundedRows, tiles: &mut [f32]) {
    match rows.instructions {
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512Vnni => vnni::multiply(format, panels, rows, tiles),
        #[cfg(target_arch = "x86_64")]
        Instructions::AvxVnni => avx2::multiply_by_vnni(format, panels, rows, tiles),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => avx2::multiply(format, panels, rows, tiles),
        #[cfg(not(target_arch = "x86_64"))]
        _ => {
            let _ = (format, panels, tiles);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (own, name) in ALL {
            assert_eq!((own.to_string().as_str(), name.to_uppercase().parse()), (name, Ok(own)));
        }
        assert!("sse".parse::<Instructions>().unwrap_err().contains("avx512-vnni, avx-vnni, avx2"));
    }

    #[test]
    fn rounding_is_near_and_whole_numbers_stay() {
        let inputs = 96;
        let whole: Vec<f32> = (0..32).map(|n| 127.0 - 8.0 * n as f32).collect();
        for instructions in Instructions::available() {
            for count in [1, 3, 8, 9, 20, 35] {
                let x: Vec<f32> =
                    (0..inputs * count).map(|n| (n as f32 * 0.7).sin() * (1.0 + n as f32)).collect();
                let rows = RoundedRows::new(&x, inputs, instructions);
                assert_eq!(rows.count, count);
                for (x, rounded) in x.chunks(GROUP).zip(rows.rounded().chunks(GROUP)) {
                    let largest = x.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
                    for (x, rounded) in x.iter().zip(rounded) {
                        assert!((x - rounded).abs() <= largest / 253.9, "{x} {rounded} {largest}");
                    }
                }
            }
            assert_eq!(RoundedRows::new(&whole, 32, instructions).rounded(), whole);
        }
    }

    #[test]
    fn all_instructions_round_to_the_same_bits() {
        let mut x: Vec<f32> = (0..7 * 96).map(|n| (n as f32 * 0.7).sin() * (n as f32 - 300.0)).collect();
        // Halves are rounded to even numbers. Infinite and tiny numbers and NaN are among the cases.
        (0..GROUP).for_each(|n| x[n] = n as f32 - 15.5);
        x[31] = 127.0;
        (x[40], x[100], x[140]) = (f32::INFINITY, f32::NAN, -0.0);
        x[160..192].fill(f32::MIN_POSITIVE / 64.0);
        x[192..224].fill(0.0);
        for group in x.as_chunks::<GROUP>().0 {
            let plain = Group::new(group);
            for instructions in Instructions::available() {
                let rounded = RoundedRows::new(group, GROUP, instructions).groups[0];
                assert_eq!(rounded.scale.to_bits(), plain.scale.to_bits(), "{instructions:?}");
                if !plain.scale.is_nan() {
                    assert_eq!((rounded.words, rounded.sums), (plain.words, plain.sums), "{instructions:?}");
                    assert_eq!(rounded.sum.to_bits(), plain.sum.to_bits(), "{instructions:?}");
                }
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_rounded_inputs() {
        let x: Vec<f32> = (0..64).map(|n| (n as f32 * 1.3).cos()).collect();
        for instructions in Instructions::available() {
            let rows = RoundedRows::new(&x, 32, instructions);
            for (group, rounded) in rows.groups.iter().zip(rows.rounded().chunks(32)) {
                let sum: f32 = rounded.iter().sum();
                assert!((group.sum - sum).abs() < 1e-5, "{} {sum}", group.sum);
                let halves = group.sums.map(|sum| sum as f32 * group.scale);
                for (half, rounded) in halves.iter().zip(rounded.chunks(16)) {
                    assert!((half - rounded.iter().sum::<f32>()).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for instructions in Instructions::available() {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut x = [1.0; 32];
                x[5] = bad;
                assert!(RoundedRows::new(&x, 32, instructions).groups[0].scale.is_nan());
            }
            for none in [0.0, f32::MIN_POSITIVE / 64.0] {
                let rounded = RoundedRows::new(&[none; 32], 32, instructions).rounded();
                assert!(rounded.iter().all(|value| *value == 0.0));
            }
        }
    }
}
