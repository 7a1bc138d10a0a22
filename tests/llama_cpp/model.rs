//! Rows of one text, its cache, and errors.

use domino::{
    TokenId, TokenSet,
    model::{
        Model, Rows,
        candle::{CandleModel, LoadOptions, ModelErrorKind},
    },
};
use domino_llama_cpp::{LlamaCppModel, LlamaCppOptions};

use crate::{FIXTURES, ROUNDING, distance, expected, fixture, load};

/// Largest error allowed against products without rounding: llama.cpp rounds inputs of products to eight
/// bits. The weights are random, so errors grow from layer to layer as they would not in a trained model.
const ROUNDED: f64 = 0.06;

#[test]
fn the_rows_are_those_of_our_runner_and_of_transformers() {
    for name in FIXTURES {
        let (tokens, transformers) = expected(name);
        let rows = load(name).forward(&tokens, Rows::All).unwrap();
        let mut options = LoadOptions::default();
        options.exact_products = true;
        let ours = CandleModel::load(fixture(name), &options).unwrap().forward(&tokens, Rows::All).unwrap();
        assert_eq!((rows.rows(), rows.width()), (ours.rows(), ours.width()), "{name}");
        let row = |index| rows.row(index).unwrap();
        let from_ours = distance((0..rows.rows()).map(|index| (row(index), ours.row(index).unwrap())));
        let from_theirs =
            distance(transformers.iter().enumerate().map(|(index, their)| (row(index), &their[..])));
        println!("{name}: {from_ours:.4} from ours, {from_theirs:.4} from transformers");
        assert!(from_ours <= ROUNDED && from_theirs <= ROUNDED, "{name}: {from_ours} {from_theirs}");
    }
}

#[test]
fn however_the_tokens_are_split_the_rows_are_the_same_to_rounding() {
    for name in FIXTURES {
        let (mut model, (tokens, _)) = (load(name), expected(name));
        let whole = model.forward(&tokens, Rows::All).unwrap();
        for size in [1, 3, 7] {
            model.truncate(0).unwrap();
            let parts: Vec<_> =
                tokens.chunks(size).map(|part| model.forward(part, Rows::All).unwrap()).collect();
            let rows = parts.iter().flat_map(|part| (0..part.rows()).map(|row| part.row(row).unwrap()));
            let error = distance(rows.enumerate().map(|(index, row)| (row, whole.row(index).unwrap())));
            assert!(error <= ROUNDING, "{name}, {size} at a time: {error}");
        }
    }
}

#[test]
fn rows_are_as_many_as_were_asked_for_and_the_last_ones() {
    let (mut model, (tokens, _)) = (load("qwen2_q4_k_m"), expected("qwen2_q4_k_m"));
    let all = model.forward(&tokens, Rows::All).unwrap();
    model.truncate(0).unwrap();
    let last = model.forward(&tokens, Rows::Last).unwrap();
    assert_eq!(last.rows(), 1);
    assert!(distance([(last.last().unwrap(), all.last().unwrap())]) <= ROUNDING);
    model.truncate(0).unwrap();
    let sets = vec![TokenSet::empty(model.vocabulary_size()); 3];
    let among = model.forward(&tokens, Rows::Among(&sets)).unwrap();
    assert_eq!(among.rows(), 3);
    let pairs = (0..3).map(|row| (among.row(row).unwrap(), all.row(all.rows() - 3 + row).unwrap()));
    assert!(distance(pairs) <= ROUNDING);
}

/// More tokens than one call of llama.cpp takes.
#[test]
fn long_prompts_are_read_in_several_calls() {
    let (mut model, (tokens, _)) = (load("llama_q8_0"), expected("llama_q8_0"));
    let long: Vec<TokenId> = tokens.iter().copied().cycle().take(model.context()).collect();
    let whole = model.forward(&long, Rows::Last).unwrap();
    assert_eq!(model.position(), long.len());
    model.truncate(0).unwrap();
    for part in long.chunks(50) {
        let rows = model.forward(part, Rows::Last).unwrap();
        if model.position() == long.len() {
            assert!(distance([(rows.last().unwrap(), whole.last().unwrap())]) <= ROUNDING);
        }
    }
}

