//! Integer dot products with AVX-512 VNNI: sixteen outputs at a time, four inputs an instruction.
//!
//! The instruction `vpdpbusd` multiplies four unsigned bytes, of the weights, by four signed bytes, of a row,
//! and adds the four products to a sum of 32 bits: at most 32 * 255 * 127, so nothing overflows.

use std::arch::x86_64::*;

use pulp::bytemuck::{cast, pod_read_unaligned};

use super::rounded::{AHEAD, GROUP, Group, RUNS_AHEAD, RoundedRows, Stored, factors};
use super::source::{Bytes, Planes, Source, chunks, shares, start};
use crate::model::cpu::products::packing::{Prefetch, panel_bytes};
use crate::model::cpu::products::{Lanes, Legacy, PANEL, PLANE, ScaleAndMin, SignedScale};
use crate::model::formats::{Format, Instructions};

/// Rows of a large block, for which a panel's weights are unpacked once.
const LARGE: usize = 16;
/// Rows of a small block, whose sums stay in registers beside the weights of a group.
const SMALL: usize = 8;
/// Most rows for which each block of rows unpacks a panel's weights anew: for more, they are unpacked once,
/// to memory that stays in the nearer caches.
const UNPACKED: usize = 2 * LARGE;
/// Vectors of a group's weights.
const VECTORS: usize = GROUP / 4;

/// Rounds the groups of a block of rows, of `per_row` groups each, to `[group][row]`. Does nothing without
/// the instructions.
pub(super) fn round(x: &[[f32; GROUP]], per_row: usize, groups: &mut [Group]) {
    if !Instructions::Avx512Vnni.is_available() {
        return;
    }
    // SAFETY: as in `multiply`. Tested by `all_instructions_round_to_the_same_bits` in `integer.rs`.
    #[expect(unsafe_code, reason = "a function for some processors only")]
    unsafe {
        round_here(x, per_row, groups);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn round_here(x: &[[f32; GROUP]], per_row: usize, groups: &mut [Group]) {
    let rows = x.len() / per_row;
    for (row, x) in x.chunks_exact(per_row).enumerate() {
        for (groups, x) in groups.chunks_exact_mut(rows).zip(x) {
            groups[row] = group(x);
        }
    }
}

/// Rounds a group as `Group::new` does, to the same bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn group(x: &[f32; GROUP]) -> Group {
    let [left, right]: [__m512; 2] = cast(*x);
    let bits = |x: __m512| _mm512_castps_si512(_mm512_abs_ps(x));
    let largest = _mm512_reduce_max_epu32(_mm512_max_epu32(bits(left), bits(right)));
    let (inverse, scale) = factors(f32::from_bits(largest));
    let inverse = _mm512_set1_ps(inverse);
    let quants = |x: __m512| _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x, inverse)));
    let quants = _mm256_set_m128i(quants(right), quants(left));
    // The instruction sums unsigned bytes; a bias makes them so.
    let biased = _mm256_xor_si256(quants, _mm256_set1_epi8(i8::MIN));
    let eights: [i64; 4] = cast(_mm256_sad_epu8(biased, _mm256_setzero_si256()));
    #[expect(clippy::cast_possible_truncation, reason = "at most 16 times 255")]
    let half = |low: i64, high: i64| (low + high) as i32 - 16 * 128;
    let sums = [half(eights[0], eights[1]), half(eights[2], eights[3])];
    let even_then_odd = _mm_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0);
    let words = _mm256_shuffle_epi8(quants, _mm256_broadcastsi128_si256(even_then_odd));
    #[expect(clippy::cast_precision_loss, reason = "at most 32 times 127")]
    let sum = (sums[0] + sums[1]) as f32 * scale;
    Group { words: cast(words), sums, scale, sum }
}

/// Rows of a block, if there are `count` rows in all.
pub(super) fn block_of(count: usize) -> usize {
    // What large blocks leave must be a small one. The kernel of unpacked weights needs two registers a row,
    // too many for a large block.
    if (LARGE..=UNPACKED).contains(&count) && count % LARGE <= SMALL { LARGE } else { SMALL }
}

