//! `domino check`: judges whether a text is in the language, and names the place where it leaves it.
//!
//! Tokens do not matter here: the vocabulary is the 256 bytes. Texts are read in pieces, so that the answer
//! comes as soon as it is certain, whatever else may follow.

mod begun;
mod compare;
mod doubled;
mod explain;
mod finding;
mod items;
mod members;
mod references;
mod sizes;
#[cfg(test)]
mod tests;
mod walk;
mod words;

use std::{
    io::{BufRead, Read, Write},
    time::{Duration, Instant},
};

use domino::{
    CompiledGrammar,
    grammar::{GrammarWarning, json_schema::SchemaOptions},
};
use serde_json::{Map, Value, json};

pub(crate) use self::finding::SchemaFault;
use crate::{
    files::input::Input,
    flags::schema,
    grammar::{
        advice, budgets,
        bytes::byte_vocabulary,
        captures::Capturing,
        keywords::Reports,
        notation::{Parsed, relaxed_as_json},
        reading::{End, Leaving, Reading, Unanswered},
        source::GrammarSource,
        warned,
    },
    terminal::{
        failure::{self, BadInput, Exit, Paint, Told},
        json::extend,
        progress, stdout,
    },
};

/// The resolved command `domino check`.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) grammar: GrammarSource,
    pub(crate) prefix: bool,
    pub(crate) inputs: Vec<Input>,
    /// Names of the rules to capture.
    pub(crate) captured: Vec<String>,
    /// True if the keywords of a schema are listed.
    pub(crate) report: bool,
    /// Limit on the bytes read of each input.
    pub(crate) max_bytes: u64,
    pub(crate) json: bool,
}

/// Time after which a check counts as slow, so that advice on the grammar is given.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// A reason why there is no verdict.
enum Trouble {
    /// The input cannot be read.
    Unread(BadInput),
    /// A budget was used up.
    Unanswered(Box<Unanswered>),
    /// The text is longer than this number of bytes, and in the language so far.
    TooLong(u64),
}

/// Limit on the bytes of a text that are kept to explain in the schema's words what is wrong with it.
const EXPLAINED: u64 = 1 << 20;

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
    let engine = |schema: &str, instance: &str| {
        let options = schema::for_checking().with_format(options.format);
        let parsed = options.parse_with(schema, &budgets::limits(), budgets::automata()).ok()?;
        let compiled = budgets::compiler(byte_vocabulary().ok()?).compile(&parsed.grammar).ok()?;
        judge(&compiled, instance.as_bytes()).ok().map(|verdict| verdict.accepted(false))
    };
    explain::explain(schema, options, text, ended, &engine)
}

