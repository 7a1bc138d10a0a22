//! Blocks of the CPU's cache: keys or values of a head at 16 positions, in the [format](KvFormat) asked for.
//!
//! A block of keys has the same number of all its positions next to each other, `[head_dim][KEYS]`: so the
//! scores of 16 keys are one chain of multiply-adds in a vector, and no sum over a vector's lanes is needed.
//! A block of values has a row for each position, `[KEYS][head_dim]`. The factors of groups follow,
//! `[group][KEYS]`.
//!
//! Invariant: what is stored of a position depends on its own numbers alone, and is written once.

use std::ops::Range;

use half::f16;
#[cfg(target_arch = "x86_64")]
use pulp::core_arch::x86::Avx512f;
use pulp::{Simd, bytemuck};

use super::layout::{SPAN, SpanLayout};
use crate::model::{
    cpu::products::packing,
    formats::kv_format::{GROUP, KvFormat},
};

/// Positions of a block.
pub(crate) const KEYS: usize = 16;

/// The side of attention that blocks hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Keys,
    Values,
}

impl Side {
    /// Both, in the order in which they lie.
    pub(crate) const ALL: [Self; 2] = [Self::Keys, Self::Values];
}

/// Writes the numbers of a position to its block.
pub(super) fn write_row(side: Side, format: KvFormat, row: &[f32], position: usize, block: &mut [u8]) {
    let (first, step) = match side {
        Side::Keys => (position, KEYS),
        Side::Values => (position * row.len(), 1),
    };
    match format {
        KvFormat::F32 => {
            let places = block.as_chunks_mut::<4>().0.iter_mut().skip(first).step_by(step);
            places.zip(row).for_each(|(place, number)| *place = number.to_ne_bytes());
        }
        KvFormat::F16 => {
            let places = block.as_chunks_mut::<2>().0.iter_mut().skip(first).step_by(step);
            places.zip(row).for_each(|(place, &number)| *place = half(number).to_le_bytes());
        }
        KvFormat::Q8_0 => {
            let (quants, factors) = block.split_at_mut(KEYS * row.len());
            let mut quants = quants.iter_mut().skip(first).step_by(step);
            let factors = factors.as_chunks_mut::<2>().0.iter_mut().skip(position).step_by(KEYS);
            for (group, place) in row.chunks(GROUP).zip(factors) {
                let factor = factor(group);
                *place = factor.to_le_bytes();
                let inverse = inverse(factor);
                for (number, quant) in group.iter().zip(&mut quants) {
                    // Adding this rounds a small number to a whole one, which is then in the lowest bits.
                    const ROUND: f32 = 12_582_912.0;
                    let number = (number * inverse).clamp(-127.0, 127.0);
                    #[expect(clippy::cast_possible_truncation, reason = "the lowest byte is wanted")]
                    let rounded = (number + ROUND).to_bits() as u8;
                    *quant = rounded;
                }
            }
        }
    }
}

/// The nearest half-precision number; infinity becomes the largest finite one, NaN stays NaN.
fn half(number: f32) -> f16 {
    let most = f16::MAX.to_f32();
    f16::from_f32(number.clamp(-most, most))
}

/// Scale of a group: what its rounded numbers are multiplied by. NaN if a number of the group is NaN.
fn factor(group: &[f32]) -> f16 {
    // `f32::max` would ignore NaN.
    let largest =
        group.iter().map(|number| number.abs()).fold(0.0_f32, |a, b| if b > a || b.is_nan() { b } else { a });
    half(largest / 127.0)
}

/// Inverse scale of a group, by which numbers are multiplied before they are rounded; zero if all become
/// zero.
fn inverse(factor: f16) -> f32 {
    let factor = factor.to_f32();
    if factor > 0.0 { 1.0 / factor } else { 0.0 }
}

