//! The plugin for mistral.rs, in its own engine with the shipped model.

#[cfg(all(feature = "cli", feature = "mistralrs-speculation"))]
mod cli;
mod engine;
#[cfg(all(feature = "cli", feature = "mistralrs-speculation"))]
mod experiment;
mod masks;
#[cfg(feature = "mistralrs-speculation")]
mod speculation;
