//! `domino serve`: a model over HTTP, with grammars.
//!
//! `engines` load the model and write the texts: our own runner, or mistral.rs. `server` has the addresses,
//! `handlers` the two that write text: a body becomes a `request`, its grammar (`asked_grammar`,
//! `asked_tools`, `asked`, `schemas`) a compiled one (`named`, `registry`), its prompts tokens (`prompts`),
//! each of its texts a task (`writing`) that hears the engine's tokens, and what comes of them an `answer`,
//! with the functions that it calls (`tool_calls`) and what is to be told of its grammar (`told`).
//!
//! Nobody is trusted who calls: `connections` bounds how many there are and how long a request may take to
//! come, `visitors` which pages of the web may send it, `access` who, `bounds` how large and slow its body
//! is, `fields` and `drawing` what it may ask for, `gate` how many wait. Grammars are compiled and long
//! prompts read in `work`, in fair turns. `settings` has the flags of those who run it, `observe` what they
//! see.

pub(crate) mod args;
pub(crate) mod engines;
pub(crate) mod settings;

#[cfg(feature = "serve")]
mod access;
#[cfg(feature = "serve")]
mod answer;
#[cfg(feature = "serve")]
mod asked;
#[cfg(feature = "serve")]
mod asked_grammar;
#[cfg(feature = "serve")]
mod asked_prompts;
#[cfg(feature = "serve")]
mod asked_tools;
#[cfg(feature = "serve")]
mod body;
#[cfg(feature = "serve")]
mod bounds;
#[cfg(feature = "serve")]
mod connections;
#[cfg(feature = "serve")]
mod drawing;
#[cfg(feature = "serve")]
mod endpoint;
#[cfg(feature = "serve")]
mod fields;
#[cfg(feature = "serve")]
mod gate;
#[cfg(feature = "serve")]
mod handlers;
#[cfg(feature = "serve")]
mod health;
#[cfg(feature = "serve")]
mod memory;
#[cfg(feature = "serve")]
mod metrics;
#[cfg(feature = "serve")]
mod named;
#[cfg(feature = "serve")]
mod observe;
#[cfg(feature = "serve")]
mod problem;
#[cfg(feature = "serve")]
mod prompts;
#[cfg(feature = "serve")]
mod registry;
#[cfg(feature = "serve")]
mod request;
#[cfg(feature = "serve")]
mod run;
#[cfg(feature = "serve")]
mod schemas;
#[cfg(feature = "serve")]
mod server;
#[cfg(feature = "serve")]
mod shelf;
#[cfg(feature = "serve")]
mod shown;
#[cfg(feature = "serve")]
mod signals;
#[cfg(feature = "serve")]
mod told;
#[cfg(feature = "serve")]
mod tool_calls;
#[cfg(feature = "serve")]
mod visitors;
#[cfg(feature = "serve")]
mod work;
#[cfg(feature = "serve")]
mod writing;

#[cfg(feature = "serve")]
pub(crate) use run::run;

/// Says that this build has no server.
#[cfg(not(feature = "serve"))]
pub(crate) fn run(
    _command: &args::Serve,
    _cache: &domino::store::CacheFolder,
) -> anyhow::Result<crate::terminal::failure::Exit> {
    let hint = "build one that has: cargo build --release --features serve";
    Err(crate::terminal::failure::BadInput::new("this build of domino has no server").hint(hint).into())
}
