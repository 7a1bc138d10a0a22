//! The parts of a transformer layer that are neither matrix products nor attention, on the CPU; with the
//! tables of rotary position embedding, and the exponential function in a form that compilers vectorise.
//!
//! Invariant: each output row depends on its input row alone and is summed in a fixed order, so a token's
//! numbers do not depend on what it shares a pass with. This file knows no weights and no cache.

use std::f32::consts::LOG2_E;

use candle_core::{Device, Layout, Result, Storage, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::model::files::config::{Activation, Rope};

/// Least size of an output, in numbers, for which waking threads pays.
const PARALLEL: usize = 1 << 16;

/// The floats behind a layout of `rows` rows, each contiguous: the slice from the first on, and the
/// distance between rows.
pub(crate) fn rows_of<'a>(storage: &'a Storage, layout: &Layout) -> Result<(&'a [f32], usize, usize, usize)> {
    let (rows, width) = layout.shape().dims2()?;
    let (Storage::Cpu(storage), &[stride, 1]) = (storage, layout.stride()) else {
        candle_core::bail!("a matrix on the CPU with contiguous rows is expected");
    };
    Ok((&storage.as_slice::<f32>()?[layout.start_offset()..], rows, width, stride))
}

/// The floats behind a contiguous layout.
pub(crate) fn floats_of<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [f32]> {
    let (Storage::Cpu(storage), Some((from, to))) = (storage, layout.contiguous_offsets()) else {
        candle_core::bail!("contiguous heads on the CPU are expected");
    };
    Ok(&storage.as_slice::<f32>()?[from..to])
}

/// Calls `run` with each row of `out` and its number, by several threads if there is much to do.
pub(crate) fn each_row(out: &mut [f32], width: usize, run: impl Fn(usize, &mut [f32]) + Sync) {
    if out.len() >= PARALLEL {
        out.par_chunks_exact_mut(width).enumerate().for_each(|(index, out)| run(index, out));
    } else {
        out.chunks_exact_mut(width).enumerate().for_each(|(index, out)| run(index, out));
    }
}

/// Sum of squares in eight lanes.
pub(crate) fn sum_of_squares(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<8>();
    let mut lanes = [0.0_f32; 8];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|value| value * value).sum::<f32>()
}

/// Factor that makes the mean square of a row one.
pub(crate) fn norm_scale(row: &[f32], epsilon: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "widths are far below 2^24")]
    let mean = sum_of_squares(row) / row.len() as f32;
    1.0 / (mean + epsilon).sqrt()
}

/// Root-mean-square normalisation of each row of `[n, width]`.
pub(crate) fn rms_norm(x: &Tensor, weight: &[f32], epsilon: f32) -> Result<Tensor> {
    let (storage, layout) = x.storage_and_layout();
    let (values, rows, width, stride) = rows_of(&storage, layout)?;
    let mut out = vec![0.0; rows * width];
    each_row(&mut out, width, |index, out| {
        let row = &values[index * stride..][..width];
        let scale = norm_scale(row, epsilon);
        for ((out, value), weight) in out.iter_mut().zip(row).zip(weight) {
            *out = value * scale * weight;
        }
    });
    Tensor::from_vec(out, (rows, width), &Device::Cpu)
}

/// Root-mean-square normalisation of each head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadNorm<'a> {
    /// The weight of each number of a head.
    pub(crate) weight: &'a [f32],
    pub(crate) epsilon: f32,
}

/// Cuts rows `[n, heads * head_dim]` into heads `[heads, n, head_dim]`, normalises them if asked to, and
/// rotates each pair (`i`, `i + half`) of the first `2 * half` numbers by the angle of its position, if there
/// is a rotation of `half` angles; row 0 is at `position`.
pub(crate) fn split_and_rotate(
    x: &Tensor,
    head_dim: usize,
    norm: Option<HeadNorm<'_>>,
    rotation: Option<&Rotation>,
    position: usize,
) -> Result<Tensor> {
    let (storage, layout) = x.storage_and_layout();
    let (values, rows, width, stride) = rows_of(&storage, layout)?;
    let heads = width / head_dim;
    // All positions have angles if the first and the last have.
    if let Some(rotation) = rotation {
        rotation.at(position + rows.saturating_sub(1))?;
    }
    let mut out = vec![0.0; rows * width];
    each_row(&mut out, head_dim, |place, out| {
        let (head, index) = (place / rows, place % rows);
        out.copy_from_slice(&values[index * stride + head * head_dim..][..head_dim]);
        if let Some(HeadNorm { weight, epsilon }) = norm {
            let scale = norm_scale(out, epsilon);
            out.iter_mut().zip(weight).for_each(|(value, weight)| *value = *value * scale * weight);
        }
        if let Some((cos, sin)) = rotation.and_then(|rotation| rotation.at(position + index).ok()) {
            let (left, right) = out.split_at_mut(cos.len());
            for ((a, b), (cos, sin)) in left.iter_mut().zip(right).zip(cos.iter().zip(sin)) {
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
    });
    Tensor::from_vec(out, (heads, rows, head_dim), &Device::Cpu)
}

/// Computes `activation(gate) * up` (SwiGLU, GeGLU) of rows `[n, 2 * width]`, gate first: `[n, width]`.
pub(crate) fn gated(x: &Tensor, activation: Activation) -> Result<Tensor> {
    let (storage, layout) = x.storage_and_layout();
    let (values, rows, width, stride) = rows_of(&storage, layout)?;
    let half = width / 2;
    let mut out = vec![0.0; rows * half];
    each_row(&mut out, half, |index, out| {
        let (gate, up) = values[index * stride..][..2 * half].split_at(half);
        Arch::new().dispatch(GateRow { gate, up, out, activation });
    });
    Tensor::from_vec(out, (rows, half), &Device::Cpu)
}

/// One row of [`gated`].
struct GateRow<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    out: &'a mut [f32],
    activation: Activation,
}

impl GateRow<'_> {
    #[inline(always)]
    fn run(self, function: impl Fn(f32) -> f32) {
        for ((out, &gate), up) in self.out.iter_mut().zip(self.gate).zip(self.up) {
            *out = function(gate) * up;
        }
    }
}

