//! Particles against the whole distribution, on languages that can be listed.

use std::{collections::BTreeMap, num::NonZeroUsize};

use proptest::prelude::*;

use super::*;
use crate::{
    Compiler, Grammar, Limits, Syntax, Vocabulary,
    decode::{DecodeErrorKind, Decoder, DrawError, Sampling},
    model::{Fault, Model, OneByOne, ScriptedModel},
};

type Tokens = Vec<TokenId>;

/// Creates a vocabulary of six tokens and end of text.
fn vocabulary() -> Vocabulary {
    let texts = ["a", "b", "c", "ab", "bc", "aa"];
    let builder = (0..)
        .zip(texts)
        .fold(Vocabulary::builder(), |builder, (id, text)| builder.token(TokenId::new(id), text));
    builder.end_of_text(TokenId::new(6)).build().unwrap()
}

fn constraint(grammar: &str) -> Constraint {
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary()).compile(&grammar).unwrap().constraint()
}

/// A grammar for which masks go wrong: most texts that begin with "a" die later, as few tokens go on with
/// them.
const GRAMMAR: &str = r#"root ::= "a" "b" "c" "c" | "b" [abc]{1,3} | "ab" [bc]?"#;
/// A grammar whose texts have no end before the limit of length.
const LONG: &str = r#"root ::= [ab]+ "c""#;

fn options(temperature: f64, seed: u64, most: usize) -> DecodeOptions {
    let sampling = Sampling::with_temperature(temperature).unwrap();
    DecodeOptions { sampling, seed, max_new_tokens: most, ..DecodeOptions::default() }
}

fn model(seed: u64) -> ScriptedModel {
    ScriptedModel::new(7, 40, seed)
}

fn prompt() -> Tokens {
    vec![TokenId::new(2), TokenId::new(0)]
}

impl ConditionalText {
    /// Copies the times of another one.
    fn alike(&mut self, other: &Self) {
        (self.generation.stats, self.first) = (other.generation.stats, other.first);
    }
}

fn drawn(
    model: &ScriptedModel,
    particles: usize,
    start: &Constraint,
    seed: u64,
    most: usize,
) -> ConditionalText {
    let batch = OneByOne::new(vec![model.clone(); particles]);
    let mut decoder = ConditionalDecoder::new(batch, start, &options(0.8, seed, most)).unwrap();
    decoder.draw(&prompt(), &|| true).unwrap()
}

/// A text of the language with its probabilities: the model's own, and that of masks.
struct Listed {
    tokens: Tokens,
    own: f64,
    masked: f64,
}

/// Lists all texts of at most `most` tokens, by the definition of both distributions.
fn listed(model: &ScriptedModel, start: &Constraint, most: usize) -> Vec<Listed> {
    let mut found = Vec::new();
    let mut open = vec![(Tokens::new(), start.clone(), 1.0, 1.0)];
    while let Some((tokens, mut constraint, own, masked)) = open.pop() {
        let mut model = model.clone();
        let logits = model.forward(&[prompt(), tokens.clone()].concat(), Rows::Last).unwrap();
        let weight = |token: TokenId| (f64::from(logits.last().unwrap()[token.index()]) / 0.8).exp();
        let all: f64 = (0..7).map(|id| weight(TokenId::new(id))).sum();
        let mask = constraint.mask().unwrap().clone();
        let kept: f64 = mask.iter().map(weight).sum();
        for token in mask.iter() {
            let (own, masked) = (own * weight(token) / all, masked * weight(token) / kept);
            if constraint.vocabulary().is_end_of_text(token) {
                found.push(Listed { tokens: tokens.clone(), own, masked });
            } else if tokens.len() < most {
                let mut next = constraint.clone();
                next.advance(token).unwrap();
                open.push(([&tokens[..], &[token]].concat(), next, own, masked));
            }
        }
    }
    found
}

/// Returns the total variation between the conditional distribution and another one.
fn variation(listed: &[Listed], other: impl Fn(&Listed) -> f64) -> f64 {
    let all: f64 = listed.iter().map(|text| text.own).sum();
    let covered: f64 = listed.iter().map(&other).sum();
    let apart: f64 = listed.iter().map(|text| (text.own / all - other(text)).abs()).sum();
    0.5 * (apart + (1.0 - covered).abs())
}

/// Returns the share of each text among `draws` draws.
fn shares(model: &ScriptedModel, particles: usize, start: &Constraint, draws: u32) -> BTreeMap<Tokens, f64> {
    let mut shares = BTreeMap::new();
    for seed in 0..draws {
        let text = drawn(model, particles, start, seed.into(), 4);
        assert!(text.generation.complete && text.generation.finish == Finish::Stop, "{text:?}");
        *shares.entry(text.generation.tokens).or_default() += 1.0 / f64::from(draws);
    }
    shares
}

