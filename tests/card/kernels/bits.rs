//! Tests that rows do not depend, to the bit, on their neighbours or on the order of threads.

use domino::{
    TokenId,
    model::{
        Model, Rows,
        candle::{LoadOptions, Placement, Precision, TensorModel},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{emulated, fixtures, some_tokens};

/// Returns the bits of all rows of `tokens`, which the model gets in parts of these sizes.
fn bits(model: &mut TensorModel, tokens: &[TokenId], sizes: &[usize]) -> Vec<Vec<u32>> {
    model.truncate(0).unwrap();
    let (mut rows, mut rest) = (Vec::new(), tokens);
    for &size in sizes {
        let (part, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        if part.is_empty() {
            break;
        }
        let logits = model.forward(part, Rows::All).unwrap();
        rows.extend(
            (0..logits.rows()).map(|row| {
                logits.row(row).unwrap().iter().map(|logit| logit.to_bits()).collect::<Vec<u32>>()
            }),
        );
    }
    rows
}

#[test]
fn a_row_is_the_same_however_tokens_are_split_into_passes() {
    let mut random = StdRng::seed_from_u64(7);
    for path in fixtures() {
        for precision in [Precision::F32, Precision::F16, Precision::Bf16] {
            let mut model = emulated(&path, precision);
            let tokens = some_tokens(40, model.vocabulary_size());
            let alone = bits(&mut model, &tokens, &[1; 40]);
            assert_eq!(alone.len(), 40);
            for _ in 0..3 {
                let sizes: Vec<usize> = (0..40).map(|_| random.random_range(1..=17)).collect();
                let split = bits(&mut model, &tokens, &sizes);
                assert!(alone == split, "{} in {precision}: {sizes:?}", path.display());
            }
        }
    }
}

#[test]
fn refused_drafts_leave_no_trace_in_the_rows() {
    let mut random = StdRng::seed_from_u64(8);
    for path in fixtures() {
        let mut model = emulated(&path, Precision::Bf16);
        let tokens = some_tokens(30, model.vocabulary_size());
        let alone = bits(&mut model, &tokens, &[1; 30]);
        model.truncate(0).unwrap();
        let mut rows = Vec::new();
        while rows.len() < tokens.len() {
            // Some tokens of the draft are those of the text; the others are taken back.
            let at = rows.len();
            let right = random.random_range(1..=(tokens.len() - at).min(16));
            let mut draft = tokens[at..at + right].to_vec();
            let wrong = random.random_range(0..=16 - right);
            draft.extend((0..wrong).map(|index| tokens[(at + 3 * index + 11) % tokens.len()]));
            let logits = model.forward(&draft, Rows::All).unwrap();
            for row in 0..right {
                rows.push(logits.row(row).unwrap().iter().map(|x| x.to_bits()).collect::<Vec<u32>>());
            }
            model.truncate(at + right).unwrap();
        }
        assert!(rows == alone, "{}", path.display());
    }
}

/// Races between barriers show where threads run in another order.
#[test]
fn the_order_of_threads_changes_nothing() {
    for path in fixtures() {
        for precision in [Precision::F32, Precision::Bf16] {
            let [forwards, backwards] = [false, true].map(|backwards| {
                let placement = Placement::emulated(backwards).with_precision(precision);
                let mut model = TensorModel::load(&path, &LoadOptions::default(), placement).unwrap();
                let tokens = some_tokens(36, model.vocabulary_size());
                bits(&mut model, &tokens, &[5, 16, 1, 14])
            });
            assert!(forwards == backwards, "{} in {precision}", path.display());
        }
    }
}

/// Candle's tensors run the part before the wanted rows if it is long; only its length decides who runs it.
#[test]
fn drafts_on_a_prompt_change_no_bit_of_it() {
    for path in fixtures() {
        let mut model = emulated(&path, Precision::Bf16);
        let tokens = some_tokens(45, model.vocabulary_size());
        for prompt in [30, 17, 9] {
            model.truncate(0).unwrap();
            let plain = model.forward(&tokens[..prompt], Rows::Last).unwrap();
            let next = model.forward(&tokens[prompt..=prompt], Rows::Last).unwrap();
            model.truncate(0).unwrap();
            let sets = vec![domino::vocab::TokenSet::empty(model.vocabulary_size()); 8];
            let drafted = model.forward(&tokens[..prompt + 7], Rows::Among(&sets)).unwrap();
            assert_eq!(drafted.row(0), plain.last(), "{} {prompt}", path.display());
            assert_eq!(drafted.row(1), next.last(), "{} {prompt}", path.display());
        }
    }
}
