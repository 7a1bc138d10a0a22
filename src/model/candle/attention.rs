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
            // A loop, not a closure: closures are not compiled for the wider registers.
            for key in self.keys[span.clone()].chunks_exact(size) {
                scores.push(scale * dot(simd, query, key));
            }
            let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for score in &mut scores {
                *score = exp(*score - largest);
            }
            for (weight, value) in scores.iter().zip(self.values[span].chunks_exact(size)) {
                add_scaled(simd, out, *weight, value);
            }
            let inverse = 1.0 / scores.iter().sum::<f32>();
            for value in out {
                *value *= inverse;
            }
        }
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

/// Adds `scale * row` to `out`.
#[inline(always)]
fn add_scaled<S: Simd>(simd: S, out: &mut [f32], scale: f32, row: &[f32]) {
    let ((row, row_rest), (out, out_rest)) = (S::as_simd_f32s(row), S::as_mut_simd_f32s(out));
    let factor = simd.splat_f32s(scale);
    for (out, &value) in out.iter_mut().zip(row) {
        *out = simd.mul_add_e_f32s(factor, value, *out);
    }
    for (out, &value) in out_rest.iter_mut().zip(row_rest) {
        *out += scale * value;
    }
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
}
