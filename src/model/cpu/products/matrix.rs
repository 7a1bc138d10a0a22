//! Weight matrices, kept in the formats they were stored in, linear layers of a matrix and a bias, and their
//! product with a few rows, of which perhaps only some outputs are wanted: the whole product would read all
//! of the output matrix for logits that nobody looks at, where few tokens may follow.
//!
//! Invariants: the bits of an output do not depend on what else is in the pass, nor on the number of threads.
//! So one pass over n tokens gives the very bits of n passes over one. An output that is wanted has the bits
//! it has in the whole product.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;

use super::integer::{self, RoundedRows, Stored};
use super::kernel::{FloatRows, Panels};
use super::{CHUNK, PANEL, packing};
use crate::ids::as_u64;
use crate::model::cpu::ops::{each_row, rows_of};
use crate::model::cpu::{linger, pages::Pages};
use crate::model::formats::{Format, Instructions};
use crate::model::{error::ModelError, files::weights::Weights};
use crate::vocab::{Contents, TokenSet};

/// Panels computed at a time.
const SHARE: usize = 16;
/// Least number of multiplications for which waking threads pays.
pub(crate) const PARALLEL: usize = 1 << 17;

/// Least size of a part, in bytes, whose weights are prefetched for one or two rows too: about what a core's
/// own cache keeps from one pass to the next.
const CACHED: usize = 1 << 19;

/// A matrix of `outputs` rows of `inputs` weights: parts of one format each, one below the other.
pub(crate) struct Matrix {
    parts: Vec<PanelRows>,
    inputs: usize,
    outputs: usize,
    /// Instructions that multiply quantised weights in whole numbers; `None` for products in floats.
    instructions: Option<Instructions>,
}

/// A row of inputs, and the runs of neighbouring panels whose products with it are wanted.
pub(crate) struct Wanted<'a> {
    pub(crate) row: &'a [f32],
    pub(crate) panels: &'a [Range<usize>],
}

/// Rows of inputs, as the products with the parts of a matrix take them.
struct InputRows {
    floats: Option<FloatRows>,
    rounded: Option<RoundedRows>,
    count: usize,
}

/// Rows of one format, in panels; the last panel is filled up with zeros.
struct PanelRows {
    format: Format,
    packed: Pages,
    outputs: usize,
}

impl PanelRows {
    /// The panels from `from` on.
    fn panels(&self, inputs: usize, from: usize) -> Panels<'_> {
        let start = from * packing::panel_bytes(self.format, inputs);
        Panels { format: self.format, inputs, bytes: &self.packed.bytes()[start..] }
    }

    /// True if its products can be made in whole numbers.
    fn is_quantised(&self) -> bool {
        self.format.is_quantised()
    }

    /// Multiplies `rows` with panels `from ..`, at most `count`; products come in their tiles.
    fn multiply(&self, inputs: usize, from: usize, rows: &InputRows, tiles: &mut [f32]) {
        let panels = self.panels(inputs, from);
        if let (true, Some(rows)) = (self.is_quantised(), &rows.rounded) {
            let stored = Stored { bytes: panels.bytes, is_cached: self.packed.bytes().len() < CACHED };
            integer::multiply(self.format, stored, rows, tiles);
        } else if let Some(rows) = &rows.floats {
            panels.multiply(rows, tiles);
        }
    }

    /// Multiplies `rows` with panels `from ..` and writes the products to the same outputs of each row.
    fn product(&self, inputs: usize, from: usize, rows: &InputRows, out: &mut [&mut [f32]]) {
        let outputs = out.first().map_or(0, |row| row.len());
        // A few panels at a time, so that the tiles stay in the cache.
        let mut tiles = vec![0.0; SHARE.min(outputs.div_ceil(PANEL)) * rows.count * PANEL];
        for first in (0..outputs).step_by(SHARE * PANEL) {
            let range = first..outputs.min(first + SHARE * PANEL);
            let tiles = &mut tiles[..range.len().div_ceil(PANEL) * rows.count * PANEL];
            self.multiply(inputs, from + first / PANEL, rows, tiles);
            for (row, out) in out.iter_mut().enumerate() {
                let tiles = tiles.chunks_exact(rows.count * PANEL);
                let mut tiles = tiles.filter_map(|tile| tile[row * PANEL..].first_chunk::<PANEL>());
                let (whole, rest) = out[range.clone()].as_chunks_mut::<PANEL>();
                whole.iter_mut().zip(&mut tiles).for_each(|(out, tile)| *out = *tile);
                if let Some(tile) = tiles.next() {
                    rest.copy_from_slice(&tile[..rest.len()]);
                }
            }
        }
    }
}

