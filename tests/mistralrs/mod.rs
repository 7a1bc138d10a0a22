//! The plugin for mistral.rs, in its own engine with the shipped model.

#[cfg(feature = "cli")]
mod cli;
mod engine;
#[cfg(feature = "cli")]
mod experiment;
mod masks;
mod speculation;
