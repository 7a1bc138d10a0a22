//! Settings for a server's operators: flags about its bounds and its log ([`flags`]), and a file that may
//! hold any flag of `domino serve` ([`file`]).

#[cfg(feature = "serve")]
pub(crate) mod file;
pub(crate) mod flags;

use std::ffi::OsString;

use clap::Command;

use crate::terminal::failure::BadInput;

/// Adds the flags of its file to the command line, if it names one.
///
/// # Errors
/// If the file cannot be read or used.
#[cfg(feature = "serve")]
pub(crate) fn merge(command: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, BadInput> {
    file::merge(command, line)
}

/// Returns the command line unchanged: this build has no server, and says so whatever the file has.
#[cfg(not(feature = "serve"))]
pub(crate) fn merge(_: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, BadInput> {
    Ok(line)
}

/// Converts clap's error about the flags of a file to the program's own form.
pub(crate) fn of_file(error: &clap::Error) -> BadInput {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim();
    BadInput::new(format!("the file of --config: {first}"))
        .hint("a key is the name of a flag of `domino serve` and takes what that takes; see its --help")
}
