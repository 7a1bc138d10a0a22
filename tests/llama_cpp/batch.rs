//! Several texts share passes, and none sees the others.

use std::num::NonZeroUsize;

use domino::{
    TokenId,
    model::{BatchInput, BatchModel, Logits, Model, Rows, candle::ModelErrorKind},
};
use domino_llama_cpp::{LlamaCppBatch, LlamaCppOptions};

use crate::{FIXTURES, ROUNDING, distance, expected, fixture, load};

fn batch(name: &str, apart: bool) -> LlamaCppBatch {
    let mut options = LlamaCppOptions::default();
    (options.apart, options.context) = (apart, Some(64));
    LlamaCppBatch::load(fixture(name), NonZeroUsize::new(3).unwrap(), &options).unwrap()
}

fn input<'a>(sequence: usize, tokens: &'a [TokenId], rows: Rows<'a>) -> BatchInput<'a> {
    BatchInput { sequence, tokens, rows }
}

fn pairs<'a>(one: &'a Logits, other: &'a Logits) -> impl Iterator<Item = (&'a [f32], &'a [f32])> {
    assert_eq!(one.rows(), other.rows());
    (0..one.rows()).map(|row| (one.row(row).unwrap(), other.row(row).unwrap()))
}

#[test]
fn rows_of_sequences_are_those_of_a_text_alone() {
    for (name, apart) in FIXTURES.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        let (mut model, mut batch, (tokens, _)) = (load(name), batch(name, apart), expected(name));
        let reversed: Vec<TokenId> = tokens.iter().rev().copied().collect();
        let alone = model.forward(&tokens, Rows::All).unwrap();
        model.truncate(0).unwrap();
        let other = model.forward(&reversed, Rows::All).unwrap();
        // Different numbers of tokens in each pass, and a cut between them.
        let (start, rest) = tokens.split_at(9);
        let first = batch.forward(&[input(2, start, Rows::All), input(0, &reversed, Rows::All)]).unwrap();
        batch.forward(&[input(1, &reversed[..3], Rows::Last), input(2, &reversed[..5], Rows::Last)]).unwrap();
        batch.truncate(2, start.len()).unwrap();
        let second =
            batch.forward(&[input(1, &reversed[3..], Rows::Last), input(2, rest, Rows::All)]).unwrap();
        let errors = [
            distance(pairs(&first[0], &alone.part(0, start.len()))),
            distance(pairs(&first[1], &other)),
            distance(pairs(&second[0], &other.part(other.rows() - 1, 1))),
            distance(pairs(&second[1], &alone.part(start.len(), rest.len()))),
        ];
        assert!(errors.iter().all(|error| *error <= ROUNDING), "{name}, apart {apart}: {errors:?}");
    }
}

/// Bit for bit, whatever the others are given.
#[test]
fn sequences_apart_do_not_depend_on_each_other() {
    for name in FIXTURES {
        let (tokens, _) = expected(name);
        let rows = |others: &[usize]| {
            let mut batch = batch(name, true);
            let mut all = Vec::new();
            for part in tokens.chunks(5) {
                let mut inputs = vec![input(1, part, Rows::All)];
                inputs.extend(others.iter().map(|&other| input(other, &part[..1], Rows::Last)));
                all.push(batch.forward(&inputs).unwrap().swap_remove(0));
            }
            all
        };
        let alone = rows(&[]);
        assert!(alone == rows(&[0, 2]) && alone == rows(&[2]), "{name}");
    }
}

#[test]
fn a_pass_that_cannot_be_made_changes_no_sequence() {
    let (mut batch, (tokens, _)) = (batch("llama_q8_0", false), expected("llama_q8_0"));
    batch.forward(&[input(0, &tokens, Rows::Last)]).unwrap();
    let mut kind = |inputs: &[BatchInput<'_>]| batch.forward(inputs).unwrap_err().kind().clone();
    let (one, two) = (&tokens[..1], &tokens[..2]);
    assert_eq!(kind(&[input(3, one, Rows::Last)]), ModelErrorKind::NoSuchSequence(3));
    let twice = [input(1, one, Rows::Last), input(1, two, Rows::Last)];
    assert_eq!(kind(&twice), ModelErrorKind::SequenceTwice(1));
    assert_eq!(kind(&[input(1, one, Rows::Last), input(2, &[], Rows::Last)]), ModelErrorKind::NoTokens);
    assert_eq!(batch.truncate(3, 0).unwrap_err().kind(), &ModelErrorKind::NoSuchSequence(3));
    let positions = [0, 1, 2, 3].map(|sequence| batch.position(sequence));
    assert_eq!(positions, [tokens.len(), 0, 0, 0]);
    assert_eq!((batch.sequences(), batch.context()), (3, 64));
}