impl Matrix {
    /// A matrix without rows.
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            parts: Vec::new(),
            inputs,
            outputs: 0,
            instructions: Instructions::available().first().copied(),
        }
    }

    /// Makes products of quantised weights with these instructions, which the processor has; without, in
    /// floats, with inputs as they are.
    pub(crate) fn multiply_with(&mut self, instructions: Option<Instructions>) {
        self.instructions = instructions;
    }

    /// Rearranges rows as the products take them.
    fn arrange(&self, x: &[f32], count: usize) -> InputRows {
        let is_quantised = self.parts.iter().any(PanelRows::is_quantised);
        let instructions = self.instructions.filter(|_| is_quantised);
        let rounded = instructions.map(|instructions| RoundedRows::new(x, self.inputs, instructions));
        let floats = rounded.is_none() || !self.parts.iter().all(PanelRows::is_quantised);
        InputRows { floats: floats.then(|| FloatRows::new(x, count, self.inputs)), rounded, count }
    }

    /// Approximate bytes of `rows` rows of `inputs`.
    pub(crate) fn size(format: Format, rows: usize, inputs: usize) -> u64 {
        let panel = as_u64(packing::panel_bytes(format, inputs));
        panel.saturating_mul(as_u64(rows)).div_ceil(as_u64(PANEL))
    }

    /// The part for more rows of `format`.
    fn part(&mut self, format: Format) -> &mut PanelRows {
        if self.parts.last().is_none_or(|part| part.format != format) {
            self.parts.push(PanelRows { format, packed: Pages::default(), outputs: 0 });
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Makes room for `rows` more rows of `format`, so that nothing is moved while they are appended.
    pub(crate) fn reserve(&mut self, format: Format, rows: usize) {
        let inputs = self.inputs;
        let part = self.part(format);
        let panels = (part.outputs + rows).div_ceil(PANEL);
        part.packed.reserve(panels * packing::panel_bytes(format, inputs));
    }

    /// Appends rows, stored one after the other in whole blocks of `format`.
    pub(crate) fn push(&mut self, format: Format, stored: &[u8]) {
        let inputs = self.inputs;
        let row_bytes = format.row_bytes(inputs).unwrap_or_default().max(1);
        self.outputs += stored.len() / row_bytes;
        let part = self.part(format);
        let rows = stored.len() / row_bytes;
        let before = part.outputs;
        part.outputs += rows;
        let panels = part.outputs.div_ceil(PANEL);
        let size = packing::panel_bytes(format, inputs);
        part.packed.grow(panels * size);
        // Panels on several threads: packing is most of the time that loading takes.
        let first = before / PANEL;
        let packed = part.packed.bytes_mut()[first * size..].par_chunks_exact_mut(size);
        packed.enumerate().for_each(|(index, packed)| {
            let start = (first + index) * PANEL;
            for row in start.max(before)..(start + PANEL).min(before + rows) {
                let stored = &stored[(row - before) * row_bytes..][..row_bytes];
                packing::pack(format, stored, row % PANEL, packed);
            }
        });
    }

    /// The weights of some outputs, as rows `[rows.len(), inputs]`.
    pub(crate) fn rows(&self, rows: &[u32]) -> Result<Tensor> {
        let mut out: Vec<f32> = Vec::with_capacity(rows.len() * self.inputs);
        let mut buffer = [0.0; CHUNK * PANEL];
        for &row in rows {
            let mut row = usize::try_from(row)?;
            let mut parts = self.parts.iter();
            let part = loop {
                match parts.next() {
                    Some(part) if row < part.outputs => break part,
                    Some(part) => row -= part.outputs,
                    None => candle_core::bail!("row {row} past the {} of a matrix", self.outputs),
                }
            };
            let step = packing::chunk(part.format);
            for first in (0..self.inputs).step_by(step) {
                let buffer = &mut buffer[..step.min(self.inputs - first) * PANEL];
                part.panels(self.inputs, 0).unpack(row / PANEL, first, buffer);
                out.extend(buffer.iter().skip(row % PANEL).step_by(PANEL));
            }
        }
        Tensor::from_vec(out, (rows.len(), self.inputs), &Device::Cpu)
    }

    /// Length of a row of the input.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Length of a row of the output.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// True if it is of one part, so that panel `p` has outputs `16 p ..`.
    fn is_of_one_part(&self) -> bool {
        self.parts.len() == 1
    }

    /// Multiplies some panels of a matrix of [one part](Self::is_of_one_part) by a row each: tiles of 16.
    pub(crate) fn panels(&self, wanted: &[Wanted<'_>]) -> Vec<f32> {
        let Some(part) = self.parts.first() else { return Vec::new() };
        let rows: Vec<InputRows> = wanted.iter().map(|wanted| self.arrange(wanted.row, 1)).collect();
        let panels: usize = wanted.iter().flat_map(|wanted| wanted.panels).map(ExactSizeIterator::len).sum();
        let mut tiles = vec![0.0; panels * PANEL];
        let mut rest = &mut tiles[..];
        let mut tasks = Vec::new();
        for (wanted, row) in wanted.iter().zip(&rows) {
            for run in wanted.panels {
                let (own, after) = std::mem::take(&mut rest).split_at_mut(run.len() * PANEL);
                let shares = own.chunks_mut(SHARE * PANEL).enumerate();
                tasks.extend(shares.map(|(index, tiles)| (row, run.start + index * SHARE, tiles)));
                rest = after;
            }
        }
        let multiply = |(row, from, tiles): (&InputRows, usize, &mut [f32])| {
            part.multiply(self.inputs, from, row, tiles);
        };
        if rayon::current_num_threads() > 1 && panels * PANEL * self.inputs >= PARALLEL {
            tasks.into_par_iter().for_each(multiply);
        } else {
            tasks.into_iter().for_each(multiply);
        }
        tiles
    }

    /// The product with `count` rows of inputs, one after the other: rows of outputs.
    pub(crate) fn product(&self, x: &[f32], count: usize) -> Vec<f32> {
        let mut out = vec![0.0; count * self.outputs];
        self.product_in(x, out.chunks_exact_mut(self.outputs.max(1)).collect());
        out
    }

    /// Multiplies rows of inputs, which follow one another, and writes each product to its row of outputs.
    fn product_in(&self, x: &[f32], mut rest: Vec<&mut [f32]>) {
        let count = rest.len();
        if count == 0 {
            return;
        }
        let rows = &self.arrange(x, count);
        let threads = rayon::current_num_threads();
        let parallel = threads > 1 && count * self.outputs * self.inputs >= PARALLEL;
        let panels: usize = self.parts.iter().map(|part| part.outputs.div_ceil(PANEL)).sum();
        let share = if parallel { panels.div_ceil(4 * threads).next_multiple_of(4) } else { panels };
        // A task has some outputs of all rows, so that threads write apart.
        let mut tasks = Vec::new();
        for part in &self.parts {
            for from in (0..part.outputs).step_by(share * PANEL) {
                let outputs = (part.outputs - from).min(share * PANEL);
                let own = rest.iter_mut().map(|rest| {
                    let (own, after) = std::mem::take(rest).split_at_mut(outputs);
                    *rest = after;
                    own
                });
                tasks.push((part, from / PANEL, own.collect::<Vec<_>>()));
            }
        }
        let multiply = |(part, from, mut out): (&PanelRows, usize, Vec<&mut [f32]>)| {
            part.product(self.inputs, from, rows, &mut out);
        };
        if parallel {
            tasks.into_par_iter().for_each(multiply);
            linger();
        } else {
            tasks.into_iter().for_each(multiply);
        }
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let formats: Vec<Format> = self.parts.iter().map(|part| part.format).collect();
        write!(f, "Matrix({} -> {}, {formats:?})", self.inputs, self.outputs)
    }
}

/// `x` times a matrix, plus a bias if there is one.
#[derive(Debug)]
pub(crate) struct Linear {
    matrix: Matrix,
    bias: Option<Vec<f32>>,
}

impl Linear {
    /// Reads the tensors `NAME.weight` and, if `biased`, `NAME.bias` of all `parts` (name and outputs), one
    /// below the other.
    ///
    /// # Errors
    /// Those of the weights.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        parts: &[(String, usize)],
        inputs: usize,
        biased: bool,
    ) -> std::result::Result<Self, ModelError> {
        let matrix = read_matrix(weights, &matrix_names(parts), inputs)?;
        Ok(Self { matrix, bias: biased.then(|| bias(weights, parts)).transpose()? })
    }

    /// The matrix, to choose how its products are made.
    pub(crate) fn matrix_mut(&mut self) -> &mut Matrix {
        &mut self.matrix
    }

    /// Maps rows `[n, inputs]` to rows `[n, outputs]`.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (out, count) = self.rows(x)?;
        Tensor::from_vec(out, (count, self.matrix.outputs()), &Device::Cpu)
    }

    /// [`apply`](Self::apply) plus `other` (rows `[n, outputs]`), in one step.
    pub(crate) fn apply_plus(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        let (mut out, count) = self.rows(x)?;
        let outputs = self.matrix.outputs();
        let (storage, layout) = other.storage_and_layout();
        let (other, others, width, stride) = rows_of(&storage, layout)?;
        if (others, width) != (count, outputs) || outputs == 0 {
            candle_core::bail!("{count} rows of {outputs} are expected");
        }
        each_row(&mut out, outputs, |row, out| {
            out.iter_mut().zip(&other[row * stride..]).for_each(|(value, other)| *value += other);
        });
        Tensor::from_vec(out, (count, outputs), &Device::Cpu)
    }

    /// Computes the rows of the output, one after the other, and their number.
    fn rows(&self, x: &Tensor) -> Result<(Vec<f32>, usize)> {
        let (storage, layout) = x.storage_and_layout();
        let (values, count, width, stride) = rows_of(&storage, layout)?;
        if width != self.matrix.inputs() || stride != width && count > 1 {
            candle_core::bail!("contiguous rows of {} are expected", self.matrix.inputs());
        }
        let mut out = self.matrix.product(&values[..count * width], count);
        if let Some(bias) = &self.bias {
            for row in out.chunks_exact_mut(self.matrix.outputs()) {
                row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
            }
        }
        Ok((out, count))
    }
}

