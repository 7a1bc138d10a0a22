//! Integer dot products with AVX2, or with AVX-VNNI where the processor has it: eight outputs at a time.
//!
//! AVX-VNNI multiplies and adds as AVX-512 VNNI does ([`vnni`](super::vnni)), in registers half as wide. AVX2
//! takes two or three instructions for four inputs: unsigned bytes times signed bytes make sums of two
//! products in 16 bits, which are added up there as long as nothing can overflow. Weights of eight bits would
//! overflow: their magnitudes are multiplied by the inputs, which take the sign of the product.

use std::arch::x86_64::*;

use pulp::bytemuck::{cast, pod_read_unaligned};
use pulp::{NullaryFnOnce, x86::V3};

use super::rounded::{AHEAD, GROUP, Group, RUNS_AHEAD, RoundedRows, Stored};
use super::source::{self, Bytes, Planes, Source, chunks, shares};
use crate::model::cpu::products::packing::{self, Prefetch, panel_bytes};
use crate::model::cpu::products::{BIAS, Lanes, Legacy, PANEL, PLANE, ScaleAndMin, SignedScale};
use crate::model::formats::{Format, Instructions};

/// Most rows of a block: their sums stay in registers.
pub(super) const BLOCK: usize = 4;
/// Most rows for which each block of rows unpacks a panel's weights anew.
const UNPACKED: usize = 4 * BLOCK;

/// Multiplies with AVX2, as [`multiply`](super::multiply) says. Does nothing without the instructions.
pub(super) fn multiply(format: Format, panels: Stored<'_>, rows: &RoundedRows, tiles: &mut [f32]) {
    if let Some(simd) = V3::try_new() {
        simd.vectorize(Multiply { dot: Maddubs(simd), format, panels, rows, tiles });
    }
}

/// Multiplies with AVX-VNNI. Does nothing without the instructions.
pub(super) fn multiply_by_vnni(format: Format, panels: Stored<'_>, rows: &RoundedRows, tiles: &mut [f32]) {
    if let Some(dot) = Dpbusd::try_new() {
        // SAFETY: all that `with_vnni` demands of its caller is a processor with the features it is compiled
        // for, those of `V3` and AVX-VNNI; `Dpbusd::try_new` asks for both. Tested by
        // `whole_numbers_make_the_product` in `matrix.rs`.
        #[expect(unsafe_code, reason = "a function for some processors only")]
        unsafe {
            with_vnni(Multiply { dot, format, panels, rows, tiles });
        }
    }
}

/// Runs a task, compiled for what [`V3`] has and for AVX-VNNI.
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avxvnni")]
fn with_vnni(task: Multiply<'_, Dpbusd>) {
    task.call();
}

struct Multiply<'a, D> {
    dot: D,
    format: Format,
    panels: Stored<'a>,
    rows: &'a RoundedRows,
    tiles: &'a mut [f32],
}

impl<D: Dot> NullaryFnOnce for Multiply<'_, D> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match self.format {
            Format::Q8_0 => panels_of::<Bytes, D>(self),
            Format::Q4_0 => panels_of::<Planes<Legacy<0, false>>, D>(self),
            Format::Q4_1 => panels_of::<Planes<Legacy<0, true>>, D>(self),
            Format::Q5_0 => panels_of::<Planes<Legacy<1, false>>, D>(self),
            Format::Q5_1 => panels_of::<Planes<Legacy<1, true>>, D>(self),
            Format::Q4K => panels_of::<Planes<ScaleAndMin<0>>, D>(self),
            Format::Q5K => panels_of::<Planes<ScaleAndMin<1>>, D>(self),
            Format::Q6K => panels_of::<Planes<SignedScale>, D>(self),
            Format::F32 | Format::F16 | Format::Bf16 => {}
        }
    }
}

/// Multiplies all panels with all rows, a block of rows at a time.
#[inline(always)]
fn panels_of<T: Source, D: Dot>(task: Multiply<'_, D>) {
    let Multiply { dot, format, panels, rows, tiles } = task;
    let size = panel_bytes(format, rows.inputs);
    let unpacks = T::HIGH.is_some() && rows.count > UNPACKED;
    let mut unpacked = Vec::new();
    for (index, tile) in tiles.chunks_exact_mut(rows.count * PANEL).enumerate() {
        let rest = &panels.bytes[index * size..];
        let asks = !panels.is_cached || rows.count > RUNS_AHEAD;
        let weights = (&rest[..size], if asks { rest } else { &[] });
        if unpacks {
            unpack_panel::<T>(dot.simd(), weights, &mut unpacked);
        }
        for (first, count, groups) in rows.blocks() {
            let tile = &mut tile[first * PANEL..][..count * PANEL];
            let weights = (weights.0, if first == 0 { weights.1 } else { &[] });
            match count {
                BLOCK if unpacks => unpacked_block::<T, D>(dot, &unpacked, groups, tile),
                1 => block::<T, D, 1>(dot, weights, groups, tile),
                2 => block::<T, D, 2>(dot, weights, groups, tile),
                3 => block::<T, D, 3>(dot, weights, groups, tile),
                _ => block::<T, D, BLOCK>(dot, weights, groups, tile),
            }
        }
    }
}

