//! Products of packed matrices, held to plain loops.

use candle_core::{Device, quantized::QMatMul};

use super::*;
use crate::model::cpu::products::packing::tests::{QUANTISED, dequantised, stored};

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 32768.0 - 1.0
        })
        .collect()
}

fn filled(inputs: usize, outputs: usize) -> (Matrix, Vec<f32>) {
    let weights = numbers(inputs * outputs, 1);
    let mut matrix = Matrix::new(inputs);
    // Rows come in two pushes, the first of which does not end with a panel.
    let (first, rest) = weights.split_at(outputs / 3 * inputs);
    for part in [first, rest] {
        matrix.push(Format::F32, &part.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
    }
    (matrix, weights)
}

/// The largest error against sums in `f64`, relative to the sum of magnitudes.
fn error(got: &[f32], weights: &[f32], x: &[f32], inputs: usize) -> f64 {
    let outputs = weights.len() / inputs;
    let mut largest = 0.0_f64;
    for (row, x) in x.chunks(inputs).enumerate() {
        for (output, weights) in weights.chunks(inputs).enumerate() {
            let terms = || weights.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
            let error = (f64::from(got[row * outputs + output]) - terms().sum::<f64>()).abs();
            largest = largest.max(error / (terms().map(f64::abs).sum::<f64>() + 1e-9));
        }
    }
    largest
}

#[test]
fn a_product_is_that_of_plain_loops() {
    for (inputs, outputs) in [(1, 1), (3, 16), (32, 97), (48, 33), (7, 15), (130, 70)] {
        let (matrix, weights) = filled(inputs, outputs);
        for count in 1..20 {
            let x = numbers(inputs * count, 2);
            let got = matrix.product(&x, count);
            assert_eq!(got.len(), count * outputs);
            let error = error(&got, &weights, &x, inputs);
            assert!(error <= 1e-6, "{inputs} {outputs} {count}: {error}");
        }
        let last = u32::try_from(outputs - 1).unwrap();
        let rows = matrix.rows(&[0, last]).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(rows, [&weights[..inputs], &weights[weights.len() - inputs..]]);
    }
}

#[test]
fn a_quantised_product_is_that_of_candles_dequantised_matrix() {
    for (format, kind) in QUANTISED {
        let (inputs, outputs) = (512, 70);
        let blocks = stored(format, outputs * inputs / format.block(), 7);
        let weights = dequantised(kind, &blocks, outputs, inputs);
        let mut matrix = Matrix { instructions: None, ..Matrix::new(inputs) };
        matrix.push(format, &blocks);
        let mut plain = Matrix::new(inputs);
        plain.push(Format::F32, &weights.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
        for count in [1, 2, 3, 5, 8, 13] {
            let x = numbers(inputs * count, 3);
            let got = matrix.product(&x, count);
            assert!(error(&got, &weights, &x, inputs) <= 1e-6, "{format:?} {count}");
            // The weights are the same, and so is the order of the sums.
            assert_eq!(got, plain.product(&x, count), "{format:?} {count}");
        }
        let rows = matrix.rows(&[0, 69]).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(rows, [&weights[..inputs], &weights[69 * inputs..]]);
    }
}

#[test]
fn whole_numbers_make_the_product() {
    for (format, kind) in QUANTISED {
        let (inputs, outputs) = (768, 70);
        let blocks = stored(format, outputs * inputs / format.block(), 8);
        let weights = dequantised(kind, &blocks, outputs, inputs);
        let mut matrix = Matrix::new(inputs);
        matrix.push(format, &blocks);
        for count in [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 24, 30, 33, 39, 48, 63] {
            let x = numbers(inputs * count, 5);
            let mut bits = None;
            for instructions in Instructions::available() {
                matrix.instructions = Some(instructions);
                let got = matrix.product(&x, count);
                let rounded = RoundedRows::new(&x, inputs, instructions).rounded();
                let error = error(&got, &weights, &rounded, inputs);
                assert!(error <= 1e-6, "{format:?} {instructions:?} {count}: {error}");
                let alone: Vec<f32> = x.chunks(inputs).flat_map(|row| matrix.product(row, 1)).collect();
                assert_eq!(got, alone, "{format:?} {instructions:?} {count}");
                assert_eq!(bits.get_or_insert_with(|| got.clone()), &got, "{format:?} {instructions:?}");
            }
        }
    }
}

#[test]
fn a_quantised_product_is_near_candles_own() {
    // candle rounds the input to blocks of eight bits, which is where they differ.
    for (format, kind) in QUANTISED {
        let (inputs, outputs) = (1024, 33);
        let blocks = stored(format, outputs * inputs / format.block(), 9);
        let storage = candle_core::quantized::QStorage::from_data((&blocks).into(), &Device::Cpu, kind);
        let tensor = candle_core::quantized::QTensor::new(storage.unwrap(), (outputs, inputs)).unwrap();
        let x = numbers(inputs * 3, 4);
        let own = Tensor::from_slice(&x, (3, inputs), &Device::Cpu).unwrap();
        let product = QMatMul::from_qtensor(tensor).unwrap();
        let expected: Vec<f32> =
            candle_core::Module::forward(&product, &own).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        let mut matrix = Matrix::new(inputs);
        matrix.push(format, &blocks);
        let got = matrix.product(&x, 3);
        let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        for (got, expected) in got.iter().zip(&expected) {
            assert!((got - expected).abs() <= 0.03 * largest, "{format:?}: {got} {expected}");
        }
    }
}

#[test]
fn parts_of_several_formats_are_one_matrix() {
    let inputs = 256;
    let mut matrix = Matrix::new(inputs);
    let mut weights = Vec::new();
    for (format, kind) in QUANTISED {
        let blocks = stored(format, 21 * inputs / format.block(), 5);
        weights.extend(dequantised(kind, &blocks, 21, inputs));
        matrix.push(format, &blocks);
    }
    // One row is computed without threads, twenty rows with them.
    for count in [1, 20] {
        let x = numbers(inputs * count, 6);
        let rounded = match matrix.instructions {
            Some(instructions) => RoundedRows::new(&x, inputs, instructions).rounded(),
            None => x.clone(),
        };
        assert!(error(&matrix.product(&x, count), &weights, &rounded, inputs) <= 1e-6, "{count}");
    }
    assert!(20 * matrix.outputs * inputs >= PARALLEL && matrix.outputs * inputs < PARALLEL);
    let rows = matrix.rows(&[20, 21, 150]).unwrap().to_vec2::<f32>().unwrap();
    let row = |row: usize| &weights[row * inputs..][..inputs];
    assert_eq!(rows, [row(20), row(21), row(150)]);
}

#[test]
fn rows_together_and_alone_and_with_threads_are_the_same_bits() {
    // Large enough for threads when together.
    let (inputs, outputs, count) = (96, 1300, 19);
    let (matrix, _) = filled(inputs, outputs);
    assert!(inputs * outputs * count >= PARALLEL && inputs * outputs < PARALLEL);
    let x = numbers(inputs * count, 3);
    let together = matrix.product(&x, count);
    let alone: Vec<f32> = x.chunks(inputs).flat_map(|row| matrix.product(row, 1)).collect();
    assert_eq!(together, alone);
}
