//! Grammars that people write never meet a budget.

mod grammars;

use domino::{Compiler, Grammar, Limits, Patience, Syntax, TokenId, Vocabulary};

use grammars::{Dice, grammar};

/// Grammars that are tried, all kinds in turn; `cargo measure natural` tries any number on all vocabularies.
const GRAMMARS: u64 = 48;
const STEPS: usize = 12;

#[test]
fn natural_grammars_meet_no_budget() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(folder).unwrap();
    let compiler = Compiler::new(vocabulary.clone()).patience(Patience::whole());
    let mut steps = 0;
    for number in 0..GRAMMARS {
        let (kind, text) = grammar(number);
        let parsed = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())
            .unwrap_or_else(|error| panic!("{kind} {number}: {error}"));
        let mut constraint = compiler.compile(&parsed).unwrap().constraint();
        let dice = &mut Dice::new(number);
        for step in 0..STEPS {
            let mask = constraint.mask().unwrap_or_else(|error| {
                panic!("{kind} {number}, step {step}: {error}\n{text}");
            });
            let tokens: Vec<TokenId> =
                mask.iter().filter(|&token| !vocabulary.is_end_of_text(token)).collect();
            if tokens.is_empty() {
                break;
            }
            // Signs more often than letters: of two the one with the least letters.
            let some = [tokens[dice.below(tokens.len())], tokens[dice.below(tokens.len())]];
            let letters = |token: &TokenId| {
                let bytes = vocabulary.bytes(*token).unwrap_or_default();
                bytes.iter().filter(|byte| byte.is_ascii_alphanumeric()).count()
            };
            let token = some.into_iter().min_by_key(letters).unwrap();
            constraint.advance(token).unwrap_or_else(|error| {
                panic!("{kind} {number}, step {step}: {error}\n{text}");
            });
            steps += 1;
        }
    }
    assert!(steps > STEPS * 20, "{steps} steps are too few to tell");
}
