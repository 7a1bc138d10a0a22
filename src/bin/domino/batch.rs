//! `domino check --batch`: lines of JSON in, one line of JSON out for each, whatever is in them.

use std::{
    collections::HashMap,
    io::{self, BufRead, Write},
    panic::{AssertUnwindSafe, catch_unwind},
};

use anyhow::Context;
use domino::{CompiledGrammar, Compiler};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    args::Batch,
    check::{byte_vocabulary, judge},
    describe,
    failure::Exit,
    notation::Notation,
    warned,
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
    /// The grammar's.
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar_warnings: Option<Value>,
}

/// Answers all lines.
pub(crate) fn run(command: &Batch) -> anyhow::Result<Exit> {
    let mut judge =
        Judge { compiler: crate::budgets::compiler(byte_vocabulary()?), compiled: HashMap::new() };
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
    /// By notation and text.
    compiled: HashMap<(Notation, String), Result<CompiledGrammar, String>>,
}

impl Judge {
    /// The answer to one line.
    fn answer(&mut self, line: &[u8]) -> Answer {
        let row: Row = match serde_json::from_slice(line) {
            Ok(row) => row,
            Err(error) => {
                let id = serde_json::from_slice(line).map_or(Value::Null, |row: OnlyId| row.id);
                let error = format!("not a row: {error}");
                return Answer { id, accepted: None, error: Some(error), grammar_warnings: None };
            }
        };
        let id = row.id.clone();
        // A mistake in the program must not cost the rest of the batch.
        let accepted = catch_unwind(AssertUnwindSafe(|| self.accepted(row)))
            .unwrap_or_else(|_| Err("internal error: the row could not be decided".to_owned()));
        match accepted {
            Ok((accepted, grammar_warnings)) => {
                Answer { id, accepted: Some(accepted), error: None, grammar_warnings }
            }
            Err(error) => Answer { id, accepted: None, error: Some(error), grammar_warnings: None },
        }
    }

    /// Is the row's text in its language? With what is to be said of the grammar.
    fn accepted(&mut self, row: Row) -> Result<(bool, Option<Value>), String> {
        let notation = Notation::by_name(&row.syntax).map_err(|error| error.to_string())?;
        let grammar = self.compile(notation, row.grammar)?;
        let verdict = judge(&grammar, row.text.as_bytes()).map_err(|error| describe::step_error(&error))?;
        let warnings = grammar.grammar_warnings();
        let warnings = (!warnings.is_empty()).then(|| warned::list(warnings));
        Ok((verdict.accepted(row.prefix.unwrap_or(false)), warnings))
    }

    fn compile(&mut self, notation: Notation, text: String) -> Result<CompiledGrammar, String> {
        if self.compiled.len() >= MOST_KEPT {
            self.compiled.clear();
        }
        let compiler = &self.compiler;
        let entry = self.compiled.entry((notation, text));
        let compile = |(notation, text): &(Notation, String)| {
            let grammar = notation.parse(text.as_bytes()).map_err(|error| error.to_string())?;
            compiler.compile(&grammar).map_err(|error| error.to_string())
        };
        entry.or_insert_with_key(compile).clone()
    }
}
