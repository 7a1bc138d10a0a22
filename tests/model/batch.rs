//! Passes over several sequences give each the logits it gets alone, bit for bit.

use std::{num::NonZeroUsize, path::PathBuf};

use domino::{
    TokenId, TokenSet,
    model::{
        BatchInput, BatchModel, Model, Rows,
        candle::{CandleBatch, CandleModel, LoadOptions, ModelErrorKind},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::model::{
    gguf::gguf_fixture,
    runner::{fixture, kv_formats},
};

/// Checkpoints: tied and untied, windows, biases, norms of heads, and every kind of weights.
fn checkpoints() -> Vec<PathBuf> {
    let folders = [
        "mistral_untied_window",
        "llama_f16_sharded",
        "qwen2_tied_yarn",
        "qwen3_biases_untied",
        "qwen3_moe_shares",
        "gemma4_shared",
    ];
    let files = [
        "llama_q8_0",
        "llama_q4_0",
        "mistral_f16",
        "qwen2_q4_k_m",
        "qwen3_q5_k_m",
        "mistral_q6_k",
        "gemma4_q4_0",
    ];
    folders.into_iter().map(fixture).chain(files.into_iter().map(gguf_fixture)).collect()
}

fn batch(path: &PathBuf, sequences: usize) -> CandleBatch {
    let sequences = NonZeroUsize::new(sequences).unwrap();
    CandleBatch::load(path, sequences, &LoadOptions::default()).unwrap()
}

/// A random set of few or many of the tokens below `ids`.
fn some_tokens(random: &mut StdRng, ids: u32) -> TokenSet {
    let mut set = TokenSet::empty(ids as usize);
    let (start, most) = (random.random_range(0..ids), if random.random_bool(0.3) { ids } else { 12 });
    let count = random.random_range(0..=most);
    (start..ids.min(start + count)).map(TokenId::new).for_each(|token| set.insert(token));
    set
}

/// One sequence of a batch, and a model of its own that is given the same tokens.
struct Lane {
    alone: CandleModel,
    rest: Vec<TokenId>,
}

/// Layers of Gemma 4 have heads of two sizes, and some read the keys of others.
#[test]
fn a_cache_of_heads_of_two_sizes_is_copied_and_counted_as_a_whole() {
    let path = fixture("gemma4_shared");
    let mut batch = batch(&path, 2);
    let tokens: Vec<TokenId> = (0..40).map(|index| TokenId::new(index * 7 % 97)).collect();
    let input = |sequence, tokens, rows| [BatchInput { sequence, tokens, rows }];
    let whole = batch.forward(&input(0, &tokens, Rows::All)).unwrap().remove(0);
    let size = batch.copied_block().unwrap();
    for block in 0..2 {
        let copy = batch.copy_out(0, block * size..(block + 1) * size).unwrap();
        assert!(batch.copy_in(1, &copy));
    }
    let rest = batch.forward(&input(1, &tokens[32..], Rows::Last)).unwrap().remove(0);
    assert_eq!((rest.row(0), rest.rows()), (whole.row(39), 1));
    // Two heads of keys and of values: of 8 numbers in two layers and of 16 in one; and two tables.
    let cache = CandleModel::estimate(&path, &LoadOptions::default()).unwrap().cache;
    assert_eq!(cache, 4 * 64 * (2 * 2 * (2 * 8 + 16) + 8 + 16));
}

#[test]
fn rows_do_not_depend_on_what_shares_the_pass() {
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = StdRng::seed_from_u64(seed);
    let mut left_out = 0;
    for (path, options) in checkpoints().into_iter().zip(kv_formats().collect::<Vec<_>>().into_iter().cycle())
    {
        let mut batch = CandleBatch::load(&path, NonZeroUsize::new(4).unwrap(), &options).unwrap();
        let ids = u32::try_from(batch.vocabulary_size()).unwrap();
        let mut lanes: Vec<Lane> = (0..4)
            .map(|_| {
                let alone = CandleModel::load(&path, &options).unwrap();
                // Up to more than are run at once.
                let most = if random.random_bool(0.2) { 300 } else { 40 };
                let count = random.random_range(1..most);
                let count = count.min(alone.context());
                let rest = (0..count).map(|_| TokenId::new(random.random_range(0..ids))).collect();
                Lane { alone, rest }
            })
            .collect();
        while lanes.iter().any(|lane| !lane.rest.is_empty()) {
            // Some sequences, in any order, some tokens of each; some take tokens back first.
            let mut order: Vec<usize> = (0..4).filter(|&lane| !lanes[lane].rest.is_empty()).collect();
            order.shuffle(&mut random);
            order.truncate(random.random_range(1..=order.len()));
            let mut given = Vec::new();
            for &sequence in &order {
                let lane = &mut lanes[sequence];
                if random.random_bool(0.3) {
                    let keep = random.random_range(0..=lane.alone.position());
                    lane.alone.truncate(keep).unwrap();
                    batch.truncate(sequence, keep).unwrap();
                }
                let room = lane.alone.context() - lane.alone.position();
                let all = lane.rest.len().min(room);
                let count = if random.random_bool(0.3) { all } else { random.random_range(1..=all.min(9)) };
                let tokens: Vec<TokenId> = lane.rest.drain(..count).collect();
                let sets =
                    (0..random.random_range(0..=count)).map(|_| some_tokens(&mut random, ids)).collect();
                given.push((sequence, tokens, random.random_range(0..3), sets));
            }
            let inputs: Vec<BatchInput<'_>> = given
                .iter()
                .map(|(sequence, tokens, kind, sets): &(usize, Vec<TokenId>, u32, Vec<TokenSet>)| {
                    let rows = [Rows::Last, Rows::All, Rows::Among(sets)][*kind as usize];
                    BatchInput { sequence: *sequence, tokens, rows }
                })
                .collect();
            let together = batch.forward(&inputs).unwrap();
            for (BatchInput { sequence, tokens, rows }, got) in inputs.into_iter().zip(together) {
                let lane = &mut lanes[sequence];
                let whole = lane.alone.forward(tokens, Rows::All).unwrap();
                let first = tokens.len() - rows.count(tokens.len());
                assert_eq!(got.rows(), tokens.len() - first);
                for index in 0..got.rows() {
                    let (got, whole) = (got.row(index).unwrap(), whole.row(first + index).unwrap());
                    let set = rows.sets().map(|sets| &sets[index]);
                    for (token, (got, whole)) in (0..ids).zip(got.iter().zip(whole)) {
                        let counts = set.is_none_or(|set| set.contains(TokenId::new(token)));
                        let same = got.to_bits() == whole.to_bits();
                        left_out += usize::from(!same);
                        assert!(same || !counts && *got < f32::INFINITY, "{}, seed {seed}", path.display());
                    }
                }
                assert_eq!(batch.position(sequence), lane.alone.position());
            }
        }
    }
    // Otherwise hardly anything would have been tried.
    assert!(left_out > 1000, "{left_out}");
}

#[test]
fn inputs_that_cannot_be_run_change_nothing() {
    let path = fixture("mistral_tied");
    let mut batch = batch(&path, 2);
    let tokens = [1, 2, 3].map(TokenId::new);
    let input = |sequence| BatchInput { sequence, tokens: &tokens, rows: Rows::Last };
    let first = batch.forward(&[input(0), input(1)]).unwrap();
    batch.truncate(1, 1).unwrap();
    let vocabulary = batch.vocabulary_size();
    let unknown = [TokenId::from_index(vocabulary).unwrap()];
    let long = vec![TokenId::new(1); batch.context()];
    for (wrong, kind) in [
        (input(2), ModelErrorKind::NoSuchSequence(2)),
        (input(0), ModelErrorKind::SequenceTwice(0)),
        (BatchInput { tokens: &[], ..input(1) }, ModelErrorKind::NoTokens),
        (
            BatchInput { tokens: &unknown, ..input(1) },
            ModelErrorKind::UnknownToken { token: unknown[0], vocabulary },
        ),
        (
            BatchInput { tokens: &long, ..input(1) },
            ModelErrorKind::TooLong { position: 1, tokens: long.len(), context: long.len() },
        ),
    ] {
        assert_eq!(*batch.forward(&[input(0), wrong]).unwrap_err().kind(), kind);
        assert_eq!((batch.position(0), batch.position(1)), (3, 1));
    }
    let error = batch.truncate(1, 2).unwrap_err();
    assert_eq!(*error.kind(), ModelErrorKind::PastEnd { asked: 2, position: 1 });
    batch.truncate(0, 0).unwrap();
    assert_eq!(batch.forward(&[input(0)]).unwrap(), first[..1]);
    assert_eq!(batch.forward(&[]).unwrap(), []);
}

#[test]
fn the_memory_estimate_counts_every_sequence() {
    let path = fixture("mistral_tied");
    let one = CandleModel::estimate(&path, &LoadOptions::default()).unwrap();
    let mut options = LoadOptions::default();
    options.memory_limit = Some(one.total() + one.cache);
    let load = |sequences| CandleBatch::load(&path, NonZeroUsize::new(sequences).unwrap(), &options);
    assert_eq!(load(2).unwrap().sequences(), 2);
    assert!(matches!(load(20).unwrap_err().kind(), ModelErrorKind::Memory { .. }));
}
