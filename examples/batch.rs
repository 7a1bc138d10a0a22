//! Several texts at once, each by a grammar of its own: every pass of the model is shared.
//!
//!     cargo run --release --example batch [-- MODEL]

use std::{collections::HashMap, error::Error, num::NonZeroUsize};

use domino::{
    Compiler, Grammar, Limits, Syntax, Vocabulary,
    decode::{BatchDecoder, BatchEvent, DecodeOptions, Sampling},
    model::candle::{CandleBatch, LoadOptions},
    vocab::Tokenizer,
};

const ASKED: [(&str, &str); 4] = [
    ("A JSON file describing a person: ", r#"\{"name": "[A-Z][a-z]+", "age": [1-9][0-9]?\}"#),
    ("A RPG character in JSON: ", r#"\{"name": "[A-Z][a-z]+", "class": "(warrior|mage|rogue)"\}"#),
    ("An XML file of a person: ", "<person><name>[A-Z][a-z]+ [A-Z][a-z]+</name></person>"),
    ("A date: ", "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "models/domino-small".into());
    let vocabulary = Vocabulary::from_tokenizer_file(&model)?;
    let tokenizer = Tokenizer::from_tokenizer_file(&model)?;
    let compiler = Compiler::new(vocabulary.clone());

    // Room for two texts; the others wait for a place. A text is the same however many share its passes.
    let room = NonZeroUsize::new(2).ok_or("no room")?;
    let loaded = CandleBatch::load(&model, room, &LoadOptions::default())?;
    let mut batch = BatchDecoder::new(loaded, vocabulary)?;

    let mut asked = HashMap::new();
    for (seed, (prompt, expression)) in (1..).zip(ASKED) {
        let grammar = Grammar::parse(Syntax::Regex, expression, &Limits::default())?;
        let mut options = DecodeOptions::default();
        options.sampling = Sampling::with_temperature(0.8)?;
        options.seed = seed;
        options.max_new_tokens = 60;
        options.close = true;
        let tokens = tokenizer.encode(prompt, true)?;
        let constraint = compiler.compile(&grammar)?.constraint();
        asked.insert(batch.add(&tokens, Some(constraint), &options)?, prompt);
    }

    while !batch.is_empty() {
        for event in batch.step() {
            match event {
                BatchEvent::Finished { sequence, generation } => {
                    println!("{}{}", asked[&sequence], String::from_utf8_lossy(&generation.text));
                }
                // One that fails does not concern the others.
                BatchEvent::Failed { sequence, error, .. } => eprintln!("{}: {error}", asked[&sequence]),
                _ => {} // a token: `BatchDecoder::settled_text` has the text so far
            }
        }
    }
    Ok(())
}
