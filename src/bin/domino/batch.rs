//! `domino check --batch`: lines of JSON in, one line of JSON out for each, whatever is in them.

use std::{
    collections::HashMap,
    io::{self, BufRead, Write},
    panic::{AssertUnwindSafe, catch_unwind},
};

use anyhow::Context;
use domino::{CompiledGrammar, Compiler, grammar::json_schema::SchemaOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    args::Batch,
    check::{byte_vocabulary, judge},
    describe,
    failure::Exit,
    notation::{Notation, relaxed_as_json},
    schema::RowOptions,
};

/// Compiled grammars kept. A batch that repeats more grammars than this, far apart, compiles some again.
const MOST_KEPT: usize = 4096;

/// One line in.
#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default)]
    id: Value,
    syntax: String,
    grammar: String,
    text: String,
    prefix: Option<bool>,
    #[serde(flatten)]
    options: RowOptions,
}

/// Saves the id of a line that is otherwise wrong.
#[derive(Debug, Deserialize)]
struct OnlyId {
    #[serde(default)]
    id: Value,
}

/// One line out.
#[derive(Debug, Serialize)]
struct Answer {
    id: Value,
    /// `None`: there is no answer, and `error` says why.
    accepted: Option<bool>,
    error: Option<String>,
    /// What the grammar allows beyond its schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relaxed: Vec<Value>,
}

/// A grammar ready to judge, and what it allows beyond its schema.
type Compiled = (CompiledGrammar, Vec<Value>);

/// Answers all lines.
pub(crate) fn run(command: &Batch) -> anyhow::Result<Exit> {
    let compiler = Compiler::new(byte_vocabulary()?);
    let mut judge = Judge { compiler, compiled: HashMap::new(), options: command.options.clone() };
    let mut lines = command.input.open()?;
    let mut out = io::stdout().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines
            .read_until(b'\n', &mut line)
            .with_context(|| format!("cannot read {}", command.input.name()))?;
        if length == 0 {
            return Ok(Exit::Success);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = judge.answer(&line);
        serde_json::to_writer(&mut out, &answer).context("cannot write")?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
}

struct Judge {
    compiler: Compiler,
    /// By notation, text and options, which only schemas have.
    compiled: HashMap<(Notation, String, SchemaOptions), Result<Compiled, String>>,
    /// How schemas are read where rows do not say.
    options: SchemaOptions,
}

impl Judge {
    /// The answer to one line.
    fn answer(&mut self, line: &[u8]) -> Answer {
        let row: Row = match serde_json::from_slice(line) {
            Ok(row) => row,
            Err(error) => {
                let id = serde_json::from_slice(line).map_or(Value::Null, |row: OnlyId| row.id);
                return Answer {
                    id,
                    accepted: None,
                    error: Some(format!("not a row: {error}")),
                    relaxed: Vec::new(),
                };
            }
        };
        let id = row.id.clone();
        // A mistake in the program must not cost the rest of the batch.
        let accepted = catch_unwind(AssertUnwindSafe(|| self.accepted(row)))
            .unwrap_or_else(|_| Err("internal error: the row could not be decided".to_owned()));
        match accepted {
            Ok((accepted, relaxed)) => Answer { id, accepted: Some(accepted), error: None, relaxed },
            Err(error) => Answer { id, accepted: None, error: Some(error), relaxed: Vec::new() },
        }
    }

    /// Is the row's text in its language? With it, what the language allows beyond its schema.
    fn accepted(&mut self, row: Row) -> Result<(bool, Vec<Value>), String> {
        let notation = Notation::by_name(&row.syntax).map_err(|error| error.to_string())?;
        let options = match notation {
            Notation::JsonSchema => row.options.beside(&self.options)?,
            _ => SchemaOptions::default(),
        };
        let (grammar, relaxed) = self.compile(notation, row.grammar, options)?;
        let verdict = judge(&grammar, row.text.as_bytes()).map_err(|error| describe::step_error(&error))?;
        Ok((verdict.accepted(row.prefix.unwrap_or(false)), relaxed))
    }

    fn compile(
        &mut self,
        notation: Notation,
        text: String,
        options: SchemaOptions,
    ) -> Result<Compiled, String> {
        if self.compiled.len() >= MOST_KEPT {
            self.compiled.clear();
        }
        let compiler = &self.compiler;
        let entry = self.compiled.entry((notation, text, options));
        let compile = |(notation, text, options): &(Notation, String, SchemaOptions)| {
            let parsed = notation.read(text.as_bytes(), options).map_err(|error| error.to_string())?;
            let compiled = compiler.compile(&parsed.grammar).map_err(|error| error.to_string())?;
            Ok((compiled, relaxed_as_json(&parsed.relaxed)))
        };
        entry.or_insert_with_key(compile).clone()
    }
}
