//! The product of packed quantised weights with a few rows, in whole numbers.
//!
//! Method: a row is rounded to eight bits in groups of 32 inputs with a scale each, as llama.cpp rounds it;
//! products of quants and rounded inputs are summed exactly, group by group, and each sum is multiplied by
//! the two scales. A weight is read from memory and unpacked once for all rows of a block.
//!
//! Invariant: the sums of a row's groups are added in the order of the inputs, whatever else is in the pass.
//! Processors with AVX-512 VNNI, AVX-VNNI or AVX2 give the same bits; others unpack weights to floats
//! ([`kernel`](super::kernel)).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod rounded;
#[cfg(target_arch = "x86_64")]
mod source;
#[cfg(target_arch = "x86_64")]
mod vnni;

use pulp::Arch;
use rayon::prelude::*;
pub(crate) use rounded::{GROUP, RoundedRows, Stored};

use self::rounded::{Group, Round};
use crate::model::formats::{Format, Instructions};

/// Least number of groups for which waking threads pays.
const PARALLEL: usize = 1 << 12;

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
mod tests {
    use super::*;

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
    fn sums_of_groups_are_those_of_the_rounded_inputs() {
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
    fn rounding_keeps_nan_and_infinity_as_nan() {
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
