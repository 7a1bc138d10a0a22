//! The `domino` program: text that a grammar allows, from a language model.
//!
//! It sees only the library's public API. Rooms, each of which uses only those before it:
//!
//! * [`terminal`]: what people see and type; [`terminal::failure`] owns exit codes and error messages.
//! * [`files`]: where texts come from and go to.
//! * [`engine`]: the engine that another program brings along.
//! * [`grammar`]: sources of grammars, and what is said of them.
//! * [`session`]: models, prompts, drafts.
//! * [`flags`]: groups of flags that several commands share.
//! * [`rows`]: lines of JSON, for `--batch`.
//! * [`serve`]: a command in a folder of its own, and engines that write texts.
//! * [`verbs`]: the other commands, a file or a folder each.
//! * [`help`]: how help is arranged.
//! * [`cli`]: the command line, which resolves to the work of a command.

mod allocator;
mod cli;
pub mod engine;
mod files;
mod flags;
mod grammar;
mod help;
mod rows;
mod serve;
mod session;
mod terminal;
mod verbs;

use std::{io::Write, process::ExitCode};

use crate::cli::LowArgs;
use crate::engine::OtherEngine;
use crate::terminal::failure::{self, Exit};
use crate::terminal::{log, progress};
use crate::texts::TextEngine;

pub use crate::terminal::failure::BadInput;

/// The types of an engine that writes texts itself, which the server and `generate` order from it.
pub mod texts {
    pub use crate::serve::{
        Book, Client, DraftSize, Engine, EngineEvent, GrammarGuesses, Loading, Problem, Pulse, TextEngine,
        TextModel, TextOrder, WantedTexts, WrittenToken,
    };
    pub use crate::session::drafts::Learner;
}

/// Runs the program on its command line, with an engine beside its own runner, and returns its exit code.
#[must_use]
pub fn main_with(engine: &'static dyn OtherEngine) -> ExitCode {
    engine::bring(engine);
    main()
}

/// Runs the program on its command line, with an engine that writes texts itself, and returns its exit code.
#[must_use]
pub fn main_with_texts(engine: &'static dyn TextEngine) -> ExitCode {
    serve::bring(engine);
    main_with(engine)
}

/// Runs the program on its command line, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    allocator::keep_memory();
    let args = match LowArgs::from_command_line() {
        Ok(args) => args,
        Err(error) => {
            let json = std::env::args_os().any(|word| word == "--json");
            return failure::report(&error.into(), json, Exit::Failure);
        }
    };
    failure::be_quiet(args.quiet);
    log::install(args.log());
    if !args.takes_signals() {
        progress::catch_interrupts();
    }
    let (json, cache, failure) = (args.json, args.cache.resolve(), args.failure());
    let work = args.budgets.install().and_then(|()| args.resolve());
    let ended = work.map_err(Into::into).and_then(|work| work(&cache));
    // The buffer of standard output is written now, since an error would be lost when the program ends.
    match ended.and_then(|exit| Ok(terminal::stdout().flush().map(|()| exit)?)) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => failure::report(&error, json, failure),
    }
}
