//! Attention over keys and values in each format, against sums in 64 bits.

use candle_core::{Device, Tensor};
use half::f16;

use super::{
    super::kv::{KvMemory, SPAN_POSITIONS, Side},
    *,
};
use crate::model::formats::{GROUP, KvFormat};

// The blocks of a tile lie next to each other.
const _: () = assert!(SPAN_POSITIONS.is_multiple_of(TILE));

const FORMATS: [KvFormat; 3] = [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0];

#[test]
fn a_query_sees_the_keys_of_its_window() {
    let attention = Attention { position: 5, first_key: 3, window: Some(3) };
    // Query 5 sees 3, 4, 5; query 6 sees 4, 5, 6.
    assert_eq!(attention.visible(0, 4), 0..3);
    assert_eq!(attention.visible(1, 4), 1..4);
    let attention = Attention { position: 5, first_key: 0, window: None };
    assert_eq!(attention.visible(1, 7), 0..7);
}

/// Keys and values `[heads, positions, size]` as the cache has them, in the second of three layers, with room
/// for some more.
struct StoredSides(KvMemory);

impl StoredSides {
    fn new(format: KvFormat, keys: &Tensor, values: &Tensor) -> Self {
        let (heads, positions, size) = keys.dims3().unwrap();
        let room = positions.max(values.dim(1).unwrap()) + 20;
        let mut memory = KvMemory::new(3, [heads, room, size], format).unwrap();
        // Values past the end, and those of other layers, must not matter, so they are NaN.
        let nan = Tensor::full(f32::NAN, (heads, room, size), &Device::Cpu).unwrap();
        for (layer, side) in (0..3).flat_map(|layer| Side::ALL.map(|side| (layer, side))) {
            memory.write(layer, side, &nan, 0).unwrap();
        }
        memory.write(1, Side::Keys, keys, 0).unwrap();
        memory.write(1, Side::Values, values, 0).unwrap();
        Self(memory)
    }

    /// Computes attention to them.
    fn attend(&self, attention: Attention, queries: &Tensor) -> Result<Tensor> {
        let scale = 1.0 / (queries.dim(2)? as f32).sqrt();
        attention.apply(scale, queries, Side::ALL.map(|side| self.0.side(1, side)))
    }
}

/// Numbers of -1 to 1, times `scale`.
fn random(shape: [usize; 3], seed: u32, scale: f32) -> (Vec<f32>, Tensor) {
    let mut state = seed;
    let numbers: Vec<f32> = (0..shape.iter().product())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            scale * (f32::from(u16::try_from(state >> 16).unwrap()) / 32768.0 - 1.0)
        })
        .collect();
    let tensor = Tensor::from_slice(&numbers, &shape, &Device::Cpu).unwrap();
    (numbers, tensor)
}

/// What a format makes of the numbers of a head, slowly, and how far each may be from what it was.
fn rounded(format: KvFormat, row: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let exactly = |number: f32| f64::from(number);
    match format {
        KvFormat::F32 => (row.iter().copied().map(exactly).collect(), vec![0.0; row.len()]),
        KvFormat::F16 => (
            row.iter().map(|&number| f16::from_f32(number).to_f64()).collect(),
            row.iter().map(|&number| exactly(number).abs() / 2048.0 + 2_f64.powi(-25)).collect(),
        ),
        KvFormat::Q8_0 => {
            let (mut numbers, mut errors) = (Vec::new(), Vec::new());
            for group in row.chunks(GROUP) {
                let most = group.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
                let factor = f16::from_f32(most / 127.0).to_f32();
                for number in group {
                    let quant = if factor > 0.0 { (number * (1.0 / factor)).round_ties_even() } else { 0.0 };
                    numbers.push(exactly(quant.clamp(-127.0, 127.0) * factor));
                    // Half of a step; less is lost where 127 steps do not reach the largest number.
                    errors.push(exactly(factor) * 0.5001);
                }
            }
            (numbers, errors)
        }
    }
}

