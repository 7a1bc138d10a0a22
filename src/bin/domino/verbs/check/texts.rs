//! Verdicts of a grammar on texts, and what is wrong by a schema.
//!
//! Texts of files are read in pieces, so that the answer comes as soon as it is certain, whatever else may
//! follow.

use std::io::{BufRead, Read, Write};
use std::time::{Duration, Instant};

use domino::{CompiledGrammar, grammar::GrammarWarning, grammar::json_schema::SchemaOptions};
use serde_json::{Value, json};

use super::{LowCheck, faults, faults::SchemaFault};
use crate::files::Input;
use crate::flags::schema::for_checking;
use crate::grammar::compiled::{self, Capturing};
use crate::grammar::compiler::byte_vocabulary;
use crate::grammar::notation::{Parsed, relaxed_as_json};
use crate::grammar::reading::{Leaving, Reading, Unanswered};
use crate::grammar::warned::{self, report_keywords};
use crate::terminal::failure::{self, BadInput, Exit, Paint, Told};
use crate::terminal::{self, extend, progress};

/// Time after which a check counts as slow, so that advice on the grammar is given.
const PATIENCE: Duration = Duration::from_secs(2);

/// A reason why there is no verdict.
struct NoVerdict {
    told: Told,
    /// Fields of JSON about the place where a budget was used up; null for other reasons.
    place: Value,
    exit: Exit,
}

/// Limit on the bytes of a text that are kept to explain in the schema's words what is wrong with it.
const EXPLAINED: u64 = 1 << 20;

/// Reads an input until there is a verdict, and keeps up to `keep` bytes of it.
fn answer(
    grammar: &CompiledGrammar,
    input: &Input,
    most: u64,
    (kept, keep): (&mut Vec<u8>, u64),
) -> Result<Verdict, Box<NoVerdict>> {
    let name = input.name();
    let none = |told, place, exit| Box::new(NoVerdict { told, place, exit });
    let bad = |error: BadInput| none(failure::told(&error), Value::Null, Exit::BadInput);
    let unread = |error| bad(BadInput::new(format!("cannot read {name}: {error}")));
    let unanswered = |unanswered: Box<Unanswered>| {
        let (place, sentence) = (unanswered.fields(), format!("{name}: {}", unanswered.told.sentence));
        none(Told { sentence, ..unanswered.told }, place, Exit::NoAnswer)
    };
    let mut source = input.open().map_err(bad)?;
    let mut reading = Reading::new(grammar.constraint());
    let mut left = most;
    loop {
        let piece = match source.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unread(error)),
        };
        let length = piece.len();
        if length == 0 {
            return finish(reading).map_err(unanswered);
        }
        let piece = &piece[..usize::try_from(left).map_or(length, |left| length.min(left))];
        if piece.is_empty() {
            let sentence = format!("{name}: no answer: in the language so far, and longer than {most} bytes");
            let told = Told { sentence, hint: Some("--max-bytes says how much is read".to_owned()) };
            return Err(none(told, Value::Null, Exit::NoAnswer));
        }
        let taken = piece.len();
        let room = usize::try_from(keep.saturating_sub(kept.len() as u64)).unwrap_or(taken);
        kept.extend_from_slice(&piece[..taken.min(room)]);
        let found = reading.push(piece).map_err(unanswered)?;
        source.consume(taken);
        if let Some(found) = found {
            // A file is read on, since more can be told about it; the writer of a pipe may never finish.
            let is_file = matches!(input, Input::File(path) if path.is_file());
            if is_file && keep > 0 {
                let more = keep.saturating_sub(kept.len() as u64);
                source.take(more).read_to_end(kept).map_err(unread)?;
            }
            return Ok(Verdict::Left(found));
        }
        left -= taken as u64;
    }
}

/// Checks all inputs.
pub(super) fn run(command: &LowCheck, inputs: &[Input], json: bool) -> anyhow::Result<Exit> {
    let wanted = command.grammar.required_beside(for_checking())?;
    let captured = command.capture.resolve(json)?;
    if command.report {
        report_keywords(&wanted.name(), &wanted.load()?.reports()?, json)?;
    }
    let compiler = crate::grammar::compiler::compiler(byte_vocabulary()?).any_special();
    let (grammar, Parsed { grammar: parsed, relaxed, .. }) = wanted.read_and_compile(&compiler)?;
    let relaxed = relaxed_as_json(&relaxed);
    let capturing = if json { Capturing::of(&wanted.name(), parsed, captured)? } else { None };
    let source = wanted.load()?;
    let schema = source.schema();
    let keep = match (&capturing, schema) {
        (Some(_), _) => u64::MAX,
        (None, Some(_)) => EXPLAINED,
        (None, None) => 0,
    };
    let mut exits = Vec::new();
    let mut advised = false;
    for input in inputs {
        let start = Instant::now();
        let mut text = Vec::new();
        let judged = progress::during(format!("checking {}", input.name()), || {
            answer(&grammar, input, command.max_bytes, (&mut text, keep))
        });
        let costly =
            judged.as_ref().is_err_and(|trouble| !trouble.place.is_null()) || start.elapsed() > PATIENCE;
        if !advised && costly {
            compiled::give_advice(&wanted, &grammar);
            advised = true;
        }
        exits.push(match judged {
            Ok(verdict) => {
                let accepted = verdict.accepted(command.prefix);
                let captures = capturing.as_ref().filter(|_| accepted);
                let captures = captures.map(|capturing| capturing.fields(&text)).into();
                let faults = if accepted { Vec::new() } else { explained(schema, &verdict, &text) };
                let warnings = grammar.grammar_warnings();
                let told = (&*relaxed, captures);
                tell((command.prefix, json), input, (&verdict, &faults), warnings, told)?;
                if accepted { Exit::Success } else { Exit::Failure }
            }
            Err(trouble) => no_verdict(*trouble, input, json)?,
        });
    }
    // Of several exit codes, unreadable input goes before a missing answer, and that before a text outside
    // the language.
    let order = [Exit::BadInput, Exit::NoAnswer, Exit::Failure];
    Ok(order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Success))
}

