//! A decoding loop of one's own: Domino gives the masks and the draws, the model is yours.
//!
//!     cargo run --release --example own_loop [-- MODEL]

use std::error::Error;

use candle_core::{DType, Device, Tensor};
use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Sampler, Sampling},
    model::{
        Model, Rows,
        candle::{CandleModel, LoadOptions},
    },
    vocab::Tokenizer,
};

/// Writes up to `most` tokens. `forward` is your model: new tokens in, the logits of the last one out.
pub fn write(
    compiled: &CompiledGrammar,
    sampler: &Sampler,
    prompt: &[u32],
    most: usize,
    mut forward: impl FnMut(&[u32]) -> candle_core::Result<Tensor>,
) -> Result<Vec<u32>, Box<dyn Error>> {
    let mut constraint = compiled.constraint();
    let mut sequence = prompt.to_vec();
    let mut logits = forward(prompt)?;
    while sequence.len() < prompt.len() + most {
        let row: Vec<f32> = logits.flatten_all()?.to_dtype(DType::F32)?.to_vec1()?;
        // Masked first, then drawn. The number of a draw counts the prompt's tokens too.
        let token = sampler.draw(&row, constraint.mask()?, sequence.len())?;
        constraint.advance(token)?;
        if constraint.is_ended() {
            break; // the token was end of text
        }
        sequence.push(token.raw());
        logits = forward(&[token.raw()])?;
    }
    Ok(sequence.split_off(prompt.len()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "models/domino-small".into());
    let vocabulary = Vocabulary::from_tokenizer_file(&path)?;
    let expression = r#"\{"name": "[A-Z][a-z]+ [A-Z][a-z]+", "age": [1-9][0-9]?\}"#;
    let grammar = Grammar::parse(Syntax::Regex, expression, &Limits::default())?;
    let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
    let sampler = Sampler::new(Sampling::with_temperature(0.8)?.top_p(0.95)?, 7); // seed 7

    let prompt = Tokenizer::from_tokenizer_file(&path)?.encode("A JSON file describing a person: ", true)?;
    let prompt: Vec<u32> = prompt.into_iter().map(TokenId::raw).collect();

    // Any model will do. This one is Domino's own, as if it were another's.
    let mut model = CandleModel::load(&path, &LoadOptions::default())?;
    let written = write(&compiled, &sampler, &prompt, 40, |tokens| {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId::new).collect();
        let logits = model.forward(&tokens, Rows::Last).map_err(candle_core::Error::wrap)?;
        Tensor::new(logits.last().unwrap_or_default(), &Device::Cpu)
    })?;

    let tokens: Vec<TokenId> = written.into_iter().map(TokenId::new).collect();
    println!("{}", String::from_utf8_lossy(&vocabulary.concat(&tokens)));
    Ok(())
}
