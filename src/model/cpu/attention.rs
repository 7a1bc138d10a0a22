//! Causal attention of new tokens to the cache: flash attention (online softmax) over tiles of keys.
//!
//! A tile is converted to floats once for several rows of queries, and stays in the first cache. A row keeps
//! a running maximum; where a tile raises it, the row's sums and output so far are scaled down.
//!
//! Invariant: an output depends on its query and the keys that it sees alone, summed in the order of
//! positions, in tiles that start at the same positions for all: on no other query of the pass, nor threads.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::kv::{Head, KEYS, KvBlocks};
use super::ops::{each_row, exp, floats_of};

/// Least number of multiplications for which waking threads pays.
const PARALLEL: usize = 1 << 16;
/// Rows of queries that share each read of keys and values: their sums stay in registers.
const ROWS: usize = 4;
/// Rows of queries that a thread takes at a time.
const SHARE: usize = 16;
/// Positions of a tile, whole blocks of them, all in one span of the cache.
const TILE: usize = 64;

/// Causal attention of queries at `position`, `position + 1`, … to keys from `first_key` on. A query sees
/// itself and the keys before it, `window` in all if given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention {
    pub(crate) position: usize,
    pub(crate) first_key: usize,
    pub(crate) window: Option<usize>,
}

impl Attention {
    /// Computes attention of `queries` (`[heads, n, head_dim]`) to all `keys` and `values`: rows `[n, heads *
    /// head_dim]`. Neighbouring heads share a key head; products of queries and keys count `scale` times.
    /// Cost: `n * heads` products with all keys they see.
    pub(crate) fn apply(
        self,
        scale: f32,
        queries: &Tensor,
        [keys, values]: [KvBlocks<'_>; 2],
    ) -> Result<Tensor> {
        let (heads, count, head_dim) = queries.dims3()?;
        let [kv_heads, size] = keys.heads();
        let key_count = self.position + count;
        let positions = keys.positions().min(values.positions());
        if key_count > positions || size != head_dim || values.heads() != [kv_heads, size] {
            candle_core::bail!("queries do not fit the cache");
        }
        let (storage, layout) = queries.storage_and_layout();
        let queries = floats_of(&storage, layout)?;
        let mut by_head = vec![0.0; heads * count * head_dim];
        // A task has some rows of the heads that share a key head.
        let rows = heads / kv_heads * count;
        let tasks = by_head.chunks_mut(rows * head_dim).enumerate().flat_map(|(kv_head, out)| {
            let shares = out.chunks_mut(SHARE * head_dim).enumerate();
            shares.map(move |(share, out)| (kv_head, share * SHARE, out))
        });
        let run = |(kv_head, first, out): (usize, usize, &mut [f32])| {
            let share = Share {
                queries: &queries[(kv_head * rows + first) * head_dim..][..out.len()],
                first,
                count,
                keys: keys.head(kv_head),
                values: values.head(kv_head),
                key_count,
                head_dim,
                attention: self,
                scale,
                out,
            };
            share.dispatch();
        };
        if heads * count * head_dim * key_count >= PARALLEL {
            tasks.collect::<Vec<_>>().into_par_iter().for_each(run);
        } else {
            tasks.for_each(run);
        }
        let shape = (count, heads * head_dim);
        if count == 1 {
            return Tensor::from_vec(by_head, shape, &Device::Cpu);
        }
        let mut out = vec![0.0; by_head.len()];
        each_row(&mut out, heads * head_dim, |index, out| {
            for (head, out) in out.chunks_exact_mut(head_dim).enumerate() {
                out.copy_from_slice(&by_head[(head * count + index) * head_dim..][..head_dim]);
            }
        });
        Tensor::from_vec(out, shape, &Device::Cpu)
    }

    /// Range of the `keys` given that query `index` sees.
    pub(crate) fn visible(self, index: usize, keys: usize) -> Range<usize> {
        let query = self.position + index;
        let end = (query + 1).saturating_sub(self.first_key).min(keys);
        let oldest = self.window.map_or(0, |window| (query + 1).saturating_sub(window));
        oldest.saturating_sub(self.first_key).min(end)..end
    }
}

/// Some rows of queries of the heads that share a key head; queries and output are rows of `head_dim`.
struct Share<'a> {
    queries: &'a [f32],
    /// Number of the first row; row `r` is query `r % count` of its head.
    first: usize,
    count: usize,
    keys: Head<'a>,
    values: Head<'a>,
    /// Positions that the cache holds.
    key_count: usize,
    head_dim: usize,
    attention: Attention,
    scale: f32,
    out: &'a mut [f32],
}

