//! Errors of experiments, with advice.

use std::{io, path::PathBuf};

use crate::{
    CompileError,
    chat::ChatError,
    decode::{BuildError, DecodeError, DraftModelError},
    grammar::GrammarError,
    proposer::PriorError,
    vocab::VocabularyError,
};

/// A failed experiment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The definition cannot be used.
    #[error("{place}: {message}")]
    Definition {
        /// The file, with line and column where that is known.
        place: String,
        /// A description of the error.
        message: String,
        /// Advice.
        hint: Option<String>,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of a folder of records is damaged.
    #[error("{}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        message: String,
    },
    /// The records of a folder are of another experiment.
    #[error("{} has records of another experiment: {}", path.display(), differences.join("; "))]
    Differs {
        /// The folder.
        path: PathBuf,
        /// The differences, in words.
        differences: Vec<String>,
    },
    /// Another process writes to the folder.
    #[error("another run writes to {}", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Folders cannot be merged.
    #[error("cannot merge: {0}")]
    Merge(String),
    /// A figure cannot be drawn.
    #[error("the figure {title:?} cannot be drawn: {message}")]
    Figure {
        /// The figure's title.
        title: String,
        /// The cause.
        message: String,
    },
    /// A grammar cannot be read.
    #[error("grammar {name}: {source}")]
    Grammar {
        /// The grammar's name in the definition.
        name: String,
        /// The cause.
        source: GrammarError,
    },
    /// A grammar cannot be compiled.
    #[error("grammar {name}: {source}")]
    Compile {
        /// The grammar's name in the definition.
        name: String,
        /// The cause.
        source: CompileError,
    },
    /// A model or its tokenizer cannot be used.
    #[error("model {name}: {message}")]
    Model {
        /// The model's name in the definition.
        name: String,
        /// The cause.
        message: String,
    },
    /// Prompts are to be put into a chat template, and the model has none.
    #[error("model {model} has no chat template, and the definition says `chat`")]
    NoTemplate {
        /// The model's name in the definition.
        model: String,
    },
    /// A prompt cannot be put into the model's chat template.
    #[error("model {model}: {source}")]
    Template {
        /// The model's name in the definition.
        model: String,
        /// The reason.
        source: ChatError,
    },
    /// A method of another engine, in a program that has none.
    #[error("this program does not have llguidance")]
    NoPeer,
    /// A method of an engine that runs the model itself, in a program that has none.
    #[error("this program does not have mistral.rs, which the method {0} is of")]
    NoHost(String),
    /// A method of a program, where no programs are started.
    #[error("no programs are started here, and the method {0} is one")]
    NoPrograms(String),
    /// A program of the definition does not do its work.
    #[error("program {name}: {source}")]
    Program {
        /// The program's name in the definition.
        name: String,
        /// The cause.
        source: PeerError,
    },
    /// Another engine cannot compile a grammar.
    #[error("grammar {name}, by the other engine: {source}")]
    Peer {
        /// The grammar's name in the definition.
        name: String,
        /// The cause.
        source: PeerError,
    },
    /// The draft model has other tokens than a model.
    #[error("draft model {name}: {source}")]
    DraftModel {
        /// The model's name in the definition.
        name: String,
        /// The difference.
        source: DraftModelError,
    },
    /// A prior that comes with a model cannot be used.
    #[error("{}: {source}", path.display())]
    Prior {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: PriorError,
    },
    /// A prompt or a text has no tokens.
    #[error("a text cannot be turned into tokens: {0}")]
    Tokens(#[from] VocabularyError),
    /// The parts of a decoder do not belong together.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A run failed.
    #[error("{run}: {source}")]
    Run {
        /// The run's key.
        run: String,
        /// The cause.
        source: DecodeError,
    },
}

/// The error message of another engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PeerError(pub String);

impl ExperimentError {
    /// Creates an error about a definition.
    pub(super) fn definition(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Definition { place: place.into(), message: message.into(), hint: None }
    }

    /// Adds a hint, if the error is about a definition.
    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Definition { place, message, .. } => {
                Self::Definition { place, message, hint: Some(hint.into()) }
            }
            other => other,
        }
    }

    /// Creates the error of a file that could not be read or written.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.into(), source }
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Definition { hint, .. } => return hint.clone(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "the disk is full: make room and run the same command again, it goes on where it was"
            }
            // Grammars' errors end with their hints.
            Self::Io { .. }
            | Self::Build(_)
            | Self::Tokens(_)
            | Self::Figure { .. }
            | Self::Grammar { .. }
            | Self::Compile { .. } => {
                return None;
            }
            Self::Damaged { .. } => "give another folder, or repair the file",
            Self::Differs { .. } => "give another folder with --out: records of two experiments do not mix",
            Self::Locked { .. } => "wait for it to end, or give another folder with --out",
            Self::Merge(_) => "merge the folders of all shards of one definition, commit and model",
            Self::Model { .. } => "name a model's folder, a GGUF file, or OWNER/NAME on the Hugging Face hub",
            Self::NoTemplate { .. } => {
                "leave `chat` out, and prompts stay as they are; or name a model that was tuned for chats"
            }
            Self::Template { .. } => "leave `chat` or `system` out, or name another model",
            Self::NoPeer => {
                "run the definition by `cargo experiment methods --features peers`, or leave the method out"
            }
            Self::NoHost(_) => {
                "run the definition by `cargo run --release -p domino-mistralrs --features experiments -- \
                 experiment`, or leave the method out"
            }
            Self::NoPrograms(_) => "run the definition by `domino experiment`, or leave the method out",
            Self::Program { .. } => {
                "it must answer each line by a line of JSON; docs/speculation-reference.md has their keys"
            }
            Self::Peer { .. } => "give the grammar in Lark, as a JSON Schema or as a regular expression",
            Self::DraftModel { source, .. } => source.hint(),
            Self::Prior { source, .. } => source.hint(),
            Self::Run { .. } => "run the same command again: it goes on with this run",
        };
        Some(hint.to_owned())
    }

    /// Is the input at fault, not the work?
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Io { action, .. } => matches!(*action, "read" | "start"),
            Self::Run { .. } | Self::Figure { .. } => false,
            _ => true,
        }
    }
}
