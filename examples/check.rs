//! Texts held against a grammar without a model: where they leave it, and what its rules have captured.
//!
//!     echo 'size=big' | cargo run --example check --no-default-features
//!     cargo run --example check -- FILE.gbnf [RULE,...] < TEXTS

use std::{error::Error, fs, io};

use domino::{Captures, Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

const PAIR: &str = r#"
root  ::= key "=" value
key   ::= [a-z]+
value ::= [a-z]+ | "-"? [0-9]+
"#;

/// Places of the grammar that are looked at for what could follow.
const PLACES: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (text, rules) = match arguments.next() {
        Some(file) => (fs::read_to_string(file)?, arguments.next().unwrap_or_default()),
        None => (PAIR.to_owned(), "key,value".to_owned()),
    };
    let limits = Limits::default();
    let grammar = match Grammar::parse(Syntax::Gbnf, &text, &limits) {
        Ok(grammar) => grammar,
        Err(error) => {
            eprintln!("{error}\n{}", error.hint().unwrap_or_default());
            std::process::exit(2);
        }
    };
    let rules: Vec<&str> = rules.split(',').filter(|rule| !rule.is_empty()).collect();
    let captures = Captures::new(&grammar, &rules, &limits)?;

    // Without a model a token is a byte, and one more ends the text.
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    let compiled = Compiler::new(vocabulary).compile(&grammar)?;
    for line in io::stdin().lines() {
        let line = line?;
        let mut constraint = compiled.constraint();
        let taken = constraint.advance_bytes(line.as_bytes())?;
        if taken < line.len() {
            constraint.advance_bytes(&line.as_bytes()[..taken])?; // nothing had moved
        }
        if taken < line.len() || !constraint.is_complete() {
            let next = constraint.next_chars(PLACES)?.ranges;
            println!("{line}: not in the language: after {taken} bytes may come {next:?}");
            continue;
        }
        println!("{line}: in the language");
        for capture in captures.of(line.as_bytes())?.unwrap_or_default() {
            println!("  {} = {}", capture.name, &line[capture.span]);
        }
    }
    Ok(())
}
