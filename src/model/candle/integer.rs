//! The product of packed quantised weights with a few rows, in whole numbers.
//!
//! A row is rounded to eight bits in groups of 32 inputs with a scale each, as llama.cpp rounds it; products of
//! quants and rounded inputs are summed exactly, group by group, and each sum is multiplied by the two scales.
//! Invariant: the sums of a row's groups are added in the order of the inputs, whatever else is in the pass. A
//! weight is read from memory and unpacked once for all rows of a block.
//!
//! For processors that have AVX-512 with VNNI; the others unpack weights to floats ([`kernel`](super::kernel)).

use pulp::{Arch, Simd, WithSimd};

#[cfg(target_arch = "x86_64")]
mod vnni;

/// Inputs that share a scale.
pub(super) const GROUP: usize = 32;
/// Most rows of a block: their sums stay in registers beside the weights of a group.
const BLOCK: usize = 8;

/// Rows rounded to eight bits, in blocks.
#[derive(Debug)]
pub(super) struct RoundedRows {
    /// `[block][group][row]`.
    groups: Vec<Group>,
    count: usize,
    inputs: usize,
}

/// Rounded inputs of a row.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// Four of eight inputs each, the even ones and the odd ones, the first in the lowest byte.
    words: [i32; GROUP / 4],
    /// The sums of the rounded inputs of both halves.
    sums: [i32; 2],
    /// What the rounded inputs are multiplied by.
    scale: f32,
    /// Their sum, so multiplied.
    sum: f32,
}

/// Can products be made in whole numbers here?
pub(super) fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return vnni::is_available();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl RoundedRows {
    /// Rounds `count` rows of `inputs`, which are whole groups.
    pub(super) fn new(x: &[f32], count: usize, inputs: usize) -> Self {
        let (row_groups, rest) = x.as_chunks::<GROUP>();
        debug_assert!(rest.is_empty() && row_groups.len() == count * inputs / GROUP);
        let mut groups = vec![Group::default(); row_groups.len()];
        let per_row = (inputs / GROUP).max(1);
        Arch::new().dispatch(Round { x: row_groups, per_row, groups: &mut groups });
        Self { groups, count, inputs }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The blocks: the first row, the number of rows, and their groups, `[group][row]`.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize, &[Group])> {
        let per_row = self.inputs / GROUP;
        let blocks = self.groups.chunks((BLOCK * per_row).max(1)).enumerate();
        blocks.map(move |(index, groups)| (index * BLOCK, groups.len() / per_row, groups))
    }
}

/// Rounds groups, row by row, and puts them where the kernel reads them.
struct Round<'a> {
    x: &'a [[f32; GROUP]],
    per_row: usize,
    groups: &'a mut [Group],
}

impl WithSimd for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let blocks = self.x.chunks(BLOCK * self.per_row).zip(self.groups.chunks_mut(BLOCK * self.per_row));
        for (x, groups) in blocks {
            let rows = x.len() / self.per_row;
            for (row, x) in x.chunks_exact(self.per_row).enumerate() {
                for (groups, x) in groups.chunks_exact_mut(rows).zip(x) {
                    groups[row] = Group::new(x);
                }
            }
        }
    }
}

impl Group {
    #[inline(always)]
    fn new(x: &[f32; GROUP]) -> Self {
        // A small number added to this is rounded to a whole one, which the lowest bits then are.
        const ROUND: f32 = 12_582_912.0;
        // Magnitudes compare as their bits do, in any order: so the processor takes many at a time.
        let largest = x.iter().map(|value| value.to_bits() & (u32::MAX >> 1)).max().unwrap_or_default();
        let largest = f32::from_bits(largest);
        // What is infinite or no number makes every output no number.
        let is_finite = largest.is_finite();
        let inverse = if largest > 0.0 && is_finite { 127.0 / largest } else { 0.0 };
        // Of subnormal numbers the inverse overflows: they are rounded to zero.
        let inverse = if inverse.is_finite() { inverse } else { 0.0 };
        let scale = if is_finite { largest / 127.0 } else { f32::NAN };
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

/// The lowest byte of eight and every second after it.
#[inline(always)]
fn even_bytes(eight: u64) -> u32 {
    let pairs = eight & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
    let word = (fours | fours >> 16) as u32;
    word
}

/// The products of neighbouring panels with rows, in tiles `[panel][row][PANEL]`; `panels` are of one format, and of a
/// multiple of [`GROUP`] inputs.
pub(super) fn multiply(format: super::format::Format, panels: &[u8], rows: &RoundedRows, tiles: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    vnni::multiply(format, panels, rows, tiles);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (format, panels, rows, tiles);
}

#[cfg(test)]
impl RoundedRows {
    /// What the rows were rounded to, one after the other.
    pub(super) fn rounded(&self) -> Vec<f32> {
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
    fn rounding_is_near_and_whole_numbers_stay() {
        let inputs = 96;
        for count in [1, 3, 8, 9, 20] {
            let x: Vec<f32> =
                (0..inputs * count).map(|n| (n as f32 * 0.7).sin() * (1.0 + n as f32)).collect();
            let rows = RoundedRows::new(&x, count, inputs);
            assert_eq!(rows.count(), count);
            for (x, rounded) in x.chunks(GROUP).zip(rows.rounded().chunks(GROUP)) {
                let largest = x.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
                for (x, rounded) in x.iter().zip(rounded) {
                    assert!((x - rounded).abs() <= largest / 253.9, "{x} {rounded} {largest}");
                }
            }
        }
        let whole: Vec<f32> = (0..32).map(|n| 127.0 - 8.0 * n as f32).collect();
        assert_eq!(RoundedRows::new(&whole, 1, 32).rounded(), whole);
    }

    #[test]
    fn sums_are_those_of_the_rounded_inputs() {
        let x: Vec<f32> = (0..64).map(|n| (n as f32 * 1.3).cos()).collect();
        let rows = RoundedRows::new(&x, 2, 32);
        for (group, rounded) in rows.groups.iter().zip(rows.rounded().chunks(32)) {
            let sum: f32 = rounded.iter().sum();
            assert!((group.sum - sum).abs() < 1e-5, "{} {sum}", group.sum);
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let halves = group.sums.map(|sum| sum as f32 * group.scale);
            for (half, rounded) in halves.iter().zip(rounded.chunks(16)) {
                assert!((half - rounded.iter().sum::<f32>()).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = [1.0; 32];
            x[5] = bad;
            assert!(RoundedRows::new(&x, 1, 32).groups[0].scale.is_nan());
        }
        for none in [0.0, f32::MIN_POSITIVE / 64.0] {
            let rounded = RoundedRows::new(&[none; 32], 1, 32).rounded();
            assert!(rounded.iter().all(|value| *value == 0.0));
        }
    }
}
