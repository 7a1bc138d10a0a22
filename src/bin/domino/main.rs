//! The `domino` program: text that a grammar allows, from a language model.
//!
//! One file a command; all of them see only the library's public API. [`args`] turns flags into resolved
//! commands, [`failure`] owns exit codes and error messages.

mod advice;
mod allocator;
mod args;
mod batch;
mod bench_model;
mod budgets;
mod cache;
mod captures;
mod chat;
mod check;
mod compile;
mod describe;
mod draft_model;
mod excerpt;
mod expected;
#[cfg(feature = "experiments")]
mod experiment;
#[cfg(not(feature = "experiments"))]
#[path = "experiment/absent.rs"]
mod experiment;
mod explain;
mod facts;
mod failure;
mod files;
mod generate;
mod grammars;
mod help;
mod input;
mod inspect;
mod interrupt;
mod keywords;
mod learn;
mod lines;
mod log;
mod looks;
mod mask;
mod model;
mod notation;
mod numbers;
mod output;
mod progress;
mod proposer;
mod reach;
mod reading;
mod retokenize;
mod rows;
mod runner;
mod schema;
mod serve;
mod shell;
mod speculate;
mod stdout;
mod tokenizer;
mod tools;
mod trace;
mod warned;

use std::{io::Write, process::ExitCode};

use domino::store::CacheFolder;

use crate::{
    args::{Command, LowArgs},
    failure::Exit,
};

fn main() -> ExitCode {
    allocator::keep_memory();
    let args = match LowArgs::from_command_line() {
        Ok(args) => args,
        Err(error) => {
            let json = std::env::args_os().any(|word| word == "--json");
            return failure::report(&error.into(), json, Exit::Failure);
        }
    };
    failure::be_quiet(args.quiet());
    log::install(args.log());
    if !args.takes_signals() {
        interrupt::install();
    }
    let json = args.json();
    let cache = args.cache();
    let failure = args.failure();
    let command = args.install_budgets().and_then(|()| args.resolve());
    let ended = command.map_err(Into::into).and_then(|command| run(&command, &cache));
    // The buffer of standard output is written now, since an error would be lost when the program ends.
    match ended.and_then(|exit| Ok(stdout::lock().flush().map(|()| exit)?)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => failure::report(&error, json, failure),
    }
}

fn run(command: &Command, cache: &CacheFolder) -> anyhow::Result<Exit> {
    match command {
        Command::Generate(command) => generate::run(command, cache),
        Command::Explain(command) => explain::run(command, cache),
        Command::Learn(command) => learn::run(command, cache),
        Command::Serve(command) => serve::run(command, cache),
        Command::Check(command) => check::run(command),
        Command::Batch(command) => batch::run(command),
        Command::Mask(command) => mask::run(command, cache),
        Command::Compile(command) => compile::run(command, cache),
        Command::Inspect(command) => inspect::run(command, cache),
        Command::Grammars(command) => grammars::run(command),
        Command::Cache(command) => cache::run(command, cache),
        Command::Model(command) => facts::run(command, cache),
        Command::BenchModel(command) => bench_model::run(command),
        Command::Retokenize(command) => retokenize::run(command, cache),
        Command::Trace(command) => trace::run(command),
        Command::Experiment(command) => experiment::run(command, cache),
        Command::Completions(command) => shell::completions::run(command, LowArgs::arranged()),
        Command::Man(command) => shell::man::run(command, LowArgs::arranged()),
    }
}