/// The running state of one row's softmax.
#[derive(Debug, Clone)]
struct SoftmaxRow {
    /// The positions that the row sees.
    visible: Range<usize>,
    /// The largest score so far (the running maximum).
    largest: f32,
    /// The sum of its weights so far, in lanes.
    sums: [f32; KEYS],
}

impl WithSimd for Share<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.run::<S, 1>(simd),
            8 => self.run::<S, 2>(simd),
            4 => self.run::<S, 4>(simd),
            _ => self.run::<S, KEYS>(simd),
        }
    }
}

/// Intersection of two ranges, counted from the start of `other`.
fn within(range: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    let start = range.start.clamp(other.start, other.end);
    let end = range.end.clamp(start, other.end);
    start - other.start..end - other.start
}

impl Share<'_> {
    /// Runs with the widest vectors of this processor. Not inlined: it has two callers, and is large.
    #[inline(never)]
    fn dispatch(self) {
        Arch::new().dispatch(self);
    }

    /// Runs with `V` vectors for one number of a block's keys.
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let size = self.head_dim;
        let visible = |row: usize| self.attention.visible((self.first + row) % self.count, self.key_count);
        let row = |row| SoftmaxRow { visible: visible(row), largest: f32::NEG_INFINITY, sums: [0.0; KEYS] };
        let mut rows: Vec<SoftmaxRow> = (0..self.out.len() / size).map(row).collect();
        let mut seen = self.key_count..0;
        for row in &rows {
            seen = seen.start.min(row.visible.start)..seen.end.max(row.visible.end);
        }
        let mut scores = [0.0; SHARE * TILE];
        let blocks = TILE / KEYS;
        let longest = blocks.min(self.key_count.div_ceil(KEYS));
        let mut buffer = vec![0.0; longest * self.keys.buffer().max(self.values.buffer())];
        for first in (seen.start / TILE * TILE..seen.end).step_by(TILE) {
            let tile = first..seen.end.min(first + TILE);
            let blocks = first / KEYS..tile.end.div_ceil(KEYS);
            let keys = self.keys.floats(simd, blocks.clone(), &mut buffer);
            let groups = rows.chunks(ROWS).zip(self.queries.chunks(ROWS * size));
            for ((rows, queries), scores) in groups.zip(scores.chunks_mut(ROWS * TILE)) {
                let mut own = tile.len()..0;
                for row in rows {
                    let visible = within(&row.visible, &tile);
                    own = own.start.min(visible.start)..own.end.max(visible.end);
                }
                let blocks = own.start / KEYS..own.end.div_ceil(KEYS);
                if rows.len() == ROWS {
                    score::<S, V, ROWS>(simd, (queries, size), keys, blocks, scores);
                } else {
                    for (query, scores) in queries.chunks(size).zip(scores.chunks_mut(TILE)) {
                        score::<S, V, 1>(simd, (query, size), keys, blocks.clone(), scores);
                    }
                }
            }
            for (index, row) in rows.iter_mut().enumerate() {
                let out = &mut self.out[index * size..][..size];
                row.weigh(&mut scores[index * TILE..][..TILE], self.scale, &tile, out);
            }
            let values = self.values.floats(simd, blocks, &mut buffer);
            let groups = rows.chunks(ROWS).zip(scores.chunks(ROWS * TILE));
            for ((rows, scores), out) in groups.zip(self.out.chunks_mut(ROWS * size)) {
                if let Ok(rows) = <&[SoftmaxRow; ROWS]>::try_from(rows) {
                    add_tile::<S, ROWS>(simd, rows, (scores, values), &tile, out);
                } else {
                    for ((row, scores), out) in rows.iter().zip(scores.chunks(TILE)).zip(out.chunks_mut(size))
                    {
                        add_tile::<S, 1>(simd, std::array::from_ref(row), (scores, values), &tile, out);
                    }
                }
            }
        }
        for (row, out) in rows.iter().zip(self.out.chunks_mut(size)) {
            let inverse = 1.0 / folded(row.sums, |a, b| a + b);
            for value in out {
                *value *= inverse;
            }
        }
    }
}

