//! The plugin for mistral.rs, in its own engine with the shipped model, and the program with this engine.

/// Helpers that other tests have too.
#[path = "../support"]
mod support {
    pub(crate) mod program;
}

mod cli;
mod engine;
mod experiment;
mod masks;
mod speculation;
