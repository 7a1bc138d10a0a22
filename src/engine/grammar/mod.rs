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
pub mod suggest;
pub mod tools;

mod document;
mod errors;
mod extension;
mod gbnf;
mod lark;
#[cfg(test)]
mod mistakes;
mod regex;
pub(crate) mod regular;
#[cfg(feature = "schemars")]
mod rust_types;
pub(crate) mod spelled;
mod structural;
mod substring;
pub(crate) mod thought;
mod token_numbers;

use std::borrow::Cow;

use self::{json_schema::SchemaOptions, lark::Lexing};
use crate::{
    ids::as_index,
    limits::{Budget, LimitExceeded, Limits},
};

pub use self::{
    errors::{GrammarError, GrammarErrorKind, GrammarWarning, GrammarWarningKind, Location},
    ir::{
        DistinctItems, DistinctKeys, Expr, Grammar, GrammarBuilder, LengthBounded,
        any_order::{self, AnyOrder, AnyOrderPart},
        automaton::{self, Automaton},
        decisions,
        pattern::{self, Pattern, PatternKind},
    },
    json_schema::AutomataCache,
    source::{Source, Span},
    spelled::{Bounds, Spelled},
    thought::{Reasoning, Thought, ThoughtMarks, ThoughtPlace},
};

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
                Err(error.with_hint(encoding_hint(bytes)))
            }
        }
    }
}

/// A notation of grammars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// llama.cpp's GBNF.
    Gbnf,
    /// One regular expression that matches the whole text, in the dialect of the `regex` crate together with
    /// some natural writings of Python, PCRE and ECMAScript (`docs/regex.md` has the table). Parts that one
    /// of those reads in another way are among the [warnings](Grammar::warnings). POSIX classes are
    /// ASCII, all others Unicode. Groups such as `(?P<SUBSTRING_OF>some text)` are languages by name.
    Regex,
    /// XGrammar's EBNF (`docs/lark.md` says where it differs from GBNF).
    Ebnf,
    /// Lark, in the dialect of llguidance (`docs/lark.md` has the table). Every way to split a text into
    /// terminals is followed.
    Lark,
    /// Lark with greedy lexing, as llguidance and other lexers read it: a terminal goes on as long as any
    /// that may stand there can, and of those that match equally far all are taken. The lexer may take texts
    /// from which no end can be reached (`docs/lark.md`).
    LarkGreedy,
    /// JSON Schema, read with [`SchemaOptions::default`](json_schema::SchemaOptions).
    JsonSchema,
    /// XGrammar's structural tags in JSON: free text, interrupted by tags with grammars in them
    /// (`docs/structural-tags.md`).
    StructuralTag,
}

// A text in a program's memory is taken as it is. A file may have come through an editor, a shell or a
// version control system of Windows, whose additions are not part of the grammar.

impl Syntax {
    /// The name of the notation in definitions and records, such as `json_schema`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gbnf => "gbnf",
            Self::Regex => "regex",
            Self::Ebnf => "ebnf",
            Self::Lark => "lark",
            Self::LarkGreedy => "lark_greedy",
            Self::JsonSchema => "json_schema",
            Self::StructuralTag => "structural_tag",
        }
    }

    /// The grammar text in a file with this content: without a byte order mark; with `\n` for `\r\n`; and,
    /// for a regular expression, without the line end behind it, which nobody means as a part of it. So a
    /// file means the same whatever editor has saved it. Linear; copies the text only if it has `\r\n`.
    ///
    /// [`Grammar::parse`] takes a text as it is but for a byte order mark, and a regular expression entirely
    /// as it is.
    ///
    /// # Examples
    /// ```
    /// use domino::Syntax;
    ///
    /// assert_eq!(Syntax::Regex.text_of_file("\u{FEFF}[a-z]+\r\n"), "[a-z]+");
    /// assert_eq!(Syntax::Gbnf.text_of_file("root ::= a\r\na ::= \"x\"\r\n"), "root ::= a\na ::= \"x\"\n");
    /// ```
    #[must_use]
    pub fn text_of_file(self, content: &str) -> Cow<'_, str> {
        let content = content.strip_prefix('\u{FEFF}').unwrap_or(content);
        let is_json = matches!(self, Self::JsonSchema | Self::StructuralTag);
        // JSON has no line ends inside of strings.
        let text = match !is_json && content.contains("\r\n") {
            true => Cow::Owned(content.replace("\r\n", "\n")),
            false => Cow::Borrowed(content),
        };
        match (self, text) {
            (Self::Regex, Cow::Borrowed(text)) => Cow::Borrowed(text.strip_suffix('\n').unwrap_or(text)),
            (Self::Regex, Cow::Owned(mut text)) => {
                if text.ends_with('\n') {
                    text.pop();
                }
                Cow::Owned(text)
            }
            (_, text) => text,
        }
    }
}

/// A hint for bytes that are not UTF-8.
fn encoding_hint(bytes: &[u8]) -> &'static str {
    let is_utf_16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    // Without a mark, every other byte of an ASCII text in UTF-16 is NUL.
    let looks_so = bytes.len() > 1 && (bytes[0] == 0) != (bytes[1] == 0);
    match is_utf_16 || looks_so {
        true => "the text is UTF-16, as shells of Windows write it: save it as UTF-8",
        false => "save the text as UTF-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_byte_order_marks_and_line_ends_are_removed() {
        for (syntax, content, want) in [
            (Syntax::Regex, "a\r\n", "a"),
            (Syntax::Regex, "a\n", "a"),
            (Syntax::Regex, "\u{FEFF}a", "a"),
            (Syntax::Regex, "a\r\nb\r\n", "a\nb"),
            (Syntax::Regex, "a\n\n", "a\n"),
            (Syntax::Regex, "a\r\n\r\n", "a\n"),
            (Syntax::Regex, "a\r", "a\r"),
            (Syntax::Regex, "a\u{FEFF}", "a\u{FEFF}"),
            (Syntax::Regex, "\r\n", ""),
            (Syntax::Ebnf, "\u{FEFF}root ::= \"a\"\r\n", "root ::= \"a\"\n"),
            (Syntax::Lark, "start: \"a\"\r\n", "start: \"a\"\n"),
            (Syntax::JsonSchema, "\u{FEFF}{}\r\n", "{}\r\n"),
        ] {
            assert_eq!(syntax.text_of_file(content), want, "{syntax:?} {content:?}");
        }
    }

    #[test]
    fn the_encoding_hint_recognises_utf_16() {
        assert!(encoding_hint(b"\xFF\xFEa\0").contains("UTF-16"));
        assert!(encoding_hint(b"\xFE\xFF\0a").contains("UTF-16"));
        assert!(!encoding_hint(b"\xE9t\xE9").contains("UTF-16"));
    }
}
