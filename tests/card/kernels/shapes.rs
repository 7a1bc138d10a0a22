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

#[test]
fn heads_past_the_kernels_are_refused_with_a_way_out() {
    let place = Placement::emulated(false);
    let error = TensorModel::random(&random([516, 2, 1]), &LoadOptions::default(), place).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("258 numbers") && said.contains("--card blocks"), "{said}");
    let blocks = place.with_mode(domino::model::candle::CardMode::Blocks);
    TensorModel::random(&random([516, 2, 1]), &LoadOptions::default(), blocks).unwrap();
}
