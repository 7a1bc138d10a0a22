//! Flags as they are typed ([`LowArgs`]) and what they mean ([`CommandWork`]).
//!
//! Commands with many flags resolve them to a type of their own first; the others read them as they begin.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use domino::store::CacheFolder;

use crate::flags::{LowBudgetFlags, LowCacheFlags};
use crate::serve::args::LowServe;
use crate::terminal::failure::{BadInput, Exit};
use crate::verbs::about::{self, LowCompletions, LowGrammars, LowMan};
use crate::verbs::cache::{self, LowCache};
use crate::verbs::check::{self, LowCheck};
use crate::verbs::compile::{self, LowCompile};
use crate::verbs::experiment::bench_model::{self, LowBenchModel};
use crate::verbs::experiment::retokenize::{self, LowRetokenize};
use crate::verbs::experiment::trace::{self, args::LowTrace};
use crate::verbs::experiment::{self, LowExperiment};
use crate::verbs::explain::{self, LowExplain};
use crate::verbs::generate::{self, args::LowGenerate};
use crate::verbs::inspect::{self, args::LowInspect};
use crate::verbs::learn::{self, LowLearn};
use crate::verbs::mask::{self, LowMask};
use crate::verbs::model::{self, LowModel};
use crate::{engine, help, serve, terminal, terminal::log::LogFormat};

/// Make a language model write only text of a given grammar, and bend it as little as possible.
#[derive(Debug, Parser)]
#[command(
    name = "domino",
    version,
    after_help = help::SHORT,
    after_long_help = help::LONG,
    max_term_width = 100
)]
pub(crate) struct LowArgs {
    /// Print JSON on standard output instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on standard error but errors: no warnings, notes, progress and summaries.
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) cache: LowCacheFlags,
    #[command(flatten)]
    pub(crate) budgets: LowBudgetFlags,
    #[command(subcommand)]
    verb: LowVerb,
}

#[derive(Debug, Subcommand)]
enum LowVerb {
    Generate(Box<LowGenerate>),
    Explain(Box<LowExplain>),
    Learn(LowLearn),
    Serve(Box<LowServe>),
    Check(LowCheck),
    Mask(LowMask),
    Compile(LowCompile),
    Inspect(LowInspect),
    Grammars(LowGrammars),
    Cache(LowCache),
    Model(LowModel),
    BenchModel(LowBenchModel),
    Retokenize(LowRetokenize),
    Trace(LowTrace),
    Experiment(LowExperiment),
    Completions(LowCompletions),
    Man(LowMan),
}

/// The work of a command whose flags are resolved.
pub(crate) type CommandWork = Box<dyn FnOnce(&CacheFolder) -> anyhow::Result<Exit>>;

/// Makes the work of `run` on a resolved command.
fn work<C: 'static>(
    command: C,
    run: impl Fn(&C, &CacheFolder) -> anyhow::Result<Exit> + 'static,
) -> CommandWork {
    Box::new(move |cache| run(&command, cache))
}

impl LowArgs {
    /// The flags of this run, those of a file (`serve --config`) among them. Ends the program where they make
    /// no sense, and for `--help` and `--version`.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub(crate) fn from_command_line() -> Result<Self, BadInput> {
        let mut command = Self::arranged();
        let line: Vec<OsString> = std::env::args_os().collect();
        let merged = serve::settings::merge(&command, line.clone())?;
        let mut read = |line: &[OsString]| {
            let matches = command.try_get_matches_from_mut(line);
            let args = matches.and_then(|matches| Ok((Self::from_arg_matches(&matches)?, matches)));
            args.map_err(|error| terminal::explain_numbers(error, &mut command))
        };
        let (args, matches) =
            read(&merged).or_else(|error| match merged == line || read(&line).is_err() {
                true => error.exit(),
                // Without the file the line is right.
                false => Err(serve::settings::of_file(&error)),
            })?;
        engine::take_flags(&matches)?;
        Ok(args)
    }

    /// Returns the format of the log of requests.
    pub(crate) fn log(&self) -> LogFormat {
        match &self.verb {
            LowVerb::Serve(serve) => serve.log(),
            _ => LogFormat::Off,
        }
    }

    /// Lists all commands and flags, as help shows them.
    pub(crate) fn arranged() -> clap::Command {
        help::arranged(terminal::numbers_may_be_negative(engine::with_flags(Self::command())))
    }

    /// The exit code for a failure of the work. It is not 1 for `check` of texts, whose 1 says that a text is
    /// not in the language.
    pub(crate) fn failure(&self) -> Exit {
        let is_of_texts = matches!(&self.verb, LowVerb::Check(check) if !check.batch);
        if is_of_texts { Exit::NoAnswer } else { Exit::Failure }
    }

    /// Does the command take signals itself?
    pub(crate) fn takes_signals(&self) -> bool {
        matches!(self.verb, LowVerb::Serve(_))
    }

    /// Turns the flags into the work that they ask for.
    pub(crate) fn resolve(self) -> Result<CommandWork, BadInput> {
        let json = self.json;
        Ok(match self.verb {
            LowVerb::Generate(low) => work(low.resolve(json)?, generate::run),
            LowVerb::Explain(low) => work(low.resolve(json)?, explain::run),
            LowVerb::Learn(low) => Box::new(move |cache| learn::run(low, json, cache)),
            LowVerb::Serve(low) => work(low.resolve(json)?, serve::run),
            LowVerb::Check(low) => Box::new(move |_| check::run(&low, json)),
            LowVerb::Mask(low) => Box::new(move |cache| mask::run(&low, json, cache)),
            LowVerb::Compile(low) => Box::new(move |cache| compile::run(&low, json, cache)),
            LowVerb::Inspect(low) => Box::new(move |cache| inspect::run(&low, json, cache)),
            LowVerb::Grammars(low) => Box::new(move |_| about::print_grammars(&low, json)),
            LowVerb::Cache(low) => Box::new(move |cache| cache::run(&low, json, cache)),
            LowVerb::Model(low) => Box::new(move |cache| model::run(&low, json, cache)),
            LowVerb::BenchModel(low) => Box::new(move |cache| bench_model::run(&low, json, cache)),
            LowVerb::Retokenize(low) => Box::new(move |cache| retokenize::run(&low, json, cache)),
            LowVerb::Trace(low) => Box::new(move |cache| trace::run(&low, json, cache)),
            LowVerb::Experiment(low) => Box::new(move |cache| experiment::run(&low, json, cache)),
            LowVerb::Completions(low) => Box::new(move |_| about::print_completions(&low, Self::arranged())),
            LowVerb::Man(low) => Box::new(move |_| about::print_man(&low, Self::arranged())),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn declared_flags_and_help_tables_agree() {
        super::LowArgs::command().debug_assert();
        crate::help::arranged(super::LowArgs::command()).debug_assert();
        crate::help::check_tables(&super::LowArgs::command());
    }
}
