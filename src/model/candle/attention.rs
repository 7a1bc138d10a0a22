//! Attention of new tokens to the cache.
//!
//! Invariant: what a query gets depends on it and on the keys it sees alone, summed in the order of their
//! positions: not on what shares the pass, nor on the number of threads.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::exp::exp;

/// Products of numbers from which on threads are worth waking.
const PARALLEL: usize = 1 << 18;

/// Causal attention of queries at `position`, `position + 1`, … to keys from `first_key` on. A query sees
/// itself and the keys before it, `window` in all if given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub(super) position: usize,
    pub(super) first_key: usize,
    pub(super) window: Option<usize>,
}

impl Attention {
    /// Of `queries` (`[heads, n, head_dim]`) to `keys` and `values` (`[kv_heads, keys, head_dim]`, each head
    /// contiguous): rows `[n, heads * head_dim]`. Neighbouring heads share a key head.
    pub(super) fn apply(self, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
        queries.apply_op3_no_bwd(keys, values, &self)
    }

    /// Which of the `keys` given query `index` sees.
    pub(super) fn visible(self, index: usize, keys: usize) -> std::ops::Range<usize> {
        let query = self.position + index;
        let end = (query + 1).saturating_sub(self.first_key).min(keys);
        let oldest = self.window.map_or(0, |window| (query + 1).saturating_sub(window));
        oldest.saturating_sub(self.first_key).min(end)..end
    }
}

/// The floats from a layout's first on, and the distance between its heads.
fn heads_of<'a>(storage: &'a CpuStorage, layout: &Layout, head_dim: usize) -> Result<(&'a [f32], usize)> {
    match *layout.stride() {
        [head, row, 1] if row == head_dim => Ok((&storage.as_slice()?[layout.start_offset()..], head)),
        _ => candle_core::bail!("contiguous heads are expected"),
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
        let (kv_heads, key_count, _) = keys_layout.shape().dims3()?;
        let (queries, query_stride) = heads_of(queries, queries_layout, head_dim)?;
        let (keys, key_stride) = heads_of(keys, keys_layout, head_dim)?;
        let (values, value_stride) = heads_of(values, values_layout, head_dim)?;
        let mut by_head = vec![0.0; heads * count * head_dim];
        let run = |(head, out): (usize, &mut [f32])| {
            let kv_head = head * kv_heads / heads;
            Arch::new().dispatch(Head {
                queries: &queries[head * query_stride..][..count * head_dim],
                keys: &keys[kv_head * key_stride..][..key_count * head_dim],
                values: &values[kv_head * value_stride..][..key_count * head_dim],
                head_dim,
                attention: *self,
                out,
            });
        };
        if by_head.len() * key_count >= PARALLEL {
            by_head.par_chunks_exact_mut(count * head_dim).enumerate().for_each(run);
        } else {
            by_head.chunks_exact_mut(count * head_dim).enumerate().for_each(run);
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

/// One head: queries, keys, values and output are rows of `head_dim`.
struct Head<'a> {
    queries: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
    head_dim: usize,
    attention: Attention,
    out: &'a mut [f32],
}

impl WithSimd for Head<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let size = self.head_dim;
        let key_count = self.keys.len() / size;
        #[expect(clippy::cast_precision_loss, reason = "head sizes are far below 2^24")]
        let scale = 1.0 / (size as f32).sqrt();
        let mut scores = Vec::with_capacity(key_count);
        let rows = self.queries.chunks_exact(size).zip(self.out.chunks_exact_mut(size));
        for (index, (query, out)) in rows.enumerate() {
            let visible = self.attention.visible(index, key_count);
            let span = visible.start * size..visible.end * size;
            scores.clear();
            let keys = &self.keys[span.clone()];
            match (size % S::F32_LANES, size / S::F32_LANES) {
                (0, 2) => add_scores::<S, 2>(simd, &mut scores, query, keys, scale),
                (0, 4) => add_scores::<S, 4>(simd, &mut scores, query, keys, scale),
                (0, 8) => add_scores::<S, 8>(simd, &mut scores, query, keys, scale),
                // A loop, not a closure: closures are not compiled for the wider registers.
                _ => {
                    for key in keys.chunks_exact(size) {
                        scores.push(scale * dot(simd, query, key));
                    }
                }
            }
            let largest = lanes(&scores, f32::NEG_INFINITY, f32::max);
            for score in &mut scores {
                *score = exp(*score - largest);
            }
            add_weighted(simd, out, &scores, &self.values[span]);
            let inverse = 1.0 / lanes(&scores, 0.0, |a, b| a + b);
            for value in out {
                *value *= inverse;
            }
        }
    }
}

