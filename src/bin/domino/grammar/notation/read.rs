//! Texts in a notation -> grammars.

use domino::{Grammar, GrammarError, Limits, grammar::json_schema::SchemaOptions};

use super::{Notation, Parsed};
use crate::grammar::budgets;

impl Notation {
    /// Reads a grammar in this notation, a schema with default options.
    #[cfg_attr(
        not(feature = "serve"),
        expect(dead_code, reason = "only the server has texts without options")
    )]
    pub(crate) fn parse(self, text: &[u8]) -> Result<Grammar, GrammarError> {
        Ok(self.read(text, &SchemaOptions::default(), &budgets::limits())?.grammar)
    }

    /// Reads a grammar in this notation; the options are for schemas.
    pub(crate) fn read(
        self,
        text: &[u8],
        options: &SchemaOptions,
        limits: &Limits,
    ) -> Result<Parsed, GrammarError> {
        let automata = budgets::automata();
        match (self, std::str::from_utf8(text)) {
            (Self::JsonSchema, Ok(text)) => Ok(options.parse_with(text, limits, automata)?.into()),
            (_, Ok(text)) => {
                let options = self.options_inside(options);
                let grammar = Grammar::parse_by(self.syntax(), text, &options, limits, automata)?;
                Ok(grammar.into())
            }
            _ => Ok(Grammar::parse_bytes_with(self.syntax(), text, limits, automata)?.into()),
        }
    }
}
