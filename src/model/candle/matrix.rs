//! Weight matrices and their product with a few rows.
//!
//! Invariant: an output number is the sum over the inputs in their order, whatever else is in the pass and
//! however many threads there are. So one pass over n tokens gives the very bits of n passes over one, and
//! a weight is read from memory once for up to [`ROWS`] tokens, which a general matrix product does not do.

use candle_core::{Result, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Outputs whose weights lie together, and are computed together.
const PANEL: usize = 16;
/// Rows computed together: with a panel's sums they fill the registers.
const ROWS: usize = 6;
/// Panels computed at a time by one thread.
const SHARE: usize = 16;
/// Products of numbers from which on threads are worth waking.
const PARALLEL: usize = 1 << 21;

/// A matrix of `outputs` rows of `inputs` weights, stored in panels: `[panel][input][PANEL]`, the last one
/// padded with zeros.
pub(super) struct Matrix {
    panels: Vec<f32>,
    inputs: usize,
    outputs: usize,
}

impl Matrix {
    /// All zeros.
    pub(super) fn new(inputs: usize, outputs: usize) -> Self {
        Self { panels: vec![0.0; outputs.div_ceil(PANEL) * inputs * PANEL], inputs, outputs }
    }

    /// Sets the weights of one output.
    pub(super) fn set_row(&mut self, output: usize, weights: &[f32]) {
        let start = output / PANEL * self.inputs * PANEL + output % PANEL;
        let places = self.panels.iter_mut().skip(start).step_by(PANEL);
        for (place, weight) in places.zip(weights).take(self.inputs) {
            *place = *weight;
        }
    }

    /// The weights of some outputs, as rows `[rows.len(), inputs]`.
    pub(super) fn rows(&self, rows: &[u32]) -> Result<Tensor> {
        let mut out: Vec<f32> = Vec::with_capacity(rows.len() * self.inputs);
        for &row in rows {
            let row = usize::try_from(row)?;
            if row >= self.outputs {
                candle_core::bail!("row {row} of {}", self.outputs);
            }
            let start = row / PANEL * self.inputs * PANEL + row % PANEL;
            out.extend(self.panels[start..].iter().step_by(PANEL).take(self.inputs));
        }
        Tensor::from_vec(out, (rows.len(), self.inputs), &candle_core::Device::Cpu)
    }

    /// Length of a row of the input.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Length of a row of the output.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// The product with `count` rows of inputs, one after the other: rows of outputs.
    pub(super) fn product(&self, x: &[f32], count: usize) -> Vec<f32> {
        // Blocks of rows of about the same size, so that none is a small rest.
        let block = count.div_ceil(count.div_ceil(ROWS).max(1)).max(1);
        let x = &interleaved(x, self.inputs, block);
        let run = |panels: &[f32], tiles: &mut [f32]| {
            Arch::new().dispatch(Panels { panels, inputs: self.inputs, x, count, block, tiles });
        };
        let panel = self.inputs * PANEL;
        let mut out = vec![0.0; count * self.outputs];
        let threads = rayon::current_num_threads();
        if threads > 1 && count * self.panels.len() >= PARALLEL {
            // Panel by panel, each with all rows, so that threads write apart.
            let share = self.outputs.div_ceil(PANEL).div_ceil(4 * threads);
            let mut tiles = vec![0.0; self.outputs.div_ceil(PANEL) * count * PANEL];
            let shares = tiles.par_chunks_mut(share * count * PANEL);
            shares.zip(self.panels.par_chunks(share * panel)).for_each(|(tiles, panels)| run(panels, tiles));
            scatter(&tiles, count, &mut out, self.outputs, 0);
        } else {
            // A few panels at a time, so that the tiles stay in the cache.
            let mut tiles = vec![0.0; SHARE * count * PANEL];
            for (share, panels) in self.panels.chunks(SHARE * panel).enumerate() {
                let tiles = &mut tiles[..panels.len() / self.inputs * count];
                run(panels, tiles);
                scatter(tiles, count, &mut out, self.outputs, share * SHARE * PANEL);
            }
        }
        out
    }
}

/// Copies tiles (`[panel][row][PANEL]`, the first for output `first`) to rows of `width` outputs.
fn scatter(tiles: &[f32], count: usize, out: &mut [f32], width: usize, first: usize) {
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        for (out, tile) in out[first..].chunks_mut(PANEL).zip(tiles.chunks_exact(count * PANEL)) {
            out.copy_from_slice(&tile[row * PANEL..][..out.len()]);
        }
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} -> {})", self.inputs, self.outputs)
    }
}

/// The product of some panels with `count` rows.
struct Panels<'a> {
    panels: &'a [f32],
    inputs: usize,
    /// As [`interleaved`] leaves it.
    x: &'a [f32],
    count: usize,
    /// Rows computed together, at most [`ROWS`].
    block: usize,
    /// `[panel][row][PANEL]`.
    tiles: &'a mut [f32],
}