/// Appends the inner products of a query of `V` vectors with all keys, times `scale`: those of [`dot`], with the query
/// in registers.
#[inline(always)]
fn add_scores<S: Simd, const V: usize>(
    simd: S,
    scores: &mut Vec<f32>,
    query: &[f32],
    keys: &[f32],
    scale: f32,
) {
    let Some(query) = S::as_simd_f32s(query).0.first_chunk::<V>() else { return };
    for key in S::as_simd_f32s(keys).0.as_chunks::<V>().0 {
        let mut sum = simd.splat_f32s(0.0);
        for v in 0..V {
            sum = simd.mul_add_e_f32s(query[v], key[v], sum);
        }
        scores.push(scale * simd.reduce_sum_f32s(sum));
    }
}

/// The inner product of two slices of the same length.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let mut sum = simd.splat_f32s(0.0);
    for (&a, &b) in a.iter().zip(b) {
        sum = simd.mul_add_e_f32s(a, b, sum);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    simd.reduce_sum_f32s(sum) + rest
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

/// Adds to `out` the rows of `values`, each times its weight.
#[inline(always)]
fn add_weighted<S: Simd>(simd: S, out: &mut [f32], weights: &[f32], values: &[f32]) {
    let size = out.len();
    let (vectors, rest) = S::as_mut_simd_f32s(out);
    let whole = size - rest.len();
    let mut first = 0;
    while first < vectors.len() {
        // Of a few vectors at a time, whose sums stay in registers.
        first += match vectors.len() - first {
            4.. => add_vectors::<S, 4>(simd, &mut vectors[first..], first, weights, values, size),
            2.. => add_vectors::<S, 2>(simd, &mut vectors[first..], first, weights, values, size),
            _ => add_vectors::<S, 1>(simd, &mut vectors[first..], first, weights, values, size),
        };
    }
    for (&weight, row) in weights.iter().zip(values.chunks_exact(size)) {
        for (out, &value) in rest.iter_mut().zip(&row[whole..]) {
            *out += weight * value;
        }
    }
}

/// Adds vectors `first .. first + V` of all rows of `values`, which have `size` numbers; gives `V`.
#[inline(always)]
fn add_vectors<S: Simd, const V: usize>(
    simd: S,
    out: &mut [S::f32s],
    first: usize,
    weights: &[f32],
    values: &[f32],
    size: usize,
) -> usize {
    let mut sums: [S::f32s; V] = std::array::from_fn(|v| out[v]);
    for (&weight, row) in weights.iter().zip(values.chunks_exact(size)) {
        let factor = simd.splat_f32s(weight);
        let row = &S::as_simd_f32s(row).0[first..first + V];
        for v in 0..V {
            sums[v] = simd.mul_add_e_f32s(factor, row[v], sums[v]);
        }
    }
    out[..V].copy_from_slice(&sums);
    V
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    #[test]
    fn visible_keys() {
        let attention = Attention { position: 5, first_key: 3, window: Some(3) };
        // Query 5 sees 3, 4, 5; query 6 sees 4, 5, 6.
        assert_eq!(attention.visible(0, 4), 0..3);
        assert_eq!(attention.visible(1, 4), 1..4);
        let attention = Attention { position: 5, first_key: 0, window: None };
        assert_eq!(attention.visible(1, 7), 0..7);
    }

    #[test]
    fn a_mean_of_the_visible_values() {
        // Two heads, one key head, odd sizes; keys of zero weigh all that is seen alike.
        let queries = Tensor::ones((2, 2, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let cache = Tensor::zeros((1, 9, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
        let values = Tensor::arange(0.0_f32, 27.0, &Device::Cpu).unwrap().reshape((1, 9, 3)).unwrap();
        let attention = Attention { position: 2, first_key: 1, window: Some(2) };
        let views = [cache, values].map(|cache| cache.narrow(1, 1, 3).unwrap());
        let out = attention.apply(&queries, &views[0], &views[1]).unwrap().to_vec2::<f32>().unwrap();
        // Position 2 sees 1 and 2; position 3 sees 2 and 3. Rows of positions start at 3, 6, 9.
        assert_eq!(out, [[4.5, 5.5, 6.5, 4.5, 5.5, 6.5], [7.5, 8.5, 9.5, 7.5, 8.5, 9.5]]);
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
            let got = attention.apply(&queries_tensor, &keys_tensor, &values_tensor).unwrap();
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