impl WithSimd for GateRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match self.activation {
            Activation::Silu => self.run(|gate| gate / (1.0 + exp(-gate))),
            Activation::Logistic => self.run(|gate| 1.0 / (1.0 + exp(-gate))),
            // Half of one and the hyperbolic tangent of x is the logistic function of 2 x.
            Activation::GeluTanh => self.run(|gate| {
                let twice = 2.0 * GELU * (gate + 0.044_715 * gate * gate * gate);
                gate / (1.0 + exp(-twice))
            }),
        }
    }
}

/// The root of 2 by pi, in GeLU by the hyperbolic tangent (arXiv 1606.08415).
const GELU: f32 = 0.797_884_6;

/// Convolves inputs along the tokens: rows of `width` numbers one after the other, of which outputs are
/// wanted for the last `count`. A number of an output is the sum of its tokens' inputs, the newest last, each
/// times its tap (`taps`: of each number, the newest last). Tokens before the first count as zero.
pub(crate) fn convolution(inputs: &[f32], taps: &[f32], width: usize, count: usize) -> Vec<f32> {
    let reach = taps.len() / width;
    let before = inputs.len() / width - count;
    let by_age: Vec<f32> = (0..reach).flat_map(|tap| taps.iter().skip(tap).step_by(reach)).copied().collect();
    let mut out = vec![0.0; count * width];
    for (index, sums) in out.chunks_exact_mut(width).enumerate() {
        for (tap, taps) in by_age.chunks_exact(width).enumerate() {
            let Some(token) = (before + index + tap + 1).checked_sub(reach) else { continue };
            let inputs = &inputs[token * width..][..width];
            for ((sum, input), tap) in sums.iter_mut().zip(inputs).zip(taps) {
                *sum += input * tap;
            }
        }
    }
    out
}

/// Computes SiLU of each number.
pub(crate) fn silu(values: &mut [f32]) {
    for value in values {
        *value /= 1.0 + exp(-*value);
    }
}

/// Adding and subtracting this rounds to a whole number, which is in the lowest bits of the sum.
const ROUND: f32 = 12_582_912.0;
/// The natural logarithm of 2 in two parts (Cody-Waite reduction); the first has so few bits that its
/// products here are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// `e` to the power of `x`, with a relative error below 3e-7; `x` is clamped to -87 to 88. Every step is one
/// operation, so results have the same bits on every machine.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = x - whole * LN_2[0] - whole * LN_2[1];
    let mut power = 1.0 / 5040.0;
    for term in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * rest + term;
    }
    power * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// Sine and cosine of every position's rotation: `[positions, half]` each, row-major.
#[derive(Debug)]
pub(crate) struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl Rotation {
    /// Computes the tables for positions `0..context` and heads of which `head_dim` numbers rotate. Angles
    /// are rounded to `f32` where `transformers` rounds them.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "the models compute in f32; positions are far below 2^24"
    )]
    pub(crate) fn new(context: usize, head_dim: usize, rope: &Rope) -> Self {
        let frequencies: Vec<f32> =
            rope.frequencies(head_dim).into_iter().map(|frequency| frequency as f32).collect();
        let amplitude = rope.amplitude() as f32;
        let angles: Vec<f32> = (0..context)
            .flat_map(|position| frequencies.iter().map(move |frequency| position as f32 * frequency))
            .collect();
        Self {
            cos: angles.iter().map(|angle| amplitude * angle.cos()).collect(),
            sin: angles.iter().map(|angle| amplitude * angle.sin()).collect(),
            half: head_dim / 2,
        }
    }

    /// Cosines and sines of all positions.
    pub(crate) fn tables(&self) -> (&[f32], &[f32]) {
        (&self.cos, &self.sin)
    }

    /// Cosines and sines of `position`.
    pub(crate) fn at(&self, position: usize) -> candle_core::Result<(&[f32], &[f32])> {
        let range = position * self.half..(position + 1) * self.half;
        match (self.cos.get(range.clone()), self.sin.get(range)) {
            (Some(cos), Some(sin)) => Ok((cos, sin)),
            _ => candle_core::bail!("position {position} is past the rotation tables"),
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn narrowed_rows_are_read_by_their_stride() {
        let x = Tensor::arange(0.0_f32, 24.0, &Device::Cpu).unwrap().reshape((2, 12)).unwrap();
        let heads = split_and_rotate(&x.narrow(1, 4, 8).unwrap(), 4, None, None, 0).unwrap();
        let heads: Vec<Vec<Vec<f32>>> = heads.to_vec3().unwrap();
        assert_eq!(heads[1][1], [20.0, 21.0, 22.0, 23.0]);
        assert_eq!(heads[0][1], [16.0, 17.0, 18.0, 19.0]);
    }
}

#[cfg(test)]
mod exp_tests {
    use super::*;

    #[test]
    fn exp_is_near_the_true_value_everywhere() {
        let mut x = -87.0_f32;
        while x < 88.0 {
            let (got, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got / expected - 1.0).abs() < 3e-7, "{x}: {got} {expected}");
            x += 0.000_931;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), exp(-87.0));
        assert_eq!(exp(f32::INFINITY), exp(88.0));
        assert!(exp(f32::NAN).is_nan());
    }
}
