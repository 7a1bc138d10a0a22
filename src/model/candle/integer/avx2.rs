//! Products in whole numbers with AVX2: eight outputs at a time, four inputs by two or three instructions.
//!
//! Bytes without a sign times bytes with one make sums of two products in 16 bits, where they stay while nothing can
//! overflow. Whole bytes would overflow: of these the magnitudes are multiplied, by the inputs with the signs of both.

use std::arch::x86_64::*;

use pulp::{
    NullaryFnOnce,
    bytemuck::{cast, pod_read_unaligned},
    x86::V3,
};

use super::super::{
    format::Format,
    packing::{self, BIAS, PANEL, PLANE, panel_bytes},
    scheme::{Lanes, Legacy, ScaleAndMin, SignedScale},
};
use super::{
    GROUP, Group, RoundedRows,
    source::{Bytes, Planes, Source, chunks, shares, start},
};

/// Most rows of a block: their sums stay in registers.
pub(super) const BLOCK: usize = 4;
/// Bytes of half a plane: of eight outputs.
const HALF: usize = PLANE / 2;

/// Has this processor the instructions?
pub(super) fn is_available() -> bool {
    V3::is_available()
}

/// See [`multiply`](super::multiply). Does nothing where the instructions are not there.
pub(super) fn multiply(format: Format, panels: &[u8], rows: &RoundedRows, tiles: &mut [f32]) {
    if let Some(simd) = V3::try_new() {
        simd.vectorize(Multiply { simd, format, panels, rows, tiles });
    }
}

struct Multiply<'a> {
    simd: V3,
    format: Format,
    panels: &'a [u8],
    rows: &'a RoundedRows,
    tiles: &'a mut [f32],
}

impl NullaryFnOnce for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match self.format {
            Format::Q8_0 => panels_of::<Bytes>(self),
            Format::Q4_0 => panels_of::<Planes<Legacy<0, false>>>(self),
            Format::Q4_1 => panels_of::<Planes<Legacy<0, true>>>(self),
            Format::Q5_0 => panels_of::<Planes<Legacy<1, false>>>(self),
            Format::Q5_1 => panels_of::<Planes<Legacy<1, true>>>(self),
            Format::Q4K => panels_of::<Planes<ScaleAndMin<0>>>(self),
            Format::Q5K => panels_of::<Planes<ScaleAndMin<1>>>(self),
            Format::Q6K => panels_of::<Planes<SignedScale>>(self),
            Format::F32 | Format::F16 | Format::Bf16 => {}
        }
    }
}

/// All panels with all rows, a block of rows at a time.
#[inline(always)]
fn panels_of<T: Source>(task: Multiply<'_>) {
    let Multiply { simd, format, panels, rows, tiles } = task;
    let size = panel_bytes(format, rows.inputs);
    let tiles = tiles.chunks_exact_mut(rows.count * PANEL);
    for (panel, tile) in panels.chunks_exact(size).zip(tiles) {
        for (first, count, groups) in rows.blocks() {
            let tile = &mut tile[first * PANEL..][..count * PANEL];
            match count {
                1 => block::<T, 1>(simd, panel, groups, tile),
                2 => block::<T, 2>(simd, panel, groups, tile),
                3 => block::<T, 3>(simd, panel, groups, tile),
                _ => block::<T, BLOCK>(simd, panel, groups, tile),
            }
        }
    }
}

/// A panel with `R` rows.
#[inline(always)]
fn block<T: Source, const R: usize>(simd: V3, panel: &[u8], groups: &[Group], tile: &mut [f32]) {
    let mut sums = [[simd.avx._mm256_setzero_ps(); R]; 2];
    let blocks = groups.as_chunks::<R>().0.chunks_exact(T::GROUPS);
    for (packed, groups) in panel.chunks_exact(T::PACKED).zip(blocks) {
        let mut factors = [[0.0; PANEL]; 2];
        let halves = packed[..2 * PANEL * T::FACTORS].chunks_exact(2 * PANEL);
        for (factors, halves) in factors.iter_mut().zip(halves) {
            *factors = packing::halves(simd, halves);
        }
        for (chunk, groups) in chunks::<T>(packed).zip(groups.chunks_exact(T::CHUNK / GROUP)) {
            for share in 0..shares::<T>() {
                let (affine, low, high) = chunk.share::<T>(&factors, share);
                let first = share * T::SHARED % GROUP;
                let group = &groups[share * T::SHARED / GROUP];
                for (half, sums) in sums.iter_mut().enumerate() {
                    let dots = dots::<T, R>(simd, (low, high), half, (group, first));
                    add::<T, R>(simd, &affine, half, group, dots, sums);
                }
            }
        }
    }
    for (row, tile) in tile.as_chunks_mut::<PANEL>().0.iter_mut().enumerate() {
        *tile = cast([sums[0][row], sums[1][row]]);
    }
}

