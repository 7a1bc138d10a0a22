//! `domino check --batch`: lines of JSON in, one line of JSON out for each, whatever is in them.

use std::{
    collections::HashMap,
    io::{BufRead, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
};

use anyhow::Context;
use domino::{CompiledGrammar, Compiler, grammar::json_schema::SchemaOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    args::Batch,
    check::{SchemaFault, Verdict, byte_vocabulary, explained, explained_field, judge},
    failure::{self, BadInput, Exit},
    keywords::Reports,
    lines,
    notation::{Notation, relaxed_as_json},
    schema::RowOptions,
    stdout, warned,
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
    /// Are the keywords of the schema listed?
    report: Option<bool>,
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
    /// Where the text leaves the language and what could follow there, if it is not accepted.
    #[serde(flatten)]
    leaving: Map<String, Value>,
    /// The grammar's.
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar_warnings: Option<Value>,
    /// What the grammar allows beyond its schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relaxed: Vec<Value>,
    /// What becomes of the keywords of its schema, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_report: Option<Map<String, Value>>,
}

impl Answer {
    fn without(id: Value, error: String) -> Self {
        Self {
            id,
            accepted: None,
            error: Some(error),
            leaving: Map::new(),
            grammar_warnings: None,
            relaxed: Vec::new(),
            schema_report: None,
        }
    }

    fn of(id: Value, verdict: &Verdict, prefix: bool, compiled: Compiled) -> Self {
        let (grammar, relaxed) = compiled;
        let accepted = verdict.accepted(prefix);
        let mut leaving = Map::new();
        if let Some(found) = verdict.leaving().filter(|_| !accepted) {
            leaving.insert("message".to_owned(), found.what.clone().into());
            leaving.extend(found.fields());
        }
        let warnings = grammar.grammar_warnings();
        let grammar_warnings = (!warnings.is_empty()).then(|| warned::list(warnings));
        Self {
            id,
            accepted: Some(accepted),
            error: None,
            leaving,
            grammar_warnings,
            relaxed,
            schema_report: None,
        }
    }
}

/// A grammar ready to judge, and what it allows beyond its schema.
type Compiled = (CompiledGrammar, Vec<Value>);

/// Answers all lines.
pub(crate) fn run(command: &Batch) -> anyhow::Result<Exit> {
    let compiler = crate::budgets::compiler(byte_vocabulary()?).any_special();
    let (options, report) = (command.options.clone(), command.report);
    let mut judge = Judge { compiler, compiled: HashMap::new(), options, report };
    let mut lines = command.input.open()?;
    let mut out = stdout::lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines
            .by_ref()
            .take(command.max_bytes.saturating_add(1))
            .read_until(b'\n', &mut line)
            .with_context(|| format!("cannot read {}", command.input.name()))?;
        if length == 0 {
            return Ok(Exit::Success);
        }
        if length as u64 > command.max_bytes {
            let error =
                format!("{}: a line is longer than {} bytes", command.input.name(), command.max_bytes);
            return Err(BadInput::new(error).hint("--max-bytes says how long lines may be").into());
        }
        let row = lines::content(&line);
        if row.is_empty() {
            continue;
        }
        let answer = judge.answer(row);
        serde_json::to_writer(&mut out, &answer).map_err(std::io::Error::from)?;
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
    /// Are their keywords listed where rows do not say?
    report: bool,
}

impl Judge {
    /// The answer to one line.
    fn answer(&mut self, line: &[u8]) -> Answer {
        let row: Row = match serde_json::from_slice(line) {
            Ok(row) => row,
            Err(error) => {
                let id = serde_json::from_slice(line).map_or(Value::Null, |row: OnlyId| row.id);
                return Answer::without(id, format!("not a row: {error}"));
            }
        };
        let (id, prefix) = (row.id.clone(), row.prefix.unwrap_or(false));
        let schema_report = self.report(&row);
        // A mistake in the program must not cost the rest of the batch.
        let verdict = catch_unwind(AssertUnwindSafe(|| self.verdict(row)))
            .unwrap_or_else(|_| Err("internal error: the row could not be decided".to_owned()));
        let answer = match verdict {
            Ok((verdict, compiled, faults)) => {
                let mut answer = Answer::of(id, &verdict, prefix, compiled);
                if answer.accepted == Some(false) {
                    answer.leaving.extend(explained_field(&faults));
                }
                answer
            }
            Err(error) => Answer::without(id, error),
        };
        Answer { schema_report, ..answer }
    }

    /// What becomes of the keywords of a row's schema, if that is asked for and there is one.
    fn report(&self, row: &Row) -> Option<Map<String, Value>> {
        let is_schema = Notation::by_name(&row.syntax).ok() == Some(Notation::JsonSchema);
        if !row.report.unwrap_or(self.report) || !is_schema {
            return None;
        }
        let options = row.options.beside(&self.options).ok()?;
        let made = || options.report(&row.grammar, &crate::budgets::limits()).ok();
        let report = catch_unwind(AssertUnwindSafe(made)).ok()??;
        Some(Reports { list: vec![(None, report)] }.fields())
    }

    /// What the row's grammar says about its text, and the grammar.
    fn verdict(&mut self, row: Row) -> Result<(Verdict, Compiled, Vec<SchemaFault>), String> {
        let notation = Notation::by_name(&row.syntax).map_err(|error| error.to_string())?;
        let options = notation.options_inside(&row.options.beside(&self.options)?);
        let compiled = self.compile(notation, row.grammar.clone(), options.clone())?;
        let text = row.text.as_bytes();
        let verdict = judge(&compiled.0, text).map_err(|unanswered| unanswered.told().line())?;
        let schema = (notation == Notation::JsonSchema).then_some((&*row.grammar, &options));
        let faults = explained(schema, &verdict, text);
        Ok((verdict, compiled, faults))
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
            let parsed =
                notation.read(text.as_bytes(), options).map_err(|error| failure::told(&error).line())?;
            let compiled = compiler.compile(&parsed.grammar).map_err(|error| failure::told(&error).line())?;
            Ok((compiled, relaxed_as_json(&parsed.relaxed)))
        };
        entry.or_insert_with_key(compile).clone()
    }
}
