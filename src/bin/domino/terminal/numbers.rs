//! Numbers on the command line. A number below zero is the value of the option before it, and not an unknown
//! option.

use std::num::{IntErrorKind, ParseIntError};

use clap::{
    Arg, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

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
pub(crate) fn may_be_negative(command: Command) -> Command {
    let option = |arg: Arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    };
    command.mut_args(option).mut_subcommands(may_be_negative)
}

/// Rewords errors about numbers: a number that must be above 0 is refused for being 0, and one below zero for
/// being negative, instead of for a wrong digit.
pub(crate) fn explained(error: Error, command: &mut Command) -> Error {
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