/// The sums of products of eight outputs and the inputs that share a scale, from `first` of the group on.
#[inline(always)]
fn dots<T: Source, const R: usize>(
    simd: V3,
    (low, high): (&[u8], &[u8]),
    half: usize,
    (group, first): (&[Group; R], usize),
) -> [__m256i; R] {
    // Sums of two products fit 16 bits, and so do those of this many such sums, the quants being so small.
    let together = match T::HIGH {
        None => 1,
        Some(high) => 8 >> high,
    };
    let ones = simd.avx._mm256_set1_epi16(1);
    let mut dots = [simd.avx._mm256_setzero_si256(); R];
    if T::HIGH.is_some() {
        for (dot, row) in dots.iter_mut().zip(group) {
            *dot = simd.avx._mm256_set1_epi32(start::<T>(row.sums, first));
        }
    }
    let mut pairs = [simd.avx._mm256_setzero_si256(); R];
    for index in 0..T::SHARED / 4 {
        let quants = quants::<T>(simd, (low, high), half, index);
        for row in 0..R {
            let word = simd.avx._mm256_set1_epi32(group[row].words[first / 4 + index]);
            let products = if T::HIGH.is_none() {
                // Less its zero, 128, a byte has a sign, and the sums start from nothing.
                let signed =
                    simd.avx2._mm256_xor_si256(quants, simd.avx._mm256_set1_epi8(BIAS.cast_signed()));
                let word = simd.avx2._mm256_sign_epi8(word, signed);
                simd.avx2._mm256_maddubs_epi16(simd.avx2._mm256_abs_epi8(signed), word)
            } else {
                simd.avx2._mm256_maddubs_epi16(quants, word)
            };
            pairs[row] = if index % together == 0 {
                products
            } else {
                simd.avx2._mm256_add_epi16(pairs[row], products)
            };
            if index % together == together - 1 {
                let fours = simd.avx2._mm256_madd_epi16(pairs[row], ones);
                dots[row] = simd.avx2._mm256_add_epi32(dots[row], fours);
            }
        }
    }
    dots
}

/// Quants of eight outputs: four inputs each, as word `index` of those that share a scale has them.
#[inline(always)]
fn quants<T: Source>(simd: V3, (low, high): (&[u8], &[u8]), half: usize, index: usize) -> __m256i {
    let plane = |planes: &[u8], plane: usize| -> __m256i {
        pod_read_unaligned(&planes[plane * PLANE + half * HALF..][..HALF])
    };
    let Some(bits) = T::HIGH else { return plane(low, index) };
    let by = |by: usize| simd.avx._mm256_set1_epi32(i32::try_from(by).unwrap_or_default());
    let side = simd.avx2._mm256_srlv_epi32(plane(low, index / 2), by(4 * (index % 2)));
    let quants = simd.avx2._mm256_and_si256(side, simd.avx._mm256_set1_epi8(15));
    if bits == 0 {
        return quants;
    }
    let (above, place) = (plane(high, 0), bits as usize * index);
    let moved = match place < 4 {
        true => simd.avx2._mm256_sllv_epi32(above, by(4 - place)),
        false => simd.avx2._mm256_srlv_epi32(above, by(place - 4)),
    };
    let mask = simd.avx._mm256_set1_epi8(((1 << bits) - 1) << 4);
    simd.avx2._mm256_or_si256(quants, simd.avx2._mm256_and_si256(moved, mask))
}

/// Adds sums of products, times their scales, to those of `R` rows.
#[inline(always)]
fn add<T: Source, const R: usize>(
    simd: V3,
    (scale, offset): &(Lanes, Lanes),
    half: usize,
    group: &[Group; R],
    dots: [__m256i; R],
    sums: &mut [__m256; R],
) {
    // By value: lanes need not lie where a vector may.
    let of_half = |lanes: &Lanes| -> __m256 { cast::<[f32; 8], __m256>(lanes.as_chunks().0[half]) };
    let (scale, offset) = (of_half(scale), of_half(offset));
    for ((row, dot), sum) in group.iter().zip(dots).zip(sums) {
        let factor = simd.avx._mm256_mul_ps(scale, simd.avx._mm256_set1_ps(row.scale));
        *sum = simd.fma._mm256_fmadd_ps(simd.avx._mm256_cvtepi32_ps(dot), factor, *sum);
        if T::ZERO.is_none() {
            *sum = simd.fma._mm256_fmadd_ps(offset, simd.avx._mm256_set1_ps(row.sum), *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_may_lie_anywhere() {
        let Some(simd) = V3::try_new() else { return println!("LEFT OUT: the processor has no AVX2") };
        let scale: Lanes = std::array::from_fn(|lane| lane as f32);
        // 33 numbers each, so that every alignment is among them.
        let all = vec![((scale, [0.0; PANEL]), 0.0_f32); 8];
        let group = [Group { scale: 2.0, ..Group::default() }];
        for (lanes, _) in &all {
            for half in 0..2 {
                let mut sums = [simd.avx._mm256_setzero_ps()];
                let dots = [simd.avx._mm256_set1_epi32(3)];
                add::<Bytes, 1>(simd, lanes, half, &group, dots, &mut sums);
                let sums: [f32; 8] = cast(sums[0]);
                assert_eq!(sums, std::array::from_fn(|lane| 6.0 * (8 * half + lane) as f32));
            }
        }
    }
}
