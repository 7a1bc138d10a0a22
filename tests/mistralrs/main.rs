//! The plugin for mistral.rs, in its own engine with the shipped model, and the program with this engine.

/// Helpers that other tests have too.
mod support {
    #[path = "../../support/program.rs"]
    pub(crate) mod program;
}

mod cli;
mod engine;
mod experiment;
mod masks;
mod speculation;
