//! Attention of new tokens to the cache.
//!
//! Invariant: what a query gets depends on it and on the keys it sees alone, summed in the order of their
//! positions: not on what shares the pass, nor on the number of threads.

use std::ops::Range;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{exp::exp, key_blocks::KEYS};

/// Products of numbers from which on threads are worth waking.
const PARALLEL: usize = 1 << 18;
/// Rows of queries that share what is read of keys and values: their sums stay in registers.
const ROWS: usize = 4;
/// Rows of queries that a thread takes at a time.
const SHARE: usize = 16;

/// Causal attention of queries at `position`, `position + 1`, … to keys from `first_key` on. A query sees
/// itself and the keys before it, `window` in all if given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub(super) position: usize,
    pub(super) first_key: usize,
    pub(super) window: Option<usize>,
}

impl Attention {
    /// Of `queries` (`[heads, n, head_dim]`) to `keys` in [blocks](super::key_blocks) and `values` (`[kv_heads,
    /// positions, head_dim]`), both from position 0 on: rows `[n, heads * head_dim]`. Neighbouring heads share a key
    /// head. Makes `n * heads` rows of products with as many keys as they see.
    pub(super) fn apply(self, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
        queries.apply_op3_no_bwd(keys, values, &self)
    }

    /// Which of the `keys` given query `index` sees.
    pub(super) fn visible(self, index: usize, keys: usize) -> Range<usize> {
        let query = self.position + index;
        let end = (query + 1).saturating_sub(self.first_key).min(keys);
        let oldest = self.window.map_or(0, |window| (query + 1).saturating_sub(window));
        oldest.saturating_sub(self.first_key).min(end)..end
    }
}

/// The floats of a tensor that is contiguous.
fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&storage.as_slice()?[from..to]),
        None => candle_core::bail!("contiguous heads are expected"),
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        queries: &CpuStorage,
        queries_layout: &Layout,
        keys: &CpuStorage,
        keys_layout: &Layout,
        values: &CpuStorage,
        values_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (heads, count, head_dim) = queries_layout.shape().dims3()?;
        let (kv_heads, blocks, ..) = keys_layout.shape().dims4()?;
        let (_, positions, _) = values_layout.shape().dims3()?;
        let key_count = self.position + count;
        if key_count > positions.min(blocks * KEYS) {
            candle_core::bail!("more queries than there are keys");
        }
        let queries = floats(queries, queries_layout)?;
        let keys = floats(keys, keys_layout)?;
        let values = floats(values, values_layout)?;
        let mut by_head = vec![0.0; heads * count * head_dim];
        // Some rows of the heads that share a key head each.
        let rows = heads / kv_heads * count;
        let tasks = by_head.chunks_mut(rows * head_dim).enumerate().flat_map(|(kv_head, out)| {
            let shares = out.chunks_mut(SHARE * head_dim).enumerate();
            shares.map(move |(share, out)| (kv_head, share * SHARE, out))
        });
        let run = |(kv_head, first, out): (usize, usize, &mut [f32])| {
            Arch::new().dispatch(Share {
                queries: &queries[(kv_head * rows + first) * head_dim..][..out.len()],
                first,
                count,
                keys: &keys[kv_head * blocks * head_dim * KEYS..]
                    [..key_count.div_ceil(KEYS) * head_dim * KEYS],
                values: &values[kv_head * positions * head_dim..][..key_count * head_dim],
                head_dim,
                attention: *self,
                out,
            });
        };
        if heads * count * head_dim * key_count >= PARALLEL {
            tasks.collect::<Vec<_>>().into_par_iter().for_each(run);
        } else {
            tasks.for_each(run);
        }
        let shape = Shape::from((count, heads * head_dim));
        if count == 1 {
            return Ok((CpuStorage::F32(by_head), shape));
        }
        let mut out = Vec::with_capacity(by_head.len());
        for index in 0..count {
            for head in 0..heads {
                out.extend_from_slice(&by_head[(head * count + index) * head_dim..][..head_dim]);
            }
        }
        Ok((CpuStorage::F32(out), shape))
    }
}