/// Multiplies a packed panel with `R` rows (register-tiled); weights are prefetched from `rest`, which begins
/// with this panel.
#[inline(always)]
fn block<T: Source, D: Dot, const R: usize>(
    dot: D,
    (panel, rest): (&[u8], &[u8]),
    groups: &[Group],
    tile: &mut [f32],
) {
    let simd = dot.simd();
    let ahead = Prefetch::new();
    let lines = (T::PACKED / (T::GROUPS * GROUP / T::SHARED)).div_ceil(64);
    let mut sums = [[simd.avx._mm256_setzero_ps(); R]; 2];
    let blocks = groups.as_chunks::<R>().0.chunks_exact(T::GROUPS);
    for (index, (packed, groups)) in panel.chunks_exact(T::PACKED).zip(blocks).enumerate() {
        let rest = rest.get(index * T::PACKED + AHEAD..).unwrap_or_default();
        let mut line = 0;
        let factors = block_factors::<T>(simd, packed);
        for (chunk, groups) in chunks::<T>(packed).zip(groups.chunks_exact(T::CHUNK / GROUP)) {
            for share in 0..shares::<T>() {
                // Few lines are prefetched with each group, as the processor can wait for only a few at once.
                if !rest.is_empty() {
                    (line..line + lines).for_each(|line| ahead.ask_far(rest, line));
                    line += lines;
                }
                let (affine, low, high) = chunk.share::<T>(&factors, share);
                let first = share * T::SHARED % GROUP;
                let group = &groups[share * T::SHARED / GROUP];
                let dots = dot.dots::<T, Packed<'_>, R>(Packed { low, high }, (group, first));
                add::<T, R>(simd, &affine, group, &dots, &mut sums);
            }
        }
    }
    write(&sums, tile);
}

/// The weights of inputs that share a scale, and their scale and offset.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Unpacked {
    weights: [[u8; PLANE]; GROUP / 4],
    affine: (Lanes, Lanes),
}

impl Quants for &Unpacked {
    #[inline(always)]
    fn word<T: Source>(self, _simd: V3, index: usize) -> [__m256i; 2] {
        cast(self.weights[index])
    }
}

/// Unpacks the weights of a panel, to be multiplied with many rows.
#[inline(always)]
fn unpack_panel<T: Source>(simd: V3, (panel, rest): (&[u8], &[u8]), unpacked: &mut Vec<Unpacked>) {
    let ahead = Prefetch::new();
    unpacked.clear();
    for (index, packed) in panel.chunks_exact(T::PACKED).enumerate() {
        let rest = rest.get(index * T::PACKED + AHEAD..).unwrap_or_default();
        (0..T::PACKED.div_ceil(64)).for_each(|line| ahead.ask_far(rest, line));
        let factors = block_factors::<T>(simd, packed);
        for chunk in chunks::<T>(packed) {
            for share in 0..shares::<T>() {
                let (affine, low, high) = chunk.share::<T>(&factors, share);
                let mut weights = [[0; PLANE]; GROUP / 4];
                for (index, weights) in weights.iter_mut().take(T::SHARED / 4).enumerate() {
                    *weights = cast(Packed { low, high }.word::<T>(simd, index));
                }
                unpacked.push(Unpacked { weights, affine });
            }
        }
    }
}

/// Multiplies an unpacked panel with a whole block of rows (register-tiled).
#[inline(always)]
fn unpacked_block<T: Source, D: Dot>(dot: D, unpacked: &[Unpacked], groups: &[Group], tile: &mut [f32]) {
    let simd = dot.simd();
    let mut sums = [[simd.avx._mm256_setzero_ps(); BLOCK]; 2];
    let parts = GROUP / T::SHARED;
    for (unpacked, group) in unpacked.chunks_exact(parts).zip(groups.as_chunks::<BLOCK>().0) {
        for (part, unpacked) in unpacked.iter().enumerate() {
            let dots = dot.dots::<T, &Unpacked, BLOCK>(unpacked, (group, part * T::SHARED));
            add::<T, BLOCK>(simd, &unpacked.affine, group, &dots, &mut sums);
        }
    }
    write(&sums, tile);
}

