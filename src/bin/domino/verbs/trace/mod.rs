//! `domino trace`: measures every step of given texts, in the format in which engines are compared.
//!
//! [`input`] reads texts and expected masks, [`walk`] reads the clock, [`measure`] orders the passes,
//! [`cell`] is the resulting file and [`summary`] its form for people. `benches/compare` walks with the same
//! clock, so [`input`], [`walk`], [`measure`], [`engine`] and [`spread`] see nothing of the program.

pub(crate) mod args;
mod cell;
mod engine;
mod input;
mod measure;
mod memory;
mod rows;
mod spread;
mod summary;
mod walk;

use std::{io::Write, time::Instant};

use domino::Vocabulary;

use self::engine::{Setup, Tables};
use self::input::{Expected, Malformed, Traces};
use self::measure::{Moment, Trouble, Wrong};
use self::{args::Trace, cell::Cell, memory::MemoryMoments, summary::Summary, walk::Digest};
use crate::files::{Input, Output};
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
pub(crate) fn run(command: &Trace) -> anyhow::Result<Exit> {
    // All mistakes of the user are found before the first clock starts.
    let output = command.out.as_deref().map(Output::prepare).transpose()?;
    let tokenizer = command.tokens.locate()?;
    let traces = match command.batch {
        true => rows::read(command, &tokenizer)?,
        false => command.traces.read()?,
    };
    let traces = Traces::parse(&traces, &command.traces.name()).map_err(BadInput::from)?;
    let expected = command.expected.as_ref().map(|file| expected(file, &traces)).transpose()?;
    let grammar = command.grammar.load()?;
    engine::at_most(command.threads);

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
    let walks = traces.list.len() * command.passes.walks();
    let bar = progress::StepBar::start(format!("measuring {}", traces.grammar), walks);
    let mut setup =
        Setup::new(vocabulary.clone(), command.reach.lookahead, command.trees).over(command.reach.terminals);
    if command.tables == Tables::Kept {
        setup.keep_tables(|compiler| grammar.compile(compiler))?;
    }
    let compile = || Ok(setup.compile(|compiler| grammar.compile(compiler))?);
    let compare = |trace: usize, digests: &[Digest]| {
        expected.as_ref().map_or(Ok(()), |expected| expected.compare(trace, digests))
    };
    let notify = |moment| match moment {
        Moment::Compiled => memory.grammar_is_compiled(),
        Moment::Walked => bar.one_more(),
    };
    let measured =
        measure::run(&traces.list, command.passes, compile, compare, notify, progress::interrupted);
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
    if command.json {
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
