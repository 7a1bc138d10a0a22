//! Keys and values in blocks are read as they were written, in each format.

use candle_core::Device;
use pulp::{Arch, WithSimd};

use super::*;

struct Floats<'a>(Head<'a>, Range<usize>);

impl WithSimd for Floats<'_> {
    type Output = Vec<f32>;

    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let mut buffer = vec![0.0; self.0.buffer() * self.1.len()];
        self.0.floats(simd, self.1, &mut buffer).to_vec()
    }
}

/// Reads the numbers of a position.
fn read(blocks: &KvBlocks, head: usize, position: usize) -> Vec<f32> {
    let block = position / KEYS;
    let floats = Arch::new().dispatch(Floats(blocks.head(head), block..block + 1));
    let size = blocks.head_dim;
    let place = |number: usize| match blocks.side {
        Side::Keys => number * KEYS + position % KEYS,
        Side::Values => position % KEYS * size + number,
    };
    (0..size).map(|number| floats[place(number)]).collect()
}

fn tensor(numbers: &[f32], shape: (usize, usize, usize)) -> Tensor {
    Tensor::from_slice(numbers, shape, &Device::Cpu).unwrap()
}

#[test]
fn a_write_is_read_back_and_changes_nothing_else() {
    for (side, format) in [Side::Keys, Side::Values]
        .into_iter()
        .flat_map(|side| [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0].map(|format| (side, format)))
    {
        for size in [1, 3, 32, 40, 64, 80] {
            let mut blocks = KvBlocks::new(side, format, [2, 40, size]).unwrap();
            assert_eq!(blocks.bytes(), 2 * 48 * format.bytes(size).unwrap());
            // Whole multiples of a power of two, the first of each group 127 times it: all formats hold them
            // exactly.
            let row = |seed: usize| -> Vec<f32> {
                let number = |index: usize| {
                    let step = [0.25, 1.0, 0.5, 8.0, 0.0625][(seed + index / GROUP) % 5];
                    let quant =
                        if index.is_multiple_of(GROUP) { 254 } else { (seed * 31 + index * 17) % 255 };
                    step * (quant as f32 - 127.0)
                };
                (0..size).map(number).collect()
            };
            let mut expected: Vec<Vec<f32>> = vec![vec![0.0; size]; 2 * 48];
            for (position, count, seed) in [(10, 20, 1), (14, 2, 200), (0, 3, 300), (47, 1, 400)] {
                let mut numbers = Vec::new();
                for (head, index) in (0..2).flat_map(|head| (0..count).map(move |index| (head, index))) {
                    let row = row(seed + 50 * head + index);
                    numbers.extend_from_slice(&row);
                    expected[head * 48 + position + index] = row;
                }
                blocks.write(&tensor(&numbers, (2, count, size)), position).unwrap();
                for (place, expected) in expected.iter().enumerate() {
                    let got = read(&blocks, place / 48, place % 48);
                    assert_eq!(&got, expected, "{side:?} {format} {size} {place}");
                }
            }
            let rows = tensor(&vec![0.0; 4 * size], (2, 2, size));
            assert!(blocks.write(&rows, 47).is_err());
            assert!(blocks.write(&tensor(&vec![0.0; 2 * size + 2], (2, 1, size + 1)), 0).is_err());
            assert!(blocks.write(&tensor(&vec![0.0; size], (1, 1, size)), 0).is_err());
        }
    }
    assert!(KvBlocks::new(Side::Keys, KvFormat::F16, [2, usize::MAX, 64]).is_err());
}

#[test]
fn every_half_precision_number_is_read_as_written() {
    let all: Vec<f32> = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()).collect();
    for side in [Side::Keys, Side::Values] {
        let mut blocks = KvBlocks::new(side, KvFormat::F16, [1, 64, 1024]).unwrap();
        blocks.write(&tensor(&all, (1, 64, 1024)), 0).unwrap();
        for (position, expected) in all.chunks(1024).enumerate() {
            for (got, expected) in read(&blocks, 0, position).iter().zip(expected) {
                let most = expected.clamp(-65504.0, 65504.0);
                assert!(got.to_bits() == most.to_bits() || got.is_nan() && expected.is_nan());
            }
        }
    }
}

#[test]
fn extreme_numbers_stay_finite_and_nan_stays_nan() {
    let read = |format: KvFormat, numbers: &[f32]| {
        let mut blocks = KvBlocks::new(Side::Values, format, [1, 1, numbers.len()]).unwrap();
        blocks.write(&tensor(numbers, (1, 1, numbers.len())), 0).unwrap();
        read(&blocks, 0, 0)
    };
    // No number becomes infinite, and NaN stays NaN.
    assert_eq!(read(KvFormat::F16, &[1e9, -70000.0, 65504.0]), [65504.0, -65504.0, 65504.0]);
    assert!(read(KvFormat::F16, &[f32::NAN])[0].is_nan());
    assert!(read(KvFormat::Q8_0, &[1.0, f32::NAN, 2.0]).iter().all(|number| number.is_nan()));
    let huge = read(KvFormat::Q8_0, &[1e30, -1e30]);
    assert_eq!(huge, [127.0 * 65504.0, -127.0 * 65504.0]);
    // These are so small that the factor is zero.
    assert_eq!(read(KvFormat::Q8_0, &[1e-7, 0.0]), [0.0, 0.0]);
}