/// Tells why there is no verdict on an input; the others are still checked.
fn no_verdict(trouble: NoVerdict, input: &Input, json: bool) -> anyhow::Result<Exit> {
    let NoVerdict { told, place, exit } = trouble;
    if json {
        let mut object = json!({
            "file": input.name(), "accepted": null, "error": told.sentence, "hint": told.hint,
        });
        extend(&mut object, place);
        writeln!(terminal::stdout(), "{object}")?;
    }
    told.print();
    Ok(exit)
}

/// Prints the verdict on one input.
fn tell(
    (prefix, json): (bool, bool),
    input: &Input,
    (verdict, faults): (&Verdict, &[SchemaFault]),
    warnings: &[GrammarWarning],
    (relaxed, captures): (&[Value], Value),
) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    let name = input.name();
    let complete = verdict.leaving().is_none_or(|leaving| leaving.complete);
    let wrong = verdict.leaving().filter(|_| !verdict.accepted(prefix));
    if json {
        let mut object = json!({
            "file": name, "accepted": wrong.is_none(), "complete": complete,
            "error": wrong.map(|leaving| &leaving.what), "relaxed": relaxed,
        });
        if let Some(leaving) = wrong {
            extend(&mut object, leaving.fields());
            extend(&mut object, explained_field(faults));
        }
        extend(&mut object, captures);
        writeln!(out, "{}", warned::with(object, warnings))?;
        return Ok(());
    }
    let paint = Paint::for_stdout();
    let Some(leaving) = wrong else {
        let what = if complete { "in the language" } else { "can still be completed" };
        writeln!(out, "{name}: {}", paint.green(what))?;
        return Ok(());
    };
    let what = paint.red(&format!("not in the language: {}", leaving.what));
    writeln!(out, "{name}:{}:{}: {what}", leaving.line, leaving.column)?;
    for line in faults.iter().map(faults::line).chain(leaving.lines()) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// A verdict of a grammar on a text.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The text is in the language.
    Complete,
    /// The whole text may be written, and more must follow.
    Incomplete(Box<Leaving>),
    /// The text leaves the language.
    Left(Box<Leaving>),
}

impl Verdict {
    /// True if the text is in the language, or, with `prefix`, the beginning of a text that is.
    pub(crate) fn accepted(&self, prefix: bool) -> bool {
        match self {
            Self::Complete => true,
            Self::Incomplete(_) => prefix,
            Self::Left(_) => false,
        }
    }

    /// The place where the text leaves the language or ends too early.
    pub(crate) fn leaving(&self) -> Option<&Leaving> {
        match self {
            Self::Complete => None,
            Self::Incomplete(leaving) | Self::Left(leaving) => Some(leaving),
        }
    }
}

/// Explains in the words of a schema what is wrong with a text that was refused, as far as that can be told.
/// `schema` is its text with its options, if the grammar is a schema.
pub(crate) fn explained(
    schema: Option<(&str, &SchemaOptions)>,
    verdict: &Verdict,
    text: &[u8],
) -> Vec<SchemaFault> {
    let Some((schema, options)) = schema else { return Vec::new() };
    let ended = match verdict {
        Verdict::Complete => return Vec::new(),
        Verdict::Incomplete(_) => true,
        Verdict::Left(_) => false,
    };
    let text = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    faults::explain(schema, options, text, ended)
}

/// Makes the field of JSON about what is wrong by a schema; no field where nothing was found.
pub(crate) fn explained_field(faults: &[SchemaFault]) -> Option<Value> {
    (!faults.is_empty()).then(|| json!({ "schema_errors": faults::list(faults) }))
}

/// Judges `text` by a grammar compiled for [`byte_vocabulary`].
pub(crate) fn judge(grammar: &CompiledGrammar, text: &[u8]) -> Result<Verdict, Box<Unanswered>> {
    let mut reading = Reading::new(grammar.constraint());
    if let Some(left) = reading.push(text)? {
        return Ok(Verdict::Left(left));
    }
    finish(reading)
}

/// Gives the verdict on a text that was read to its end.
pub(super) fn finish(mut reading: Reading) -> Result<Verdict, Box<Unanswered>> {
    if let Some(left) = reading.finish()? {
        return Ok(Verdict::Left(left));
    }
    Ok(reading.end().map_or(Verdict::Complete, Verdict::Incomplete))
}