/// Multiplies as [`multiply`](super::multiply) says. Does nothing without the instructions.
pub(super) fn multiply(format: Format, panels: Stored<'_>, rows: &RoundedRows, tiles: &mut [f32]) {
    if !Instructions::Avx512Vnni.is_available() {
        return;
    }
    // SAFETY: all that `multiply_here` demands of its caller is a processor with the features it is compiled
    // for; these were just asked for. It is safe code otherwise. Tested by `whole_numbers_make_the_product`
    // in `matrix.rs`.
    #[expect(unsafe_code, reason = "a function for some processors only")]
    unsafe {
        multiply_here(format, panels, rows, tiles);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn multiply_here(format: Format, panels: Stored<'_>, rows: &RoundedRows, tiles: &mut [f32]) {
    match format {
        Format::Q8_0 => panels_of::<Bytes>(format, panels, rows, tiles),
        Format::Q4_0 => panels_of::<Planes<Legacy<0, false>>>(format, panels, rows, tiles),
        Format::Q4_1 => panels_of::<Planes<Legacy<0, true>>>(format, panels, rows, tiles),
        Format::Q5_0 => panels_of::<Planes<Legacy<1, false>>>(format, panels, rows, tiles),
        Format::Q5_1 => panels_of::<Planes<Legacy<1, true>>>(format, panels, rows, tiles),
        Format::Q4K => panels_of::<Planes<ScaleAndMin<0>>>(format, panels, rows, tiles),
        Format::Q5K => panels_of::<Planes<ScaleAndMin<1>>>(format, panels, rows, tiles),
        Format::Q6K => panels_of::<Planes<SignedScale>>(format, panels, rows, tiles),
        Format::F32 | Format::F16 | Format::Bf16 => {}
    }
}

/// Multiplies all panels with all rows, a block of rows at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn panels_of<T: Source>(format: Format, panels: Stored<'_>, rows: &RoundedRows, tiles: &mut [f32]) {
    let size = panel_bytes(format, rows.inputs);
    let tiles = tiles.chunks_exact_mut(rows.count * PANEL);
    if T::HIGH.is_some() && rows.count > UNPACKED {
        for (index, tile) in tiles.enumerate() {
            let rest = &panels.bytes[index * size..];
            match T::SHARED == GROUP {
                true => unpacked_panel::<T, 1>((rest, size), rows, tile),
                false => unpacked_panel::<T, 2>((rest, size), rows, tile),
            }
        }
        return;
    }
    for (index, tile) in tiles.enumerate() {
        let rest = &panels.bytes[index * size..];
        for (first, count, groups) in rows.blocks() {
            let asks = first == 0 && (!panels.is_cached || count > RUNS_AHEAD);
            let task = PanelTask { panel: &rest[..size], rest: if asks { rest } else { &[] }, groups };
            packed_block::<T>(&task, count, &mut tile[first * PANEL..][..count * PANEL]);
        }
    }
}

/// A panel and a block of rows.
struct PanelTask<'a> {
    panel: &'a [u8],
    /// This panel and those after it, as far as they are to be prefetched.
    rest: &'a [u8],
    groups: &'a [Group],
}

/// Multiplies a packed panel with `count` rows. Not inlined: it has two callers, and is large.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn packed_block<T: Source>(task: &PanelTask<'_>, count: usize, tile: &mut [f32]) {
    match count {
        1 => block::<T, 1>(task, tile),
        2 => block::<T, 2>(task, tile),
        3 => block::<T, 3>(task, tile),
        4 => block::<T, 4>(task, tile),
        5 => block::<T, 5>(task, tile),
        6 => block::<T, 6>(task, tile),
        7 => block::<T, 7>(task, tile),
        SMALL => block::<T, SMALL>(task, tile),
        _ => block::<T, LARGE>(task, tile),
    }
}

/// Multiplies a packed panel with `R` rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn block<T: Source, const R: usize>(task: &PanelTask<'_>, tile: &mut [f32]) {
    let mut sums = [_mm512_setzero_ps(); R];
    let ahead = Prefetch::new();
    let blocks = task.groups.as_chunks::<R>().0.chunks_exact(T::GROUPS);
    for (index, (packed, groups)) in task.panel.chunks_exact(T::PACKED).zip(blocks).enumerate() {
        let rest = task.rest.get(index * T::PACKED + AHEAD..).unwrap_or_default();
        add::<T, R>(packed, groups, (ahead, rest), &mut sums);
    }
    for (tile, sums) in tile.as_chunks_mut::<PANEL>().0.iter_mut().zip(sums) {
        *tile = cast(sums);
    }
}

