//! The parts of a transformer layer that are not matrix products, fused, on the CPU.
//!
//! Invariant: each output row depends on its input row alone and is summed in a fixed order, so a token's
//! numbers do not depend on what it shares a pass with. These files know no weights file and no cache.

use candle_core::{CpuStorage, CustomOp1, InplaceOp1, Layout, Result, Shape, Tensor};

/// The floats behind a layout of `rows` rows, each contiguous: the slice from the first on, and the
/// distance between rows.
fn rows_of<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<(&'a [f32], usize, usize, usize)> {
    let (rows, width) = layout.shape().dims2()?;
    let (&[row_stride, column_stride], values) = (layout.stride(), storage.as_slice::<f32>()?) else {
        candle_core::bail!("a matrix is expected");
    };
    if column_stride != 1 {
        candle_core::bail!("contiguous rows are expected");
    }
    Ok((&values[layout.start_offset()..], rows, width, row_stride))
}

/// Sum of squares in eight lanes.
fn sum_of_squares(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<8>();
    let mut lanes = [0.0_f32; 8];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|value| value * value).sum::<f32>()
}

/// Root-mean-square normalisation of each row of `[n, width]`.
pub(super) fn rms_norm(x: &Tensor, weight: &[f32], epsilon: f32) -> Result<Tensor> {
    x.apply_op1_no_bwd(&RmsNorm { weight, epsilon })
}

struct RmsNorm<'a> {
    weight: &'a [f32],
    epsilon: f32,
}

impl CustomOp1 for RmsNorm<'_> {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (values, rows, width, stride) = rows_of(storage, layout)?;
        let mut out = Vec::with_capacity(rows * width);
        for index in 0..rows {
            let row = &values[index * stride..][..width];
            #[expect(clippy::cast_precision_loss, reason = "widths are far below 2^24")]
            let mean = sum_of_squares(row) / width as f32;
            let scale = 1.0 / (mean + self.epsilon).sqrt();
            out.extend(row.iter().zip(self.weight).map(|(value, weight)| value * scale * weight));
        }
        Ok((CpuStorage::F32(out), Shape::from((rows, width))))
    }
}

/// Sine and cosine of every position's rotation: `[positions, half]` each, row-major.
#[derive(Debug)]
pub(super) struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl Rotation {
    /// The tables for positions `0..context` and heads of `head_dim` numbers. Angles are rounded to `f32`
    /// where transformers does.
    pub(super) fn new(context: usize, head_dim: usize, theta: f64) -> Self {
        let half = head_dim / 2;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "the models compute in f32; positions are far below 2^24"
        )]
        let angles: Vec<f32> = {
            let frequency = |pair: usize| theta.powf(-((2 * pair) as f64 / head_dim as f64)) as f32;
            let frequencies: Vec<f32> = (0..half).map(frequency).collect();
            (0..context)
                .flat_map(|position| frequencies.iter().map(move |frequency| position as f32 * frequency))
                .collect()
        };
        Self {
            cos: angles.iter().map(|angle| angle.cos()).collect(),
            sin: angles.iter().map(|angle| angle.sin()).collect(),
            half,
        }
    }

    /// Cosines and sines of `position`.
    fn at(&self, position: usize) -> Result<(&[f32], &[f32])> {
        let range = position * self.half..(position + 1) * self.half;
        match (self.cos.get(range.clone()), self.sin.get(range)) {
            (Some(cos), Some(sin)) => Ok((cos, sin)),
            _ => candle_core::bail!("position {position} is past the rotation tables"),
        }
    }
}

/// Cuts rows `[n, heads * head_dim]` into heads `[heads, n, head_dim]`, and rotates each pair of numbers
/// (`i`, `i + head_dim / 2`) by the angle of its position; row 0 is at `position`.
pub(super) fn split_and_rotate(
    x: &Tensor,
    head_dim: usize,
    rotation: &Rotation,
    position: usize,
) -> Result<Tensor> {
    x.apply_op1_no_bwd(&SplitHeads { head_dim, rotation: Some((rotation, position)) })
}

/// Cuts rows `[n, heads * head_dim]` into heads `[heads, n, head_dim]`.
pub(super) fn split(x: &Tensor, head_dim: usize) -> Result<Tensor> {
    x.apply_op1_no_bwd(&SplitHeads { head_dim, rotation: None })
}

struct SplitHeads<'a> {
    head_dim: usize,
    rotation: Option<(&'a Rotation, usize)>,
}

impl CustomOp1 for SplitHeads<'_> {
    fn name(&self) -> &'static str {
        "split-heads"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (values, rows, width, stride) = rows_of(storage, layout)?;
        let (heads, half) = (width / self.head_dim, self.head_dim / 2);
        let mut out = Vec::with_capacity(rows * width);
        for head in 0..heads {
            for index in 0..rows {
                let head = &values[index * stride + head * self.head_dim..][..self.head_dim];
                let Some((rotation, position)) = self.rotation else {
                    out.extend_from_slice(head);
                    continue;
                };
                let (cos, sin) = rotation.at(position + index)?;
                let (left, right) = head.split_at(half);
                let pairs = || left.iter().zip(right).zip(cos.iter().zip(sin));
                out.extend(pairs().map(|((a, b), (cos, sin))| a * cos - b * sin));
                out.extend(pairs().map(|((a, b), (cos, sin))| b * cos + a * sin));
            }
        }
        Ok((CpuStorage::F32(out), Shape::from((heads, rows, self.head_dim))))
    }
}