impl WithSimd for Panels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let panels = self.panels.chunks_exact(self.inputs * PANEL);
        for (panel, tile) in panels.zip(self.tiles.chunks_exact_mut(self.count * PANEL)) {
            let rows = self.x.chunks(self.block * self.inputs).zip(tile.chunks_mut(self.block * PANEL));
            for (x, tile) in rows {
                match S::F32_LANES {
                    16 => block::<S, 1>(simd, panel, self.inputs, x, tile),
                    8 => block::<S, 2>(simd, panel, self.inputs, x, tile),
                    4 => block::<S, 4>(simd, panel, self.inputs, x, tile),
                    _ => block::<S, PANEL>(simd, panel, self.inputs, x, tile),
                }
            }
        }
    }
}

/// Rows in blocks (the last may have fewer), each block by inputs: `[block][input][row]`.
fn interleaved(x: &[f32], inputs: usize, block: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for block in x.chunks(block * inputs) {
        for input in 0..inputs {
            out.extend(block[input..].iter().step_by(inputs));
        }
    }
    out
}

/// One panel of `V` vectors with at most [`ROWS`] rows, by inputs.
#[inline(always)]
fn block<S: Simd, const V: usize>(simd: S, panel: &[f32], inputs: usize, x: &[f32], tile: &mut [f32]) {
    match x.len() / inputs {
        1 => sums::<S, V, 1>(simd, panel, x, tile),
        2 => sums::<S, V, 2>(simd, panel, x, tile),
        3 => sums::<S, V, 3>(simd, panel, x, tile),
        4 => sums::<S, V, 4>(simd, panel, x, tile),
        5 => sums::<S, V, 5>(simd, panel, x, tile),
        _ => sums::<S, V, ROWS>(simd, panel, x, tile),
    }
}

/// One panel of `V` vectors with `R` rows; all sums stay in registers, and nothing is checked inside.
#[inline(always)]
fn sums<S: Simd, const V: usize, const R: usize>(simd: S, panel: &[f32], x: &[f32], tile: &mut [f32]) {
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    let weights = S::as_simd_f32s(panel).0.as_chunks::<V>().0;
    for (weights, x) in weights.iter().zip(x.as_chunks::<R>().0) {
        for r in 0..R {
            let value = simd.splat_f32s(x[r]);
            for v in 0..V {
                sums[r][v] = simd.mul_add_e_f32s(weights[v], value, sums[r][v]);
            }
        }
    }
    for (tile, sums) in tile.chunks_exact_mut(PANEL).zip(&sums) {
        S::as_mut_simd_f32s(tile).0.copy_from_slice(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f32::from(u16::try_from(state >> 16).unwrap()) / 32768.0 - 1.0
            })
            .collect()
    }

    fn filled(inputs: usize, outputs: usize) -> (Matrix, Vec<f32>) {
        let weights = numbers(inputs * outputs, 1);
        let mut matrix = Matrix::new(inputs, outputs);
        for (output, row) in weights.chunks(inputs).enumerate() {
            matrix.set_row(output, row);
        }
        (matrix, weights)
    }

    #[test]
    fn the_product_is_the_product() {
        for (inputs, outputs) in [(1, 1), (3, 16), (32, 97), (48, 33), (7, 15)] {
            let (matrix, weights) = filled(inputs, outputs);
            for count in 1..20 {
                let x = numbers(inputs * count, 2);
                let got = matrix.product(&x, count);
                assert_eq!(got.len(), count * outputs);
                for (row, x) in x.chunks(inputs).enumerate() {
                    for (output, weights) in weights.chunks(inputs).enumerate() {
                        let terms = || weights.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
                        let error = (f64::from(got[row * outputs + output]) - terms().sum::<f64>()).abs();
                        let scale: f64 = terms().map(f64::abs).sum();
                        assert!(error <= 1e-6 * scale + 1e-9, "{inputs} {outputs} {count}: {error}");
                    }
                }
            }
            let rows = matrix.rows(&[0]).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(rows, weights[..inputs]);
        }
    }

    #[test]
    fn rows_together_and_alone_and_with_threads_are_the_same_bits() {
        // Large enough for threads when together.
        let (inputs, outputs, count) = (96, 3000, 19);
        let (matrix, _) = filled(inputs, outputs);
        assert!(matrix.panels.len() * count >= PARALLEL && matrix.panels.len() < PARALLEL);
        let x = numbers(inputs * count, 3);
        let together = matrix.product(&x, count);
        let alone: Vec<f32> = x.chunks(inputs).flat_map(|row| matrix.product(row, 1)).collect();
        assert_eq!(together, alone);
    }
}