/// Reads the factors of a block of weights.
#[inline(always)]
fn block_factors<T: Source>(simd: V3, packed: &[u8]) -> [Lanes; 2] {
    let mut factors = [[0.0; PANEL]; 2];
    let halves = packed[..2 * PANEL * T::FACTORS].chunks_exact(2 * PANEL);
    for (factors, halves) in factors.iter_mut().zip(halves) {
        *factors = packing::halves(simd, halves);
    }
    factors
}

/// Writes the outputs of each row to its part of the tile.
#[inline(always)]
fn write<const R: usize>(sums: &PanelSums<__m256, R>, tile: &mut [f32]) {
    for (row, tile) in tile.as_chunks_mut::<PANEL>().0.iter_mut().enumerate() {
        *tile = cast([sums[0][row], sums[1][row]]);
    }
}

/// Adds sums of products, times their scales, to those of `R` rows.
#[inline(always)]
fn add<T: Source, const R: usize>(
    simd: V3,
    (scale, offset): &(Lanes, Lanes),
    group: &[Group; R],
    dots: &PanelSums<__m256i, R>,
    sums: &mut PanelSums<__m256, R>,
) {
    // Loaded by value, since lanes may be unaligned for a vector.
    let [scales, offsets]: [[__m256; 2]; 2] = [cast(*scale), cast(*offset)];
    for row in 0..R {
        let (scale, sum) =
            (simd.avx._mm256_set1_ps(group[row].scale), simd.avx._mm256_set1_ps(group[row].sum));
        for half in 0..2 {
            let factor = simd.avx._mm256_mul_ps(scales[half], scale);
            let dot = simd.avx._mm256_cvtepi32_ps(dots[half][row]);
            let all = &mut sums[half][row];
            *all = simd.fma._mm256_fmadd_ps(dot, factor, *all);
            if T::ZERO.is_none() {
                *all = simd.fma._mm256_fmadd_ps(offsets[half], sum, *all);
            }
        }
    }
}

/// Sums of eight outputs each: two halves of a panel times `R` rows.
type PanelSums<V, const R: usize> = [[V; R]; 2];

/// The processor instructions that multiply bytes.
trait Dot: Copy {
    fn simd(self) -> V3;

    /// Computes the sums of products of a panel's outputs and the inputs that share a scale, from `first` of
    /// the group on.
    fn dots<T: Source, Q: Quants, const R: usize>(
        self,
        quants: Q,
        inputs: (&[Group; R], usize),
    ) -> PanelSums<__m256i, R>;
}

/// The instructions of AVX2.
#[derive(Clone, Copy)]
struct Maddubs(V3);

impl Dot for Maddubs {
    #[inline(always)]
    fn simd(self) -> V3 {
        self.0
    }

    #[inline(always)]
    fn dots<T: Source, Q: Quants, const R: usize>(
        self,
        quants: Q,
        (group, first): (&[Group; R], usize),
    ) -> PanelSums<__m256i, R> {
        let simd = self.0;
        // The sum of two products fits 16 bits, and so does the sum of this many of them, as quants are
        // small.
        let together = match T::HIGH {
            None => 1,
            Some(high) => 8 >> high,
        };
        let ones = simd.avx._mm256_set1_epi16(1);
        let mut dots = match T::HIGH {
            // A byte less its zero point, 128, is signed, so the sums start from nothing.
            None => [[simd.avx._mm256_setzero_si256(); R]; 2],
            Some(_) => starts::<T, R>(simd, group, first),
        };
        let mut pairs = [[simd.avx._mm256_setzero_si256(); R]; 2];
        for index in 0..T::SHARED / 4 {
            let mut quants = quants.word::<T>(simd, index);
            let mut signed = quants;
            if T::HIGH.is_none() {
                for (quants, signed) in quants.iter_mut().zip(&mut signed) {
                    let bias = simd.avx._mm256_set1_epi8(BIAS.cast_signed());
                    *signed = simd.avx2._mm256_xor_si256(*quants, bias);
                    *quants = simd.avx2._mm256_abs_epi8(*signed);
                }
            }
            for row in 0..R {
                let word = simd.avx._mm256_set1_epi32(group[row].words[first / 4 + index]);
                for half in 0..2 {
                    let word = match T::HIGH {
                        None => simd.avx2._mm256_sign_epi8(word, signed[half]),
                        Some(_) => word,
                    };
                    let products = simd.avx2._mm256_maddubs_epi16(quants[half], word);
                    pairs[half][row] = if index % together == 0 {
                        products
                    } else {
                        simd.avx2._mm256_add_epi16(pairs[half][row], products)
                    };
                    if index % together == together - 1 {
                        let fours = simd.avx2._mm256_madd_epi16(pairs[half][row], ones);
                        dots[half][row] = simd.avx2._mm256_add_epi32(dots[half][row], fours);
                    }
                }
            }
        }
        dots
    }
}

