//! `domino check`: is a text in the language, and if not, where does it leave it?
//!
//! Tokens do not matter here: the vocabulary is the 256 bytes.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use domino::{
    CompiledGrammar, Compiler, Constraint, StepError, TokenId, Vocabulary, VocabularyError,
    grammar::{Source, Span},
};
use serde_json::{Value, json};

use crate::{
    advice,
    args::{Check, Input},
    describe,
    failure::{BadInput, Exit, Paint},
    notation::relaxed_as_json,
    progress,
};

/// A text that takes longer makes one ask what is wrong with the grammar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A vocabulary of the 256 bytes.
pub(crate) fn byte_vocabulary() -> Result<Vocabulary, VocabularyError> {
    let end = TokenId::new(256);
    Vocabulary::builder().all_bytes().special(end, "<end of text>").end_of_text(end).build()
}

/// What a grammar says about a text.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Bytes that can follow one another; all of them if the text is a prefix of a sentence.
    pub(crate) viable: usize,
    /// Is the viable part in the language?
    complete: bool,
    /// Where the viable part ended.
    state: Constraint,
    /// The text's length in bytes.
    length: usize,
}

impl Verdict {
    /// Is the text in the language, or, with `prefix`, the beginning of a text that is?
    pub(crate) fn accepted(&self, prefix: bool) -> bool {
        self.viable == self.length && (prefix || self.complete)
    }
}

/// Holds `text` against a grammar compiled for [`byte_vocabulary`].
pub(crate) fn judge(grammar: &CompiledGrammar, text: &[u8]) -> Result<Verdict, StepError> {
    let mut state = grammar.constraint();
    let viable = state.advance_bytes(text)?;
    if viable < text.len() {
        state.advance_bytes(&text[..viable])?;
    }
    let complete = state.is_complete();
    Ok(Verdict { viable, complete, state, length: text.len() })
}

/// Checks all inputs.
pub(crate) fn run(command: &Check) -> anyhow::Result<Exit> {
    let compiler = Compiler::new(byte_vocabulary()?);
    let (grammar, relaxed) = progress::during(format!("compiling {}", command.grammar.name()), || {
        let text = command.grammar.load()?;
        let parsed = text.read()?;
        text.warn(&parsed.relaxed);
        let compiled = text.compile_parsed(&parsed.grammar, &compiler)?;
        Ok::<_, BadInput>((compiled, relaxed_as_json(&parsed.relaxed)))
    })?;
    let mut exit = Exit::Success;
    let mut advised = false;
    for input in &command.inputs {
        let text = match input.read() {
            Ok(text) => text,
            Err(error) => {
                no_verdict(&error.to_string(), input, command.json)?;
                exit = Exit::BadInput;
                continue;
            }
        };
        let start = Instant::now();
        let judged = progress::during(format!("checking {}", input.name()), || judge(&grammar, &text));
        if !advised && (judged.is_err() || start.elapsed() > PATIENCE) {
            advice::give(&command.grammar, &grammar);
            advised = true;
        }
        let mut verdict = match judged {
            Ok(verdict) => verdict,
            Err(error) => {
                let error = format!("{}: {}", input.name(), describe::step_error(&error));
                no_verdict(&error, input, command.json)?;
                exit = if exit == Exit::Success { Exit::Failure } else { exit };
                continue;
            }
        };
        let accepted = verdict.accepted(command.prefix);
        if !accepted && exit == Exit::Success {
            exit = Exit::Failure;
        }
        tell(command, input, &text, &mut verdict, &relaxed)?;
    }
    Ok(exit)
}

/// Says why there is no verdict on an input; the others are still checked.
fn no_verdict(error: &str, input: &Input, json: bool) -> io::Result<()> {
    if json {
        let object = json!({ "file": input.name(), "accepted": null, "error": error });
        writeln!(io::stdout().lock(), "{object}")?;
    }
    eprintln!("{} {error}", Paint::for_stderr().red("error:"));
    Ok(())
}

/// Prints the verdict on one input.
fn tell(
    command: &Check,
    input: &Input,
    text: &[u8],
    verdict: &mut Verdict,
    relaxed: &[Value],
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let name = input.name();
    if verdict.accepted(command.prefix) {
        if command.json {
            let object = json!({
                "file": name, "accepted": true, "complete": verdict.complete, "error": null, "relaxed": relaxed,
            });
            writeln!(out, "{object}")?;
        } else {
            let what = if verdict.complete { "in the language" } else { "can still be completed" };
            writeln!(out, "{name}: {}", Paint::for_stdout().green(what))?;
        }
        return Ok(());
    }
    let source = Source::from_bytes(text);
    let position = source.position(Span::from_range(verdict.viable..verdict.viable).start);
    let what = match text.get(verdict.viable) {
        Some(&byte) => format!("{} cannot follow", describe::byte(byte)),
        None => "the text ends too early".to_owned(),
    };
    let mut expected = describe::byte_ranges(&verdict.state.next_bytes()?);
    if verdict.complete {
        expected.push("the end of the text".to_owned());
    }
    let terminals = describe::terminals(&verdict.state.threads());
    if command.json {
        let object = json!({
            "file": name, "accepted": false, "complete": verdict.complete, "error": what,
            "offset": verdict.viable, "line": position.line, "column": position.column,
            "expected": expected, "terminals": terminals, "relaxed": relaxed,
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    let what = Paint::for_stdout().red(&format!("not in the language: {what}"));
    writeln!(out, "{name}:{}:{}: {what}", position.line, position.column)?;
    let end = (verdict.viable + 1).min(text.len());
    for line in source.excerpt(Span::from_range(verdict.viable..end)).to_string().lines() {
        writeln!(out, "  {line}")?;
    }
    let expected = if expected.is_empty() { "nothing".to_owned() } else { expected.join(", ") };
    writeln!(out, "  could follow: {expected}")?;
    if !terminals.is_empty() {
        writeln!(out, "  in the grammar: {}", terminals.join(", "))?;
    }
    Ok(())
}
