//! Compares choices by the kernel with those from rows in memory.

use std::fs;

use domino::{
    TokenId,
    decode::{KeptDrawError, Sampler, Sampling},
    model::{KeptRows, Rows, candle::Precision},
    vocab::TokenSet,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value;
use tempfile::TempDir;

use super::{emulated, some_tokens};
use crate::model;

#[test]
fn draws_from_kept_rows_are_those_from_rows() {
    let mut random = StdRng::seed_from_u64(3);
    for precision in [Precision::F32, Precision::Bf16] {
        let mut card = emulated(&model::fixture("qwen2_tied_yarn"), precision);
        let vocabulary = domino::model::Model::vocabulary_size(&card);
        let rows = card.launch(&some_tokens(20, vocabulary), Rows::All).unwrap();
        let logits = rows.fetch().unwrap();
        assert_eq!((rows.rows(), logits.rows()), (20, 20));
        let mut others = 0;
        for sampling in [Sampling::greedy(), Sampling::with_temperature(1.0).unwrap()] {
            let sampler = Sampler::new(sampling, 3);
            for position in 0..20 {
                // Sets may be smaller than the vocabulary: tokens past them do not count.
                let size = [vocabulary, vocabulary - 1, 64, 33][position % 4];
                let mut allowed = TokenSet::empty(size);
                let share = [1.0, 0.5, 0.02][position % 3];
                for id in (0..size).filter(|_| random.random_bool(share)) {
                    allowed.insert(TokenId::from_index(id).unwrap());
                }
                let row = logits.row(position).unwrap();
                if allowed.is_empty() {
                    allowed.insert(TokenId::new(1));
                }
                let expected = sampler.draw(row, &allowed, position).unwrap();
                assert_eq!(sampler.draw_kept(&rows, position, &allowed, position).unwrap(), expected);
                let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                others += usize::from(row[expected.index()] < best);
            }
        }
        assert!(others > 0, "masks and noise made a difference");
        assert_eq!(rows.likeliest(0, &TokenSet::empty(vocabulary)).unwrap(), None);
        assert_eq!(rows.likeliest(0, &TokenSet::empty(0)).unwrap(), None);
    }
}

/// A copy of a checkpoint whose last norm has a weight that is NaN.
fn with_nan() -> TempDir {
    let (from, to) = (model::fixture("mistral_tied"), TempDir::new().unwrap());
    for entry in fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    let file = to.path().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let head = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let names: Value = serde_json::from_slice(&bytes[8..8 + head]).unwrap();
    let norm = &names["model.norm.weight"];
    assert_eq!(norm["dtype"], "F32");
    let start = 8 + head + usize::try_from(norm["data_offsets"][0].as_u64().unwrap()).unwrap();
    bytes[start..start + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    to
}

#[test]
fn weights_that_are_no_numbers_end_in_an_error_and_not_in_a_token() {
    let folder = with_nan();
    for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
        let mut card = emulated(folder.path(), precision);
        let vocabulary = domino::model::Model::vocabulary_size(&card);
        let mut allowed = TokenSet::empty(vocabulary);
        (0..vocabulary).for_each(|id| allowed.insert(TokenId::from_index(id).unwrap()));
        let rows = card.launch(&some_tokens(3, vocabulary), Rows::All).unwrap();
        for sampling in [Sampling::greedy(), Sampling::with_temperature(1.0).unwrap()] {
            let error = Sampler::new(sampling, 0).draw_kept(&rows, 2, &allowed, 0).unwrap_err();
            assert!(matches!(error, KeptDrawError::Draw(_)), "{error:?}");
        }
    }
}
