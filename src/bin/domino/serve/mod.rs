//! `domino serve`: a model over HTTP, with grammars.
//!
//! `engines` load the model and write the texts: our own runner, or one of another program, which is ordered
//! single texts from by `generate` too. `addresses` has what can be
//! asked for: a body becomes what is `asked`, its grammar a compiled one (`grammars`), its `prompts` tokens,
//! each of its texts a task (`writing`) that hears the engine's tokens, and what comes of them one of the
//! `answers`. `server` is what all requests share, and `run` makes and ends it.
//!
//! Nobody is trusted who calls: `connections` bounds how many there are and how large and slow the head of a
//! request is, `access` says who may send it, `bounds` how large and slow its body is and how many texts
//! wait. Grammars are compiled and long prompts read in `work`, in fair turns. A refusal is a `problem`.
//! `settings` has the flags of those who run it, `observe` what they see.

pub(crate) mod args;
pub(crate) mod settings;

mod access;
mod addresses;
mod answers;
mod asked;
mod bounds;
mod connections;
mod engines;
mod grammars;
mod memory;
mod observe;
mod problem;
mod prompts;
mod run;
mod server;
mod work;
mod writing;

pub use args::DraftSize;
pub use bounds::Pulse;
pub use engines::texts::{Loading, TextEngine, TextModel, WantedTexts};
pub use engines::{Book, Client, Engine, EngineEvent, GrammarGuesses, TextOrder, WrittenToken};
pub use problem::Problem;

pub(crate) use bounds::Gate;
pub(crate) use engines::texts::{PATIENCE, bring, other};
pub(crate) use run::run;
pub(crate) use writing::patiently;
