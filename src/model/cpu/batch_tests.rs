//! Sequences of a batch keep to the memory that they may take together, and get the same rows.

use super::*;
use crate::model::{Rows, cpu::load::LoadOptions, files::random::RandomModel, formats::Format};

/// Three sequences of at most 1024 tokens, of which each takes 1024 bytes.
fn batch(tokens: Option<usize>) -> CandleBatch {
    let mut model = RandomModel::preset("13m", Format::Q8_0).unwrap();
    (model.hidden, model.intermediate, model.layers) = (128, 64, 2);
    (model.heads, model.kv_heads, model.vocabulary) = (4, 2, 32);
    let options = LoadOptions { context: Some(1024), tokens, ..LoadOptions::default() };
    CandleBatch::random(&model, NonZeroUsize::new(3).unwrap(), &options).unwrap()
}

/// Tokens whose memory each sequence has taken.
fn touched(batch: &CandleBatch) -> Vec<usize> {
    batch.caches.iter().map(|cache| cache.touched(0)).collect()
}

#[test]
fn memory_is_reserved_in_pieces_of_which_no_sequence_takes_more_than_its_context() {
    let batch = batch(None);
    let reserved = [0, 1, 64, 65, 1000, 1024, 5000].map(|tokens| batch.reserved(tokens));
    assert_eq!(reserved, [0, 64, 64, 128, 1024, 1024, 1024]);
}

#[test]
fn memory_goes_back_before_others_would_take_too_much() {
    let (mut bounded, mut free) = (batch(Some(1024)), batch(None));
    let mut give = |changes: &[(usize, usize)], inputs: &[(usize, usize)]| {
        let tokens: Vec<Vec<TokenId>> = inputs
            .iter()
            .map(|&(_, count)| (0..30).cycle().take(count).map(TokenId::new).collect())
            .collect();
        let inputs: Vec<BatchInput<'_>> = inputs
            .iter()
            .zip(&tokens)
            .map(|(&(sequence, _), tokens)| BatchInput { sequence, tokens, rows: Rows::Last })
            .collect();
        for &(sequence, position) in changes {
            bounded.truncate(sequence, position).unwrap();
            free.truncate(sequence, position).unwrap();
        }
        assert_eq!(bounded.forward(&inputs).unwrap(), free.forward(&inputs).unwrap());
        (touched(&bounded), touched(&free))
    };
    assert_eq!(give(&[], &[(0, 500)]), (vec![512, 0, 0], vec![512, 0, 0]));
    // An empty cache keeps its memory while there is enough.
    assert_eq!(give(&[(0, 0)], &[(1, 400)]).0, [512, 448, 0]);
    assert_eq!(give(&[], &[(2, 70)]).0, [0, 448, 128]);
    // One that was cut back gives back what it does not need, and goes on.
    assert_eq!(give(&[(1, 100)], &[(2, 700)]), (vec![0, 128, 832], vec![512, 448, 832]));
    assert_eq!(give(&[], &[(1, 50), (2, 1)]).0, [0, 192, 832]);
    // Two at once, of which one has memory and is empty.
    assert_eq!(give(&[(2, 0)], &[(0, 300), (2, 200)]).0, [320, 192, 256]);
    assert_eq!(give(&[(1, 20), (0, 0)], &[(1, 1), (0, 5)]).0, [320, 192, 256]);
}
