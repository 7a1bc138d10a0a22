//! Dot products of quants and rounded inputs, by AVX2 or by AVX-VNNI.

use std::arch::x86_64::*;

use pulp::{bytemuck::pod_read_unaligned, x86::V3};

use super::super::{
    super::panel::{BIAS, PLANE},
    rounded::Group,
    source::{self, Source},
};
use crate::model::formats::instructions::Instructions;

/// Sums of eight outputs each: two halves of a panel times `R` rows.
pub(super) type PanelSums<V, const R: usize> = [[V; R]; 2];

/// The processor instructions that multiply bytes.
pub(super) trait Dot: Copy {
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
pub(super) struct Maddubs(pub(super) V3);

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
pub(super) struct Dpbusd(V3);

impl Dpbusd {
    /// Checks for the instructions; `None` if the processor lacks them.
    pub(super) fn try_new() -> Option<Self> {
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
pub(super) trait Quants: Copy {
    /// Loads word `index`, four inputs of eight outputs each, of both halves.
    fn word<T: Source>(self, simd: V3, index: usize) -> [__m256i; 2];
}

/// Quants as they are stored.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    pub(super) low: &'a [u8],
    pub(super) high: &'a [u8],
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
