//! Tests shapes that the checkpoints do not have: every kernel of attention, keys split over all blocks, long
//! rows.

use domino::model::{
    Model, Rows,
    candle::{CandleModel, Format, LoadOptions, ModelError, Placement, Precision, RandomModel, TensorModel},
};

use super::some_tokens;
use crate::model::gguf;

/// Hidden size, heads, heads of keys: heads of 16, 32, 64, 128, 256, and of 24 and 80 numbers, which are
/// shared by a whole warp.
const SHAPES: [[usize; 3]; 8] =
    [[32, 2, 1], [64, 2, 2], [128, 2, 1], [256, 2, 1], [512, 2, 2], [48, 2, 1], [160, 2, 1], [96, 6, 3]];

fn random([hidden, heads, kv_heads]: [usize; 3]) -> RandomModel {
    let mut random = RandomModel::preset("13m", Format::F32).unwrap();
    (random.hidden, random.heads, random.kv_heads) = (hidden, heads, kv_heads);
    // The gate's last block is not whole.
    (random.intermediate, random.layers, random.vocabulary) = (300, 1, 70);
    random
}

fn options(context: usize, mut options: LoadOptions) -> LoadOptions {
    options.context = Some(context);
    options
}

#[test]
fn logits_of_any_shape_are_those_of_the_cpus_runner() {
    for shape in SHAPES {
        // Splits of the keys from one to all eight, the last one shorter, at several lengths of the last
        // step.
        compare(shape, &[1, 31, 32, 33, 257, 603]);
    }
}

/// A thread of a norm keeps eight numbers, and its block has 512.
#[test]
fn logits_of_rows_that_a_norm_cannot_keep_are_those_of_the_cpus_runner() {
    compare([4160, 20, 1], &[1]);
}

/// Heads that tensor cores compute: with as many heads of keys, and with fewer.
#[test]
fn heads_by_tensor_cores_round_off_as_much_as_candles_tensors() {
    for precision in [Precision::F16, Precision::Bf16] {
        for shape in [[256, 4, 2], [256, 2, 2], [512, 2, 1]] {
            let random = random(shape);
            let place = Placement::CPU.with_precision(precision);
            let card = Placement::emulated(false).with_precision(precision);
            let options = options(700, gguf::exact());
            let mut models: [Box<dyn Model<Error = ModelError>>; 3] = [
                Box::new(CandleModel::random(&random, &options).unwrap()),
                Box::new(TensorModel::random(&random, &options, place).unwrap()),
                Box::new(TensorModel::random(&random, &options, card).unwrap()),
            ];
            for before in [1, 33, 257, 603] {
                let tokens = some_tokens(before + 3, 70);
                let rows = models.each_mut().map(|model| {
                    model.truncate(0).unwrap();
                    model.forward(&tokens[..before], Rows::Last).unwrap();
                    let rows = model.forward(&tokens[before..], Rows::All).unwrap();
                    (0..3).flat_map(|row| rows.row(row).unwrap().to_vec()).collect::<Vec<f32>>()
                });
                let distance = |other: &[f32]| {
                    let differences = rows[0].iter().zip(other).map(|(a, b)| (a - b).abs());
                    differences.fold(0.0_f32, f32::max)
                };
                let (theirs, ours) = (distance(&rows[1]), distance(&rows[2]));
                assert!(ours <= 2.0 * theirs, "{shape:?} in {precision} after {before}: {ours}, {theirs}");
            }
        }
    }
}

/// Compares rows after each of these numbers of tokens with those of the CPU's runner.
fn compare(shape: [usize; 3], lengths: &[usize]) {
    let random = random(shape);
    let mut own = CandleModel::random(&random, &options(700, gguf::exact())).unwrap();
    let place = Placement::emulated(false);
    let mut card = TensorModel::random(&random, &options(700, gguf::exact()), place).unwrap();
    for &before in lengths {
        let tokens = some_tokens(before + 4, 70);
        let (prompt, rest) = tokens.split_at(before);
        let mut rows = Vec::new();
        for model in [&mut own as &mut dyn Model<Error = ModelError>, &mut card] {
            model.truncate(0).unwrap();
            model.forward(prompt, Rows::Last).unwrap();
            rows.push([
                model.forward(&rest[..3], Rows::All).unwrap(),
                model.forward(&rest[3..], Rows::All).unwrap(),
            ]);
        }
        for (expected, got) in rows[0].iter().zip(&rows[1]) {
            for index in 0..expected.rows() {
                let (expected, got) = (expected.row(index).unwrap(), got.row(index).unwrap());
                let largest = expected.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
                for (a, b) in got.iter().zip(expected) {
                    assert!((a - b).abs() <= 1e-4 * largest, "{shape:?} after {before}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn rows_of_any_shape_do_not_depend_on_their_neighbours() {
    for shape in SHAPES {
        for precision in [Precision::F16, Precision::Bf16] {
            let place = Placement::emulated(false).with_precision(precision);
            let mut card = TensorModel::random(&random(shape), &options(700, gguf::exact()), place).unwrap();
            let tokens = some_tokens(310, 70);
            let mut run = |sizes: &[usize]| {
                card.truncate(0).unwrap();
                card.forward(&tokens[..300], Rows::Last).unwrap();
                let (mut rows, mut at) = (Vec::new(), 300);
                for &size in sizes {
                    let logits = card.forward(&tokens[at..at + size], Rows::All).unwrap();
                    at += size;
                    rows.extend((0..size).map(|row| logits.row(row).unwrap().to_vec()));
                }
                rows
            };
            let alone = run(&[1; 10]);
            assert_eq!(alone, run(&[10]), "{shape:?} in {precision}");
            assert_eq!(alone, run(&[3, 1, 6]), "{shape:?} in {precision}");
        }
    }
}

/// By Candle's tensors, whose rows are the CPU's but for roundings.
#[test]
fn heads_past_the_kernels_are_computed_all_the_same() {
    compare([516, 2, 1], &[1, 33]);
}
