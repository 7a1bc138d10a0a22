//! `domino check`: judges whether a text is in the language, and names the place where it leaves it.
//!
//! Tokens do not matter here: the vocabulary is the 256 bytes. Right here are the flags, and `--batch`, which
//! reads lines of JSON and writes one line of JSON for each, whatever is in them.

mod faults;
pub(crate) mod texts;

use std::io::{BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use clap::Args;
use domino::{CompiledGrammar, Compiler};
use serde_json::{Map, Value, json};

use self::texts::{explained, explained_field, judge};
use crate::files::{Input, lines};
use crate::flags::grammar::{LowCapture, LowGrammar, UsualGrammar};
use crate::flags::schema;
use crate::grammar::{compiler::byte_vocabulary, notation::relaxed_as_json, source::GrammarSource, warned};
use crate::rows::{LastUsed, Row, RowGrammar, RowReader, RowReading, WantedGrammar};
use crate::terminal::failure::{self, BadInput, Exit, note};
use crate::terminal::{self, extend, progress};

/// Judges all texts, or all rows.
pub(crate) fn run(command: &LowCheck, json: bool) -> anyhow::Result<Exit> {
    let mut inputs: Vec<Input> = command.files.iter().cloned().map(Input::new).collect();
    if !command.batch {
        return texts::run(command, &inputs, json);
    }
    match (inputs.pop().unwrap_or(Input::Stdin), inputs.is_empty()) {
        (input, true) => run_batch(command, &input),
        _ => Err(BadInput::new("--batch takes one file of JSON lines, or - for standard input").into()),
    }
}

/// Limit on the bytes that `check` reads of a text, unless a flag says otherwise.
const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// Tell whether texts are in the language of a grammar, and where they leave it.
///
/// For each text outside of the language, the place of its first mistake is printed (line and column, in
/// characters from 1), with what could have come there instead. Every byte counts, a line feed at the end
/// too. Texts are read only as far as needed: one that never ends is refused as soon as it leaves the
/// language.
///
/// Exit code 0 says that all texts are in the language, 1 that some are not, 4 that for some there is no
/// answer (a budget of work or memory was used up, or --max-bytes), 2 that some could not be read.
///
/// With --json one object is printed for each text: file, accepted (null where there is no answer), complete
/// and error. Where the text is accepted, and the grammar has named groups or marks rules, or --capture names
/// some, it has captures: a list of name, start, end (in bytes) and text, sorted by start, outer ones first
/// (of a --prefix what is decided so far; null with captures_error where a budget ended). Where the text
/// leaves the language it has offset (in bytes), line and column (in characters), character, expected,
/// more_expected (how many more there are) and terminals; where a budget ends line, column, rules and
/// terminals.
///
/// With --batch the one input is lines of JSON (docs/batch.md), {"id": .., "text": "..", "prefix": false},
/// such as `generate --batch` writes. A line may have schema, grammar and syntax, regex or tools where its
/// grammar is not that of the flags, and flags for JSON Schemas as further keys ("order": "schema",
/// "max_depth": 3). For each a line {"id": .., "accepted": true|false|null, "error": ..} comes at once.
/// accepted is null, with an error, where there is no answer, such as for a wrong grammar; where it is false,
/// the line also has message, offset, line, column and so on, as with --json. Equal grammars are compiled
/// once. The exit code is then 0 if all rows had an answer, whatever it is, and 1 if some had none.
#[derive(Debug, Args)]
pub(crate) struct LowCheck {
    #[command(flatten)]
    grammar: LowGrammar,
    /// Ask whether the text can still be completed, not whether it is complete.
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    capture: LowCapture,
    /// Before the texts, list every keyword of the JSON Schema and what becomes of it.
    ///
    /// A keyword is enforced, annotation, unknown (it restricts nothing, and no draft knows it), relaxed
    /// (--lenient) or refused, with the reason; schemas of --tools are listed too. No text need be given
    /// then. With --json one object: grammar, counts, keywords (pointer, keyword, status, note) and error, or
    /// functions with these. With --batch the answers have it as schema_report.
    #[arg(long)]
    report: bool,
    /// Read lines of JSON with a text each, and a grammar where it is not that of the flags.
    #[arg(long, conflicts_with = "rules")]
    pub(crate) batch: bool,
    /// Copy columns of rows that are not known to the answers, with --batch; otherwise they are refused.
    #[arg(long, requires = "batch")]
    keep_fields: bool,
    /// Read no more than this of a text, or of a line with --batch.
    ///
    /// A longer text that has not left the language by then has no answer (exit code 4).
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_BYTES)]
    max_bytes: u64,
    /// The texts; - is standard input. With --batch at most one, and standard input if none.
    #[arg(value_name = "FILE", required_unless_present_any = ["batch", "report"])]
    files: Vec<PathBuf>,
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
fn run_batch(command: &LowCheck, input: &Input) -> anyhow::Result<Exit> {
    let usual = command.grammar.resolve_beside(schema::for_checking(), true)?;
    let compiler = crate::grammar::compiler::compiler(byte_vocabulary()?).any_special();
    let mut judge = Judge { command, usual, compiler, compiled: LastUsed::new() };
    judge.begin()?;
    let reading = RowReading { reader: RowReader::Check, keep: command.keep_fields };
    let (mut lines, mut out) = (input.open()?, terminal::stdout());
    let (mut tally, mut line) = (Verdicts::default(), Vec::new());
    for number in 1.. {
        line.clear();
        let length = lines
            .by_ref()
            .take(command.max_bytes.saturating_add(1))
            .read_until(b'\n', &mut line)
            .map_err(|error| BadInput::new(format!("cannot read {}: {error}", input.name())))?;
        if length == 0 {
            break;
        }
        if length as u64 > command.max_bytes {
            let error = format!("{}: a line is longer than {} bytes", input.name(), command.max_bytes);
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
    command: &'a LowCheck,
    /// The grammar of the rows that name none.
    usual: UsualGrammar,
    compiler: Compiler,
    compiled: LastUsed<WantedGrammar, Result<ReadyGrammar, String>>,
}

impl Judge<'_> {
    /// Compiles the grammar of the flags, whose mistakes are told before any row is read.
    fn begin(&mut self) -> Result<(), BadInput> {
        if let Some((wanted, source)) = self.wanted(&RowGrammar::default())? {
            let made = compile(&source, &self.compiler)?;
            let _ = self.compiled.get_or_make(MOST_KEPT, wanted, |_| Ok(made));
        }
        Ok(())
    }

    /// Finds the grammar of a row.
    fn wanted(&self, row: &RowGrammar) -> Result<Option<(WantedGrammar, GrammarSource)>, BadInput> {
        row.resolve(&self.usual, |thinking, _| thinking.of_text())
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
        let (_, source) = self.wanted(&row.grammar).ok()??;
        let made = || source.load().and_then(|text| text.reports()).ok();
        Some(catch_unwind(AssertUnwindSafe(made)).ok()??.fields())
    }

    /// Judges the row's text by its grammar.
    fn verdict(&mut self, row: &Row) -> Result<Value, String> {
        let told = |error: BadInput| failure::told(&error).line();
        let text = row.text().map_err(told)?;
        let missing = || {
            let hint = "give the row a schema or a grammar, or the command --grammar";
            BadInput::new("there is no grammar").hint(hint)
        };
        let (wanted, source) =
            self.wanted(&row.grammar).and_then(|it| it.ok_or_else(missing)).map_err(told)?;
        let compiler = &self.compiler;
        let compile = |_: &WantedGrammar| compile(&source, compiler).map_err(told);
        let (grammar, relaxed) = self.compiled.get_or_make(MOST_KEPT, wanted, compile)?;
        let verdict = judge(&grammar, text.as_bytes()).map_err(|unanswered| unanswered.told.line())?;
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

#[cfg(test)]
mod tests;