/// AVX-VNNI's. Invariant: made only where the processor has AVX-VNNI.
#[derive(Clone, Copy)]
struct Dpbusd(V3);

impl Dpbusd {
    /// Checks for the instructions; `None` if the processor lacks them.
    fn try_new() -> Option<Self> {
        V3::try_new().filter(|_| Instructions::AvxVnni.is_available()).map(Self)
    }

    /// Adds the products of four unsigned and four signed bytes to each sum.
    #[inline(always)]
    fn add(self, sums: __m256i, quants: __m256i, inputs: __m256i) -> __m256i {
        // SAFETY: the processor has AVX-VNNI, or there would be no `self`. Tested by
        // `whole_numbers_make_the_product` in `matrix.rs`.
        #[expect(unsafe_code, reason = "an instruction of some processors only")]
        unsafe {
            _mm256_dpbusd_avx_epi32(sums, quants, inputs)
        }
    }
}

impl Dot for Dpbusd {
    #[inline(always)]
    fn simd(self) -> V3 {
        self.0
    }

    #[inline(always)]
    fn dots<T: Source, Q: Quants, const R: usize>(
        self,
        quants: Q,
        (group, first): (&[Group; R], usize),
    ) -> PanelSums<__m256i, R> {
        let simd = self.0;
        let mut dots = starts::<T, R>(simd, group, first);
        for index in 0..T::SHARED / 4 {
            let quants = quants.word::<T>(simd, index);
            for row in 0..R {
                let inputs = simd.avx._mm256_set1_epi32(group[row].words[first / 4 + index]);
                for half in 0..2 {
                    dots[half][row] = self.add(dots[half][row], quants[half], inputs);
                }
            }
        }
        dots
    }
}

/// Initial values of the sums of products.
#[inline(always)]
fn starts<T: Source, const R: usize>(simd: V3, group: &[Group; R], first: usize) -> PanelSums<__m256i, R> {
    let mut starts = [simd.avx._mm256_setzero_si256(); R];
    for (start, row) in starts.iter_mut().zip(group) {
        *start = simd.avx._mm256_set1_epi32(source::start::<T>(row.sums, first));
    }
    [starts; 2]
}

/// Access to the quants of inputs that share a scale.
trait Quants: Copy {
    /// Loads word `index`, four inputs of eight outputs each, of both halves.
    fn word<T: Source>(self, simd: V3, index: usize) -> [__m256i; 2];
}

/// Quants as they are stored.
#[derive(Clone, Copy)]
struct Packed<'a> {
    low: &'a [u8],
    high: &'a [u8],
}

impl Quants for Packed<'_> {
    #[inline(always)]
    fn word<T: Source>(self, simd: V3, index: usize) -> [__m256i; 2] {
        let Self { low, high } = self;
        let plane = |planes: &[u8], plane: usize| -> [__m256i; 2] {
            pod_read_unaligned(&planes[plane * PLANE..][..PLANE])
        };
        let Some(bits) = T::HIGH else { return plane(low, index) };
        let by = |by: usize| simd.avx._mm256_set1_epi32(i32::try_from(by).unwrap_or_default());
        let mut quants = plane(low, index / 2);
        for quants in &mut quants {
            let side = simd.avx2._mm256_srlv_epi32(*quants, by(4 * (index % 2)));
            *quants = simd.avx2._mm256_and_si256(side, simd.avx._mm256_set1_epi8(15));
        }
        if bits > 0 {
            let place = bits as usize * index;
            for (quants, above) in quants.iter_mut().zip(&plane(high, 0)) {
                let moved = match place < 4 {
                    true => simd.avx2._mm256_sllv_epi32(*above, by(4 - place)),
                    false => simd.avx2._mm256_srlv_epi32(*above, by(place - 4)),
                };
                let mask = simd.avx._mm256_set1_epi8(((1 << bits) - 1) << 4);
                *quants = simd.avx2._mm256_or_si256(*quants, simd.avx2._mm256_and_si256(moved, mask));
            }
        }
        quants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_read_at_any_alignment() {
        let Some(simd) = V3::try_new() else { return println!("LEFT OUT: the processor has no AVX2") };
        let scale: Lanes = std::array::from_fn(|lane| lane as f32);
        // 33 numbers each, so that every alignment is among them.
        let all = vec![((scale, [0.0; PANEL]), 0.0_f32); 8];
        let group = [Group { scale: 2.0, ..Group::default() }];
        for (lanes, _) in &all {
            let mut sums = [[simd.avx._mm256_setzero_ps()]; 2];
            let dots = [[simd.avx._mm256_set1_epi32(3)]; 2];
            add::<Bytes, 1>(simd, lanes, &group, &dots, &mut sums);
            let sums: Lanes = cast(sums);
            assert_eq!(sums, scale.map(|lane| 6.0 * lane));
        }
    }
}
