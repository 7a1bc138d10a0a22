//! The plugin for mistral.rs, in its own engine with the shipped model, and the program with this engine.

mod cli;
mod engine;
mod experiment;
mod masks;
// The program as a shell runs it, as other tests have it.
#[path = "../support/program.rs"]
mod program;
mod speculation;
