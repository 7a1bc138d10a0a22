//! The product of packed weights with a few rows, in floats (register-tiled matrix multiplication).
//!
//! Invariant: an output number is the sum over the inputs in their order, one fused multiplication and
//! addition after the other where the processor has it, whatever else is in the pass. A weight is read from
//! memory and unpacked once for all rows of a pass; sums stay in registers over a chunk of inputs.

use pulp::{Arch, Simd, WithSimd, bytemuck};

use super::packing::{self, Prefetch};
use super::{CHUNK, PANEL, PLANE};
use crate::model::formats::Format;

/// Most panels computed together.
const GROUP: usize = 4;
/// Floats of a chunk of a panel.
const FLOATS: usize = CHUNK * PANEL;

/// Rows of the input as the kernel reads them: in blocks (the last may have fewer), each by inputs.
#[derive(Debug)]
pub(crate) struct FloatRows {
    /// Values in the order `[block][input][row]`.
    values: Vec<f32>,
    count: usize,
    /// Rows of a block; the last may have fewer.
    block: usize,
}

impl FloatRows {
    /// Rearranges `count` rows of `inputs`.
    pub(crate) fn new(x: &[f32], count: usize, inputs: usize) -> Self {
        Self::in_blocks(x, count, inputs, Arch::new().dispatch(MostRows))
    }

    /// Rearranges rows in blocks of at most `most` rows.
    fn in_blocks(x: &[f32], count: usize, inputs: usize, most: usize) -> Self {
        // Blocks of about the same size, so that none is a small rest.
        let block = count.div_ceil(count.div_ceil(most).max(1)).max(1);
        if block == 1 {
            return Self { values: x.to_vec(), count, block };
        }
        let mut values = vec![0.0; x.len()];
        let blocks = x.chunks(block * inputs).zip(values.chunks_mut(block * inputs));
        for (rows, values) in blocks {
            let block = rows.len() / inputs;
            for (row, x) in rows.chunks_exact(inputs).enumerate() {
                for (values, &x) in values.chunks_exact_mut(block).zip(x) {
                    values[row] = x;
                }
            }
        }
        Self { values, count, block }
    }
}

/// Rows whose sums, with those of as many panels as fit, fill the registers.
struct MostRows;

impl WithSimd for MostRows {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        most_rows::<S>(1)
    }
}

/// Block size of the register tiling: the most rows whose sums all stay in registers, if `panels` panels are
/// multiplied together; 0 if there are no such groups of panels. No kernel is compiled for more rows.
const fn most_rows<S: Simd>(panels: usize) -> usize {
    // Three cases: AVX-512, other vectors, no vectors.
    let most = if S::F32_LANES == PANEL && S::REGISTER_COUNT >= 32 {
        [12, 12, 2]
    } else if S::F32_LANES > 1 {
        [6, 3, 1]
    } else {
        [2, 0, 0]
    };
    match panels {
        1 => most[0],
        2 => most[1],
        _ => most[2],
    }
}

/// Some neighbouring panels of one format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panels<'a> {
    pub(crate) format: Format,
    pub(crate) inputs: usize,
    /// The packed panels: those of `f32` are floats, `[panel][input][PANEL]`.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Panels<'a> {
    /// Multiplies them with `rows`; products come in tiles `[panel][row][PANEL]`.
    pub(crate) fn multiply(self, rows: &FloatRows, tiles: &mut [f32]) {
        Arch::new().dispatch(Multiply { panels: self, rows, tiles });
    }

    /// Unpacks all outputs of a panel from input `first` on: `[input][PANEL]`.
    pub(crate) fn unpack(self, panel: usize, first: usize, out: &mut [f32]) {
        Arch::new().dispatch(Unpack { panels: self, panel, first, out });
    }

    /// Inputs unpacked at a time.
    #[inline(always)]
    fn chunk(self) -> usize {
        packing::chunk(self.format)
    }

    #[inline(always)]
    fn packed(self, panel: usize) -> &'a [u8] {
        let size = packing::panel_bytes(self.format, self.inputs);
        &self.bytes[panel * size..][..size]
    }

    /// Approximate place of inputs `first ..` of a panel, for prefetching; empty past the last panel.
    #[inline(always)]
    fn place(self, panel: usize, first: usize, inputs: usize) -> &'a [u8] {
        let size = packing::panel_bytes(self.format, self.inputs);
        let (from, to) = (size * first / self.inputs, size * (first + inputs) / self.inputs);
        self.bytes.get(panel * size + from..panel * size + to).unwrap_or_default()
    }

    /// Weights of inputs `first ..` of a panel as floats, unpacked into `buffer` if they are stored
    /// otherwise.
    #[inline(always)]
    fn weights<'b, S: Simd>(
        &'b self,
        simd: S,
        panel: usize,
        first: usize,
        buffer: &'b mut [f32],
    ) -> &'b [f32] {
        let packed = self.packed(panel);
        if self.format == Format::F32 {
            let floats = &packed[first * PLANE..][..size_of_val(buffer)];
            return bytemuck::try_cast_slice(floats).unwrap_or_default();
        }
        packing::unpack(simd, self.format, packed, first, buffer);
        buffer
    }
}

