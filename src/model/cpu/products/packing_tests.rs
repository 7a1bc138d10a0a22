//! Unpacked numbers against candle's, bit by bit.

use candle_core::{
    Device,
    quantized::{GgmlDType, QStorage, QTensor},
};
use half::f16;
use pulp::{Arch, WithSimd};

use super::*;
use crate::model::files::random::RandomBlocks;

/// All quantisations, and candle's names of them.
pub(crate) const QUANTISED: [(Format, GgmlDType); 8] = [
    (Format::Q4_0, GgmlDType::Q4_0),
    (Format::Q4_1, GgmlDType::Q4_1),
    (Format::Q5_0, GgmlDType::Q5_0),
    (Format::Q5_1, GgmlDType::Q5_1),
    (Format::Q8_0, GgmlDType::Q8_0),
    (Format::Q4K, GgmlDType::Q4K),
    (Format::Q5K, GgmlDType::Q5K),
    (Format::Q6K, GgmlDType::Q6K),
];

/// Makes random blocks whose factors are small numbers.
pub(crate) fn stored(format: Format, blocks: usize, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut random = RandomBlocks::new(seed);
    random.write(format, blocks, &mut bytes);
    bytes
}

/// Dequantises stored blocks by candle.
pub(crate) fn dequantised(kind: GgmlDType, stored: &[u8], rows: usize, columns: usize) -> Vec<f32> {
    // Borrowed, since candle reads owned bytes after it has freed them.
    let storage = QStorage::from_data(stored.into(), &Device::Cpu, kind).unwrap();
    let tensor = QTensor::new(storage, (rows, columns)).unwrap();
    tensor.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

struct Unpack<'a> {
    format: Format,
    panel: &'a [u8],
    first: usize,
    out: &'a mut [f32],
}

impl WithSimd for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        unpack(simd, self.format, self.panel, self.first, self.out);
    }
}

struct Halves<'a>(&'a [u8]);

impl WithSimd for Halves<'_> {
    type Output = Lanes;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Lanes {
        halves(simd, self.0)
    }
}

/// Unpacks all numbers of a panel, `[input][PANEL]`, with the best vectors and without any.
fn unpacked(format: Format, panel: &[u8], inputs: usize) -> [Vec<f32>; 2] {
    [Arch::new(), Arch::Scalar].map(|arch| {
        let mut out = vec![0.0; inputs * PANEL];
        let step = chunk(format);
        for (index, out) in out.chunks_mut(step * PANEL).enumerate() {
            arch.dispatch(Unpack { format, panel, first: index * step, out });
        }
        out
    })
}

#[test]
fn unpacked_quantised_numbers_are_candles() {
    for (format, kind) in QUANTISED {
        for inputs in [256, 768] {
            let blocks = inputs / format.block();
            let rows: Vec<Vec<u8>> = (0..PANEL).map(|row| stored(format, blocks, row as u64)).collect();
            let mut panel = vec![0; panel_bytes(format, inputs)];
            rows.iter().enumerate().for_each(|(lane, row)| pack(format, row, lane, &mut panel));
            for got in unpacked(format, &panel, inputs) {
                for (lane, row) in rows.iter().enumerate() {
                    let own: Vec<f32> = got.iter().skip(lane).step_by(PANEL).copied().collect();
                    assert_eq!(own, dequantised(kind, row, 1, inputs), "{format:?} {inputs} {lane}");
                }
            }
        }
    }
}

#[test]
fn unpacked_floats_are_those_packed() {
    for (format, size) in [(Format::F32, 4), (Format::F16, 2), (Format::Bf16, 2)] {
        let inputs = 75;
        let rows: Vec<Vec<u8>> = (0..PANEL)
            .map(|row| (0..inputs * size).map(|index| ((row * 37 + index * 11) % 120) as u8).collect())
            .collect();
        let mut panel = vec![0; panel_bytes(format, inputs)];
        rows.iter().enumerate().for_each(|(lane, row)| pack(format, row, lane, &mut panel));
        let number = |bytes: &[u8]| match format {
            Format::F32 => f32::from_le_bytes(bytes.try_into().unwrap()),
            Format::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f32(),
            _ => half::bf16::from_le_bytes(bytes.try_into().unwrap()).to_f32(),
        };
        for got in unpacked(format, &panel, inputs) {
            for (lane, row) in rows.iter().enumerate() {
                let own: Vec<f32> = got.iter().skip(lane).step_by(PANEL).copied().collect();
                assert_eq!(own, row.chunks(size).map(number).collect::<Vec<_>>(), "{format:?} {lane}");
            }
        }
    }
}

#[test]
fn every_half_precision_number_is_converted_exactly() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for bits in all.as_chunks::<PANEL>().0 {
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        for arch in [Arch::new(), Arch::Scalar] {
            for (bits, got) in bits.iter().zip(arch.dispatch(Halves(&bytes))) {
                let expected = f16::from_bits(*bits).to_f32();
                let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                assert!(same, "{bits:x}: {got}");
            }
        }
    }
}
