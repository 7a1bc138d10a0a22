//! `domino trace`: measures every step of given texts, in the format in which engines are compared.
//!
//! [`input`] reads texts and expected masks, [`walk`] reads the clock, [`measure`] orders the passes, and
//! [`cell`] is the resulting file with its form for people. `benches/compare` walks with the same clock, so
//! [`input`], [`walk`] and [`measure`] see nothing of the program. Texts can also be rows of a batch, such as
//! `domino generate --batch` writes.

pub(crate) mod args;
mod cell;
mod input;
mod measure;
mod walk;

use std::io::Write;
use std::{path::Path, time::Instant};

use domino::{TokenId, Vocabulary, VocabularyError, store::CacheFolder, vocab::Tokenizer};
use serde_json::json;

use self::args::{LowTrace, Trace};
use self::cell::{Cell, MemoryMoments, Summary};
use self::input::{Expected, Malformed, Traces};
use self::measure::{Moment, Trouble, Wrong};
use self::walk::{Digest, Setup, Tables};
use crate::files::{Input, Output, lines};
use crate::rows::{RowReader, RowReading};
use crate::terminal::failure::{BadInput, Exit, Paint, note};
use crate::terminal::{self, progress};

impl From<Malformed> for BadInput {
    fn from(error: Malformed) -> Self {
        let bad = Self::new(error.to_string());
        match error.hint() {
            Some(hint) => bad.hint(hint),
            None => bad,
        }
    }
}

/// Measures, writes the cell and prints its summary.
pub(crate) fn run(flags: &LowTrace, json: bool, _cache: &CacheFolder) -> anyhow::Result<Exit> {
    let command = &flags.resolve()?;
    // All mistakes of the user are found before the first clock starts.
    let output = flags.out.as_deref().map(Output::prepare).transpose()?;
    let tokenizer = flags.tokens.resolve().locate()?;
    let traces = match flags.batch {
        true => rows_as_traces(command, &tokenizer)?,
        false => command.traces.read()?,
    };
    let traces = Traces::parse(&traces, &command.traces.name()).map_err(BadInput::from)?;
    let expected = command.expected.as_ref().map(|file| expected(file, &traces)).transpose()?;
    let grammar = command.grammar.load()?;
    walk::at_most(flags.threads as usize);

    let mut memory = MemoryMoments::at_start();
    let begun = Instant::now();
    let vocabulary = progress::during(format!("reading {}", tokenizer.display()), || {
        Vocabulary::from_tokenizer_file(&tokenizer)
    })
    .map_err(|error| BadInput::new(error.to_string()))?;
    let vocab_ms = begun.elapsed().as_secs_f64() * 1e3;
    memory.vocabulary_is_there();
    traces.fit(&vocabulary).map_err(BadInput::from)?;

    progress::watch_interrupts();
    let walks = traces.list.len() * flags.passes().walks();
    let bar = progress::bar(format!("measuring {}", traces.grammar), walks);
    let mut setup =
        Setup::new(vocabulary.clone(), command.reach.lookahead, flags.trees).over(command.reach.terminals);
    if flags.tables == Tables::Kept {
        setup.keep_tables(|compiler| grammar.compile(compiler))?;
    }
    let compile = || Ok(setup.compile(|compiler| grammar.compile(compiler))?);
    let compare = |trace: usize, digests: &[Digest]| {
        expected.as_ref().map_or(Ok(()), |expected| expected.compare(trace, digests))
    };
    let notify = |moment| match moment {
        Moment::Compiled => memory.grammar_is_compiled(),
        Moment::Walked => bar.inc(1),
    };
    let measured =
        measure::run(&traces.list, flags.passes(), compile, compare, notify, progress::interrupted);
    drop(bar);
    let measured = measured.map_err(|trouble| match trouble {
        Trouble::Step(wrong) => describe(&wrong, &traces, &vocabulary),
        Trouble::Other(error) => error,
    })?;
    memory.all_is_done();

    let cell = Cell::new(&traces, &measured, vocab_ms, &memory, command);
    if let Some(output) = output {
        output.write(cell.to_json()?.as_bytes())?;
    }
    let summary = Summary::new(&cell, expected.is_some());
    if json {
        writeln!(terminal::stdout(), "{}", summary.to_json())?;
    }
    note!("{}", summary.to_text(Paint::for_stderr()).trim_end());
    Ok(if cell.extra.interrupted { Exit::Interrupted } else { Exit::Success })
}