/// The keys or the values of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(super) side: Side,
    pub(super) format: KvFormat,
    pub(super) head_dim: usize,
    pub(super) layout: SpanLayout,
    /// The number of what this head has here, among all parts.
    pub(super) part: usize,
    /// The memory of all parts.
    pub(super) bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// Floats that [`floats`](Self::floats) writes for each block.
    pub(crate) fn buffer(self) -> usize {
        match self.format {
            KvFormat::F32 => 0,
            KvFormat::F16 | KvFormat::Q8_0 => KEYS * self.head_dim,
        }
    }

    /// The bytes of some blocks, all of one span.
    #[inline(always)]
    fn stored(self, blocks: Range<usize>) -> &'a [u8] {
        debug_assert!(blocks.is_empty() || blocks.start / SPAN == (blocks.end - 1) / SPAN, "{blocks:?}");
        let start = self.layout.start(self.part, blocks.start);
        &self.bytes[start..start + blocks.len() * self.layout.size]
    }

    /// Converts some blocks of one span to floats, in the order of their side; into `buffer` if they are
    /// stored otherwise.
    #[inline(always)]
    pub(crate) fn floats<'b, S: Simd>(self, simd: S, blocks: Range<usize>, buffer: &'b mut [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        let count = blocks.len();
        let bytes = self.stored(blocks);
        if self.format == KvFormat::F32 {
            return bytemuck::try_cast_slice(bytes).unwrap_or_default();
        }
        let floats = &mut buffer[..count * self.buffer()];
        let blocks = bytes.chunks_exact(self.layout.size).zip(floats.chunks_exact_mut(self.buffer()));
        for (block, floats) in blocks {
            match (self.format, self.side) {
                (KvFormat::Q8_0, Side::Keys) => quantised_keys(simd, block, floats),
                (KvFormat::Q8_0, Side::Values) => quantised_values(simd, block, floats),
                _ => wide_halves(simd, block, floats),
            }
        }
        floats
    }
}

/// Converts half-precision numbers to floats.
#[inline(always)]
fn wide_halves<S: Simd>(simd: S, block: &[u8], floats: &mut [f32]) {
    let floats = floats.as_chunks_mut::<KEYS>().0.iter_mut();
    let halves = block.as_chunks::<{ 2 * KEYS }>().0.iter().zip(floats);
    // Where vectors have sixteen lanes there is an instruction for this.
    #[cfg(target_arch = "x86_64")]
    if let (16, Some(wide)) = (S::F32_LANES, Avx512f::try_new()) {
        for (halves, floats) in halves {
            *floats = bytemuck::cast(wide._mm512_cvtph_ps(bytemuck::cast(*halves)));
        }
        return;
    }
    for (halves, floats) in halves {
        *floats = packing::halves::<S>(simd, halves);
    }
}

/// Converts signed bytes to floats, each times a factor.
#[inline(always)]
fn scaled<const N: usize>(quants: &[u8; N], factors: &[f32; N], floats: &mut [f32; N]) {
    for lane in 0..N {
        floats[lane] = f32::from(quants[lane].cast_signed()) * factors[lane];
    }
}

/// Converts quantised keys: a vector holds 16 positions, each with its own factor.
#[inline(always)]
fn quantised_keys<S: Simd>(simd: S, block: &[u8], floats: &mut [f32]) {
    let (quants, factors) = block.split_at(floats.len());
    let (quants, floats) = (quants.as_chunks::<KEYS>().0, floats.as_chunks_mut::<KEYS>().0);
    let groups = quants.chunks(GROUP).zip(floats.chunks_mut(GROUP));
    for ((quants, floats), factors) in groups.zip(factors.chunks_exact(2 * KEYS)) {
        let factors = packing::halves::<S>(simd, factors);
        for (quants, floats) in quants.iter().zip(floats) {
            scaled(quants, &factors, floats);
        }
    }
}

/// Converts quantised values: a row has a factor for each group.
#[inline(always)]
fn quantised_values<S: Simd>(simd: S, block: &[u8], floats: &mut [f32]) {
    let (quants, factors) = block.split_at(floats.len());
    let head_dim = floats.len() / KEYS;
    for (group, factors) in factors.chunks_exact(2 * KEYS).enumerate() {
        let factors = packing::halves::<S>(simd, factors);
        let numbers = group * GROUP..head_dim.min((group + 1) * GROUP);
        for (position, factor) in factors.into_iter().enumerate() {
            let (from, to) = (position * head_dim + numbers.start, position * head_dim + numbers.end);
            let (whole, rest) = quants[from..to].as_chunks::<KEYS>();
            let (floats, floats_rest) = floats[from..to].as_chunks_mut::<KEYS>();
            for (quants, floats) in whole.iter().zip(floats) {
                scaled(quants, &[factor; KEYS], floats);
            }
            for (float, quant) in floats_rest.iter_mut().zip(rest) {
                *float = f32::from(quant.cast_signed()) * factor;
            }
        }
    }
}
