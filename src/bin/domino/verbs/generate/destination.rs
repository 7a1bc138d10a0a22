//! The destination of a text: standard output as it comes, or the file of `--out` when it is whole.

use std::{io::Write, path::Path};

use serde_json::Value;

use crate::{files::Output, terminal, terminal::failure::BadInput};

/// Standard output, or a file.
pub(super) struct Destination<'a>(Option<Output<'a>>);

impl<'a> Destination<'a> {
    /// Takes the file of `--out`, if there is one. A file that cannot be written is refused before any work.
    pub(super) fn of(file: Option<&'a Path>) -> Result<Self, BadInput> {
        file.map(Output::prepare).transpose().map(Self)
    }

    /// True for a file.
    pub(super) fn is_file(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a whole text to the file; standard output has it already.
    pub(super) fn text(&self, text: &[u8]) -> anyhow::Result<()> {
        self.0.as_ref().map_or(Ok(()), |file| file.write(text))
    }

    /// Writes an object.
    pub(super) fn object(&self, object: &Value) -> anyhow::Result<()> {
        match &self.0 {
            Some(file) => file.write(format!("{object}\n").as_bytes()),
            None => Ok(writeln!(terminal::stdout(), "{object}")?),
        }
    }
}