impl SoftmaxRow {
    /// Turns the scores of a tile into weights. If the tile raises the maximum, the sums so far and the
    /// output in `out` are scaled down first.
    #[inline(always)]
    fn weigh(&mut self, scores: &mut [f32], scale: f32, tile: &Range<usize>, out: &mut [f32]) {
        let visible = within(&self.visible, tile);
        if visible.is_empty() {
            return;
        }
        let scores = &mut scores[visible];
        let (chunks, rest) = scores.as_chunks::<KEYS>();
        let mut largest = [f32::NEG_INFINITY; KEYS];
        for chunk in chunks {
            for lane in 0..KEYS {
                largest[lane] = largest[lane].max(chunk[lane]);
            }
        }
        for (largest, score) in largest.iter_mut().zip(rest) {
            *largest = largest.max(*score);
        }
        let largest = scale * folded(largest, f32::max);
        if largest > self.largest {
            if self.largest > f32::NEG_INFINITY {
                let factor = exp(self.largest - largest);
                for sum in &mut self.sums {
                    *sum *= factor;
                }
                for value in out {
                    *value *= factor;
                }
            }
            self.largest = largest;
        }
        let (largest, mut sums) = (self.largest, self.sums);
        let (chunks, rest) = scores.as_chunks_mut::<KEYS>();
        for chunk in chunks {
            for lane in 0..KEYS {
                chunk[lane] = exp(scale * chunk[lane] - largest);
                sums[lane] += chunk[lane];
            }
        }
        for (sum, score) in sums.iter_mut().zip(rest) {
            *score = exp(scale * *score - largest);
            *sum += *score;
        }
        self.sums = sums;
    }
}