struct Unpack<'a> {
    panels: Panels<'a>,
    panel: usize,
    first: usize,
    out: &'a mut [f32],
}

impl WithSimd for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { panels, panel, first, out } = self;
        packing::unpack(simd, panels.format, panels.packed(panel), first, out);
    }
}

struct Multiply<'a> {
    panels: Panels<'a>,
    rows: &'a FloatRows,
    tiles: &'a mut [f32],
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => multiply::<S, 1>(simd, self),
            8 => multiply::<S, 2>(simd, self),
            4 => multiply::<S, 4>(simd, self),
            _ => multiply::<S, PANEL>(simd, self),
        }
    }
}

/// Multiplies panels of `V` vectors.
#[inline(always)]
fn multiply<S: Simd, const V: usize>(simd: S, task: Multiply<'_>) {
    let Multiply { panels, rows, tiles } = task;
    let most = match rows.block {
        block if block <= most_rows::<S>(GROUP) => GROUP,
        block if block <= most_rows::<S>(2) => 2,
        _ => 1,
    };
    let mut buffers = [0.0; GROUP * FLOATS];
    let ahead = Prefetch::new();
    let blocks = rows.count.div_ceil(rows.block);
    let mut panel = 0;
    let mut rest = tiles;
    while !rest.is_empty() {
        let left = rest.len() / (rows.count * PANEL);
        // Panels are computed together by fours, twos or ones.
        let group = if left >= GROUP {
            GROUP
        } else if left >= 2 {
            2
        } else {
            1
        };
        let group = group.min(most);
        let (tiles, after) = std::mem::take(&mut rest).split_at_mut(group * rows.count * PANEL);
        for first in (0..panels.inputs).step_by(panels.chunk()) {
            let inputs = panels.chunk().min(panels.inputs - first);
            let mut weights: [&[f32]; GROUP] = [&[]; GROUP];
            let places = weights.iter_mut().zip(buffers.chunks_exact_mut(FLOATS)).take(group);
            for (index, (place, buffer)) in places.enumerate() {
                *place = panels.weights(simd, panel + index, first, &mut buffer[..inputs * PANEL]);
            }
            let next: [&[u8]; GROUP] = std::array::from_fn(|index| match first + inputs {
                _ if index >= group => &[][..],
                next if next < panels.inputs => panels.place(panel + index, next, inputs),
                _ => panels.place(panel + group + index, 0, inputs),
            });
            for start in (0..rows.count).step_by(rows.block) {
                let block = rows.block.min(rows.count - start);
                let turn = Turn {
                    weights: &weights,
                    x: &rows.values[start * panels.inputs + first * block..][..inputs * block],
                    rows: block,
                    starts: first == 0,
                    // Each panel prefetches another block, so that memory is always being read.
                    next: std::array::from_fn(|index| {
                        let asks = index * blocks / group == start / rows.block;
                        if asks { next[index] } else { &[] }
                    }),
                    ahead,
                };
                let tiles = &mut tiles[start * PANEL..];
                let stride = rows.count * PANEL;
                match group {
                    GROUP => block_of_rows::<S, V, GROUP>(simd, &turn, tiles, stride),
                    2 => block_of_rows::<S, V, 2>(simd, &turn, tiles, stride),
                    _ => block_of_rows::<S, V, 1>(simd, &turn, tiles, stride),
                }
            }
        }
        panel += group;
        rest = after;
    }
}

/// A chunk of inputs of some panels, and a block of rows.
struct Turn<'a> {
    weights: &'a [&'a [f32]; GROUP],
    x: &'a [f32],
    rows: usize,
    /// True for the first inputs, which have no sums to add to yet.
    starts: bool,
    /// The weights that come after these, by panel, to be prefetched.
    next: [&'a [u8]; GROUP],
    ahead: Prefetch,
}

