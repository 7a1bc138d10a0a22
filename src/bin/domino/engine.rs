//! The engine that another program brings along, beside this one's own runner.
//!
//! A program of its own has it because it takes long to build or needs more than Rust: it passes the engine
//! to [`main_with`](crate::main_with), and has all commands of `domino`. Models are then run by that engine,
//! unless `--engine domino` says otherwise. One that gives no rows of logits, but writes texts itself, goes
//! to [`main_with_texts`](crate::main_with_texts).

use std::{fmt, num::NonZeroUsize, path::Path, sync::OnceLock};

#[cfg(feature = "experiments")]
use std::path::PathBuf;

use clap::{ArgMatches, Command};
#[cfg(feature = "experiments")]
use domino::experiment::{Definition, methods::ExternalEngine};
use domino::model::{BatchModel, Model, candle::ModelError};

use crate::terminal::failure::BadInput;

/// An engine beside this program's own runner.
pub trait OtherEngine: Send + Sync {
    /// The value of `--engine` that means it.
    fn name(&self) -> &'static str;

    /// Name of the program that has it.
    fn program(&self) -> &'static str;

    /// Adds flags of its own to a command that runs a model.
    fn flags(&self, command: Command) -> Command {
        command
    }

    /// Takes the values of its flags, before anything is loaded.
    ///
    /// # Errors
    /// If they make no sense.
    fn take(&self, matches: &ArgMatches) -> Result<(), BadInput> {
        let _ = matches;
        Ok(())
    }

    /// Loads a model for one text at a time.
    ///
    /// # Errors
    /// If it cannot be loaded, or the engine gives no rows of logits.
    fn load(&self, file: &Path, wanted: &WantedModel) -> Result<OtherModel, BadInput> {
        let _ = (file, wanted);
        Err(no_rows(self.name()))
    }

    /// Loads a model for this many texts at once, each with a cache of its own.
    ///
    /// # Errors
    /// If it cannot be loaded, or the engine gives no rows of logits.
    fn load_batch(
        &self,
        file: &Path,
        texts: NonZeroUsize,
        wanted: &WantedModel,
    ) -> Result<OtherBatch, BadInput> {
        let _ = (file, texts, wanted);
        Err(no_rows(self.name()))
    }

    /// The engine as the host of methods of an experiment, if it has some. Paths are those of the models of
    /// the definition; `other` is loaded in their place, if the definition names such a file.
    #[cfg(feature = "experiments")]
    fn methods(
        &self,
        definition: &Definition,
        paths: &[PathBuf],
        other: Option<&Path>,
    ) -> Option<Box<dyn ExternalEngine>> {
        let _ = (definition, paths, other);
        None
    }
}

/// Refuses to give rows of logits.
fn no_rows(engine: &str) -> BadInput {
    BadInput::new(format!("the engine {engine} gives texts, not rows of logits"))
        .hint("this takes --engine domino, as `explain` and `retokenize` do")
}

/// Options of a model by flags that all engines have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WantedModel {
    /// Tokens of a text, its prompt included; `None`: as the engine thinks best.
    pub context: Option<usize>,
    /// Threads of a pass on the CPU; `None`: as many as there are cores.
    pub threads: Option<NonZeroUsize>,
}

/// A model that the other engine runs.
pub struct EngineModel<M: ?Sized> {
    /// The model.
    pub model: Box<M>,
    /// The traits of the model.
    pub traits: ModelTraits,
}

/// A model for one text at a time.
pub type OtherModel = EngineModel<dyn Model<Error = ModelError>>;

/// A model for several texts at once.
pub type OtherBatch = EngineModel<dyn BatchModel<Error = ModelError>>;

/// Traits of a model of the other engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTraits {
    /// Tokens that the model was made for.
    pub made_for: usize,
    /// The reason why nothing may be drafted, as a sentence without a full stop; `None`: drafts may be made.
    pub no_drafts: Option<String>,
}

impl<M: ?Sized> fmt::Debug for EngineModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineModel").field("traits", &self.traits).finish_non_exhaustive()
    }
}

/// The engine of this run.
static ENGINE: OnceLock<&'static dyn OtherEngine> = OnceLock::new();

/// Commands that run a model, and take the flags of the other engine.
const RUNNING: [&str; 4] = ["generate", "explain", "serve", "retokenize"];

/// Engines that other programs have, and these programs.
const ELSEWHERE: [(&str, &str); 2] = [("llama.cpp", "domino-llama-cpp"), ("mistralrs", "domino-mistralrs")];

/// Makes an engine that of this run, before anything is asked about it.
pub(crate) fn bring(engine: &'static dyn OtherEngine) {
    // There is one program in a process, and it brings one engine.
    let _ = ENGINE.set(engine);
}

/// The other engine of this program, if it has one.
pub(crate) fn other() -> Option<&'static dyn OtherEngine> {
    ENGINE.get().copied()
}

/// Returns the name of this program.
pub(crate) fn program() -> &'static str {
    other().map_or("domino", OtherEngine::program)
}

/// Adds the other engine's flags to the commands that run models, and gives the program its name.
pub(crate) fn with_flags(mut command: Command) -> Command {
    let Some(engine) = other() else { return command };
    for name in RUNNING {
        command = command.mut_subcommand(name, |running| engine.flags(running));
    }
    command.name(program()).bin_name(program())
}

/// Gives the other engine its flags.
pub(crate) fn take_flags(matches: &ArgMatches) -> Result<(), BadInput> {
    match (other(), matches.subcommand()) {
        (Some(engine), Some((name, matches))) if RUNNING.contains(&name) => engine.take(matches),
        _ => Ok(()),
    }
}

/// The value of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineName {
    /// Domino's own runner.
    Domino,
    /// The engine that this program has beside it.
    Other,
}

impl std::str::FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let here = other().map(OtherEngine::name);
        match ELSEWHERE.iter().find(|(name, _)| *name == text) {
            _ if text == "domino" => Ok(Self::Domino),
            _ if here == Some(text) => Ok(Self::Other),
            Some((name, program)) => Err(format!("{name} is the engine of another program, {program}")),
            None => Err(format!("the engines of this program: domino and {}", here.unwrap_or("no other"))),
        }
    }
}
