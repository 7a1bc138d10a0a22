//! The `domino` program: text that a grammar allows, from a language model.
//!
//! One file a command; all of them see only the library's public API. [`args`] turns flags into resolved
//! commands, [`failure`] owns exit codes and error messages.

mod advice;
mod args;
mod batch;
mod bench_model;
mod cache;
mod check;
mod compile;
mod describe;
mod failure;
mod generate;
mod grammars;
mod inspect;
mod interrupt;
mod learn;
mod log;
mod mask;
mod model;
mod notation;
mod output;
mod progress;
mod runner;
mod schema;
mod serve;
mod speculate;
mod tokenizer;
mod trace;

use std::process::ExitCode;

use clap::Parser;
use domino::store::CacheFolder;

use crate::{
    args::{Command, LowArgs},
    failure::Exit,
};

fn main() -> ExitCode {
    let args = LowArgs::parse();
    log::install();
    interrupt::install();
    let json = args.json();
    let cache = args.cache();
    match args.resolve().map_err(Into::into).and_then(|command| run(&command, &cache)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => failure::report(&error, json),
    }
}

fn run(command: &Command, cache: &CacheFolder) -> anyhow::Result<Exit> {
    match command {
        Command::Generate(command) => generate::run(command, cache),
        Command::Learn(command) => learn::run(command, cache),
        Command::Serve(command) => serve::run(command, cache),
        Command::Check(command) => check::run(command),
        Command::Batch(command) => batch::run(command),
        Command::Mask(command) => mask::run(command, cache),
        Command::Compile(command) => compile::run(command, cache),
        Command::Inspect(command) => inspect::run(command, cache),
        Command::Grammars(command) => grammars::run(command),
        Command::Cache(command) => cache::run(command, cache),
        Command::BenchModel(command) => bench_model::run(command),
        Command::Trace(command) => trace::run(command),
    }
}
