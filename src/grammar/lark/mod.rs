//! Lark in the dialect of llguidance, text -> grammar.
//!
//! The passes: `syntax` splits the text and makes a tree, `scope` resolves all names, `translate` writes the
//! IR, with `terminal` for terminals that only automata can express and `template` for rules with parameters.
//! `docs/lark.md` lists the constructs. Three of them differ from other implementations:
//!
//! * Every way to split a text into terminals is followed, while lexers take the longest terminal and the one
//!   of the highest priority. So `"return" NAME` reads `returnx`, unless the grammar is read with greedy
//!   lexing.
//! * `~` is the complement within valid UTF-8, not within all byte strings.
//! * `lazy` keeps the texts of a terminal that have no shorter text of it as a proper prefix. A lexeme that
//!   may stand in the same place loses its texts that begin with one of the lazy terminal's ([`contest`]).

mod common;
mod contest;
mod lexing;
mod options;
mod scope;
mod syntax;
mod template;
mod terminal;
#[cfg(test)]
mod tests;
mod tokens;
mod translate;
mod uses;

pub(super) use lexing::Lexing;

use super::{AutomataCache, Grammar, GrammarError, json_schema::SchemaOptions};
use crate::limits::Limits;

/// Reads a grammar of at most 4 GiB. Linear, but for schemas in it and for terminals that need automata,
/// which with greedy lexing are all of them.
pub(super) fn parse(
    text: &str,
    lexing: Lexing,
    schemas: &SchemaOptions,
    limits: &Limits,
    automata: &AutomataCache,
) -> Result<Grammar, GrammarError> {
    let items = syntax::parse(text, limits)?;
    translate::translate(text, &items, lexing, schemas, limits, automata)
}
