//! Weight matrices, kept in the formats they were stored in, and their product with a few rows.
//!
//! Invariant: the bits of an output do not depend on what else is in the pass, nor on the number of threads.
//! So one pass over n tokens gives the very bits of n passes over one.

use std::ops::Range;

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use super::{
    integer::{self, RoundedRows, Stored},
    kernel::{FloatRows, Panels},
    packing,
    panel::{CHUNK, PANEL},
};
use crate::{
    ids::as_u64,
    model::{
        cpu::{pages::Pages, threads::linger},
        formats::{format::Format, instructions::Instructions},
    },
};

/// Panels computed at a time.
const SHARE: usize = 16;
/// Least number of multiplications for which waking threads pays.
const PARALLEL: usize = 1 << 17;

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
        let floats = match self.format {
            Format::F32 => &self.packed.floats()[start / size_of::<f32>()..],
            _ => &[],
        };
        Panels { format: self.format, inputs, floats, bytes: &self.packed.bytes()[start..] }
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
        Tensor::from_vec(out, (rows.len(), self.inputs), &candle_core::Device::Cpu)
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
    pub(crate) fn is_of_one_part(&self) -> bool {
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
    pub(crate) fn product_in(&self, x: &[f32], mut rest: Vec<&mut [f32]>) {
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

#[cfg(test)]
mod tests;
