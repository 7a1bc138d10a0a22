//! Layers with states go back to any place of a text, and go on from there as if nothing else had been seen.

use std::num::NonZeroUsize;

use domino::{
    TokenId,
    model::{
        BatchInput, BatchModel, Logits, Model, Rows,
        candle::{CandleBatch, CandleModel, LoadOptions},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::model::runner::fixture;

const FIXTURES: [&str; 2] = ["qwen3_5_tied", "qwen3_5_image"];

fn text(random: &mut impl Rng, length: usize) -> Vec<TokenId> {
    (0..length).map(|_| TokenId::new(random.random_range(0..97))).collect()
}

/// Rows of a text, one token at a time, of a model that sees nothing else.
fn rows_alone(name: &str, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    let mut model = CandleModel::load(fixture(name), &LoadOptions::default()).unwrap();
    let row = |token| model.forward(&[token], Rows::Last).unwrap().last().unwrap().to_vec();
    tokens.iter().copied().map(row).collect()
}

fn rows(logits: &Logits) -> Vec<&[f32]> {
    (0..logits.rows()).map(|index| logits.row(index).unwrap()).collect()
}

/// Passes of any lengths, after truncation to any place: within the last pass, before it, before all that is
/// kept, at the beginning. What was taken back had other tokens than what comes.
#[test]
fn rows_after_truncation_anywhere_are_those_of_the_text_alone() {
    let mut random = StdRng::seed_from_u64(7);
    for name in FIXTURES {
        let tokens = text(&mut random, 230);
        let expected = rows_alone(name, &tokens);
        let mut model = CandleModel::load(fixture(name), &LoadOptions::default()).unwrap();
        let mut far = 0;
        for round in 0..300 {
            // Other tokens, which are taken back.
            let at = model.position();
            let detour = random.random_range(0..=(230 - at).min(50));
            if detour > 0 {
                model.forward(&text(&mut random, detour), Rows::Last).unwrap();
            }
            let back = match random.random_range(0..10) {
                0 => at,
                1 => random.random_range(0..=at),
                2 | 3 => random.random_range(0..=at.min(9)),
                _ => 0,
            };
            far += usize::from(back > 0);
            model.truncate(at - back).unwrap();
            let at = at - back;
            let longest = if random.random_bool(0.2) { 120 } else { 9 };
            let count = random.random_range(1..=longest).min(230 - at);
            if count == 0 {
                model.truncate(random.random_range(0..at)).unwrap();
                continue;
            }
            let logits = model.forward(&tokens[at..at + count], Rows::All).unwrap();
            for (index, row) in rows(&logits).into_iter().enumerate() {
                assert_eq!(row, expected[at + index], "{name}, round {round}, token {}", at + index);
            }
        }
        assert!(far > 50, "{far}");
    }
}

#[test]
fn sequences_of_a_batch_have_states_of_their_own() {
    let mut random = StdRng::seed_from_u64(8);
    for name in FIXTURES {
        let texts: Vec<Vec<TokenId>> = (0..3).map(|_| text(&mut random, 150)).collect();
        let expected: Vec<Vec<Vec<f32>>> = texts.iter().map(|tokens| rows_alone(name, tokens)).collect();
        let sequences = NonZeroUsize::new(3).unwrap();
        let mut batch = CandleBatch::load(fixture(name), sequences, &LoadOptions::default()).unwrap();
        // Blocks of keys and values are no copy of a state.
        assert_eq!(batch.copied_block(), None);
        for _ in 0..80 {
            let mut inputs = Vec::new();
            for (sequence, tokens) in texts.iter().enumerate() {
                let back = if random.random_bool(0.3) {
                    random.random_range(0..=batch.position(sequence))
                } else {
                    0
                };
                let at = batch.position(sequence) - back;
                batch.truncate(sequence, at).unwrap();
                let count = random.random_range(0..=40).min(150 - at);
                if count > 0 {
                    inputs.push(BatchInput { sequence, tokens: &tokens[at..at + count], rows: Rows::All });
                }
            }
            let places: Vec<usize> = inputs.iter().map(|input| batch.position(input.sequence)).collect();
            let logits = batch.forward(&inputs).unwrap();
            for ((input, at), logits) in inputs.iter().zip(places).zip(&logits) {
                let expected = &expected[input.sequence][at..];
                assert!(
                    rows(logits).into_iter().zip(expected).all(|(row, expected)| row == expected),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn the_memory_estimate_counts_states() {
    let estimate = |name: &str| CandleModel::estimate(fixture(name), &LoadOptions::default()).unwrap().cache;
    // One layer of attention: of one head of 16 keys and values, 256 positions; a table of 4 numbers each.
    let attention = 4 * 256 * (2 * 16 + 4);
    // Three states of 4 heads, twice, and 68 rows of 80 inputs, as many outputs, and more.
    let states = 3 * 4 * (2 * 4 * 8 * 12 + 68 * (2 * 80 + 48 + 2 * 4));
    assert_eq!(estimate("qwen3_5_tied"), attention + states);
}
