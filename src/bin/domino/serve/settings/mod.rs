//! Settings of those who run a server: flags about its bounds and its log ([`flags`]), and a file that has
//! all flags ([`file`]).

#[cfg(feature = "serve")]
pub(crate) mod file;
pub(crate) mod flags;

use std::ffi::OsString;

use clap::Command;

use crate::failure::BadInput;

/// The command line with the flags of its file, if it names one.
///
/// # Errors
/// If the file cannot be read or used.
#[cfg(feature = "serve")]
pub(crate) fn merge(command: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, BadInput> {
    file::merge(command, line)
}

/// The command line as it is: this build has no server, and says so whatever the file has.
#[cfg(not(feature = "serve"))]
pub(crate) fn merge(_: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, BadInput> {
    Ok(line)
}

/// What is wrong with the flags of a file, as clap says it.
pub(crate) fn of_file(error: &clap::Error) -> BadInput {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim();
    BadInput::new(format!("the file of --config: {first}"))
        .hint("a key is the name of a flag of `domino serve` and takes what that takes; see its --help")
}
