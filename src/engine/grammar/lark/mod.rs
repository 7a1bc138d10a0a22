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
//!   may stand in the same place loses its texts that begin with one of the lazy terminal's ([`uses`]).

mod scope;
mod syntax;
mod template;
mod terminal;
#[cfg(test)]
mod tests;
mod translate;
mod uses;

use serde_json::Value;

use super::{
    AutomataCache, Grammar, GrammarError,
    errors::quoted,
    json_schema::SchemaOptions,
    source::{Source, Span},
};
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

/// The rule by which a text is split into terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexing {
    /// Every way to split it is followed.
    EveryWay,
    /// A terminal goes on as long as any terminal that may stand there can.
    Greedy,
}

// Options and schemas are read from the JSON after `%llguidance` and `%regex`.

/// The options of `%llguidance` that have an effect.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    /// True if ignored texts may stand before the first lexeme too.
    allow_initial_skip: bool,
    /// True if an ignored text may come only once between two lexemes.
    ignore_once: bool,
}

/// The value of a `%regex`.
#[derive(Debug)]
enum Structured {
    /// The substrings of a text, by characters.
    Chars(String),
    /// The substrings of a text, by words.
    Words(String),
    /// The concatenations of neighbouring pieces.
    Chunks(Vec<String>),
}

fn object(text: &str, value: Span, word: &str) -> Result<serde_json::Map<String, Value>, GrammarError> {
    match serde_json::from_str(&text[value.range()]) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(GrammarError::syntax(format!("an object must come after `%{word}`")).at(
            Source::new(text),
            value,
            "",
        )),
    }
}

/// Reads the options of a grammar; later ones override earlier ones.
fn read_options(text: &str, values: &[Span]) -> Result<Options, GrammarError> {
    let mut options = Options::default();
    for &span in values {
        for (name, value) in object(text, span, "llguidance")? {
            let error = |message: String| GrammarError::syntax(message).at(Source::new(text), span, "");
            let Value::Bool(value) = value else {
                return Err(error(format!("the option {} is true or false", quoted(&name))));
            };
            match &*name {
                "allow_initial_skip" => options.allow_initial_skip = value,
                "ignore_once" => options.ignore_once = value,
                // Options of sampling have no effect on the grammar.
                "no_forcing" => {}
                "allow_invalid_utf8" if !value => {}
                "allow_invalid_utf8" => {
                    return Err(GrammarError::unsupported("`allow_invalid_utf8` is not supported")
                        .at(Source::new(text), span, "")
                        .with_hint("a byte is written in a regular expression: `/(?-u:\\xFF)/`"));
                }
                _ => {
                    return Err(error(format!("no option {}", quoted(&name)))
                        .with_hint("the options are `allow_initial_skip`, `ignore_once` and `no_forcing`"));
                }
            }
        }
    }
    Ok(options)
}

/// Reads the value behind `%regex`.
fn structured(text: &str, value: Span) -> Result<Structured, GrammarError> {
    let object = object(text, value, "regex")?;
    let error = |message: String| {
        GrammarError::syntax(message).at(Source::new(text), value, "").with_hint(
            "there are `substring_chars`, `substring_words` (a text) and `substring_chunks` (texts)",
        )
    };
    let mut members = object.into_iter();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(error("an object of one member must come after `%regex`".to_owned()));
    };
    match (&*name, value) {
        ("substring_chars", Value::String(text)) => Ok(Structured::Chars(text)),
        ("substring_words", Value::String(text)) => Ok(Structured::Words(text)),
        ("substring_chunks", Value::Array(chunks)) => {
            let texts = chunks.into_iter().map(|chunk| match chunk {
                Value::String(text) => Some(text),
                _ => None,
            });
            let texts: Option<Vec<String>> = texts.collect();
            texts
                .map(Structured::Chunks)
                .ok_or_else(|| error("`substring_chunks` is a list of texts".to_owned()))
        }
        (name @ ("substring_chars" | "substring_words" | "substring_chunks"), _) => {
            Err(error(format!("{} has a value of another type", quoted(name))))
        }
        (name, _) => Err(error(format!("`%regex` has no {}", quoted(name)))),
    }
}