/// Some rows of queries of the heads that share a key head; queries, values and output are rows of `head_dim`.
struct Share<'a> {
    queries: &'a [f32],
    /// Number of the first row; row `r` is query `r % count` of its head.
    first: usize,
    count: usize,
    /// In blocks.
    keys: &'a [f32],
    values: &'a [f32],
    head_dim: usize,
    attention: Attention,
    out: &'a mut [f32],
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

impl Share<'_> {
    /// With `V` vectors for a number of a block's keys.
    #[inline(always)]
    fn run<S: Simd, const V: usize>(mut self, simd: S) {
        let rows = self.out.len() / self.head_dim;
        let mut scores = vec![0.0; ROWS.min(rows) * self.keys.len() / self.head_dim];
        let whole = rows / ROWS * ROWS;
        for row in (0..whole).step_by(ROWS) {
            self.rows::<S, V, ROWS>(simd, row, &mut scores);
        }
        for row in whole..rows {
            self.rows::<S, V, 1>(simd, row, &mut scores);
        }
    }

    /// Rows `row .. row + R`.
    #[inline(always)]
    fn rows<S: Simd, const V: usize, const R: usize>(&mut self, simd: S, row: usize, scores: &mut [f32]) {
        let size = self.head_dim;
        #[expect(clippy::cast_precision_loss, reason = "head sizes are far below 2^24")]
        let scale = 1.0 / (size as f32).sqrt();
        let key_count = self.values.len() / size;
        let mut visible: [Range<usize>; R] = std::array::from_fn(|_| 0..0);
        let mut together = 0..key_count;
        let mut seen = key_count..0;
        for (index, visible) in visible.iter_mut().enumerate() {
            *visible = self.attention.visible((self.first + row + index) % self.count, key_count);
            together = together.start.max(visible.start)..together.end.min(visible.end);
            seen = seen.start.min(visible.start)..seen.end.max(visible.end);
        }
        let length = scores.len() / R;
        let queries = &self.queries[row * size..][..R * size];
        let blocks = seen.start / KEYS..seen.end.div_ceil(KEYS);
        score::<S, V, R>(simd, (queries, size), self.keys, blocks, scores);
        let out = &mut self.out[row * size..][..R * size];
        let mut inverse = [0.0; R];
        for index in 0..R {
            let scores = &mut scores[index * length..][visible[index].clone()];
            let largest = scale * lanes(scores, f32::NEG_INFINITY, f32::max);
            for score in &mut *scores {
                *score = exp(scale * *score - largest);
            }
            inverse[index] = 1.0 / lanes(scores, 0.0, |a, b| a + b);
        }
        // What all of them see is read once for all; each sums its keys in the order of their positions.
        let sides = |index: usize| match together.is_empty() {
            true => [visible[index].clone(), 0..0],
            false => [visible[index].start..together.start, together.end..visible[index].end],
        };
        for index in 0..R {
            let [before, _] = sides(index);
            let weights = [&scores[index * length..][before.clone()]];
            let out = &mut out[index * size..][..size];
            add_weighted::<S, 1>(simd, out, weights, &self.values[before.start * size..before.end * size]);
        }
        if !together.is_empty() {
            let weights = std::array::from_fn(|index| &scores[index * length..][together.clone()]);
            let values = &self.values[together.start * size..together.end * size];
            add_weighted::<S, R>(simd, out, weights, values);
        }
        for index in 0..R {
            let [_, after] = sides(index);
            let weights = [&scores[index * length..][after.clone()]];
            let out = &mut out[index * size..][..size];
            add_weighted::<S, 1>(simd, out, weights, &self.values[after.start * size..after.end * size]);
            for value in out {
                *value *= inverse[index];
            }
        }
    }
}

