//! Notations that grammars are read in.

mod inside;
mod read;

use std::path::Path;

use clap::ValueEnum;
use domino::{
    Grammar, Syntax,
    grammar::{
        json_schema::{Relaxed, SchemaGrammar},
        suggest,
    },
};
use serde_json::{Value, json};

use crate::terminal::failure::BadInput;

/// The notations, under the names that flags and batches use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Notation {
    /// llama.cpp's GBNF (`*.gbnf`).
    Gbnf,
    /// One regular expression for the whole text (`*.regex`).
    Regex,
    /// Lark in the dialect of llguidance (`*.lark`).
    Lark,
    /// The same, split into terminals greedily, as llguidance's lexer does.
    #[value(name = "lark_greedy", alias = "lark-greedy")]
    LarkGreedy,
    /// XGrammar's EBNF (`*.ebnf`).
    Ebnf,
    /// JSON Schema (`*.json`).
    #[value(name = "json_schema", alias = "json-schema")]
    JsonSchema,
    /// XGrammar's structural tags: free text with tags in it (`*.tags.json`).
    #[value(name = "structural_tag", alias = "structural-tag")]
    StructuralTag,
}

/// A grammar that was read.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The grammar.
    pub(crate) grammar: Grammar,
    /// The places where it allows more than its schema.
    pub(crate) relaxed: Vec<Relaxed>,
    /// The schemas of objects that take keys beside those that they list.
    pub(crate) open_objects: Vec<String>,
}

impl From<Grammar> for Parsed {
    fn from(grammar: Grammar) -> Self {
        Self { grammar, relaxed: Vec::new(), open_objects: Vec::new() }
    }
}

impl From<SchemaGrammar> for Parsed {
    fn from(schema: SchemaGrammar) -> Self {
        let SchemaGrammar { grammar, relaxed, open_objects, .. } = schema;
        Self { grammar, relaxed, open_objects }
    }
}

/// Lists as JSON what a grammar allows beyond its schema.
pub(crate) fn relaxed_as_json(relaxed: &[Relaxed]) -> Vec<Value> {
    let one = |relaxed: &Relaxed| {
        let Relaxed { pointer, keyword, why } = relaxed;
        json!({ "pointer": pointer, "keyword": keyword, "why": why })
    };
    relaxed.iter().map(one).collect()
}

impl Notation {
    /// Finds the notation called `name`.
    pub(crate) fn by_name(name: &str) -> Result<Self, BadInput> {
        <Self as ValueEnum>::from_str(name, false).map_err(|_| {
            let known: Vec<_> = Self::value_variants().iter().filter_map(Self::to_possible_value).collect();
            let known: Vec<&str> = known.iter().map(|value| value.get_name()).collect();
            let near = suggest::did_you_mean(name, known.iter().copied());
            BadInput::new(format!("unknown syntax {name:?}"))
                .hint(near.unwrap_or_else(|| format!("the syntaxes are {}", known.join(", "))))
        })
    }

    /// The name that `--syntax` takes.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The kind of a text in this notation, with an article.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Gbnf => "GBNF",
            Self::Regex => "a regular expression",
            Self::Lark | Self::LarkGreedy => "Lark",
            Self::Ebnf => "EBNF",
            Self::JsonSchema => "a JSON Schema",
            Self::StructuralTag => "structural tags",
        }
    }

    /// Guesses the notation of a file by the end of its name.
    pub(super) fn of_file(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "regex" | "re" => Self::Regex,
            "json" if name.ends_with(".tags.json") => Self::StructuralTag,
            "json" | "jsonschema" | "schema" => Self::JsonSchema,
            "lark" => Self::Lark,
            "ebnf" => Self::Ebnf,
            _ => Self::Gbnf,
        }
    }

    /// The library's name of this notation.
    pub(crate) fn syntax(self) -> Syntax {
        match self {
            Self::Gbnf => Syntax::Gbnf,
            Self::Regex => Syntax::Regex,
            Self::Lark => Syntax::Lark,
            Self::LarkGreedy => Syntax::LarkGreedy,
            Self::Ebnf => Syntax::Ebnf,
            Self::JsonSchema => Syntax::JsonSchema,
            Self::StructuralTag => Syntax::StructuralTag,
        }
    }
}
