//! The `domino` program: text that a grammar allows, from a language model.
//!
//! One file a command; all of them see only the library's public API. [`args`] turns flags into resolved
//! commands, [`failure`] owns exit codes and error messages.

mod args;
mod batch;
mod check;
mod compile;
mod describe;
mod failure;
mod generate;
mod grammars;
mod inspect;
mod interrupt;
mod mask;
mod model;
mod notation;
mod output;
mod progress;
mod trace;

use std::{io, process::ExitCode};

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::{
    args::{Command, LowArgs},
    failure::{Exit, Paint},
};

fn main() -> ExitCode {
    let args = LowArgs::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .with_ansi(Paint::for_stderr().is_on())
        .init();
    interrupt::install();
    let json = args.json();
    match args.resolve().map_err(Into::into).and_then(|command| run(&command)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => failure::report(&error, json),
    }
}

fn run(command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::Generate(command) => generate::run(command),
        Command::Check(command) => check::run(command),
        Command::Batch(command) => batch::run(command),
        Command::Mask(command) => mask::run(command),
        Command::Compile(command) => compile::run(command),
        Command::Inspect(command) => inspect::run(command),
        Command::Grammars(command) => grammars::run(command),
        Command::Trace(command) => trace::run(command),
    }
}