/// Multiplies `P` panels with a block of rows.
#[inline(always)]
fn block_of_rows<S: Simd, const V: usize, const P: usize>(
    simd: S,
    turn: &Turn<'_>,
    tiles: &mut [f32],
    stride: usize,
) {
    match turn.rows {
        1 => fitting::<S, V, 1, P>(simd, turn, tiles, stride),
        2 => fitting::<S, V, 2, P>(simd, turn, tiles, stride),
        3 => fitting::<S, V, 3, P>(simd, turn, tiles, stride),
        4 => fitting::<S, V, 4, P>(simd, turn, tiles, stride),
        5 => fitting::<S, V, 5, P>(simd, turn, tiles, stride),
        6 => fitting::<S, V, 6, P>(simd, turn, tiles, stride),
        7 => fitting::<S, V, 7, P>(simd, turn, tiles, stride),
        8 => fitting::<S, V, 8, P>(simd, turn, tiles, stride),
        9 => fitting::<S, V, 9, P>(simd, turn, tiles, stride),
        10 => fitting::<S, V, 10, P>(simd, turn, tiles, stride),
        11 => fitting::<S, V, 11, P>(simd, turn, tiles, stride),
        _ => fitting::<S, V, 12, P>(simd, turn, tiles, stride),
    }
}

/// Calls [`sums`] for a block that fits the registers. [`multiply`] makes no other ones, so code for those is
/// not compiled.
#[inline(always)]
fn fitting<S: Simd, const V: usize, const R: usize, const P: usize>(
    simd: S,
    turn: &Turn<'_>,
    tiles: &mut [f32],
    stride: usize,
) {
    if const { R <= most_rows::<S>(P) } {
        sums::<S, V, R, P>(simd, turn, tiles, stride);
    }
}

/// Adds the products of `P` panels with `R` rows to their sums; tiles of a panel are `stride` apart. All sums
/// stay in registers; the only check inside the loop is where the weights to prefetch end.
#[inline(always)]
fn sums<S: Simd, const V: usize, const R: usize, const P: usize>(
    simd: S,
    turn: &Turn<'_>,
    tiles: &mut [f32],
    stride: usize,
) {
    let x = turn.x.as_chunks::<R>().0;
    let weights: [&[[S::f32s; V]]; P] =
        std::array::from_fn(|p| &S::as_simd_f32s(turn.weights[p]).0.as_chunks::<V>().0[..x.len()]);
    let mut sums = [[[simd.splat_f32s(0.0); V]; R]; P];
    if !turn.starts {
        for p in 0..P {
            for r in 0..R {
                let tile = &tiles[p * stride + r * PANEL..][..PANEL];
                sums[p][r].copy_from_slice(S::as_simd_f32s(tile).0);
            }
        }
    }
    for (input, x) in x.iter().enumerate() {
        for p in 0..P {
            turn.ahead.ask(turn.next[p], input);
        }
        for r in 0..R {
            let value = simd.splat_f32s(x[r]);
            for p in 0..P {
                for v in 0..V {
                    sums[p][r][v] = simd.mul_add_e_f32s(weights[p][input][v], value, sums[p][r][v]);
                }
            }
        }
    }
    for p in 0..P {
        for r in 0..R {
            let tile = &mut tiles[p * stride + r * PANEL..][..PANEL];
            S::as_mut_simd_f32s(tile).0.copy_from_slice(&sums[p][r]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinds of vectors: none, AVX2 if the processor has it, and its best.
    fn kinds_of_vectors() -> Vec<Arch> {
        let mut all = vec![Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        match pulp::x86::V3::try_new() {
            Some(simd) => all.push(Arch::V3(simd)),
            None => println!("LEFT OUT: the processor has no AVX2"),
        }
        all
    }

    /// Small whole numbers, whose sums are exact in any order.
    fn whole_numbers(count: usize) -> Vec<f32> {
        (0..count).map(|index| [-3.0, 1.0, 0.0, 2.0, -1.0, 5.0, -2.0][index * index % 7]).collect()
    }

    #[test]
    fn blocks_of_all_sizes_are_multiplied_with_all_vectors() {
        let inputs = 2 * CHUNK + 5;
        for arch in kinds_of_vectors() {
            let most = arch.dispatch(MostRows);
            for panels in 1..=2 * GROUP - 1 {
                let floats = whole_numbers(panels * inputs * PANEL);
                for count in 1..=2 * most + 1 {
                    let x = whole_numbers(count * inputs);
                    let rows = FloatRows::in_blocks(&x, count, inputs, most);
                    let panels = Panels { format: Format::F32, inputs, bytes: bytemuck::cast_slice(&floats) };
                    let mut tiles = vec![f32::NAN; floats.len() / inputs * count];
                    arch.dispatch(Multiply { panels, rows: &rows, tiles: &mut tiles });
                    for (index, got) in tiles.iter().enumerate() {
                        let (panel, row, lane) =
                            (index / PANEL / count, index / PANEL % count, index % PANEL);
                        let weight = |input: usize| floats[(panel * inputs + input) * PANEL + lane];
                        let sum: f32 = (0..inputs).map(|input| weight(input) * x[row * inputs + input]).sum();
                        assert!(*got == sum, "{arch:?}, {count} rows, output {index}: {got} for {sum}");
                    }
                }
            }
        }
    }
}
