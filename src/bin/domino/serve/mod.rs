//! `domino serve`: a model over HTTP, with grammars.
//!
//! `engines` load the model and write the texts: our own runner, or mistral.rs. `addresses` has what can be
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

#[cfg(feature = "serve")]
mod access;
#[cfg(feature = "serve")]
mod addresses;
#[cfg(feature = "serve")]
mod answers;
#[cfg(feature = "serve")]
mod asked;
#[cfg(feature = "serve")]
mod bounds;
#[cfg(feature = "serve")]
mod connections;
#[cfg(feature = "serve")]
mod engines;
#[cfg(feature = "serve")]
mod grammars;
#[cfg(feature = "serve")]
mod memory;
#[cfg(feature = "serve")]
mod observe;
#[cfg(feature = "serve")]
mod problem;
#[cfg(feature = "serve")]
mod prompts;
#[cfg(feature = "serve")]
mod run;
#[cfg(feature = "serve")]
mod server;
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
