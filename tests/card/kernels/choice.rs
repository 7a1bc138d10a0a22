//! Compares choices by the kernel with those from rows in memory.

use domino::{
    TokenId,
    decode::{Sampler, Sampling},
    model::{KeptRows, RowChoice, Rows, candle::Precision},
    vocab::TokenSet,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{emulated, some_tokens};
use crate::model::runner;

#[test]
fn draws_from_kept_rows_are_those_from_rows() {
    let mut random = StdRng::seed_from_u64(3);
    for precision in [Precision::F32, Precision::Bf16] {
        let mut card = emulated(&runner::fixture("qwen2_tied_yarn"), precision);
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
        for size in [vocabulary, 0] {
            let none = RowChoice { allowed: &TokenSet::empty(size), draw: None, near: None };
            assert_eq!(rows.choose(0, &[none]).unwrap().unwrap()[0].token, None);
        }
    }
}
