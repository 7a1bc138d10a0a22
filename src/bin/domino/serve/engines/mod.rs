//! Engines that write the texts: our own runner with many texts at once (`own`), and mistral.rs.
//!
//! The handlers know an engine by [`Engine`] alone: it gets the tokens of a prompt, the grammar of the text
//! and the options of drawing, and it gives tokens. Prompts, stop strings, forms of answers and limits are
//! the handlers' business.

pub(crate) mod args;

#[cfg(feature = "serve")]
pub(crate) mod client;
#[cfg(feature = "serve")]
pub(crate) mod engine;
#[cfg(feature = "serve")]
pub(crate) mod guessing;
#[cfg(feature = "serve")]
pub(crate) mod kept;
#[cfg(feature = "serve")]
pub(crate) mod kept_files;
#[cfg(feature = "serve")]
pub(crate) mod load;
#[cfg(all(feature = "serve", feature = "mistralrs"))]
mod mistralrs;
#[cfg(feature = "serve")]
mod own;
