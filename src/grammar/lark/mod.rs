//! Lark in the dialect of llguidance, text -> grammar.
//!
//! The passes: `lexer` splits the text, `parser` makes a tree, `scope` checks all names, `translate` writes
//! the IR, with `terminal` for what only automata can say and `template` for rules with parameters.
//! `docs/lark.md` has the table of what is taken, and of what means something else than elsewhere:
//!
//! * Every way to split a text into terminals is followed, where lexers take the longest terminal and the one
//!   of the highest priority. So `"return" NAME` reads `returnx`.
//! * `~` is a complement within texts of characters, so nothing that is not UTF-8.
//! * `lazy` is exact: the texts of the terminal that no other one of its texts begins. Where another lexeme
//!   may stand in its place, that one's texts do not begin with one of the lazy one's ([`contest`]).

mod ast;
mod common;
mod contest;
mod expressions;
mod lexer;
mod options;
mod parser;
mod scope;
mod strings;
mod template;
mod terminal;
#[cfg(test)]
mod tests;
mod translate;
mod uses;

use super::{Grammar, GrammarError};
use crate::limits::Limits;

/// Reads a grammar of at most 4 GiB. Linear, but for schemas in it and terminals that need automata.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Grammar, GrammarError> {
    let items = parser::parse(text, limits)?;
    translate::translate(text, &items, limits)
}
