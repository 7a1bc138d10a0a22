//! `domino check --batch`: reads lines of JSON and writes one line of JSON for each, whatever is in them.

use std::io::{BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use domino::{CompiledGrammar, Compiler};
use serde_json::{Map, Value, json};

use super::verdict::{explained, explained_field, judge};
use crate::files::{Input, lines};
use crate::rows::{LastUsed, Row, RowGrammar, RowReader, RowReading, WantedGrammar};
use crate::terminal::failure::{self, BadInput, Exit, note};
use crate::terminal::{self, extend, progress};
use crate::{
    flags::grammar::UsualGrammar, grammar::compiler::byte_vocabulary, grammar::notation::relaxed_as_json,
    grammar::source::GrammarSource, grammar::warned,
};

/// The command with `--batch`.
#[derive(Debug)]
pub(crate) struct RowCheck {
    pub(crate) input: Input,
    /// Limit on the bytes of a line.
    pub(crate) max_bytes: u64,
    /// The grammar of the rows that name none.
    pub(crate) usual: UsualGrammar,
    /// True if unknown columns are copied.
    pub(crate) keep: bool,
    /// True if texts need only be beginnings, where rows do not say.
    pub(crate) prefix: bool,
    /// True if the keywords of schemas are listed.
    pub(crate) report: bool,
}

/// Limit on the compiled grammars in the LRU cache.
const MOST_KEPT: usize = 1024;

/// A grammar ready to judge, with the things it allows beyond its schema.
type ReadyGrammar = (CompiledGrammar, Vec<Value>);

/// Counts of the answers.
#[derive(Debug, Default)]
struct Verdicts {
    accepted: usize,
    refused: usize,
    unanswered: usize,
}

/// Answers all lines.
pub(crate) fn run(command: &RowCheck) -> anyhow::Result<Exit> {
    let compiler = crate::grammar::compiler::compiler(byte_vocabulary()?).any_special();
    let mut judge = Judge { command, compiler, compiled: LastUsed::new(MOST_KEPT) };
    judge.begin()?;
    let reading = RowReading { reader: RowReader::Check, keep: command.keep };
    let (mut lines, mut out) = (command.input.open()?, terminal::stdout());
    let (mut tally, mut line) = (Verdicts::default(), Vec::new());
    for number in 1.. {
        line.clear();
        let length = lines
            .by_ref()
            .take(command.max_bytes.saturating_add(1))
            .read_until(b'\n', &mut line)
            .map_err(|error| BadInput::new(format!("cannot read {}: {error}", command.input.name())))?;
        if length == 0 {
            break;
        }
        if length as u64 > command.max_bytes {
            let error =
                format!("{}: a line is longer than {} bytes", command.input.name(), command.max_bytes);
            return Err(BadInput::new(error).hint("--max-bytes says how long lines may be").into());
        }
        if lines::content(&line).is_empty() {
            continue;
        }
        let (carried, row) = reading.row(&line, number);
        let answer = row.map_or_else(|error| unanswered(&error), |row| judge.answer(&row));
        match answer["accepted"].as_bool() {
            Some(true) => tally.accepted += 1,
            Some(false) => tally.refused += 1,
            None => tally.unanswered += 1,
        }
        out.write_all(carried.line(&answer).as_bytes())?;
        out.flush()?;
    }
    let Verdicts { accepted, refused, unanswered } = tally;
    // Programs that read the answers need not be told that all went well.
    if unanswered > 0 || progress::wanted() {
        note!("[done; {accepted} in the language, {refused} not, {unanswered} without an answer]");
    }
    Ok(if unanswered > 0 { Exit::Failure } else { Exit::Success })
}

/// Makes the answer to a row that cannot be judged.
fn unanswered(error: &BadInput) -> Value {
    json!({ "accepted": null, "error": failure::told(error).line() })
}

struct Judge<'a> {
    command: &'a RowCheck,
    compiler: Compiler,
    compiled: LastUsed<WantedGrammar, Result<ReadyGrammar, String>>,
}

impl Judge<'_> {
    /// Compiles the grammar of the flags, whose mistakes are told before any row is read.
    fn begin(&mut self) -> Result<(), BadInput> {
        if let Some((wanted, source)) = RowGrammar::default().resolve(&self.command.usual)? {
            let made = compile(&source, &self.compiler)?;
            let _ = self.compiled.get_or_make(wanted, |_| Ok(made));
        }
        Ok(())
    }

    /// Answers one row.
    fn answer(&mut self, row: &Row) -> Value {
        // A mistake in the program must not cost the rest of the batch.
        let answer = catch_unwind(AssertUnwindSafe(|| self.verdict(row)))
            .unwrap_or_else(|_| Err("internal error: the row could not be decided".to_owned()));
        let mut answer = answer.unwrap_or_else(|error| json!({ "accepted": null, "error": error }));
        if let Some(report) = self.report(row) {
            answer["schema_report"] = Value::Object(report);
        }
        answer
    }

    /// Reports on the keywords of a row's schema; `None` if that is not asked for or there is no schema.
    fn report(&self, row: &Row) -> Option<Map<String, Value>> {
        if !row.report.unwrap_or(self.command.report) {
            return None;
        }
        let (_, source) = row.grammar.resolve(&self.command.usual).ok()??;
        let made = || source.load().and_then(|text| text.reports()).ok();
        Some(catch_unwind(AssertUnwindSafe(made)).ok()??.fields())
    }

    /// Judges the row's text by its grammar.
    fn verdict(&mut self, row: &Row) -> Result<Value, String> {
        let told = |error: BadInput| failure::told(&error).line();
        let text = row.text().map_err(told)?;
        let (wanted, source) = row.grammar.resolve(&self.command.usual).map_err(told)?.ok_or_else(|| {
            told(
                BadInput::new("there is no grammar")
                    .hint("give the row a schema or a grammar, or the command --grammar"),
            )
        })?;
        let compiler = &self.compiler;
        let compile = |_: &WantedGrammar| compile(&source, compiler).map_err(told);
        let (grammar, relaxed) = self.compiled.get_or_make(wanted, compile)?;
        let verdict = judge(&grammar, text.as_bytes()).map_err(|unanswered| unanswered.told().line())?;
        let accepted = verdict.accepted(row.prefix.unwrap_or(self.command.prefix));
        let mut answer = json!({ "accepted": accepted, "error": null });
        if let Some(found) = verdict.leaving().filter(|_| !accepted) {
            answer["message"] = found.what.clone().into();
            extend(&mut answer, found.fields());
            let loaded = source.load().ok();
            let schema = loaded.as_ref().and_then(|text| text.schema());
            extend(&mut answer, explained_field(&explained(schema, &verdict, text.as_bytes())));
        }
        let mut answer = warned::with(answer, grammar.grammar_warnings());
        if !relaxed.is_empty() {
            answer["relaxed"] = Value::Array(relaxed);
        }
        Ok(answer)
    }
}

fn compile(source: &GrammarSource, compiler: &Compiler) -> Result<ReadyGrammar, BadInput> {
    let text = source.load()?;
    let parsed = text.read()?;
    let compiled = text.compile_parsed(&parsed.grammar, compiler)?;
    Ok((compiled, relaxed_as_json(&parsed.relaxed)))
}