/// Names of the weight tensors of `parts` (name and outputs), and the outputs of each.
pub(crate) fn matrix_names(parts: &[(String, usize)]) -> Vec<(String, usize)> {
    parts.iter().map(|(name, outputs)| (format!("{name}.weight"), *outputs)).collect()
}

/// Biases of `parts` (name and outputs), one after the other.
///
/// # Errors
/// Those of the weights.
pub(crate) fn bias(
    weights: &mut dyn Weights,
    parts: &[(String, usize)],
) -> std::result::Result<Vec<f32>, ModelError> {
    let mut all = Vec::new();
    for (name, outputs) in parts {
        all.extend(weights.vector(&format!("{name}.bias"), *outputs)?);
    }
    Ok(all)
}

/// Reads the matrices of `parts` (name and rows, each row `inputs` long), one below the other.
///
/// # Errors
/// All errors of [`read`](Weights::read).
pub(crate) fn read_matrix(
    weights: &mut dyn Weights,
    parts: &[(impl AsRef<str>, usize)],
    inputs: usize,
) -> std::result::Result<Matrix, ModelError> {
    let mut matrix = Matrix::new(inputs);
    for (name, rows) in parts {
        let (name, rows) = (name.as_ref(), *rows);
        // The files bound the sizes; the configuration does not, so room is reserved by what the files say.
        matrix.reserve(weights.format(name, &[rows, inputs])?, rows);
        weights.read(name, &[rows, inputs], &mut |format, stored| matrix.push(format, stored))?;
    }
    Ok(matrix)
}

