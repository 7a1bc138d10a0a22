//! The terminal: what people see and type, standard output and error, Ctrl-C. It knows of no command.
//!
//! Right here are standard output with errors that say what could not be written, fields of printed objects,
//! and numbers: in words, and on the command line.

pub(crate) mod describe;
pub(crate) mod failure;
pub(crate) mod log;
pub(crate) mod progress;

use std::io::{self, IsTerminal, StdoutLock, Write};
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use serde_json::Value;

/// Standard output, locked.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Locks standard output.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Stdout {
    /// True if a person reads it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// Adds the name of standard output to an error, whose kind stays.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// Adds the fields of an object of JSON to another one.
pub(crate) fn extend(object: &mut Value, fields: impl Into<Value>) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields.into()) {
        object.extend(fields);
    }
}

/// True if `words`, which one space parts, have this word.
pub(crate) fn lists(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Writes a count of things of this name in English: "1 token", "2 tokens", "2 guesses".
pub(crate) fn count(number: impl ToString, name: &str) -> String {
    let number = number.to_string();
    let ending = match &*number {
        "1" => "",
        _ if name.ends_with(['s', 'x']) => "es",
        _ => "s",
    };
    format!("{number} {name}{ending}")
}

/// Makes all options of all commands take numbers below zero as values; each option checks them itself.
pub(crate) fn numbers_may_be_negative(command: Command) -> Command {
    let option = |arg: Arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    };
    command.mut_args(option).mut_subcommands(numbers_may_be_negative)
}

/// Rewords errors about numbers: a number that must be above 0 is refused for being 0, and one below zero for
/// being negative, instead of for a wrong digit.
pub(crate) fn explain_numbers(error: Error, command: &mut Command) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), text(ContextKind::InvalidArg), text(ContextKind::InvalidValue)) {
        (ErrorKind::ValueValidation, Some(option), Some(value)) if is_negative(value) => {
            let message = format!("invalid value '{value}' for '{option}': it must not be below zero");
            command.error(ErrorKind::ValueValidation, message)
        }
        (ErrorKind::ValueValidation, Some(option), Some(value)) if refuses_zero(&error) => {
            let flag = option.split(' ').next().unwrap_or_default();
            let leave = match flag {
                "--threads" => " (leave it out for as many threads as there are cores)",
                _ => "",
            };
            let message = format!("invalid value '{value}' for '{option}': it must be at least 1{leave}");
            command.error(ErrorKind::ValueValidation, message)
        }
        _ => error,
    }
}

/// True for the error of the standard library's numbers that are not 0.
fn refuses_zero(error: &Error) -> bool {
    let number = std::error::Error::source(error).and_then(|source| source.downcast_ref::<ParseIntError>());
    number.is_some_and(|error| *error.kind() == IntErrorKind::Zero)
}

/// True for a whole number below zero.
fn is_negative(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
