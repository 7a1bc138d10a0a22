//! `domino compile`: grows the trees of a grammar ahead of their use and writes them into one file.

use std::{fs, io::Write, path::PathBuf, time::Instant};

use anyhow::Context;
use clap::Args;
use domino::store::CacheFolder;
use serde_json::json;

use crate::flags::grammar::{LowGrammar, LowTerminals, LowVocabulary};
use crate::grammar::compiled::{self, TreesFile};
use crate::terminal;
use crate::terminal::failure::{Exit, remark};

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
    /// The file that the trees are written to.
    #[arg(long, short = 'o', value_name = "FILE")]
    out: PathBuf,
    /// Grow the trees and write the file even if it is right.
    #[arg(long)]
    force: bool,
}

/// Compiles a grammar and keeps its trees.
pub(crate) fn run(command: &LowCompile, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let (grammar, terminals) = (command.grammar.required()?, command.terminals.resolve());
    let vocabulary = command.tokens.resolve().vocabulary(cache)?;
    // With `--force` all trees are made anew, so the cache must not supply any.
    let known = if command.force { CacheFolder::none() } else { cache.clone() };
    let compiler = crate::grammar::compiler::compiler(vocabulary).terminals(terminals).cache(known);
    let begun = Instant::now();
    let compiled = grammar.compile(&compiler)?;
    let compile_ms = milliseconds(begun);
    let before =
        if command.force { TreesFile::Absent } else { compiled::load_trees(&compiled, &command.out)? };
    let begun = Instant::now();
    compiled::grow_trees(&compiled, &grammar.name());
    let grow_ms = milliseconds(begun);
    let file = command.out.display();
    let bytes = match &before {
        TreesFile::Whole => fs::metadata(&command.out)
            .with_context(|| format!("cannot read {}", command.out.display()))?
            .len(),
        TreesFile::Absent | TreesFile::Useless(_) => compiled::write_trees(&compiled, &command.out)?,
    };
    if json {
        let made = !matches!(before, TreesFile::Whole);
        let useless = match before {
            TreesFile::Useless(why) => Some(why),
            TreesFile::Whole | TreesFile::Absent => None,
        };
        let object = json!({
            "file": command.out, "bytes": bytes, "made": made, "replaced_because": useless,
            "compile_ms": compile_ms, "grow_ms": grow_ms,
        });
        writeln!(terminal::stdout(), "{object}")?;
        return Ok(Exit::Success);
    }
    let mut out = terminal::stdout();
    match before {
        TreesFile::Whole => writeln!(out, "{file}: right as it is, {bytes} bytes")?,
        TreesFile::Absent => {
            let times = format!("compiled in {compile_ms:.1} ms, trees grown in {grow_ms:.1} ms");
            writeln!(out, "{file}: {bytes} bytes; {times}")?;
        }
        TreesFile::Useless(why) => {
            remark!("note:", "{file} was {why}");
            writeln!(out, "{file}: made again, {bytes} bytes, trees grown in {grow_ms:.1} ms")?;
        }
    }
    Ok(Exit::Success)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
