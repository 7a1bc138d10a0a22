//! XGrammar's structural tags in JSON, text -> grammar: free text, interrupted by tags whose content has a
//! grammar.
//!
//! `reader` makes a tree (`ast`) of the JSON, `translate` writes it as rules, with `free` for text that may
//! not hold certain strings, `parameters` for arguments between XML tags and `tokens` for special tokens. A
//! trigger is found where it is first complete, by an automaton, so free text is as exact as everything else.
//! `docs/structural-tags.md` has the table.

mod ast;
mod free;
mod parameters;
mod reader;
#[cfg(test)]
mod tests;
mod tokens;
mod translate;

pub(super) use translate::options as schema_options;

use super::{
    Grammar, GrammarError,
    json_schema::{
        AutomataCache, SchemaOptions,
        arguments::{Readings, readings_of},
    },
};
use crate::limits::Limits;

/// Reads structural tags of at most 4 GiB. Linear, but for schemas and for strings that free text may not
/// hold.
pub(super) fn parse(
    text: &str,
    schemas: &SchemaOptions,
    limits: &Limits,
    automata: &AutomataCache,
) -> Result<Grammar, GrammarError> {
    let read = reader::read(text)?;
    translate::translate(text, &read, &schema_options(schemas), limits, automata)
}

/// The readings of arguments between tags, by the schema of all of them; `None` if the schema cannot be used.
pub(super) fn readings(schema: &str) -> Option<Readings> {
    readings_of(&schema_options(&SchemaOptions::default()), schema, &Limits::default()).ok()
}
