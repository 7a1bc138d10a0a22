//! The notations that a grammar may be written in, by name.

/// A notation of grammars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// llama.cpp's GBNF.
    Gbnf,
    /// One regular expression that matches the whole text, in the dialect of the `regex` crate together with
    /// some natural writings of Python, PCRE and ECMAScript (`docs/regex.md` has the table). Parts that one
    /// of those reads in another way are among the [warnings](super::Grammar::warnings). POSIX classes are
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
    /// JSON Schema, read with [`SchemaOptions::default`](super::json_schema::SchemaOptions).
    JsonSchema,
    /// XGrammar's structural tags in JSON: free text, interrupted by tags with grammars in them
    /// (`docs/structural-tags.md`).
    StructuralTag,
}