/// Share of panels, one in this many, up to which a row is computed by itself. Rows of which more is wanted
/// are computed together and whole: they share what is read.
const FEW: usize = 4;
/// Rows for which memory is kept though fewer are wanted now: about as many as a pass over a draft has.
const SPARE: usize = 32;

/// Multiplies rows `x` by `matrix`, one after the other. Of each row the outputs in its set (all if `None`)
/// are computed; others may be minus infinity. The products overwrite `out` from its beginning, which grows
/// if need be.
pub(crate) fn product(matrix: &Matrix, x: &[f32], sets: &[Option<&TokenSet>], mut out: Vec<f32>) -> Vec<f32> {
    let (inputs, outputs) = (matrix.inputs(), matrix.outputs());
    let panels = outputs.div_ceil(PANEL);
    let few = |set: &TokenSet| {
        let runs = runs(set, panels);
        let wanted: usize = runs.iter().map(ExactSizeIterator::len).sum();
        (wanted * FEW <= panels && matrix.is_of_one_part()).then_some(runs)
    };
    let plan: Vec<Option<Vec<Range<usize>>>> = sets.iter().map(|set| few((*set)?)).collect();
    let room = sets.len().next_power_of_two();
    if !(sets.len() * outputs..=room.max(SPARE) * outputs).contains(&out.len()) {
        // Growing would copy the old contents; and the memory of a long pass is given back.
        out = vec![0.0; room * outputs];
    }
    let rows = || x.chunks_exact(inputs).zip(&plan);
    let whole: Vec<f32> =
        rows().filter(|(_, runs)| runs.is_none()).flat_map(|(row, _)| row).copied().collect();
    let wanted: Vec<Wanted<'_>> =
        rows().filter_map(|(row, runs)| Some(Wanted { row, panels: runs.as_deref()? })).collect();
    let tiles = matrix.panels(&wanted);
    let mut tiles = tiles.chunks_exact(PANEL);
    let mut places = Vec::new();
    for (out, runs) in out.chunks_exact_mut(outputs).zip(&plan) {
        let Some(runs) = runs else {
            places.push(out);
            continue;
        };
        out.fill(f32::NEG_INFINITY);
        for (panel, tile) in runs.iter().flat_map(Clone::clone).zip(&mut tiles) {
            let out = &mut out[panel * PANEL..];
            let count = out.len().min(PANEL);
            out[..count].copy_from_slice(&tile[..count]);
        }
    }
    matrix.product_in(&whole, places);
    out
}

