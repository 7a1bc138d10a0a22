//! Notations -> grammar IR.

pub mod ir;
pub mod pattern;
pub mod source;

mod error;
mod gbnf;
mod regex;

pub use error::{GrammarError, GrammarErrorKind};
pub use ir::{Expr, Grammar, GrammarBuilder};
pub use pattern::Pattern;
pub use source::{Source, Span};

use crate::limits::Limits;

/// A notation of grammars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// llama.cpp's GBNF.
    Gbnf,
    /// One regular expression that matches the whole text.
    Regex,
}

impl Grammar {
    /// Reads a grammar.
    ///
    /// # Errors
    /// Where the text is not of the notation, uses undefined rules, or a budget is used up.
    pub fn parse(syntax: Syntax, text: &str, limits: &Limits) -> Result<Self, GrammarError> {
        match syntax {
            Syntax::Gbnf => gbnf::parse(text, limits),
            Syntax::Regex => regex::parse(text, limits),
        }
    }
}
