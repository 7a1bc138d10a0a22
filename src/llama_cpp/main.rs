//! The program `domino-llama-cpp`: `domino`, with llama.cpp as the engine.

mod engine;

use std::process::ExitCode;

use crate::engine::LlamaCpp;

static ENGINE: LlamaCpp = LlamaCpp::new();

fn main() -> ExitCode {
    domino_cli::main_with(&ENGINE)
}