fn expected(file: &Input, traces: &Traces) -> Result<Expected, BadInput> {
    Ok(Expected::parse(&file.read()?, &file.name(), traces)?)
}

/// Makes an error from a wrong step, with its place and the text before it.
fn describe(wrong: &Wrong, traces: &Traces, vocabulary: &Vocabulary) -> anyhow::Error {
    const MOST_BYTES: usize = 40;
    let before = traces.list.get(wrong.trace).map(|trace| trace.before(vocabulary, wrong.step));
    let before = before.unwrap_or_default();
    let end = &before[before.len().saturating_sub(MOST_BYTES)..];
    // The message is its first line; the next has a hint for users of the library.
    let sentence = wrong.what.lines().next().unwrap_or_default();
    anyhow::anyhow!(
        "{}, trace {}, step {}, after \"{}\": {}",
        traces.grammar,
        wrong.trace,
        wrong.step,
        end.escape_ascii(),
        sentence,
    )
}

/// Limit on the length in bytes of a token that is looked for.
const LONGEST: usize = 64;

/// Reads the traces of all rows, as a file of traces has them. The tokens of a text are those of the row if
/// they spell it, or else those that the tokenizer makes of it.
fn rows_as_traces(command: &Trace, tokenizer: &Path) -> Result<Vec<u8>, BadInput> {
    let vocab = tokenizer.display().to_string();
    let bad = |error: VocabularyError| BadInput::new(error.to_string());
    let vocabulary = Vocabulary::from_tokenizer_file(tokenizer).map_err(bad)?;
    let tokenizer = Tokenizer::from_tokenizer_file(tokenizer).map_err(bad)?;
    let reading = RowReading { reader: RowReader::Trace, keep: true };
    let (name, mut traces) = (command.traces.name(), Vec::new());
    for line in lines::numbered(command.traces.open()?) {
        let (number, line) = line.map_err(|error| BadInput::new(format!("cannot read {name}: {error}")))?;
        let place = |error: BadInput| error.about(&name);
        let in_line = |error: BadInput| error.about(&format!("{name}: line {number}"));
        let row = reading.row(&line, number).1.map_err(place)?;
        if row.grammar.is_own() {
            let error = BadInput::new("the row has a grammar of its own");
            return Err(in_line(error.hint("trace measures one grammar, that of the command line")));
        }
        let text = row.text().map_err(in_line)?;
        let own = row.token_ids.as_ref().map(|ids| ids.iter().copied().map(TokenId::new).collect());
        let encoded = || tokenizer.encode(text, false).ok();
        let tokens = own
            .and_then(|tokens| spelling(tokens, text, &vocabulary))
            .or_else(|| spelling(encoded()?, text, &vocabulary))
            .or_else(|| longest(text.as_bytes(), &vocabulary))
            .ok_or_else(|| in_line(BadInput::new("the vocabulary cannot spell the text")))?;
        let tokens: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        traces.push(json!({ "text": text, "tokens": tokens }));
    }
    Ok(json!({ "grammar": command.grammar.name(), "vocab": vocab, "traces": traces })
        .to_string()
        .into_bytes())
}

/// These tokens, if they spell the text.
fn spelling(tokens: Vec<TokenId>, text: &str, vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let known = tokens.iter().all(|token| vocabulary.bytes(*token).is_some());
    (known && vocabulary.concat(&tokens) == text.as_bytes()).then_some(tokens)
}

/// Cuts a text into the longest token at each place (maximal munch), for tokenizers that put a blank before a
/// text.
fn longest(mut rest: &[u8], vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let mut lengths = (1..=rest.len().min(LONGEST)).rev();
        let found = lengths.find_map(|length| Some((length, vocabulary.token_of(&rest[..length])?)));
        let (length, token) = found?;
        tokens.push(token);
        rest = &rest[length..];
    }
    Some(tokens)
}
