//! Views of every stage are true of the grammar, whatever the numbering.

mod dot;
mod program;
mod sets;
mod stages;
mod trees;
mod warnings;

use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary, inspect::Inspection};

fn bytes() -> Vocabulary {
    Vocabulary::builder()
        .all_bytes()
        .token(TokenId::new(256), "ab")
        .token(TokenId::new(257), "a(")
        .end_of_text(TokenId::new(300))
        .build()
        .unwrap()
}

fn compiled(grammar: &str) -> domino::CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    Compiler::new(bytes()).compile(&grammar).unwrap()
}

fn inspect(grammar: &str) -> Inspection {
    compiled(grammar).inspect()
}
