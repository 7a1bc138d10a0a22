//! Flags of `domino trace`.

use std::path::PathBuf;

use clap::Args;

use super::measure::Passes;
use super::walk::{Tables, Trees};
use crate::flags::grammar::{LowGrammar, LowReach, LowVocabulary};
use crate::grammar::{compiler::Reach, source::GrammarSource};
use crate::{files::Input, flags::schema, terminal::failure::BadInput};

/// Measure masks and steps along given texts.
///
/// Every text is walked along token by token: a mask before each token and one at the end. Pass 1 compiles
/// the grammar anew before every text, so nothing is known but what compiling made (first visit); the later
/// passes share one compiled grammar that has met all texts (warm). Only the engine's own calls are timed, on
/// one thread. Masks are counted and hashed in walks of their own, on a fresh grammar and on a warm one.
///
/// A table goes to standard error, with --json an object to standard output, and with --out all times of all
/// steps to a file, in the format peers-cell-1. After Ctrl-C they have what was finished.
///
/// Exit code 1 says that a mask is not the expected one, or differs from an earlier one of the same place.
#[derive(Debug, Args)]
pub(crate) struct LowTrace {
    #[command(flatten)]
    grammar: LowGrammar,
    #[command(flatten)]
    pub(super) tokens: LowVocabulary,
    /// The file that the times of all steps are written to.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// The exact masks of the same texts; - is standard input.
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    /// Walk along each text this many times. Warm times are medians over all passes but the first.
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value_t = 11,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    passes: u32,
    /// Do pass 1 this many times, each time on grammars compiled anew. Its times are then medians, which on a
    /// machine that is not idle are closer to the engine's own.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    fresh: u32,
    #[command(flatten)]
    reach: LowReach,
    /// Grow subterminal trees at this time.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(super) trees: Trees,
    /// Threads that trees may be grown on, where they are eager.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_024)
    )]
    pub(super) threads: u32,
    /// Compile with these tables of the grammar's terminals.
    #[arg(long, value_name = "STATE", value_enum, default_value_t)]
    pub(super) tables: Tables,
    /// Read lines of JSON with a text each, such as `generate --batch` writes (docs/batch.md), in place of a
    /// file of traces. Their tokens are those of token_ids, or else those that the tokenizer makes.
    #[arg(long)]
    pub(super) batch: bool,
    /// The texts: {"grammar": .., "vocab": .., "eos": 2, "traces": [{"text": .., "tokens": [..]}]}, or rows
    /// with --batch; - is standard input.
    #[arg(value_name = "TRACES.json")]
    traces: PathBuf,
}

/// The command `domino trace`: its flags, and what they mean.
#[derive(Debug)]
pub(crate) struct Trace<'a> {
    pub(crate) flags: &'a LowTrace,
    pub(crate) grammar: GrammarSource,
    pub(crate) expected: Option<Input>,
    pub(crate) reach: Reach,
    pub(crate) traces: Input,
}

impl LowTrace {
    /// Reads the flags as the command.
    pub(crate) fn resolve(&self) -> Result<Trace<'_>, BadInput> {
        let traces = Input::new(self.traces.clone());
        let expected = self.expected.clone().map(Input::new);
        if matches!((&traces, &expected), (Input::Stdin, Some(Input::Stdin))) {
            return Err(BadInput::new("traces and expected masks cannot both come from standard input"));
        }
        let grammar = self.grammar.required_beside(schema::for_comparing())?;
        Ok(Trace { grammar, expected, reach: self.reach.resolve(), traces, flags: self })
    }

    /// The numbers of passes.
    pub(super) fn passes(&self) -> Passes {
        Passes { fresh: self.fresh as usize, all: self.passes as usize }
    }
}