#[test]
fn equal_scores_give_the_mean_of_the_visible_values() {
    // Two heads, one key head, odd sizes; keys of zero weigh all that is seen alike.
    let queries = Tensor::ones((2, 2, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
    let keys = Tensor::zeros((1, 4, 3), candle_core::DType::F32, &Device::Cpu).unwrap();
    let values = Tensor::arange(0.0_f32, 27.0, &Device::Cpu).unwrap().reshape((1, 9, 3)).unwrap();
    let stored = StoredSides::new(KvFormat::F32, &keys, &values);
    let attention = Attention { position: 2, first_key: 0, window: Some(2) };
    let out = stored.attend(attention, &queries).unwrap().to_vec2::<f32>().unwrap();
    // Position 2 sees 1 and 2; position 3 sees 2 and 3. Rows of positions start at 3, 6, 9.
    assert_eq!(out, [[4.5, 5.5, 6.5, 4.5, 5.5, 6.5], [7.5, 8.5, 9.5, 7.5, 8.5, 9.5]]);
    let past = Attention { position: 31, first_key: 0, window: None };
    assert!(stored.attend(past, &queries).is_err());
}

#[test]
fn a_query_gets_the_same_bits_whatever_shares_the_pass() {
    // Enough for threads when together, over several tiles. A window far shorter than the pass, one about as
    // long, none.
    let (heads, kv_heads, size, total) = (6, 2, 40, 205);
    let (_, queries) = random([heads, total, size], 1, 3.0);
    let (_, keys) = random([kv_heads, total, size], 2, 3.0);
    let (_, values) = random([kv_heads, total, size], 3, 3.0);
    assert!(heads * total * total * size >= PARALLEL);
    for format in FORMATS {
        let stored = StoredSides::new(format, &keys, &values);
        for window in [Some(2), Some(17), Some(64), Some(150), None] {
            let attend = |position: usize, count: usize| {
                let queries = queries.narrow(1, position, count).unwrap().contiguous().unwrap();
                let attention = Attention { position, first_key: 0, window };
                stored.attend(attention, &queries).unwrap().to_vec2::<f32>().unwrap()
            };
            let together = attend(0, total);
            assert!(together.iter().flatten().all(|number| number.is_finite()), "{format} {window:?}");
            let mut position = 0;
            for count in [1, 1, 2, 5, 16, 3, 40, 7, 80, 1, 4, 45] {
                assert_eq!(
                    attend(position, count),
                    together[position..position + count],
                    "{format} {window:?} {position}"
                );
                position += count;
            }
            assert_eq!(position, total);
        }
    }
}

/// Attention of one query in `f64`, to rows of keys and values.
fn slowly(query: &[f32], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let score = |key: &Vec<f64>| scale * key.iter().zip(query).map(|(a, b)| a * f64::from(*b)).sum::<f64>();
    let scores: Vec<f64> = keys.iter().map(score).collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    let sum = |dim: usize| weights.iter().zip(values).map(|(weight, value)| weight * value[dim]).sum::<f64>();
    (0..query.len()).map(|dim| sum(dim) / total).collect()
}

#[test]
fn attention_is_near_sums_in_f64_for_every_head_size() {
    // Two heads for each key head; 3 new tokens after as many as do not end with a tile.
    for (size, before) in
        [(3, 20), (8, 70), (16, 62), (32, 130), (40, 129), (64, 200), (80, 20), (128, 90), (256, 70)]
    {
        let (queries, queries_tensor) = random([2, 3, size], 4, 2.0);
        let (keys, keys_tensor) = random([1, before + 3, size], 5, 2.0);
        let (values, values_tensor) = random([1, before + 3, size], 6, 2.0);
        let attention = Attention { position: before, first_key: 0, window: Some(before - 5) };
        let apply = |format: KvFormat| {
            let stored = StoredSides::new(format, &keys_tensor, &values_tensor);
            stored.attend(attention, &queries_tensor).unwrap().to_vec2::<f32>().unwrap()
        };
        let plain = apply(KvFormat::F32);
        for format in FORMATS {
            let got = apply(format);
            for (head, index) in (0..2).flat_map(|head| (0..3).map(move |index| (head, index))) {
                let query = &queries[(head * 3 + index) * size..][..size];
                let seen = index + 6..before + index + 1;
                let stored = |numbers: &[f32]| -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
                    let rows = numbers.chunks(size).skip(seen.start).take(seen.len());
                    rows.map(|row| rounded(format, row)).unzip()
                };
                let ((keys, key_errors), (values, value_errors)) = (stored(&keys), stored(&values));
                let expected = slowly(query, &keys, &values);
                // A score is off by no more than the sum over its numbers, so a weight by no more than a
                // factor of this, and a sum of values by its errors and what the weights do.
                let off = |errors: &Vec<f64>| {
                    let sum: f64 = errors.iter().zip(query).map(|(e, q)| e * f64::from(q.abs())).sum();
                    sum / (size as f64).sqrt()
                };
                let weights = (2.0 * key_errors.iter().map(off).fold(0.0, f64::max)).exp() - 1.0;
                let most = |rows: &[Vec<f64>]| rows.iter().flatten().fold(0.0_f64, |a, b| a.max(b.abs()));
                let bound = most(&value_errors) + weights * (most(&values) + most(&value_errors)) + 2e-5;
                for (dim, &expected) in expected.iter().enumerate() {
                    let place = (index, head * size + dim);
                    let (got, plain) = (got[place.0][place.1], plain[place.0][place.1]);
                    let (got, plain) = (f64::from(got), f64::from(plain));
                    assert!((got - expected).abs() < 1e-5, "{format} {size}: {got} {expected}");
                    assert!((got - plain).abs() <= bound, "{format} {size}: {got} {plain}, {bound}");
                }
            }
        }
    }
}

#[test]
fn a_largest_score_in_any_tile_is_the_largest() {
    // One key far above the others, in each place of several tiles: its value is what is had.
    let (size, total) = (16, 3 * TILE + 9);
    let queries = Tensor::full(10.0_f32, (1, 1, size), &Device::Cpu).unwrap();
    let (values, values_tensor) = random([1, total, size], 7, 1.0);
    for place in (0..total).step_by(5) {
        let keys: Vec<f32> =
            (0..total * size).map(|number| if number / size == place { 9.0 } else { -9.0 }).collect();
        let keys = Tensor::from_vec(keys, (1, total, size), &Device::Cpu).unwrap();
        let stored = StoredSides::new(KvFormat::F32, &keys, &values_tensor);
        let attention = Attention { position: total - 1, first_key: 0, window: None };
        let got = stored.attend(attention, &queries).unwrap().to_vec2::<f32>().unwrap();
        for (got, value) in got[0].iter().zip(&values[place * size..]) {
            assert!((got - value).abs() < 1e-6, "{place}: {got} {value}");
        }
    }
}
