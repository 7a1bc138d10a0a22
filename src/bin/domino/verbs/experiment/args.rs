//! Flags of `domino experiment`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;
use domino::experiment::Shard;

/// Run an experiment by its definition: grammars, models, methods and settings, in turns, a record a run.
///
/// A definition is a file in TOML; experiments/definitions has some, and docs/speculation-reference.md lists
/// its keys.
///
/// Records go to a folder: header.json (definition, command, commit, models, machine), rows.jsonl and
/// rows.csv (a line a run), and summary.md, summary.csv and summary.json (sums and means, with 95%
/// intervals). The paper's tables and figure are made of these: tables.md, and the folders tables (CSV) and
/// figures (SVG).
///
/// Ctrl-C ends it after the running text. The same command goes on where it was, also after it was killed: no
/// run is lost, and none is made twice. Records of another definition, commit, model or machine are never
/// added to.
#[derive(Debug, Args)]
pub(crate) struct LowExperiment {
    /// The definition. Several are run one after the other, and the tables of all go into one file.
    #[arg(value_name = "DEFINITION.toml", required_unless_present_any = ["merge", "report"])]
    pub(super) definitions: Vec<PathBuf>,
    /// Run the small variant of the definition, as its table [quick] says.
    #[arg(long, conflicts_with = "merge")]
    pub(super) quick: bool,
    /// The folder of the records. Default: experiments/records/DATE-NAME, or the folder of an earlier day in
    /// which the same experiment was begun. With several definitions it has a folder for each, and tables.md
    /// the tables of all.
    #[arg(long, short = 'o', value_name = "DIR", required_unless_present_any = ["definitions", "report"])]
    pub(super) out: Option<PathBuf>,
    /// Make only this part of the runs, for instance 2/8: the second of eight machines. Runs of one prompt
    /// and seed stay together.
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub(super) shard: Option<Shard>,
    /// Put the records of all shards of an experiment together in the folder of --out, and run nothing.
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "definitions")]
    pub(super) merge: Vec<PathBuf>,
    /// Make tables, figures and page of the records in this folder again, complete or not, and run nothing.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["definitions", "merge", "quick", "out", "shard", "threads"]
    )]
    pub(super) report: Option<PathBuf>,
    /// Threads that share the work of a pass. Default: what RAYON_NUM_THREADS says, or as many as there are
    /// cores.
    #[arg(long, value_name = "N", conflicts_with = "merge")]
    pub(super) threads: Option<NonZeroUsize>,
}
