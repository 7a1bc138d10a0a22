//! Rotations of rotary position embedding: the tables of a context.

use crate::model::files::rope::Rope;

/// Sine and cosine of every position's rotation: `[positions, half]` each, row-major.
#[derive(Debug)]
pub(crate) struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl Rotation {
    /// Computes the tables for positions `0..context` and heads of `head_dim` numbers. Angles are rounded to
    /// `f32` where `transformers` rounds them.
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