/// The weights of a group of inputs, and the scale and the offset of each of its `N` parts that have their
/// own.
struct Unpacked<const N: usize> {
    weights: [__m512i; VECTORS],
    affine: [(__m512, __m512); N],
}

/// Multiplies the first of some panels of `size` bytes with all rows, a block of rows at a time; its weights
/// are unpacked once.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn unpacked_panel<T: Source, const N: usize>(
    (panels, size): (&[u8], usize),
    rows: &RoundedRows,
    tile: &mut [f32],
) {
    let mut unpacked = Vec::with_capacity(rows.inputs / GROUP);
    let ahead = Prefetch::new();
    for (index, packed) in panels[..size].chunks_exact(T::PACKED).enumerate() {
        let rest = panels.get(index * T::PACKED + AHEAD..).unwrap_or_default();
        (0..T::PACKED.div_ceil(64)).for_each(|line| ahead.ask_far(rest, line));
        let factors = block_factors::<T>(packed);
        for chunk in chunks::<T>(packed) {
            for group in 0..T::CHUNK / GROUP {
                let mut weights = [_mm512_setzero_si512(); VECTORS];
                let mut affine = [(_mm512_setzero_ps(), _mm512_setzero_ps()); N];
                for (part, affine) in affine.iter_mut().enumerate() {
                    let ((scale, offset), low, high) = chunk.share::<T>(&factors, group * N + part);
                    *affine = (cast(scale), cast(offset));
                    let words = T::SHARED / 4;
                    weights[part * words..][..words].copy_from_slice(&unpack::<T>(low, high)[..words]);
                }
                unpacked.push(Unpacked { weights, affine });
            }
        }
    }
    for (first, count, groups) in rows.blocks() {
        let tile = &mut tile[first * PANEL..][..count * PANEL];
        if count == SMALL {
            unpacked_block::<T, N>(&unpacked, groups, tile);
        } else {
            // The last rows are few: unpacking the panel again for them is cheaper than kernels of their own.
            packed_block::<T>(&PanelTask { panel: &panels[..size], rest: &[], groups }, count, tile);
        }
    }
}

/// Multiplies an unpacked panel with a small block of rows (register-tiled). All rows are multiplied with
/// four inputs before the next four, so that independent sums hide the latency of the instruction.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn unpacked_block<T: Source, const N: usize>(unpacked: &[Unpacked<N>], groups: &[Group], tile: &mut [f32]) {
    let mut sums = [_mm512_setzero_ps(); SMALL];
    for (unpacked, group) in unpacked.iter().zip(groups.as_chunks::<SMALL>().0) {
        for (part, &(scale, offset)) in unpacked.affine.iter().enumerate() {
            let first = part * T::SHARED;
            let mut dots = group.each_ref().map(|row| _mm512_set1_epi32(start::<T>(row.sums, first)));
            for word in first / 4..first / 4 + T::SHARED / 4 {
                for (dot, row) in dots.iter_mut().zip(group) {
                    let inputs = _mm512_set1_epi32(row.words[word]);
                    *dot = _mm512_dpbusd_epi32(*dot, unpacked.weights[word], inputs);
                }
            }
            for ((&dot, row), sum) in dots.iter().zip(group).zip(&mut sums) {
                add_scaled::<T>(dot, (scale, offset), row, sum);
            }
        }
    }
    for (tile, sums) in tile.as_chunks_mut::<PANEL>().0.iter_mut().zip(sums) {
        *tile = cast(sums);
    }
}

/// The factors of a block of weights.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn block_factors<T: Source>(packed: &[u8]) -> [Lanes; 2] {
    let (head, _) = packed.split_at(2 * PANEL * T::FACTORS);
    let mut factors = [[0.0; PANEL]; 2];
    for (factors, halves) in factors.iter_mut().zip(head.chunks_exact(2 * PANEL)) {
        *factors = cast(_mm512_cvtph_ps(pod_read_unaligned(halves)));
    }
    factors
}