/// Panels, of the first `most`, that have tokens of the set, as runs of neighbours in order.
fn runs(set: &TokenSet, most: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut add = |panel: usize| match runs.last_mut() {
        Some(last) if last.end > panel => {}
        Some(last) if last.end == panel => last.end += 1,
        _ => runs.push(panel..panel + 1),
    };
    match set.contents() {
        Contents::Listed(tokens) => {
            let panels = tokens.iter().map(|token| token.index() / PANEL);
            panels.take_while(|&panel| panel < most).for_each(add);
        }
        Contents::Bits(words) => {
            for (index, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                let panels = (0..64 / PANEL).filter(|part| word >> (part * PANEL) & ((1 << PANEL) - 1) != 0);
                let panels = panels.map(|part| index * (64 / PANEL) + part);
                panels.take_while(|&panel| panel < most).for_each(&mut add);
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod selection_tests {
    use super::*;
    use crate::ids::TokenId;
    use crate::model::formats::Format;

    fn set(size: usize, tokens: impl IntoIterator<Item = usize>) -> TokenSet {
        let mut set = TokenSet::empty(size);
        tokens.into_iter().for_each(|token| set.insert(TokenId::from_index(token).unwrap()));
        set
    }

    fn matrix(inputs: usize, outputs: usize) -> Matrix {
        let mut matrix = Matrix::new(inputs);
        let weights: Vec<f32> = (0..inputs * outputs).map(|n| (n as f32 * 0.37).sin()).collect();
        matrix.push(Format::F32, &weights.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
        matrix
    }

    #[test]
    fn wanted_panels_are_joined_into_runs_of_neighbours() {
        let found = runs(&set(1000, [0, 15, 16, 63, 64, 200, 999]), 62);
        assert_eq!(found, [0..2, 3..5, 12..13]);
        assert_eq!(runs(&set(1000, [999, 0]), 63), [0..1, 62..63]);
        assert!(runs(&set(1000, []), 63).is_empty());
    }

    #[test]
    fn wanted_outputs_have_the_bits_of_the_whole_product() {
        // The row alone, and with enough panels that threads are woken.
        for (inputs, outputs) in [(48, 1003), (512, 9000)] {
            let matrix = matrix(inputs, outputs);
            let x: Vec<f32> = (0..5 * inputs).map(|n| (n as f32 * 0.11).cos()).collect();
            let whole = matrix.product(&x, 5);
            let sets = [
                set(outputs, [3, 500, outputs - 1]),
                set(outputs, 0..outputs),
                set(outputs, []),
                // A vocabulary may be larger or smaller than the matrix is.
                set(outputs + 700, (outputs / 2..outputs / 2 + outputs / 5).chain([outputs + 600])),
                set(40, [7, 39]),
            ];
            let mut wanted: Vec<Option<&TokenSet>> = sets.iter().map(Some).collect();
            for unconstrained in [false, true] {
                if unconstrained {
                    wanted[4] = None;
                }
                // The memory was used before.
                let memory = vec![7.0; if unconstrained { whole.len() / 2 } else { 2 * whole.len() }];
                let got = product(&matrix, &x, &wanted, memory);
                let got = &got[..whole.len()];
                assert_eq!(got.len(), whole.len());
                let mut left_out = 0;
                for (index, (&got, &whole)) in got.iter().zip(&whole).enumerate() {
                    let token = TokenId::from_index(index % outputs).unwrap();
                    let computed = got.to_bits() == whole.to_bits();
                    left_out += usize::from(!computed);
                    let counts = wanted[index / outputs].is_none_or(|set| set.contains(token));
                    assert!(computed || !counts && got == f32::NEG_INFINITY, "{index}");
                }
                assert!(left_out > 2 * outputs, "{left_out}");
            }
        }
    }
}
