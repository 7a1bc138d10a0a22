//! Texts are canonical, dead ends are left, and impossible options are refused.

use super::*;
use crate::{
    Compiler, Grammar, Limits, Syntax,
    decode::{Decoder, Penalties, Sampling, StopStrings},
    model::{Rows, ScriptedModel},
    vocab::TokenSet,
};

const BYTE_LEVEL: &str = include_str!("../../../tests/fixtures/byte_level.json");

fn tokenizer() -> Tokenizer {
    Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap()
}

fn constraint(grammar: &str) -> Constraint {
    let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
}

fn options(seed: u64) -> DecodeOptions {
    let sampling = Sampling::with_temperature(1.0).unwrap();
    DecodeOptions { sampling, seed, max_new_tokens: 20, ..DecodeOptions::default() }
}

fn prompt() -> Vec<TokenId> {
    vec![TokenId::new(65)]
}

fn written(model: &mut ScriptedModel, constraint: &Constraint, seed: u64) -> CanonicalText {
    let mut decoder = CanonicalDecoder::new(model, &tokenizer(), constraint, &options(seed)).unwrap();
    decoder.write(&prompt(), &|| true).unwrap()
}

/// Returns the text of masks, and whether it is canonical.
fn free(model: ScriptedModel, constraint: &Constraint, seed: u64) -> (Generation, bool) {
    let vocabulary = constraint.vocabulary().clone();
    let builder = Decoder::builder(model).vocabulary(vocabulary.clone()).constraint(constraint.fork());
    let generation = builder.options(options(seed)).build().unwrap().generate(&prompt()).unwrap();
    let own = tokenizer().alone(&vocabulary, &generation.text);
    let canonical = own.is_none_or(|own| own == generation.tokens);
    (generation, canonical)
}

/// All texts are canonical, while masks write some that are not; and where no step went back, each token is
/// the draw from the mask's tokens that keep the text canonical, as tried one by one.
#[test]
fn tokens_are_draws_among_the_canonical() {
    let constraint = constraint(r#"root ::= ("true" | "null" | "{" ("\"" [a-z ]* "\"")? "}")+"#);
    let (tokenizer, vocabulary) = (tokenizer(), constraint.vocabulary().clone());
    let (mut not, mut checked, mut redraws) = (0, 0, 0);
    for seed in 0..40 {
        let model = || ScriptedModel::new(vocabulary.size(), 60, seed);
        not += usize::from(!free(model(), &constraint, seed).1);
        let text = written(&mut model(), &constraint, seed);
        assert_eq!(text.canonical, Some(true), "{:?}", text.generation.text.escape_ascii());
        redraws += text.redraws;
        let sampler = Sampler::new(Sampling::with_temperature(1.0).unwrap(), seed);
        let (mut model, mut constraint) = (model(), constraint.fork());
        let mut sequence = prompt();
        for &token in &text.generation.tokens {
            let row = model.forward(&sequence[model.position()..], Rows::Last).unwrap();
            let mut set = TokenSet::empty(vocabulary.size());
            for token in constraint.mask().unwrap().iter() {
                let tokens = [&sequence[1..], &[token]].concat();
                let own = tokenizer.alone(&vocabulary, &vocabulary.concat(&tokens));
                if vocabulary.is_end_of_text(token) || own == Some(tokens) {
                    set.insert(token);
                }
            }
            let drawn = sampler.draw(row.last().unwrap(), &set, sequence.len()).unwrap();
            // What differs was refused later.
            checked += usize::from(drawn == token);
            assert!(set.contains(token));
            constraint.advance(token).unwrap();
            sequence.push(token);
        }
    }
    assert!(not > 10 && redraws > 100 && checked > 200, "{not} {redraws} {checked}");
}

/// A beginning without any canonical continuation is taken back.
#[test]
fn dead_ends_are_taken_back() {
    let constraint = constraint(r#"root ::= "true" | "null""#);
    let vocabulary = constraint.vocabulary().clone();
    let first = |text: &str| vocabulary.text_tokens().find(|(_, bytes)| *bytes == text.as_bytes()).unwrap().0;
    let model = || ScriptedModel::new(vocabulary.size(), 60, 5).favour(1, first("t"));
    let (masked, canonical) = free(model(), &constraint, 3);
    assert!(masked.tokens[0] == first("t") && !canonical);
    let text = written(&mut model(), &constraint, 3);
    assert!(text.canonical == Some(true) && text.generation.complete, "{text:?}");
    let tokens = text.generation.tokens;
    assert_eq!(tokenizer().alone(&vocabulary, &text.generation.text).as_ref(), Some(&tokens));
    assert!(tokens[0] != first("t") && text.redraws > 0);
    assert_eq!(text.generation.stats.tokens, tokens.len());
}

/// A language without a canonical text, since its first letters merge, is written by free tokens, and the
/// text says so.
#[test]
fn a_language_without_canonical_texts_gets_free_tokens() {
    let constraint = constraint(r#"root ::= "tr""#);
    let vocabulary = constraint.vocabulary().clone();
    let own = tokenizer().alone(&vocabulary, b"tr").unwrap();
    let text = written(&mut ScriptedModel::new(vocabulary.size(), 60, 5), &constraint, 3);
    assert_eq!(text.generation.text, b"tr");
    assert_eq!(text.canonical, Some(own == text.generation.tokens));
}

#[test]
fn a_canonical_text_can_be_stopped() {
    let constraint = constraint("root ::= [a-z]+");
    let mut model = ScriptedModel::new(constraint.vocabulary().size(), 60, 5);
    let tokenizer = tokenizer();
    let mut decoder = CanonicalDecoder::new(&mut model, &tokenizer, &constraint, &options(1)).unwrap();
    let text = decoder.write(&prompt(), &|| false).unwrap();
    assert_eq!((text.generation.finish, text.generation.stats.passes), (crate::decode::Finish::Length, 0));
    assert!(decoder.write(&[], &|| true).is_err());
}

#[test]
fn options_that_rule_out_canonical_texts_are_refused() {
    let constraint = constraint("root ::= [a-z]+");
    let mut model = ScriptedModel::new(constraint.vocabulary().size(), 60, 5);
    let mut refused = |options: &DecodeOptions| {
        let error = CanonicalDecoder::new(&mut model, &tokenizer(), &constraint, options).unwrap_err();
        error.to_string()
    };
    let whole = options(1);
    let sampling = whole.sampling.top_k(3).unwrap();
    for (options, said) in [
        (DecodeOptions { sampling, ..whole.clone() }, "top-k"),
        (DecodeOptions { penalties: Penalties::none().repeat(1.5).unwrap(), ..whole.clone() }, "penalties"),
        (DecodeOptions { stop: StopStrings::new(["x"]).unwrap(), ..whole.clone() }, "stop strings"),
        (DecodeOptions { close: true, ..whole.clone() }, "completion"),
        (DecodeOptions { logprobs: Some(1), ..whole.clone() }, "log-probabilities"),
    ] {
        assert!(refused(&options).contains(said), "{said}");
    }
    let mut small = ScriptedModel::new(4, 60, 5);
    assert!(CanonicalDecoder::new(&mut small, &tokenizer(), &constraint, &whole).is_err());
}
