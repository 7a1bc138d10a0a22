//! The plugin for mistral.rs, in its own engine with the shipped model.

mod cli;
mod engine;
mod experiment;
mod masks;
mod speculation;