/// The inner products of `R` queries with the keys of some blocks, to the places of these keys in each query's share of
/// `scores`. Each is one sum from the first number on.
#[inline(always)]
fn score<S: Simd, const V: usize, const R: usize>(
    simd: S,
    (queries, size): (&[f32], usize),
    keys: &[f32],
    blocks: Range<usize>,
    scores: &mut [f32],
) {
    let length = scores.len() / R;
    let mut first = blocks.start;
    while first < blocks.end {
        // As many sums at a time as the processor can be busy with.
        first += match blocks.end - first {
            4.. if R == 1 => score_blocks::<S, V, R, 4>(simd, (queries, size), keys, first, (scores, length)),
            2.. => score_blocks::<S, V, R, 2>(simd, (queries, size), keys, first, (scores, length)),
            _ => score_blocks::<S, V, R, 1>(simd, (queries, size), keys, first, (scores, length)),
        };
    }
}

/// The same for blocks `first .. first + B`; gives `B`.
#[inline(always)]
fn score_blocks<S: Simd, const V: usize, const R: usize, const B: usize>(
    simd: S,
    (queries, size): (&[f32], usize),
    keys: &[f32],
    first: usize,
    (scores, length): (&mut [f32], usize),
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
        let scores = &mut scores[row * length + first * KEYS..][..B * KEYS];
        S::as_mut_simd_f32s(scores).0.copy_from_slice(sums.as_flattened());
    }
    B
}

/// All numbers combined, every sixteenth with each other first: one after the other each would wait for the last.
#[inline(always)]
fn lanes(numbers: &[f32], start: f32, combine: impl Fn(f32, f32) -> f32 + Copy) -> f32 {
    let (chunks, rest) = numbers.as_chunks::<16>();
    let mut lanes = [start; 16];
    for chunk in chunks {
        for (lane, &number) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, number);
        }
    }
    lanes.iter().chain(rest).fold(start, |so_far, &number| combine(so_far, number))
}

