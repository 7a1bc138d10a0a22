//! JSON Schema, held against suites, against an independent judge, and against hostile input.

mod cases;
mod hostile;
mod judge;
mod suite;
#[path = "../../experiments/schema/suites.rs"]
mod suites;

use domino::{
    CompiledGrammar, Compiler, Limits, TokenId, Vocabulary,
    grammar::json_schema::{Order, SchemaError, SchemaOptions, WhiteSpace},
};

/// How texts that others wrote are judged.
fn checking() -> SchemaOptions {
    SchemaOptions::default().with_white_space(WhiteSpace::Any).with_order(Order::Any)
}

/// A schema, compiled for a vocabulary of bytes.
struct Schema(CompiledGrammar);

impl Schema {
    fn new(options: &SchemaOptions, schema: &str) -> Result<Self, SchemaError> {
        let limits = Limits::default();
        let grammar = options.parse(schema, &limits)?.grammar;
        let end = TokenId::new(256);
        let bytes = Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build();
        let compiler = Compiler::new(bytes.expect("a vocabulary of bytes"));
        Ok(Self(compiler.compile(&grammar).expect("a grammar that has texts")))
    }

    fn accepts(&self, text: &str) -> bool {
        let mut state = self.0.constraint();
        state.advance_bytes(text.as_bytes()).expect("within budget") == text.len() && state.is_complete()
    }
}