#[test]
fn what_was_truncated_was_never_given() {
    for name in FIXTURES {
        let (mut model, (tokens, _)) = (load(name), expected(name));
        assert!(model.can_roll_back(), "{name}");
        let (start, rest) = tokens.split_at(tokens.len() / 2);
        model.forward(start, Rows::Last).unwrap();
        let plain = model.forward(rest, Rows::All).unwrap();
        model.truncate(start.len()).unwrap();
        let other: Vec<TokenId> = rest.iter().rev().copied().collect();
        model.forward(&other, Rows::Last).unwrap();
        model.truncate(start.len()).unwrap();
        assert_eq!(model.position(), start.len());
        let again = model.forward(rest, Rows::All).unwrap();
        let rows = (0..plain.rows()).map(|row| (again.row(row).unwrap(), plain.row(row).unwrap()));
        let error = distance(rows);
        assert!(error <= ROUNDING, "{name}: {error}");
    }
}

#[test]
fn passes_that_cannot_be_made_leave_the_cache_as_it_was() {
    let mut options = LlamaCppOptions::default();
    options.context = Some(30);
    let mut model = LlamaCppModel::load(fixture("llama_q8_0"), &options).unwrap();
    assert_eq!(model.context(), 30);
    let (tokens, _) = expected("llama_q8_0");
    model.forward(&tokens, Rows::Last).unwrap();
    let (position, vocabulary) = (model.position(), model.vocabulary_size());
    let unknown = TokenId::new(u32::try_from(vocabulary).unwrap());
    let kind = |model: &mut LlamaCppModel, tokens: &[TokenId]| {
        model.forward(tokens, Rows::Last).map(|_| ()).map_err(|error| error.kind().clone())
    };
    assert_eq!(kind(&mut model, &[]), Err(ModelErrorKind::NoTokens));
    let error = ModelErrorKind::UnknownToken { token: unknown, vocabulary };
    assert_eq!(kind(&mut model, &[tokens[0], unknown]), Err(error));
    let error = ModelErrorKind::TooLong { position, tokens: tokens.len(), context: 30 };
    assert_eq!(kind(&mut model, &tokens), Err(error));
    let error = model.truncate(position + 1).unwrap_err();
    assert_eq!(error.kind(), &ModelErrorKind::PastEnd { asked: position + 1, position });
    assert_eq!(model.position(), position);
    assert_eq!(kind(&mut model, &tokens[..30 - position]), Ok(()));
}

#[test]
fn files_that_are_no_models_are_errors_with_a_reason() {
    let load = |path: &std::path::Path| LlamaCppModel::load(path, &LlamaCppOptions::default()).unwrap_err();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.gguf");
    assert_eq!(load(&missing).kind(), &ModelErrorKind::MissingFile(missing));
    assert!(load(folder.path()).to_string().contains("is a folder"));
    let text = folder.path().join("text.gguf");
    std::fs::write(&text, "not a model").unwrap();
    let error = load(&text);
    assert!(matches!(error.kind(), ModelErrorKind::Engine(_)));
    // llama.cpp's own words, not only that it failed.
    assert!(error.to_string().contains("magic"), "{error}");
    let cut = folder.path().join("cut.gguf");
    let whole = std::fs::read(fixture("llama_q8_0")).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(load(&cut).kind(), ModelErrorKind::Engine(_)), "{}", load(&cut));
    let mut options = LlamaCppOptions::default();
    options.context = Some(1 << 30);
    let error = LlamaCppModel::load(fixture("llama_q8_0"), &options).unwrap_err();
    assert!(matches!(error.kind(), ModelErrorKind::Context { asked, .. } if *asked == 1 << 30));
}

#[test]
fn a_model_says_what_it_is() {
    for (name, architecture) in
        [("llama_q4_0", "llama"), ("qwen2_q4_k_m", "qwen2"), ("qwen3_q5_k_m", "qwen3")]
    {
        let model = load(name);
        let ours = CandleModel::load(fixture(name), &LoadOptions::default()).unwrap();
        assert_eq!((model.architecture(), model.made_for()), (architecture.to_owned(), ours.made_for()));
    }
}