/// What a row of scores may see: row `r` belongs to query position `position + r % queries`, column `c` to
/// key position `first_key + c`. A query sees itself and the keys before it, `window` in all if given.
#[derive(Debug, Clone, Copy)]
pub(super) struct CausalSoftmax {
    pub(super) position: usize,
    pub(super) queries: usize,
    pub(super) first_key: usize,
    pub(super) window: Option<usize>,
    /// Scores are multiplied by this first.
    pub(super) scale: f32,
}

impl CausalSoftmax {
    /// Columns that row `row` of `width` may see.
    fn visible(&self, row: usize, width: usize) -> std::ops::Range<usize> {
        let query = self.position + row % self.queries;
        let end = (query + 1).saturating_sub(self.first_key).min(width);
        let oldest = self.window.map_or(0, |window| (query + 1).saturating_sub(window));
        oldest.saturating_sub(self.first_key).min(end)..end
    }
}

impl InplaceOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (_batch, _rows, width) = layout.shape().dims3()?;
        let Some((start, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("contiguous scores are expected");
        };
        let CpuStorage::F32(values) = storage else {
            candle_core::bail!("f32 scores are expected");
        };
        // The number of rows of each batch entry is a multiple of `queries`, so rows can be counted through.
        for (index, row) in values[start..end].chunks_exact_mut(width).enumerate() {
            let visible = self.visible(index, width);
            row[..visible.start].fill(0.0);
            row[visible.end..].fill(0.0);
            let row = &mut row[visible];
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max) * self.scale;
            let mut sum = 0.0;
            for value in row.iter_mut() {
                *value = (*value * self.scale - largest).exp();
                sum += *value;
            }
            let inverse = 1.0 / sum;
            for value in row {
                *value *= inverse;
            }
        }
        Ok(())
    }
}

/// `silu(gate) * up` of rows `[n, 2 * width]`, gate first: `[n, width]`.
pub(super) fn gated_silu(x: &Tensor) -> Result<Tensor> {
    x.apply_op1_no_bwd(&GatedSilu)
}

struct GatedSilu;

impl CustomOp1 for GatedSilu {
    fn name(&self) -> &'static str {
        "gated-silu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (values, rows, width, stride) = rows_of(storage, layout)?;
        let half = width / 2;
        let mut out = Vec::with_capacity(rows * half);
        for index in 0..rows {
            let (gate, up) = values[index * stride..][..2 * half].split_at(half);
            out.extend(gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up));
        }
        Ok((CpuStorage::F32(out), Shape::from((rows, half))))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn visible_keys() {
        let mask = CausalSoftmax { position: 5, queries: 2, first_key: 3, window: Some(3), scale: 1.0 };
        // Query 5 sees 3, 4, 5; query 6 sees 4, 5, 6.
        assert_eq!(mask.visible(0, 4), 0..3);
        assert_eq!(mask.visible(1, 4), 1..4);
        assert_eq!(mask.visible(2, 4), 0..3);
        let mask = CausalSoftmax { window: None, first_key: 0, ..mask };
        assert_eq!(mask.visible(1, 7), 0..7);
    }

    #[test]
    fn softmax_sums_to_one_over_the_visible() {
        let scores = Tensor::new(&[[[1.0_f32, 2.0, 3.0], [3.0, 2.0, 1.0]]], &Device::Cpu).unwrap();
        let op = CausalSoftmax { position: 1, queries: 2, first_key: 0, window: Some(2), scale: 0.5 };
        scores.inplace_op1(&op).unwrap();
        let rows: Vec<Vec<Vec<f32>>> = scores.to_vec3().unwrap();
        let expected = 1.0 / (1.0 + 0.5_f32.exp());
        assert!((rows[0][0][0] - expected).abs() < 1e-6 && rows[0][0][2] == 0.0);
        assert!((rows[0][1][2] - expected).abs() < 1e-6 && rows[0][1][0] == 0.0);
    }

    #[test]
    fn narrowed_rows_are_read_by_their_stride() {
        let x = Tensor::arange(0.0_f32, 24.0, &Device::Cpu).unwrap().reshape((2, 12)).unwrap();
        let heads = split(&x.narrow(1, 4, 8).unwrap(), 4).unwrap();
        let heads: Vec<Vec<Vec<f32>>> = heads.to_vec3().unwrap();
        assert_eq!(heads[1][1], [20.0, 21.0, 22.0, 23.0]);
        assert_eq!(heads[0][1], [16.0, 17.0, 18.0, 19.0]);
    }
}
