//! Grammars of the kinds that people write never exhaust a budget.

mod grammars;

use domino::{Compiler, Grammar, Limits, Patience, Syntax, TokenId, Vocabulary};

use grammars::{Dice, OTHERS, grammar};

/// Number of grammars tried of either set of kinds, all kinds in turn; `cargo measure natural` tries any
/// number on all vocabularies.
const GRAMMARS: u64 = 48;
const STEPS: usize = 12;

/// Grammars that exhausted a budget or took long masks before equal items of higher counts were dropped, and
/// the most ambiguous ones of the other kinds.
const TROUBLE: [u64; 12] =
    [1225, 921, 1185, 1550, 1665, 2160, 2603, 2689, 2843, OTHERS + 9, OTHERS + 13, OTHERS + 592];

/// Units of work of a mask, per node of the trie, that `TROUBLE` may take; the default is 40 times as many.
const UNITS: usize = 6;

/// Walks along random tokens of a grammar; returns their number.
fn walk(compiler: &Compiler, number: u64) -> usize {
    let (kind, text) = grammar(number);
    let parsed = Grammar::parse(Syntax::Gbnf, &text, &Limits::default())
        .unwrap_or_else(|error| panic!("{kind} {number}: {error}"));
    let compiled = compiler.compile(&parsed).unwrap();
    let (vocabulary, mut constraint) = (compiled.vocabulary(), compiled.constraint());
    let dice = &mut Dice::new(number);
    for step in 0..STEPS {
        let mask = constraint.mask().unwrap_or_else(|error| {
            panic!("{kind} {number}, step {step}: {error}\n{text}");
        });
        let tokens: Vec<TokenId> = mask.iter().filter(|&token| !vocabulary.is_end_of_text(token)).collect();
        if tokens.is_empty() {
            return step;
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
    }
    STEPS
}

fn compiler(limits: Limits) -> Compiler {
    let folder = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(folder).unwrap();
    Compiler::new(vocabulary).limits(limits).patience(Patience::whole())
}

#[test]
fn natural_grammars_meet_no_budget() {
    let compiler = compiler(Limits::default());
    for first in [0, OTHERS] {
        let steps: usize = (first..first + GRAMMARS).map(|number| walk(&compiler, number)).sum();
        assert!(steps > STEPS * 20, "{steps} steps are too few to tell");
    }
}

#[test]
fn ambiguous_grammars_take_little_work() {
    let mut limits = Limits::default();
    limits.step_work = 100_000;
    limits.step_units = UNITS;
    let compiler = compiler(limits);
    let steps: usize = TROUBLE.iter().map(|&number| walk(&compiler, number)).sum();
    assert!(steps > STEPS * TROUBLE.len() / 2, "{steps} steps are too few to tell");
}
