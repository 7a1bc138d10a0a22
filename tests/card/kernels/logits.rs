//! Compares rows of logits with those of the CPU's runner.

use domino::model::{
    Model, Rows,
    candle::{CandleModel, LoadOptions, Placement, Precision, TensorModel},
};

use super::{emulated, fixtures, some_tokens};
use crate::model::gguf;

/// Returns the largest difference between the rows of two models, relative to the largest logit. Both get the
/// same tokens, in parts of `size`.
fn distance(own: &mut CandleModel, card: &mut TensorModel, size: usize) -> f32 {
    own.truncate(0).unwrap();
    card.truncate(0).unwrap();
    let tokens = some_tokens(40, own.vocabulary_size());
    let (mut difference, mut largest) = (0.0_f32, 0.0_f32);
    for part in tokens.chunks(size) {
        let expected = own.forward(part, Rows::All).unwrap();
        let got = card.forward(part, Rows::All).unwrap();
        assert_eq!((got.rows(), got.width()), (part.len(), own.vocabulary_size()));
        for index in 0..got.rows() {
            for (a, b) in got.row(index).unwrap().iter().zip(expected.row(index).unwrap()) {
                // NaN is a difference too.
                difference = if (a - b).abs() <= difference { difference } else { (a - b).abs() };
                largest = largest.max(b.abs());
            }
        }
    }
    assert_eq!(card.position(), tokens.len());
    difference / largest
}

#[test]
fn logits_are_those_of_the_cpus_runner() {
    for path in fixtures() {
        let mut own = CandleModel::load(&path, &gguf::exact()).unwrap();
        let mut card = emulated(&path, Precision::F32);
        // More rows than a pass has, as many, few, one.
        for size in [40, 16, 7, 1] {
            let distance = distance(&mut own, &mut card, size);
            assert!(distance <= 1e-4, "{}, {size} at a time: {distance}", path.display());
        }
    }
}

/// Rounding to sixteen bits takes both runners away from the exact logits, at different places, so the
/// largest differences are of one order: a mistake of a kernel is far larger.
#[test]
fn sixteen_bits_round_off_as_much_as_candles_tensors() {
    for precision in [Precision::F16, Precision::Bf16] {
        for path in fixtures() {
            let mut own = CandleModel::load(&path, &gguf::exact()).unwrap();
            let tensors = Placement::CPU.with_precision(precision);
            let mut tensors = TensorModel::load(&path, &LoadOptions::default(), tensors).unwrap();
            let theirs = distance(&mut own, &mut tensors, 9);
            let ours = distance(&mut own, &mut emulated(&path, precision), 9);
            assert!(ours <= 4.0 * theirs, "{} in {precision}: {ours}, {theirs}", path.display());
        }
    }
}

#[test]
fn a_prompt_by_tensors_and_tokens_by_kernels_share_the_cache() {
    for path in fixtures() {
        let mut own = CandleModel::load(&path, &gguf::exact()).unwrap();
        let mut card = emulated(&path, Precision::F32);
        let tokens = some_tokens(40, own.vocabulary_size());
        // Candle's tensors run all but the last token of a long prompt, and kernels a short one.
        for prompt in [30, 17, 16, 5] {
            own.truncate(0).unwrap();
            card.truncate(0).unwrap();
            let parts = [&tokens[..prompt], &tokens[prompt..prompt + 1], &tokens[prompt + 1..prompt + 5]];
            for part in parts {
                let expected = own.forward(part, Rows::Last).unwrap();
                let got = card.forward(part, Rows::Last).unwrap();
                let largest = expected.last().unwrap().iter().fold(0.0_f32, |most, x| most.max(x.abs()));
                for (a, b) in got.last().unwrap().iter().zip(expected.last().unwrap()) {
                    assert!((a - b).abs() <= 1e-4 * largest, "{} {prompt}: {a} {b}", path.display());
                }
            }
        }
    }
}