/// Makes the field of JSON about what is wrong by a schema; no field where nothing was found.
pub(crate) fn explained_field(faults: &[SchemaFault]) -> Map<String, Value> {
    let list = (!faults.is_empty()).then(|| ("schema_errors".to_owned(), explain::list(faults)));
    Map::from_iter(list)
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
fn finish(mut reading: Reading) -> Result<Verdict, Box<Unanswered>> {
    if let Some(left) = reading.finish()? {
        return Ok(Verdict::Left(left));
    }
    Ok(match reading.end() {
        End::Complete => Verdict::Complete,
        End::Incomplete(leaving) => Verdict::Incomplete(leaving),
    })
}

/// Reads an input until there is a verdict, and keeps up to `keep` bytes of it.
fn answer(
    grammar: &CompiledGrammar,
    input: &Input,
    most: u64,
    (kept, keep): (&mut Vec<u8>, u64),
) -> Result<Verdict, Trouble> {
    let unread = |error| Trouble::Unread(BadInput::new(format!("cannot read {}: {error}", input.name())));
    let mut source = input.open().map_err(Trouble::Unread)?;
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
            return finish(reading).map_err(Trouble::Unanswered);
        }
        let piece = &piece[..usize::try_from(left).map_or(length, |left| length.min(left))];
        if piece.is_empty() {
            return Err(Trouble::TooLong(most));
        }
        let taken = piece.len();
        let room = usize::try_from(keep.saturating_sub(kept.len() as u64)).unwrap_or(taken);
        kept.extend_from_slice(&piece[..taken.min(room)]);
        let found = reading.push(piece).map_err(Trouble::Unanswered)?;
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
pub(crate) fn run(command: &Check) -> anyhow::Result<Exit> {
    if command.report {
        let name = command.grammar.name();
        report(&name, &command.grammar.load()?.reports()?, command.json)?;
    }
    let compiler = crate::grammar::budgets::compiler(byte_vocabulary()?).any_special();
    let (grammar, Parsed { grammar: parsed, relaxed }) = command.grammar.read_and_compile(&compiler)?;
    let relaxed = relaxed_as_json(&relaxed);
    let capturing = match command.json {
        true => Capturing::of(&command.grammar.name(), parsed, &command.captured)?,
        false => None,
    };
    let source = command.grammar.load()?;
    let schema = source.schema();
    let keep = match (&capturing, schema) {
        (Some(_), _) => u64::MAX,
        (None, Some(_)) => EXPLAINED,
        (None, None) => 0,
    };
    let mut exits = Vec::new();
    let mut advised = false;
    for input in &command.inputs {
        let start = Instant::now();
        let mut text = Vec::new();
        let judged = progress::during(format!("checking {}", input.name()), || {
            answer(&grammar, input, command.max_bytes, (&mut text, keep))
        });
        let costly = matches!(judged, Err(Trouble::Unanswered(_))) || start.elapsed() > PATIENCE;
        if !advised && costly {
            advice::give(&command.grammar, &grammar);
            advised = true;
        }
        exits.push(match judged {
            Ok(verdict) => {
                let accepted = verdict.accepted(command.prefix);
                let captures = capturing.as_ref().filter(|_| accepted);
                let captures = captures.map_or_else(Map::new, |capturing| capturing.fields(&text));
                let faults = if accepted { Vec::new() } else { explained(schema, &verdict, &text) };
                let warnings = grammar.grammar_warnings();
                tell(command, input, (&verdict, &faults), warnings, (&relaxed, captures))?;
                if accepted { Exit::Success } else { Exit::Failure }
            }
            Err(trouble) => no_verdict(trouble, input, command.json)?,
        });
    }
    // Of several exit codes, unreadable input goes before a missing answer, and that before a text outside
    // the language.
    let order = [Exit::BadInput, Exit::NoAnswer, Exit::Failure];
    Ok(order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Success))
}

/// Prints the report on the keywords of a schema.
pub(crate) fn report(name: &str, reports: &Reports, json: bool) -> anyhow::Result<()> {
    let mut out = stdout::lock();
    if json {
        let mut object = json!({ "grammar": name });
        extend(&mut object, reports.fields());
        writeln!(out, "{object}")?;
    } else {
        reports.print(name, &mut out)?;
    }
    Ok(())
}

/// Tells why there is no verdict on an input; the others are still checked.
fn no_verdict(trouble: Trouble, input: &Input, json: bool) -> anyhow::Result<Exit> {
    let (told, place, exit) = match trouble {
        Trouble::Unread(error) => (failure::told(&error), Map::new(), Exit::BadInput),
        Trouble::Unanswered(unanswered) => {
            let mut told = unanswered.told();
            told.sentence = format!("{}: {}", input.name(), told.sentence);
            (told, unanswered.fields(), Exit::NoAnswer)
        }
        Trouble::TooLong(most) => {
            let sentence =
                format!("{}: no answer: in the language so far, and longer than {most} bytes", input.name());
            let hint = Some("--max-bytes says how much is read".to_owned());
            (Told { sentence, hint }, Map::new(), Exit::NoAnswer)
        }
    };
    if json {
        let mut object = json!({
            "file": input.name(), "accepted": null, "error": told.sentence, "hint": told.hint,
        });
        extend(&mut object, place);
        writeln!(stdout::lock(), "{object}")?;
    }
    told.print();
    Ok(exit)
}

/// Prints the verdict on one input.
fn tell(
    command: &Check,
    input: &Input,
    (verdict, faults): (&Verdict, &[SchemaFault]),
    warnings: &[GrammarWarning],
    (relaxed, captures): (&[Value], Map<String, Value>),
) -> anyhow::Result<()> {
    let mut out = stdout::lock();
    let name = input.name();
    let complete = verdict.leaving().is_none_or(|leaving| leaving.complete);
    let wrong = verdict.leaving().filter(|_| !verdict.accepted(command.prefix));
    if command.json {
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
    for line in faults.iter().map(explain::line).chain(leaving.lines()) {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}
