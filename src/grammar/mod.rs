//! Notations -> grammar IR.
//!
//! Each front end turns text into [`GrammarBuilder`] calls and does no analysis; all of them report mistakes
//! as [`GrammarError`]. They know nothing of vocabularies, scanners or parsing with the grammar.
//!
//! [`ir`] is what they write, `errors` what they report, [`source`] the text that both point into. Each
//! notation has a room of its own: `gbnf`, `lark`, `regex`, [`json_schema`], `structural`, [`tools`]. The
//! rest serves several of them: `document` reads JSON, `extension` and `substring` are languages with a name,
//! `regular` and `spelled` are languages of bytes that regular expressions cannot say or say at length.

pub mod ir;
pub mod json_schema;
pub mod source;
pub mod tools;

mod document;
mod errors;
mod extension;
mod file_text;
mod gbnf;
mod lark;
mod regex;
pub(crate) mod regular;
#[cfg(feature = "schemars")]
mod rust_types;
pub(crate) mod spelled;
mod structural;
mod substring;
mod syntax;
mod token_numbers;

pub use errors::{GrammarError, GrammarErrorKind, GrammarWarning, GrammarWarningKind, Location, suggest};
pub use ir::{
    DistinctItems, DistinctKeys, Expr, Grammar, GrammarBuilder, LengthBounded,
    any_order::{self, AnyOrder, AnyOrderPart},
    automaton::{self, Automaton},
    decisions,
    pattern::{self, Pattern, PatternKind},
};
pub use json_schema::AutomataCache;
pub use source::{Source, Span};
pub use spelled::{Bounds, Spelled};
pub use syntax::Syntax;

use crate::{
    ids::as_index,
    limits::{Budget, LimitExceeded, Limits},
};
use json_schema::SchemaOptions;
use lark::Lexing;

impl Grammar {
    /// Reads a grammar.
    ///
    /// Linear in the text. A byte order mark before the text is skipped, except before a regular expression,
    /// which is taken as it is; for the content of files, see [`Syntax::text_of_file`].
    ///
    /// # Errors
    /// If the text is not of the notation, uses undefined rules, or a budget is used up.
    ///
    /// # Examples
    /// ```
    /// use domino::{Grammar, Limits, Syntax};
    ///
    /// let grammar = Grammar::parse(Syntax::Gbnf, "root ::= [0-9]+", &Limits::default())?;
    /// assert_eq!(grammar.rule_name(grammar.root()), "root");
    /// # Ok::<(), domino::GrammarError>(())
    /// ```
    pub fn parse(syntax: Syntax, text: &str, limits: &Limits) -> Result<Self, GrammarError> {
        Self::parse_with(syntax, text, limits, &AutomataCache::of_one_call())
    }

    /// Reads a grammar with a cache of automata that JSON Schemas share, and fills it. That takes less time
    /// for schemas, and for grammars with schemas in them. [`Compiler::parse`](crate::Compiler::parse) uses
    /// the cache of a compiler.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        syntax: Syntax,
        text: &str,
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<Self, GrammarError> {
        Self::parse_by(syntax, text, &SchemaOptions::default(), limits, automata)
    }

    /// Reads a grammar with these options for JSON Schemas: the text itself, or schemas inside of Lark and of
    /// structural tags, where objects are closed unless they say otherwise and
    /// [`lenient`](SchemaOptions::lenient) has no effect.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    ///
    /// # Examples
    /// ```
    /// use domino::{AutomataCache, Grammar, Limits, Syntax, grammar::json_schema::{Order, SchemaOptions}};
    ///
    /// let tags = r#"{"type": "structural_tag", "format": {
    ///     "type": "json_schema", "json_schema": {"properties": {"a": {}, "b": {}}}}}"#;
    /// let options = SchemaOptions::default().with_order(Order::Any);
    /// Grammar::parse_by(Syntax::StructuralTag, tags, &options, &Limits::default(), &AutomataCache::new())?;
    /// # Ok::<(), domino::GrammarError>(())
    /// ```
    pub fn parse_by(
        syntax: Syntax,
        text: &str,
        schemas: &SchemaOptions,
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<Self, GrammarError> {
        let most = limits.grammar_bytes.min(as_index(u32::MAX));
        if text.len() > most {
            let limit = LimitExceeded::new(Budget::GrammarBytes, "bytes of grammar text", most);
            return Err(GrammarError::limit(limit).with_hint(format!(
                "the text has {} bytes; the budget is `Limits::grammar_bytes`",
                text.len()
            )));
        }
        limits.look().map_err(GrammarError::cancelled)?;
        let read = match syntax {
            Syntax::Gbnf => gbnf::parse(gbnf::GbnfDialect::LlamaCpp, text, limits),
            Syntax::Ebnf => gbnf::parse(gbnf::GbnfDialect::XGrammar, text, limits),
            Syntax::Regex => regex::parse(text, limits),
            Syntax::Lark => lark::parse(text, Lexing::EveryWay, schemas, limits, automata),
            Syntax::LarkGreedy => lark::parse(text, Lexing::Greedy, schemas, limits, automata),
            Syntax::JsonSchema => Ok(schemas.parse_with(text, limits, automata)?.grammar),
            Syntax::StructuralTag => structural::parse(text, schemas, limits, automata),
        };
        // Whatever came of work that was cut off.
        limits.look().map_err(GrammarError::cancelled)?;
        read
    }

    /// Reads a grammar from bytes, as [`parse`](Self::parse) reads it from a text.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); also if the bytes are not UTF-8.
    pub fn parse_bytes(syntax: Syntax, bytes: &[u8], limits: &Limits) -> Result<Self, GrammarError> {
        Self::parse_bytes_with(syntax, bytes, limits, &AutomataCache::of_one_call())
    }

    /// Reads a grammar from bytes, as [`parse_with`](Self::parse_with) reads it from a text.
    ///
    /// # Errors
    /// As [`parse_bytes`](Self::parse_bytes).
    pub fn parse_bytes_with(
        syntax: Syntax,
        bytes: &[u8],
        limits: &Limits,
        automata: &AutomataCache,
    ) -> Result<Self, GrammarError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse_with(syntax, text, limits, automata),
            Err(error) => {
                let at = error.valid_up_to();
                let end = error.error_len().map_or(bytes.len(), |length| at + length);
                let message = format!("the grammar text is not UTF-8: byte {at} is wrong");
                let error = GrammarError::new(GrammarErrorKind::NotUtf8, message);
                let error = error.at(Source::from_bytes(bytes), Span::from_range(at..end), "");
                Err(error.with_hint(file_text::encoding_hint(bytes)))
            }
        }
    }
}
