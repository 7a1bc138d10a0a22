//! `domino serve`: a model over HTTP, with grammars.
//!
//! `engine` loads the model into mistral.rs; `server` has the addresses, `handlers` the two that write text:
//! a body becomes a `request`, its grammar (`asked_grammar`, `schemas`) a compiled one (`named`, `registry`),
//! each of its texts a task (`writing`) that hears the engine's tokens (`recorder`), and what comes of them
//! an `answer`.
//!
//! Nobody is trusted who calls: `connections` bounds how long a request may take to come, `visitors` which
//! pages of the web may send it, `body` how large it is, `fields` what it may ask for, `gate` how many wait.
//! Of mistral.rs's own addresses only the list of models is served: the others read files, fetch addresses
//! and end the service.

pub(crate) mod args;

#[cfg(feature = "mistralrs")]
mod answer;
#[cfg(feature = "mistralrs")]
mod asked_grammar;
#[cfg(feature = "mistralrs")]
mod body;
#[cfg(feature = "mistralrs")]
mod connections;
#[cfg(feature = "mistralrs")]
mod engine;
#[cfg(feature = "mistralrs")]
mod fields;
#[cfg(feature = "mistralrs")]
mod gate;
#[cfg(feature = "mistralrs")]
mod guessing;
#[cfg(feature = "mistralrs")]
mod handlers;
#[cfg(feature = "mistralrs")]
mod health;
#[cfg(feature = "mistralrs")]
mod metrics;
#[cfg(feature = "mistralrs")]
mod named;
#[cfg(feature = "mistralrs")]
mod problem;
#[cfg(feature = "mistralrs")]
mod recorder;
#[cfg(feature = "mistralrs")]
mod registry;
#[cfg(feature = "mistralrs")]
mod request;
#[cfg(feature = "mistralrs")]
mod run;
#[cfg(feature = "mistralrs")]
mod schemas;
#[cfg(feature = "mistralrs")]
mod server;
#[cfg(feature = "mistralrs")]
mod shelf;
#[cfg(feature = "mistralrs")]
mod shown;
#[cfg(feature = "mistralrs")]
mod visitors;
#[cfg(feature = "mistralrs")]
mod writing;

#[cfg(feature = "mistralrs")]
pub(crate) use run::run;

/// Says that this build has no server.
#[cfg(not(feature = "mistralrs"))]
pub(crate) fn run(
    _command: &args::Serve,
    _cache: &domino::store::CacheFolder,
) -> anyhow::Result<crate::failure::Exit> {
    let hint = "build one that has: cargo build --release --features mistralrs (500 crates more)";
    Err(crate::failure::BadInput::new("this build of domino has no server").hint(hint).into())
}
