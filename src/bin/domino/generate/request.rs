//! One line of `domino generate --batch`.

use std::path::Path;

use domino::{CompiledGrammar, Compiler, Grammar, grammar::json_schema::SchemaOptions};
use serde::Deserialize;
use serde_json::Value;

use super::options::LowOptions;
use crate::{
    failure::BadInput,
    lines,
    notation::{GrammarSource, Notation},
};

/// A request; what it leaves out is as the flags say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    #[serde(default, rename = "id")]
    _id: Value,
    #[serde(default)]
    prompt: String,
    grammar: Option<String>,
    syntax: Option<String>,
    regex: Option<String>,
    temperature: Option<f64>,
    top_k: Option<usize>,
    top_p: Option<f64>,
    min_p: Option<f64>,
    repeat_penalty: Option<f64>,
    repeat_last_n: Option<usize>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    seed: Option<u64>,
    max_tokens: Option<usize>,
    stop: Option<Vec<String>>,
    finish: Option<bool>,
    logprobs: Option<usize>,
}

/// What a request says of its grammar; equal ones are compiled once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GrammarName {
    /// A file, or a grammar of the program.
    Named(String),
    /// The text itself.
    Text(Notation, String),
}

impl Request {
    /// The id of a line (its number if it has none), and the request if it is one.
    pub(super) fn read(line: &[u8], number: usize) -> (Value, Result<Self, String>) {
        let value: Value = match serde_json::from_slice(lines::content(line)) {
            Ok(value) => value,
            Err(error) => return (number.into(), Err(format!("line {number} is not JSON: {error}"))),
        };
        let id = value.get("id").filter(|id| !id.is_null()).cloned().unwrap_or_else(|| number.into());
        let request = serde_json::from_value(value);
        (id, request.map_err(|error| format!("line {number} is not a request: {error}")))
    }

    pub(super) fn prompt(&self) -> &str {
        &self.prompt
    }

    /// The flags with what the request changes.
    pub(super) fn options(&self, flags: &LowOptions) -> LowOptions {
        let flags = flags.clone();
        LowOptions {
            temperature: self.temperature.unwrap_or(flags.temperature),
            top_k: self.top_k.unwrap_or(flags.top_k),
            top_p: self.top_p.unwrap_or(flags.top_p),
            min_p: self.min_p.unwrap_or(flags.min_p),
            repeat_penalty: self.repeat_penalty.unwrap_or(flags.repeat_penalty),
            repeat_last_n: self.repeat_last_n.unwrap_or(flags.repeat_last_n),
            presence_penalty: self.presence_penalty.unwrap_or(flags.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(flags.frequency_penalty),
            seed: self.seed.unwrap_or(flags.seed),
            max_tokens: self.max_tokens.unwrap_or(flags.max_tokens),
            stop: self.stop.clone().unwrap_or(flags.stop),
            finish: self.finish.unwrap_or(flags.finish),
            logprobs: self.logprobs.or(flags.logprobs),
            ..flags
        }
    }

    /// Its grammar, if it names one.
    pub(super) fn grammar(&self) -> Result<Option<GrammarName>, String> {
        match (&self.grammar, &self.syntax, &self.regex) {
            (None, None, None) => Ok(None),
            (None, None, Some(regex)) => Ok(Some(GrammarName::Text(Notation::Regex, regex.clone()))),
            (Some(name), None, None) => Ok(Some(GrammarName::Named(name.clone()))),
            (Some(text), Some(syntax), None) => {
                let notation = Notation::by_name(syntax).map_err(|error| error.to_string())?;
                Ok(Some(GrammarName::Text(notation, text.clone())))
            }
            _ => Err("a request has a grammar, or a regex, or a syntax and a grammar".to_owned()),
        }
    }
}

impl GrammarName {
    /// Where it is from, if it has a name.
    pub(super) fn source(&self) -> Result<Option<GrammarSource>, BadInput> {
        match self {
            Self::Named(name) => {
                GrammarSource::resolve(Path::new(name), None, SchemaOptions::default()).map(Some)
            }
            Self::Text(..) => Ok(None),
        }
    }

    /// Compiles it, and gives it as it was read.
    pub(super) fn compile(&self, compiler: &Compiler) -> Result<(CompiledGrammar, Grammar), BadInput> {
        match self {
            Self::Named(name) => {
                let source = GrammarSource::resolve(Path::new(name), None, SchemaOptions::default())?;
                let (compiled, parsed) = source.read_and_compile(compiler)?;
                Ok((compiled, parsed.grammar))
            }
            Self::Text(notation, text) => {
                let grammar = notation
                    .parse(text.as_bytes())
                    .map_err(|error| BadInput::in_file("the grammar", &error))?;
                let compiled = compiler.compile(&grammar);
                let compiled = compiled.map_err(|error| BadInput::in_file("the grammar", &error))?;
                Ok((compiled, grammar))
            }
        }
    }
}
