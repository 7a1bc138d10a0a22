//! Writes a text to standard output as it comes, or to the file of `--out` when it is whole.

use std::{io::Write, path::Path};

use serde_json::Value;

use crate::{failure::BadInput, output::Output, stdout};

/// Standard output, or a file.
pub(super) struct Destination<'a>(Option<Output<'a>>);

impl<'a> Destination<'a> {
    /// Takes the file of `--out`, if there is one. A file that cannot be written is told of before any work.
    pub(super) fn of(file: Option<&'a Path>) -> Result<Self, BadInput> {
        file.map(Output::prepare).transpose().map(Self)
    }

    /// Is it a file?
    pub(super) fn is_file(&self) -> bool {
        self.0.is_some()
    }

    /// Puts a text there that was shown as it came, if it was shown.
    pub(super) fn text(&self, text: &[u8]) -> anyhow::Result<()> {
        self.0.as_ref().map_or(Ok(()), |file| file.write(text))
    }

    /// Puts an object there.
    pub(super) fn object(&self, object: &Value) -> anyhow::Result<()> {
        match &self.0 {
            Some(file) => file.write(format!("{object}\n").as_bytes()),
            None => Ok(writeln!(stdout::lock(), "{object}")?),
        }
    }
}
