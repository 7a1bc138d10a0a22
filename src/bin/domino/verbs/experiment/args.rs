//! Flags of `domino experiment`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;
use domino::experiment::Shard;

use crate::terminal::failure::BadInput;

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
    definitions: Vec<PathBuf>,
    /// Run the small variant of the definition, as its table [quick] says.
    #[arg(long, conflicts_with = "merge")]
    quick: bool,
    /// The folder of the records. Default: experiments/records/DATE-NAME, or the folder of an earlier day in
    /// which the same experiment was begun. With several definitions it has a folder for each, and tables.md
    /// the tables of all.
    #[arg(long, short = 'o', value_name = "DIR", required_unless_present_any = ["definitions", "report"])]
    out: Option<PathBuf>,
    /// Make only this part of the runs, for instance 2/8: the second of eight machines. Runs of one prompt
    /// and seed stay together.
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    shard: Option<Shard>,
    /// Put the records of all shards of an experiment together in the folder of --out, and run nothing.
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "definitions")]
    merge: Vec<PathBuf>,
    /// Make tables, figures and page of the records in this folder again, complete or not, and run nothing.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["definitions", "merge", "quick", "out", "shard", "threads"]
    )]
    report: Option<PathBuf>,
    /// Threads that share the work of a pass. Default: what RAYON_NUM_THREADS says, or as many as there are
    /// cores.
    #[arg(long, value_name = "N", conflicts_with = "merge")]
    threads: Option<NonZeroUsize>,
}

/// The resolved command `domino experiment`.
#[derive(Debug)]
pub(crate) enum Experiment {
    /// Run a definition.
    Run(Run),
    /// Run several, one after the other.
    Several(Several),
    /// Put shards together.
    Merge { folders: Vec<PathBuf>, out: PathBuf, json: bool },
    /// Show the records of a folder.
    Report { folder: PathBuf, json: bool },
}

/// A definition to run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) definition: PathBuf,
    pub(crate) quick: bool,
    pub(crate) out: Option<PathBuf>,
    /// The folder in which the records have a folder of the definition's name, if it is one of several.
    pub(crate) within: Option<PathBuf>,
    pub(crate) shard: Option<Shard>,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) json: bool,
}

/// Definitions to be run one after the other.
#[derive(Debug)]
pub(crate) struct Several {
    pub(crate) runs: Vec<Run>,
    /// The folder of their folders and of the tables of all.
    pub(crate) out: Option<PathBuf>,
    pub(crate) json: bool,
}

impl LowExperiment {
    pub(crate) fn resolve(self, json: bool) -> Result<Experiment, BadInput> {
        let Self { definitions, quick, out, shard, merge, report, threads } = self;
        if let Some(folder) = report {
            return Ok(Experiment::Report { folder, json });
        }
        let run = |definition: &PathBuf, out, within| {
            let definition = definition.clone();
            Run { definition, quick, out, within, shard, threads, json }
        };
        match (&definitions[..], out) {
            ([definition], out) => Ok(Experiment::Run(run(definition, out, None))),
            ([], Some(out)) => Ok(Experiment::Merge { folders: merge, out, json }),
            ([], None) => Err(BadInput::new("no folder for what is merged: give --out")),
            (several, out) => {
                let runs = several.iter().map(|definition| run(definition, None, out.clone())).collect();
                Ok(Experiment::Several(Several { runs, out, json }))
            }
        }
    }
}