/// The distance to the conditional distribution falls with the number of particles, from that of masks. Seeds
/// are fixed. Each step is several times the distance of a sample of the same size from the exact
/// distribution.
#[test]
fn total_variation_falls_with_particles() {
    let (model, start) = (model(5), constraint(GRAMMAR));
    let listed = listed(&model, &start, 4);
    let masks = variation(&listed, |text| text.masked);
    let mut found = Vec::new();
    for (particles, draws) in [(1, 4000), (2, 4000), (4, 4000), (16, 2000), (64, 2000)] {
        let shares = shares(&model, particles, &start, draws);
        found.push(variation(&listed, |text| shares.get(&text.tokens).copied().unwrap_or(0.0)));
    }
    println!("{} texts; TV of masks {masks:.3}; of 1, 2, 4, 16, 64 particles {found:.3?}", listed.len());
    assert!(listed.len() > 10 && masks > 0.3, "{} {masks}", listed.len());
    assert!((found[0] - masks).abs() < 0.02, "{found:?} {masks}");
    assert!(found.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    assert!(found[3] < masks / 3.0 && found[4] < 0.05, "{found:?} {masks}");
}

/// Two particles are never resampled before the end, so their distribution is known exactly: one of two texts
/// by masks, by its weight.
#[test]
fn two_particles_draw_as_two_weighted_texts() {
    let (model, start) = (model(5), constraint(GRAMMAR));
    let listed = listed(&model, &start, 4);
    let weight = |text: &Listed| text.own / text.masked;
    let exact = |text: &Listed| -> f64 {
        let with =
            |other: &Listed| text.masked * other.masked * weight(text) / (weight(text) + weight(other));
        2.0 * listed.iter().map(with).sum::<f64>()
    };
    let finishing: f64 = listed.iter().map(|text| text.masked).sum();
    assert!((finishing - 1.0).abs() < 1e-9, "{finishing}");
    let shares = shares(&model, 2, &start, 6000);
    let apart: f64 = listed
        .iter()
        .map(|text| (exact(text) - shares.get(&text.tokens).copied().unwrap_or(0.0)).abs())
        .sum();
    assert!(apart / 2.0 < 0.025, "{}", apart / 2.0);
}

/// The estimate of the language's probability is unbiased, with resampling or not, also if texts are cut.
#[test]
fn the_languages_probability_is_estimated() {
    for (grammar, most, particles) in [(GRAMMAR, 4, 3), (GRAMMAR, 4, 12), (LONG, 5, 12)] {
        let (model, start) = (model(5), constraint(grammar));
        let exact: f64 = listed(&model, &start, most).iter().map(|text| text.own).sum();
        let (mut sum, mut resamplings) = (0.0, 0);
        for seed in 0..3000 {
            let text = drawn(&model, particles, &start, seed, most);
            sum += text.log_language.map_or(0.0, f64::exp) / 3000.0;
            resamplings += text.resamplings;
            let limit = f64::from(u32::try_from(particles).unwrap());
            assert!((1.0 - 1e-9..=limit + 1e-9).contains(&text.effective), "{text:?}");
        }
        assert!(resamplings > 300, "{resamplings}");
        assert!((sum / exact - 1.0).abs() < 0.05, "{grammar}: {sum} {exact}");
    }
}

/// One particle writes the text of masks, and its weight is what they kept.
#[test]
fn one_particle_writes_the_masked_text() {
    let start = constraint(LONG);
    let mut cut = 0;
    for seed in 0..60 {
        let model = model(seed);
        let mut decoder = Decoder::builder(model.clone())
            .vocabulary(vocabulary())
            .constraint(start.clone())
            .options(options(0.8, seed, 6))
            .build()
            .unwrap();
        let plain = decoder.generate(&prompt()).unwrap();
        let text = drawn(&model, 1, &start, seed, 6);
        assert_eq!((&text.generation.tokens, &text.generation.text), (&plain.tokens, &plain.text));
        assert_eq!(text.generation.complete, plain.complete);
        match listed(&model, &start, 6).iter().find(|listed| listed.tokens == text.generation.tokens) {
            Some(listed) => {
                assert!((text.log_kept - (listed.own / listed.masked).ln()).abs() < 1e-6, "{text:?}");
                assert_eq!((text.generation.finish, text.log_language), (Finish::Stop, Some(text.log_kept)));
            }
            None => {
                cut += 1;
                assert_eq!((text.generation.finish, text.log_language), (Finish::Length, None));
            }
        }
    }
    assert!((5..55).contains(&cut), "{cut}");
}

/// The same seed gives the same text, and a finished text is chosen if there is one.
#[test]
fn draws_are_a_function_of_the_seed() {
    let (model, start) = (model(3), constraint(LONG));
    let mut finished = 0;
    for seed in 0..40 {
        let text = drawn(&model, 5, &start, seed, 5);
        let mut again = drawn(&model, 5, &start, seed, 5);
        again.alike(&text);
        assert_eq!(again, text);
        assert_eq!(text.generation.complete, text.log_language.is_some());
        assert_eq!(text.generation.stats.tokens, text.generation.tokens.len());
        // Of prompt and tokens nothing is fed twice but what was copied.
        assert!(text.fed >= 5 * 2 && (text.resamplings > 0 || text.fed <= 5 * (2 + 5)), "{text:?}");
        finished += usize::from(text.generation.complete);
    }
    assert!(finished > 20, "{finished}");
}

#[test]
fn impossible_options_and_prompts_are_errors() {
    let start = constraint(GRAMMAR);
    let batch = || OneByOne::new(vec![model(1); 3]);
    let mut none = OneByOne::new(Vec::<ScriptedModel>::new());
    assert!(ConditionalDecoder::new(&mut none, &start, &options(1.0, 0, 4)).is_err());
    let mut wrong = vec![options(0.0, 0, 4), options(1.0, 0, 4), options(1.0, 0, 4)];
    wrong[1].sampling = wrong[1].sampling.top_k(3).unwrap();
    wrong[2].close = true;
    for options in wrong {
        let error = ConditionalDecoder::new(batch(), &start, &options).unwrap_err();
        assert!(matches!(error.kind(), BuildErrorKind::NotConditional(_)), "{error}");
    }
    let draw = |model: ScriptedModel, prompt: &[TokenId]| {
        let batch = OneByOne::new(vec![model; 3]);
        let text =
            ConditionalDecoder::new(batch, &start, &options(1.0, 0, 4)).unwrap().draw(prompt, &|| true);
        text.map_err(|error| error.kind().clone())
    };
    assert_eq!(draw(model(1), &[]), Err(DecodeErrorKind::EmptyPrompt));
    let long = vec![TokenId::new(0); 41];
    assert_eq!(draw(model(1), &long), Err(DecodeErrorKind::PromptTooLong { tokens: 41, context: 40 }));
    let at = 3;
    let failing = |fault| draw(model(1).fault(at, fault), &prompt());
    assert_eq!(failing(Fault::Pass), Err(DecodeErrorKind::Model));
    let impossible = DecodeErrorKind::Logits { position: at, error: DrawError::Impossible };
    assert_eq!(failing(Fault::Impossible), Err(impossible));
    let error = failing(Fault::NotANumber).unwrap_err();
    assert!(matches!(error, DecodeErrorKind::Logits { error: DrawError::NotFinite(_), .. }), "{error:?}");
    // Stopped at once: nothing was drawn, and that is no text of the language.
    let mut decoder = ConditionalDecoder::new(batch(), &start, &options(1.0, 0, 4)).unwrap();
    let stopped = decoder.draw(&prompt(), &|| false).unwrap();
    assert_eq!(
        (stopped.generation.tokens.len(), stopped.generation.finish, stopped.generation.complete),
        (0, Finish::Length, false)
    );
}

proptest! {
    /// Copies are fed again as far as they differ: all rows are those of a model of their own.
    #[test]
    fn caches_of_copied_particles_do_not_change_the_text(seed: u64, particles in 2_usize..7) {
        let (model, start) = (model(seed % 50), constraint(GRAMMAR));
        let batch = |models: Vec<ScriptedModel>| OneByOne::new(models);
        let text = |mut batch: OneByOne<ScriptedModel>| {
            let mut decoder = ConditionalDecoder::new(&mut batch, &start, &options(0.8, seed, 4)).unwrap();
            decoder.draw(&prompt(), &|| true).unwrap()
        };
        let plain = text(batch(vec![model.clone(); particles]));
        // Caches that hold something else at first.
        let mut used = model.clone();
        used.forward(&[TokenId::new(1); 9], Rows::Last).unwrap();
        let mut other = text(batch(vec![used; particles]));
        other.alike(&plain);
        prop_assert_eq!(&other, &plain);
        let count = NonZeroUsize::new(particles).unwrap();
        let mut one = model.clone();
        let mut turns = crate::model::InTurns::new(&mut one, count);
        let mut decoder = ConditionalDecoder::new(&mut turns, &start, &options(0.8, seed, 4)).unwrap();
        let mut alone = decoder.draw(&prompt(), &|| true).unwrap();
        alone.alike(&plain);
        prop_assert_eq!(alone, plain);
    }
}
