//! Tests that texts which share passes are those that are written alone, to the bit of every row.

use std::num::NonZeroUsize;

use domino::{
    TokenId,
    decode::{BatchDecoder, BatchEvent, Sampling},
    model::{
        BatchInput, BatchModel, Model, Rows,
        candle::{LoadOptions, Placement, Precision, TensorModel},
    },
    proposer::{DraftLength, Drafter},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    emulated,
    lossless::{Liar, constraint, decoder},
    some_tokens,
};
use crate::model::runner;

fn batch(path: &std::path::Path, texts: usize) -> TensorModel {
    let place = Placement::emulated(false).with_precision(Precision::Bf16);
    let texts = NonZeroUsize::new(texts).unwrap();
    TensorModel::load_batch(path, texts, &LoadOptions::default(), place).unwrap()
}

/// Eight texts of different lengths, with drafts and without, in eight places and in three.
#[test]
fn texts_written_at_once_are_those_written_alone() {
    for (name, places) in [("llama_gqa_head_dim", 8), ("mistral_untied_window", 3)] {
        let mut alone = decoder(name);
        let vocabulary = alone.vocabulary().clone();
        let mut together =
            BatchDecoder::new(batch(&runner::fixture(name), places), vocabulary.clone()).unwrap();
        let (mut expected, mut drafted) = (Vec::new(), 0);
        for text in 0..8_usize {
            let options = alone.options_mut();
            options.seed = text as u64;
            options.max_new_tokens = 3 + 4 * text;
            options.sampling = match text % 3 {
                0 => Sampling::greedy(),
                _ => Sampling::with_temperature(0.7).unwrap(),
            };
            let options = options.clone();
            // Prompts that kernels run, and prompts that Candle's tensors run.
            let prompt: Vec<TokenId> = (0..1 + 5 * text)
                .map(|index| TokenId::from_index((index * 31 + text) % 40).unwrap())
                .collect();
            let plain = alone.generate(&prompt).unwrap();
            let constraint = Some(constraint(&vocabulary));
            let id = if text % 2 == 0 {
                together.add(&prompt, constraint, &options)
            } else {
                let liar = Liar { truth: plain.tokens.clone(), prompt: prompt.len(), turn: text as u64 };
                let length = DraftLength::up_to(3, 0.0).unwrap();
                together.add_with_drafter(&prompt, constraint, &options, Drafter::new(Box::new(liar), length))
            };
            expected.push((id.unwrap(), plain.tokens));
        }
        let mut ended = 0;
        while !together.is_empty() {
            for event in together.step() {
                match event {
                    BatchEvent::Finished { sequence, generation } => {
                        let text = expected.iter().find(|(id, _)| *id == sequence).unwrap();
                        assert_eq!(generation.tokens, text.1, "{name}, {sequence:?}");
                        drafted += generation.stats.drafted;
                        ended += 1;
                    }
                    BatchEvent::Failed { error, .. } => panic!("{error}"),
                    _ => {}
                }
            }
        }
        assert!(ended == 8 && drafted > 0, "{ended} texts, {drafted} drafted tokens");
    }
}

#[test]
fn a_row_does_not_depend_on_other_texts_of_its_pass() {
    let mut random = StdRng::seed_from_u64(12);
    for path in ["llama_gqa_head_dim", "mistral_untied_window"].map(runner::fixture) {
        let (mut alone, mut together) = (emulated(&path, Precision::Bf16), batch(&path, 3));
        let vocabulary = Model::vocabulary_size(&alone);
        let texts: Vec<Vec<TokenId>> = (0..3)
            .map(|text| some_tokens(30 + text, vocabulary + text)[text..].to_vec())
            .map(|text| text.into_iter().map(|token| TokenId::new(token.raw() % vocabulary as u32)).collect())
            .collect();
        let alone: Vec<_> = texts
            .iter()
            .map(|text| {
                Model::truncate(&mut alone, 0).unwrap();
                text.chunks(1)
                    .map(|token| Model::forward(&mut alone, token, Rows::All).unwrap())
                    .collect::<Vec<_>>()
            })
            .collect();
        while (0..3).any(|text| BatchModel::position(&together, text) < 30) {
            let mut inputs = Vec::new();
            for (sequence, text) in texts.iter().enumerate() {
                let at = BatchModel::position(&together, sequence);
                let size = random.random_range(0..=12).min(30 - at);
                if size > 0 {
                    inputs.push(BatchInput { sequence, tokens: &text[at..at + size], rows: Rows::All });
                }
            }
            let before: Vec<usize> = (0..3).map(|text| BatchModel::position(&together, text)).collect();
            let rows = BatchModel::forward(&mut together, &inputs).unwrap();
            for (input, rows) in inputs.iter().zip(&rows) {
                for index in 0..input.tokens.len() {
                    let expected = alone[input.sequence][before[input.sequence] + index].row(0);
                    assert!(rows.row(index) == expected, "{} {}", path.display(), input.sequence);
                }
                // Part of it is taken back and given again.
                let back = before[input.sequence] + input.tokens.len() - random.random_range(0..=1);
                BatchModel::truncate(&mut together, input.sequence, back).unwrap();
            }
        }
    }
}

#[test]
fn inputs_of_no_text_or_of_one_twice_are_refused_and_change_nothing() {
    let mut model = batch(&runner::fixture("mistral_tied"), 2);
    let tokens = some_tokens(3, 90);
    let input = |sequence| BatchInput { sequence, tokens: &tokens, rows: Rows::Last };
    BatchModel::forward(&mut model, &[input(1)]).unwrap();
    for inputs in [[input(0), input(2)], [input(0), input(0)]] {
        assert!(BatchModel::forward(&mut model, &inputs).is_err());
        assert_eq!([0, 1].map(|text| BatchModel::position(&model, text)), [0, 3]);
    }
    assert!(
        BatchModel::truncate(&mut model, 2, 0).is_err() && BatchModel::truncate(&mut model, 1, 4).is_err()
    );
}
