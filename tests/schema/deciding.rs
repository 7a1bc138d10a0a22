//! Schemas that decide texts.

use domino::{
    CompiledGrammar, Compiler, Limits, TokenId, Vocabulary,
    grammar::json_schema::{Escapes, Format, Numbers, Order, SchemaError, SchemaOptions, WhiteSpace},
};

/// Options for texts that others wrote.
pub(crate) fn checking() -> SchemaOptions {
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Any).with_format(Format::Assert);
    options.with_order(Order::Any).with_numbers(Numbers::Any).with_escapes(Escapes::All)
}

/// A schema, compiled for a vocabulary of bytes.
#[derive(Debug)]
pub(crate) struct Schema(CompiledGrammar);

impl Schema {
    /// Reads and compiles a schema.
    pub(crate) fn new(options: &SchemaOptions, schema: &str) -> Result<Self, SchemaError> {
        let limits = Limits::default();
        let grammar = options.parse(schema, &limits)?.grammar;
        let end = TokenId::new(256);
        let bytes = Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build();
        let compiler = Compiler::new(bytes.expect("a vocabulary of bytes"));
        Ok(Self(compiler.compile(&grammar).expect("a grammar that has texts")))
    }

    /// True for the text of a valid instance.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        self.accepts_bytes(text.as_bytes())
    }

    /// True for the text of a valid instance; the bytes may be no UTF-8.
    pub(crate) fn accepts_bytes(&self, text: &[u8]) -> bool {
        let mut state = self.0.constraint();
        state.advance_bytes(text).expect("within budget") == text.len() && state.is_complete()
    }
}