/// Adds to `R` rows the rows of `values`, each times its weight for that row.
#[inline(always)]
fn add_weighted<S: Simd, const R: usize>(simd: S, out: &mut [f32], weights: [&[f32]; R], values: &[f32]) {
    let size = out.len() / R;
    let vectors = size / S::F32_LANES;
    let mut first = 0;
    while first < vectors {
        // Of a few vectors at a time, whose sums stay in registers.
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
mod tests {
    use candle_core::{Device, Tensor};

    use super::{super::key_blocks, *};

    #[test]
    fn visible_keys() {
        let attention = Attention { position: 5, first_key: 3, window: Some(3) };
        // Query 5 sees 3, 4, 5; query 6 sees 4, 5, 6.
        assert_eq!(attention.visible(0, 4), 0..3);
        assert_eq!(attention.visible(1, 4), 1..4);
        let attention = Attention { position: 5, first_key: 0, window: None };
        assert_eq!(attention.visible(1, 7), 0..7);
    }

    /// Keys `[heads, positions, size]` in blocks.
    fn in_blocks(keys: &Tensor) -> Tensor {
        let (heads, positions, size) = keys.dims3().unwrap();
        let shape = key_blocks::shape([heads, positions, size]);
        // What lies past the keys must not matter.
        let blocks = Tensor::full(f32::NAN, shape, &Device::Cpu).unwrap();
        key_blocks::write(&blocks, keys, 0).unwrap();
        blocks
    }

    #[test]
    fn a_mean_of_the_visible_values() {
        // Two heads, one key head, odd sizes; keys of zero weigh all that is seen alike.
        let queries = Tensor::ones((2, 2, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let keys = Tensor::zeros((1, 4, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let values = Tensor::arange(0.0_f32, 27.0, &Device::Cpu).unwrap().reshape((1, 9, 3)).unwrap();
        let attention = Attention { position: 2, first_key: 0, window: Some(2) };
        let out = attention.apply(&queries, &in_blocks(&keys), &values).unwrap().to_vec2::<f32>().unwrap();
        // Position 2 sees 1 and 2; position 3 sees 2 and 3. Rows of positions start at 3, 6, 9.
        assert_eq!(out, [[4.5, 5.5, 6.5, 4.5, 5.5, 6.5], [7.5, 8.5, 9.5, 7.5, 8.5, 9.5]]);
        let past = Attention { position: 8, first_key: 0, window: None };
        assert!(past.apply(&queries, &in_blocks(&keys), &values).is_err());
    }

    #[test]
    fn a_query_gets_the_same_bits_whatever_shares_the_pass() {
        // Enough for threads when together. A window far shorter than the pass, one about as long, none.
        let (heads, kv_heads, size, total) = (6, 2, 64, 75);
        let numbers = |heads: usize, step: f32| {
            let numbers = (0..heads * total * size).map(|n| (n as f32 * step).sin()).collect::<Vec<_>>();
            Tensor::from_vec(numbers, (heads, total, size), &Device::Cpu).unwrap()
        };
        let (queries, keys, values) =
            (numbers(heads, 0.37), numbers(kv_heads, 0.21), numbers(kv_heads, 0.13));
        assert!(heads * total * total * size >= PARALLEL);
        let keys = in_blocks(&keys);
        for window in [Some(2), Some(17), Some(60), None] {
            let attend = |position: usize, count: usize| {
                let queries = queries.narrow(1, position, count).unwrap().contiguous().unwrap();
                let attention = Attention { position, first_key: 0, window };
                attention.apply(&queries, &keys, &values).unwrap().to_vec2::<f32>().unwrap()
            };
            let together = attend(0, total);
            let mut position = 0;
            for count in [1, 1, 2, 5, 16, 3, 40, 7] {
                assert_eq!(
                    attend(position, count),
                    together[position..position + count],
                    "{window:?} {position}"
                );
                position += count;
            }
            assert_eq!(position, total);
        }
    }

    #[test]
    fn near_sums_in_f64_whatever_the_size_of_a_head() {
        let numbers = |heads: usize, rows: usize, size: usize, step: f32| {
            let count = heads * rows * size;
            let numbers = (0..count).map(|n| (n as f32 * step).sin()).collect::<Vec<_>>();
            let tensor = Tensor::from_slice(&numbers, (heads, rows, size), &Device::Cpu).unwrap();
            (numbers, tensor)
        };
        // Two heads for each key head; 3 new tokens after 20.
        for size in [3, 8, 16, 32, 40, 64, 80, 128, 256] {
            let (queries, queries_tensor) = numbers(2, 3, size, 0.37);
            let (keys, keys_tensor) = numbers(1, 23, size, 0.21);
            let (values, values_tensor) = numbers(1, 23, size, 0.13);
            let attention = Attention { position: 20, first_key: 0, window: None };
            let got = attention.apply(&queries_tensor, &in_blocks(&keys_tensor), &values_tensor).unwrap();
            let got = got.to_vec2::<f32>().unwrap();
            let row = |numbers: &[f32], row: usize| -> Vec<f64> {
                numbers[row * size..][..size].iter().map(|&number| number.into()).collect()
            };
            for (head, index) in (0..2).flat_map(|head| (0..3).map(move |index| (head, index))) {
                let query = row(&queries, head * 3 + index);
                let weight = |key: usize| {
                    let product: f64 = row(&keys, key).iter().zip(&query).map(|(a, b)| a * b).sum();
                    (product / (size as f64).sqrt()).exp()
                };
                let weights: Vec<f64> = (0..21 + index).map(weight).collect();
                for dim in 0..size {
                    let sum: f64 =
                        weights.iter().enumerate().map(|(key, w)| w * row(&values, key)[dim]).sum();
                    let expected = sum / weights.iter().sum::<f64>();
                    let got = f64::from(got[index][head * size + dim]);
                    assert!((got - expected).abs() < 1e-5, "{size} {head} {index} {dim}: {got} {expected}");
                }
            }
        }
    }
}
