//! `domino compile`: grows the trees of a grammar ahead of their use and writes them into one file.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use clap::Args;
use domino::{CompiledGrammar, Terminals, store::CacheFolder};
use serde_json::json;

use crate::{
    args::LowGrammar,
    files::output::Output,
    notation::GrammarSource,
    reach::LowTerminals,
    terminal::{
        failure::{BadInput, Exit, Paint, note},
        progress, stdout,
    },
    tokenizer::{LowVocabulary, TokensOf},
};

/// Grow all subterminal trees of a grammar for a vocabulary ahead of their use, and keep them in a file.
///
/// Without this the trees grow as texts need them, so the first texts of a grammar wait some milliseconds
/// more in all. Masks are the same. The file is for this grammar, this vocabulary and this version of the
/// program, and has a checksum: `domino generate --trees FILE` and `domino mask --trees FILE` say so and grow
/// the trees anew where it is damaged or for something else.
///
/// A file that is there and right is left as it is.
#[derive(Debug, Args)]
pub(crate) struct LowCompile {
    #[command(flatten)]
    grammar: LowGrammar,
    #[command(flatten)]
    tokens: LowVocabulary,
    #[command(flatten)]
    terminals: LowTerminals,
    /// Where the trees go.
    #[arg(long, short = 'o', value_name = "FILE")]
    out: PathBuf,
    /// Grow the trees and write the file even if it is right.
    #[arg(long)]
    force: bool,
}

/// The resolved command `domino compile`.
#[derive(Debug)]
pub(crate) struct Compile {
    grammar: GrammarSource,
    tokens: TokensOf,
    terminals: Terminals,
    out: PathBuf,
    force: bool,
    json: bool,
}

impl LowCompile {
    pub(crate) fn resolve(self, json: bool) -> Result<Compile, BadInput> {
        let Self { grammar, tokens, terminals, out, force } = self;
        let (grammar, terminals) = (grammar.required()?, terminals.resolve());
        Ok(Compile { grammar, tokens: tokens.resolve(), terminals, out, force, json })
    }
}

/// The state of a file of trees before it is written.
enum Before {
    /// The file has the right trees.
    Whole,
    /// The file is not there.
    Absent,
    /// The file is of no use, for this reason.
    Useless(String),
}

/// Compiles a grammar and keeps its trees.
pub(crate) fn run(command: &Compile, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let vocabulary = command.tokens.vocabulary(cache)?;
    // With `--force` all trees are made anew, so the cache must not supply any.
    let known = if command.force { CacheFolder::none() } else { cache.clone() };
    let compiler = crate::budgets::compiler(vocabulary).terminals(command.terminals).cache(known);
    let begun = Instant::now();
    let compiled = command.grammar.compile(&compiler)?;
    let compile_ms = milliseconds(begun);
    let before = if command.force { Before::Absent } else { load(&compiled, &command.out)? };
    let begun = Instant::now();
    grow(&compiled, &command.grammar.name());
    let grow_ms = milliseconds(begun);
    let file = command.out.display();
    let bytes = match &before {
        Before::Whole => fs::metadata(&command.out)
            .with_context(|| format!("cannot read {}", command.out.display()))?
            .len(),
        Before::Absent | Before::Useless(_) => write(&compiled, &command.out)?,
    };
    if command.json {
        let made = !matches!(before, Before::Whole);
        let useless = match before {
            Before::Useless(why) => Some(why),
            Before::Whole | Before::Absent => None,
        };
        let object = json!({
            "file": command.out, "bytes": bytes, "made": made, "replaced_because": useless,
            "compile_ms": compile_ms, "grow_ms": grow_ms,
        });
        writeln!(stdout::lock(), "{object}")?;
        return Ok(Exit::Success);
    }
    let mut out = stdout::lock();
    match before {
        Before::Whole => writeln!(out, "{file}: right as it is, {bytes} bytes")?,
        Before::Absent => {
            let times = format!("compiled in {compile_ms:.1} ms, trees grown in {grow_ms:.1} ms");
            writeln!(out, "{file}: {bytes} bytes; {times}")?;
        }
        Before::Useless(why) => {
            note!("{} {file} was {why}", Paint::for_stderr().cyan("note:"));
            writeln!(out, "{file}: made again, {bytes} bytes, trees grown in {grow_ms:.1} ms")?;
        }
    }
    Ok(Exit::Success)
}

/// Gives a grammar the trees of a file. If the file is of no use, reports that on standard error, grows the
/// trees, and writes the file again.
pub(crate) fn attach(compiled: &CompiledGrammar, file: &Path, name: &str) -> Result<(), BadInput> {
    let paint = Paint::for_stderr();
    match load(compiled, file)? {
        Before::Whole => return Ok(()),
        Before::Absent => {
            return Err(BadInput::new(format!("{}: no such file", file.display()))
                .hint("`domino compile` makes files of trees"));
        }
        Before::Useless(why) => {
            note!("{} {} is {why}; it is made again", paint.cyan("warning:"), file.display());
        }
    }
    grow(compiled, name);
    if let Err(error) = write(compiled, file) {
        note!("{} {error:#}", paint.cyan("warning:"));
    }
    Ok(())
}

/// Takes trees from a file, if it has the right ones.
fn load(compiled: &CompiledGrammar, file: &Path) -> Result<Before, BadInput> {
    // Devices and pipes have no end, or nothing to read.
    if fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(Before::Absent);
    }
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Before::Absent),
        Err(error) => return Err(BadInput::new(format!("cannot read {}: {error}", file.display()))),
    };
    Ok(match compiled.load_artefact(&bytes) {
        Ok(()) => Before::Whole,
        Err(error) => Before::Useless(error.to_string()),
    })
}

fn grow(compiled: &CompiledGrammar, name: &str) {
    let bar = std::sync::OnceLock::new();
    compiled.grow_trees_with(|progress| {
        bar.get_or_init(|| progress::Steps::start(format!("growing trees of {name}"), progress.total))
            .one_more();
    });
}

/// Writes all trees and returns the size of the file. Whoever reads the file meanwhile sees the old one or
/// the new one, since a renaming puts it in place.
fn write(compiled: &CompiledGrammar, file: &Path) -> anyhow::Result<u64> {
    let artefact = compiled.artefact();
    Output::prepare(file)?.write(&artefact)?;
    Ok(artefact.len() as u64)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
