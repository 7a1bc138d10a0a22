//! The program `domino-mistralrs`: all commands of `domino`, with mistral.rs as the engine that runs models.

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    domino_cli::main_with_texts(&program::MISTRAL_RS)
}
