//! A JSON Schema holds a Candle model to it: the text is shown as it comes, then read into a Rust type.
//!
//!     cargo run --release --example schema [-- MODEL]

use std::{
    error::Error,
    io::{self, Write},
};

use domino::{
    Compiler, Limits, Vocabulary,
    decode::{Decoder, Sampling},
    grammar::json_schema::{Escapes, SchemaOptions},
    model::candle::{CandleModel, LoadOptions},
    proposer::Drafter,
    vocab::{Tokenizer, Utf8Stream},
};

const SCHEMA: &str = r#"{
    "type": "object", "required": ["name", "age"], "additionalProperties": false,
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120}
    }
}"#;

#[derive(Debug, serde::Deserialize)]
struct Person {
    name: String,
    age: u8,
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = std::env::args().nth(1).unwrap_or_else(|| "models/domino-small".into());
    let vocabulary = Vocabulary::from_tokenizer_file(&model)?;
    let tokenizer = Tokenizer::from_tokenizer_file(&model)?;

    // Once for each schema. What is wrong with it is an error with a place and a hint.
    let options = SchemaOptions::default().with_escapes(Escapes::Minimal);
    let schema = options.parse(SCHEMA, &Limits::default())?;
    let compiled = Compiler::new(vocabulary.clone()).compile(&schema.grammar)?;

    // Drafts of what the schema forces change no token.
    let drafter = Drafter::of_forced_text(tokenizer.clone(), vocabulary.clone());
    let mut decoder = Decoder::builder(CandleModel::load(&model, &LoadOptions::default())?)
        .vocabulary(vocabulary.clone())
        .constraint(compiled.constraint())
        .drafter(drafter)
        .sampling(Sampling::with_temperature(0.8)?)
        .seed(1)
        .max_new_tokens(60)
        .build()?;
    decoder.options_mut().close = true; // a text that is cut is completed: there is always a value

    let prompt = tokenizer.encode("A JSON file describing a person: ", true)?;
    let mut steps = decoder.steps(&prompt);
    let (mut shown, mut characters) = (0, Utf8Stream::default());
    while let Some(step) = steps.next() {
        step?;
        print!("{}", characters.push(&steps.settled_text()[shown..]));
        io::stdout().flush()?;
        shown = steps.settled_text().len();
    }
    let written = steps.into_generation();
    println!("{}", characters.push(&written.text[shown..]));

    let Person { name, age } = serde_json::from_slice(&written.text)?;
    println!("{name} is {age}; {} tokens in {} passes", written.stats.tokens, written.stats.passes);
    Ok(())
}
