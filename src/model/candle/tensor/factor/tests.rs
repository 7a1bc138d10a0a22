//! Matrices as factors of products, in all formats.

use candle_core::Device;

use super::*;
use crate::model::cpu::products::packing::tests::{QUANTISED, stored};
use crate::model::{candle::tensor::Placement, formats::Format};

/// Rows of each of these formats, by index as name.
struct StoredMatrices(Vec<(Format, Vec<u8>)>);

impl Weights for StoredMatrices {
    fn format(&self, name: &str, _shape: &[usize]) -> std::result::Result<Format, ModelError> {
        Ok(self.0[name.parse::<usize>().unwrap()].0)
    }

    fn read(
        &mut self,
        name: &str,
        _shape: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> std::result::Result<(), ModelError> {
        let (format, bytes) = &self.0[name.parse::<usize>().unwrap()];
        // Row by row.
        bytes.chunks(bytes.len() / ROWS).for_each(|row| each(*format, row));
        Ok(())
    }

    fn vector(&mut self, _name: &str, _length: usize) -> std::result::Result<Vec<f32>, ModelError> {
        Ok(Vec::new())
    }
}

const ROWS: usize = 16;

/// Makes whole numbers that rounding to eight bits leaves as they are: Candle rounds groups of 32 or 256
/// to 127 parts of the largest magnitude, which is 127.
fn unrounded(count: usize, inputs: usize, format: Format) -> Tensor {
    let number = |index: usize| match index % format.block() {
        0 => 127.0,
        _ => (index * 7919 % 251) as f32 - 125.0,
    };
    Tensor::from_iter((0..count * inputs).map(number), &Device::Cpu)
        .unwrap()
        .reshape((count, inputs))
        .unwrap()
}

#[test]
fn products_with_blocks_are_those_of_unpacked_numbers() {
    for (format, _) in QUANTISED {
        // Groups of 32 only, and rows for which Candle has packed kernels or has none.
        let inputs = if format.block() == 32 { 320 } else { 512 };
        let blocks = |seed| (format, stored(format, ROWS * inputs / format.block(), seed));
        let floats = (Format::F32, stored(Format::F32, ROWS * inputs, 9));
        let mut weights = StoredMatrices(vec![blocks(1), blocks(2), floats, blocks(3)]);
        let parts = [("0", ROWS), ("1", ROWS), ("2", ROWS), ("3", ROWS)];
        let [kept, unpacked] = [false, true].map(|unpacks| {
            let place = Placement::CPU.open(unpacks).unwrap();
            Factor::load(&mut weights, &parts, inputs, &place).unwrap()
        });
        assert_eq!((kept.parts.len(), unpacked.parts.len()), (3, 1), "{format}");
        for count in [1, 2, 5] {
            let x = unrounded(count, inputs, format);
            let got = kept.product(&x).unwrap().to_vec2::<f32>().unwrap();
            let expected = unpacked.product(&x).unwrap().to_vec2::<f32>().unwrap();
            let largest = expected.iter().flatten().fold(0.0_f32, |most, value| most.max(value.abs()));
            for (got, expected) in got.iter().flatten().zip(expected.iter().flatten()) {
                assert!((got - expected).abs() <= 1e-5 * largest, "{format} {count}: {got} {expected}");
            }
        }
    }
}

#[test]
fn rows_of_blocks_are_those_of_the_unpacked_numbers() {
    let ids = Tensor::new(&[3_u32, 0, 15, 3], &Device::Cpu).unwrap();
    for (format, _) in QUANTISED {
        let mut weights = StoredMatrices(vec![(format, stored(format, ROWS * 256 / format.block(), 4))]);
        let [kept, unpacked] = [false, true].map(|unpacks| {
            let place = Placement::CPU.open(unpacks).unwrap();
            let factor = Factor::load(&mut weights, &[("0", ROWS)], 256, &place).unwrap();
            factor.rows(&ids, place.precision).unwrap().to_vec2::<f32>().unwrap()
        });
        assert_eq!(kept, unpacked, "{format}");
    }
}

/// Candle takes blocks of 32 by twos.
#[test]
fn rows_of_odd_numbers_of_blocks_are_unpacked() {
    let mut weights = StoredMatrices(vec![(Format::Q4_1, stored(Format::Q4_1, ROWS * 3, 5))]);
    let place = Placement::CPU.open(false).unwrap();
    let factor = Factor::load(&mut weights, &[("0", ROWS)], 96, &place).unwrap();
    assert!(matches!(factor.parts.as_slice(), [FactorPart::Floats(_)]));
    assert_eq!(factor.product(&unrounded(2, 96, Format::Q4_1)).unwrap().dims(), [2, ROWS]);
}