/// Reduction of all lanes by halves: one after the other, each would wait for the last.
#[inline(always)]
fn folded(mut lanes: [f32; KEYS], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = KEYS / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = combine(lanes[lane], lanes[half + lane]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Adds to the output of `R` rows the values of a tile, each times its weight. `values` starts with the tile.
#[inline(always)]
fn add_tile<S: Simd, const R: usize>(
    simd: S,
    rows: &[SoftmaxRow; R],
    (scores, values): (&[f32], &[f32]),
    tile: &Range<usize>,
    out: &mut [f32],
) {
    let size = out.len() / R;
    let visible = std::array::from_fn::<_, R, _>(|row| within(&rows[row].visible, tile));
    let mut together = 0..tile.len();
    for visible in &visible {
        together = together.start.max(visible.start)..together.end.min(visible.end);
    }
    // Values that all rows see are read once for all of them; each row sums its keys in the order of their
    // positions.
    if together.is_empty() {
        for (row, out) in out.chunks_exact_mut(size).enumerate() {
            add_range(simd, out, &scores[row * TILE..], values, visible[row].clone());
        }
        return;
    }
    for (row, out) in out.chunks_exact_mut(size).enumerate() {
        add_range(simd, out, &scores[row * TILE..], values, visible[row].start..together.start);
    }
    let weights = std::array::from_fn(|row| &scores[row * TILE..][together.clone()]);
    add_weighted::<S, R>(simd, out, weights, &values[together.start * size..together.end * size]);
    for (row, out) in out.chunks_exact_mut(size).enumerate() {
        add_range(simd, out, &scores[row * TILE..], values, together.end..visible[row].end);
    }
}

/// Adds the values of some positions to the output of one row, each times its weight.
#[inline(always)]
fn add_range<S: Simd>(simd: S, out: &mut [f32], scores: &[f32], values: &[f32], range: Range<usize>) {
    let values = &values[range.start * out.len()..range.end * out.len()];
    add_weighted::<S, 1>(simd, out, [&scores[range]], values);
}

/// Computes the inner products of `R` queries with the keys of some blocks of a tile, and writes them to
/// these keys' places in each query's `TILE` of `scores`. Each is one sum from the first number on.
#[inline(always)]
fn score<S: Simd, const V: usize, const R: usize>(
    simd: S,
    queries: (&[f32], usize),
    keys: &[f32],
    blocks: Range<usize>,
    scores: &mut [f32],
) {
    let mut first = blocks.start;
    while first < blocks.end {
        // Independent sums hide the latency of an addition: as many as the processor can have under way.
        first += match blocks.end - first {
            4.. if R == 1 => score_blocks::<S, V, R, 4>(simd, queries, keys, first, scores),
            2.. => score_blocks::<S, V, R, 2>(simd, queries, keys, first, scores),
            _ => score_blocks::<S, V, R, 1>(simd, queries, keys, first, scores),
        };
    }
}

/// Computes [`score`] for blocks `first .. first + B`; gives `B`.
#[inline(always)]
fn score_blocks<S: Simd, const V: usize, const R: usize, const B: usize>(
    simd: S,
    (queries, size): (&[f32], usize),
    keys: &[f32],
    first: usize,
    scores: &mut [f32],
) -> usize {
    let mut sums = [[[simd.splat_f32s(0.0); V]; B]; R];
    let mut blocks: [&[[f32; KEYS]]; B] = [&[]; B];
    for (index, block) in blocks.iter_mut().enumerate() {
        *block = keys[(first + index) * size * KEYS..][..size * KEYS].as_chunks().0;
    }
    let mut rows: [&[f32]; R] = [&[]; R];
    for (index, row) in rows.iter_mut().enumerate() {
        *row = &queries[index * size..][..size];
    }
    for number in 0..size {
        for row in 0..R {
            let query = simd.splat_f32s(rows[row][number]);
            for block in 0..B {
                let keys = S::as_simd_f32s(&blocks[block][number]).0;
                for v in 0..V {
                    sums[row][block][v] = simd.mul_add_e_f32s(query, keys[v], sums[row][block][v]);
                }
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let scores = &mut scores[row * TILE + first * KEYS..][..B * KEYS];
        S::as_mut_simd_f32s(scores).0.copy_from_slice(sums.as_flattened());
    }
    B
}

/// Adds to `R` rows the rows of `values`, each times its weight for that row.
#[inline(always)]
fn add_weighted<S: Simd, const R: usize>(simd: S, out: &mut [f32], weights: [&[f32]; R], values: &[f32]) {
    let size = out.len() / R;
    let vectors = size / S::F32_LANES;
    let mut first = 0;
    while first < vectors {
        // Few vectors at a time, so that their sums stay in registers.
        first += match vectors - first {
            4.. => add_vectors::<S, R, 4>(simd, out, first, weights, values),
            2.. => add_vectors::<S, R, 2>(simd, out, first, weights, values),
            _ => add_vectors::<S, R, 1>(simd, out, first, weights, values),
        };
    }
    let whole = vectors * S::F32_LANES;
    for (out, weights) in out.chunks_exact_mut(size).zip(weights) {
        for (&weight, row) in weights.iter().zip(values.chunks_exact(size)) {
            for (out, &value) in out[whole..].iter_mut().zip(&row[whole..]) {
                *out += weight * value;
            }
        }
    }
}

/// Adds vectors `first .. first + V` of all rows of `values`; gives `V`.
#[inline(always)]
fn add_vectors<S: Simd, const R: usize, const V: usize>(
    simd: S,
    out: &mut [f32],
    first: usize,
    weights: [&[f32]; R],
    values: &[f32],
) -> usize {
    let size = out.len() / R;
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for (sums, out) in sums.iter_mut().zip(out.chunks_exact(size)) {
        sums.copy_from_slice(&S::as_simd_f32s(out).0[first..first + V]);
    }
    for (key, values) in values.chunks_exact(size).enumerate() {
        let values = &S::as_simd_f32s(values).0[first..first + V];
        for row in 0..R {
            let weight = simd.splat_f32s(weights[row][key]);
            for v in 0..V {
                sums[row][v] = simd.mul_add_e_f32s(weight, values[v], sums[row][v]);
            }
        }
    }
    for (sums, out) in sums.iter().zip(out.chunks_exact_mut(size)) {
        S::as_mut_simd_f32s(out).0[first..first + V].copy_from_slice(sums);
    }
    V
}

#[cfg(test)]
#[path = "attention_tests.rs"]
mod tests;
