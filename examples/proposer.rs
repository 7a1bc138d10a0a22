//! A proposer of one's own: it guesses that a token follows as it last followed the two before it.
//!
//!     cargo run --release --example proposer [-- MODEL]

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex},
};

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::{Decoder, Sampling},
    model::candle::{CandleModel, LoadOptions},
    proposer::{DraftLength, Drafter, Guess, Propose, Seen, Site},
    vocab::Tokenizer,
};

/// Trigrams of the texts so far, and how often their guesses came true.
#[derive(Debug, Default)]
struct Trigrams {
    next: HashMap<[TokenId; 2], TokenId>,
    right: f64,
    asked: f64,
}

impl Propose for Trigrams {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let token = *self.next.get(site.tokens().last_chunk()?)?;
        // How far a draft goes depends on this; what is written does not.
        Some(Guess { token, acceptance: (self.right + 1.0) / (self.asked + 2.0) })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        let Some(&before) = site.tokens().last_chunk() else { return };
        if let Some(guess) = self.next.insert(before, seen.token) {
            self.asked += 1.0;
            self.right += f64::from(u8::from(guess == seen.token));
        }
    }

    fn learns(&self) -> bool {
        true
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "models/domino-small".into());
    let vocabulary = Vocabulary::from_tokenizer_file(&model)?;
    let grammar = include_str!("../grammars/rpg.gbnf");
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default())?;
    let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
    let mut decoder = Decoder::builder(CandleModel::load(&model, &LoadOptions::default())?)
        .vocabulary(vocabulary)
        .constraint(compiled.constraint())
        .sampling(Sampling::with_temperature(0.8)?)
        .max_new_tokens(150)
        .build()?;
    let prompt = Tokenizer::from_tokenizer_file(&model)?.encode("A RPG character in JSON: ", true)?;

    let trigrams = Arc::new(Mutex::new(Trigrams::default())); // shared, so that it learns from text to text
    for seed in 0..4 {
        decoder.options_mut().seed = seed;
        decoder.set_drafter(None);
        let plain = decoder.generate(&prompt)?;
        decoder.set_drafter(Some(Drafter::new(Box::new(Arc::clone(&trigrams)), DraftLength::Auto)));
        let drafted = decoder.generate(&prompt)?;
        assert_eq!(drafted.tokens, plain.tokens); // a proposer cannot change a text
        let (tokens, passes) = (drafted.stats.tokens, drafted.stats.passes);
        println!("seed {seed}: {tokens} tokens in {passes} passes, {} without drafts", plain.stats.passes);
    }
    Ok(())
}