/// Adds the products of a block of weights with `R` rows to the sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn add<T: Source, const R: usize>(
    packed: &[u8],
    groups: &[[Group; R]],
    (ahead, rest): (Prefetch, &[u8]),
    sums: &mut [__m512; R],
) {
    let factors = block_factors::<T>(packed);
    let lines = (T::PACKED / (T::GROUPS * GROUP / T::SHARED)).div_ceil(64);
    let mut line = 0;
    for (chunk, groups) in chunks::<T>(packed).zip(groups.chunks_exact(T::CHUNK / GROUP)) {
        for share in 0..shares::<T>() {
            // Few lines are prefetched with each group, as the processor can wait for only a few at once.
            if !rest.is_empty() {
                (line..line + lines).for_each(|line| ahead.ask_far(rest, line));
                line += lines;
            }
            let ((scale, offset), low, high) = chunk.share::<T>(&factors, share);
            let weights = unpack::<T>(low, high);
            let first = share * T::SHARED % GROUP;
            let group = &groups[share * T::SHARED / GROUP];
            dots::<T, R>(&weights, (cast(scale), cast(offset)), group, first, sums);
        }
    }
}

/// Unpacks the quants of the inputs that share a scale: four a vector, as the words of a [`Group`] have them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn unpack<T: Source>(low: &[u8], high: &[u8]) -> [__m512i; VECTORS] {
    let mut weights = [_mm512_setzero_si512(); VECTORS];
    let low = low.as_chunks::<PLANE>().0;
    let Some(bits) = T::HIGH else {
        weights.iter_mut().zip(low).for_each(|(weights, plane)| *weights = pod_read_unaligned(plane));
        return weights;
    };
    let above = high.as_chunks::<PLANE>().0.first();
    let above = above.map_or(_mm512_setzero_si512(), |plane| pod_read_unaligned(plane));
    for (index, (plane, weights)) in (0_i32..).zip(low.iter().zip(weights.as_chunks_mut::<2>().0)) {
        let plane: __m512i = pod_read_unaligned(plane);
        for (side, weights) in (0_i32..).zip(weights) {
            let four = _mm512_srlv_epi32(plane, _mm512_set1_epi32(4 * side));
            *weights = _mm512_and_si512(four, _mm512_set1_epi8(15));
            if bits > 0 {
                // Bits are shifted to the left where they lie too low, else to the right.
                let by = bits.cast_signed() * (2 * index + side) - 4;
                let moved = if by < 0 {
                    _mm512_sllv_epi32(above, _mm512_set1_epi32(-by))
                } else {
                    _mm512_srlv_epi32(above, _mm512_set1_epi32(by))
                };
                let mask = _mm512_set1_epi8(((1 << bits) - 1) << 4);
                *weights = _mm512_or_si512(*weights, _mm512_and_si512(moved, mask));
            }
        }
    }
    weights
}

/// Adds the products of inputs that share a scale, from `first` of the group on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn dots<T: Source, const R: usize>(
    weights: &[__m512i],
    (scale, offset): (__m512, __m512),
    group: &[Group; R],
    first: usize,
    sums: &mut [__m512; R],
) {
    let words = T::SHARED / 4;
    for (row, sum) in group.iter().zip(sums) {
        let mut dot = _mm512_set1_epi32(start::<T>(row.sums, first));
        for (weights, &word) in weights[..words].iter().zip(&row.words[first / 4..][..words]) {
            dot = _mm512_dpbusd_epi32(dot, *weights, _mm512_set1_epi32(word));
        }
        add_scaled::<T>(dot, (scale, offset), row, sum);
    }
}

/// Dequantises the dot product of weights and a row and adds it to the row's sum.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn add_scaled<T: Source>(dot: __m512i, (scale, offset): (__m512, __m512), row: &Group, sum: &mut __m512) {
    let factor = _mm512_mul_ps(scale, _mm512_set1_ps(row.scale));
    *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), factor, *sum);
    if T::ZERO.is_none() {
        *sum = _mm512_fmadd_ps(offset, _mm512_set1_ps(row.sum), *sum);
    }
}
