//! Listings of all texts of small grammars and their probabilities.

use std::collections::HashMap;

use super::*;
use crate::{
    Compiler, Grammar, Limits, Syntax, Vocabulary,
    decode::{ConditionalDecoder, DecodeOptions, Decoder, Sampling},
    model::{OneByOne, ScriptedModel},
};

/// Creates a vocabulary of six tokens and end of text.
fn start(grammar: &str) -> Constraint {
    let texts = ["a", "b", "c", "ab", "bc", "aa"];
    let builder = (0..)
        .zip(texts)
        .fold(Vocabulary::builder(), |builder, (id, text)| builder.token(TokenId::new(id), text));
    let vocabulary = builder.end_of_text(TokenId::new(6)).build().unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
}

const GRAMMAR: &str = r#"root ::= "a" "b" "c" "c" | "b" [abc]{1,3} | "ab" [bc]?"#;
const LONGEST: usize = 4;

fn prompt() -> Vec<TokenId> {
    vec![TokenId::new(2), TokenId::new(0)]
}

fn distribution(model: &ScriptedModel, grammar: &str, temperature: f64) -> Distribution {
    let bounds = (LONGEST, 1000);
    let found = enumerate(&mut model.clone(), &prompt(), &start(grammar), temperature, bounds);
    let (model, grammar) = (String::new(), String::new());
    Distribution { model, grammar, prompt: 0, temperature, sequences: found.unwrap().unwrap() }
}

/// Returns the share of each sequence among the draws of a method.
fn shares(distribution: &Distribution, draw: impl Fn(u64) -> Vec<TokenId>, draws: usize) -> Vec<f64> {
    let mut shares: HashMap<Vec<u32>, f64> = HashMap::new();
    for seed in (0..).take(draws) {
        let tokens = draw(seed).iter().map(|token| token.raw()).collect();
        *shares.entry(tokens).or_default() += 1.0 / as_f64(draws);
    }
    let share = |sequence: &Sequence| shares.get(&sequence.tokens).copied().unwrap_or_default();
    distribution.sequences.iter().map(share).collect()
}

/// The decoder under masks draws texts with the masked probabilities, and 64 particles come near the
/// conditional ones. The bounds are multiples of the expected total variation of as many exact draws.
#[test]
fn listed_probabilities_are_those_of_draws() {
    let temperature = 0.8;
    for seed in [5, 8] {
        let model = ScriptedModel::new(7, 40, seed);
        let found = distribution(&model, GRAMMAR, temperature);
        let total = |of: fn(&Sequence) -> f64| found.sequences.iter().map(of).sum::<f64>();
        assert!((total(|sequence| sequence.conditional) - 1.0).abs() < 1e-9);
        assert!((total(|sequence| sequence.masked) - 1.0).abs() < 1e-9);
        let options = |seed| {
            let sampling = Sampling::with_temperature(temperature).unwrap();
            DecodeOptions { sampling, seed, max_new_tokens: LONGEST, ..DecodeOptions::default() }
        };
        let masked = |seed| {
            let start = start(GRAMMAR);
            let builder = Decoder::builder(model.clone()).vocabulary(start.vocabulary().clone());
            let mut decoder = builder.constraint(start).build().unwrap();
            *decoder.options_mut() = options(seed);
            decoder.generate(&prompt()).unwrap().tokens
        };
        let exact = Distribution {
            sequences: found
                .sequences
                .iter()
                .map(|sequence| Sequence { conditional: sequence.masked, ..sequence.clone() })
                .collect(),
            ..found.clone()
        };
        let draws = 2000;
        let off = exact.variation(&shares(&found, masked, draws));
        assert!(off < 1.6 * exact.variation_of_draws(draws), "{off}");
        assert!(found.variation_of_masks() > 4.0 * exact.variation_of_draws(draws));
        let conditional = |seed| {
            let batch = OneByOne::new(vec![model.clone(); 64]);
            let mut decoder = ConditionalDecoder::new(batch, &start(GRAMMAR), &options(seed)).unwrap();
            decoder.draw(&prompt(), &|| true).unwrap().generation.tokens
        };
        let near = found.variation(&shares(&found, conditional, 400));
        assert!(near < found.variation_of_masks() / 2.0, "{near} {}", found.variation_of_masks());
    }
}

/// A language without a longest text is listed up to the limit of tokens; masks lose longer texts.
#[test]
fn texts_longer_than_the_limit_are_not_listed() {
    let model = ScriptedModel::new(7, 40, 3);
    let found = distribution(&model, r#"root ::= [ab]+ "c""#, 1.0);
    assert!(found.sequences.iter().all(|sequence| sequence.tokens.len() <= LONGEST));
    let masked: f64 = found.sequences.iter().map(|sequence| sequence.masked).sum();
    assert!(masked < 0.999, "{masked}");
    let apart: f64 = found.sequences.iter().map(|one| (one.conditional - one.masked).abs()).sum();
    assert!((found.variation_of_masks() - 0.5 * (apart + 1.0 - masked)).abs() < 1e-12);
    let few = enumerate(&mut model.clone(), &prompt(), &start(GRAMMAR), 1.0, (LONGEST, 5)).unwrap();
    assert_eq!(few, None);
}

/// Compares with the sum over all numbers of successes.
#[test]
fn the_mean_deviation_is_that_of_a_binomial() {
    for draws in [1, 2, 7, 40] {
        for p in [1e-6_f64, 0.01, 0.25, 0.5, 0.75, 0.999] {
            let n = as_f64(draws);
            let mut share = (1.0 - p).powi(i32::try_from(draws).unwrap());
            let mut expected = share * p;
            for k in 1..=draws {
                let k = as_f64(k);
                share *= (n - k + 1.0) / k * p / (1.0 - p);
                expected += share * (k / n - p).abs();
            }
            let found = mean_deviation(draws, p);
            assert!((found - expected).abs() < 1e-9, "{draws} {p}: {found} {expected}");
        }
    }
    assert_eq!((mean_deviation(0, 0.5), mean_deviation(3, 0.0), mean_deviation(3, 1.0)), (0.0, 0.0, 0.0));
}

#[test]
fn distributions_are_kept_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read_distributions(folder.path()).unwrap(), []);
    let found = distribution(&ScriptedModel::new(7, 40, 1), r#"root ::= "a" | "b""#, 1.0);
    write_distributions(folder.path(), std::slice::from_ref(&found)).unwrap();
    let read = read_distributions(folder.path()).unwrap();
    assert_eq!(read[0].sequences.len(), 2);
    assert!(read[0].variation_of_masks() - found.variation_of_masks() < 1e-12);
    std::fs::write(folder.path().join(FILE), "[").unwrap();
    assert!(matches!(read_distributions(folder.path()), Err(ExperimentError::Damaged { .. })));
}
