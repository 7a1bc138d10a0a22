//! Output files that are written whole or not at all.

use std::{fs, io::Write, path::Path};

use anyhow::Context;
use domino::store::WholeFile;

use crate::terminal::failure::BadInput;

/// The place of a result.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    /// The path that the user gave.
    path: &'a Path,
    place: OutputPlace,
}

#[derive(Debug)]
enum OutputPlace {
    /// A regular file.
    File(WholeFile),
    /// A device or a pipe, which is written to directly and never replaced by a file.
    Device,
}

impl<'a> Output<'a> {
    /// Checks that the file can be made, before hours are spent on its content.
    pub(crate) fn prepare(path: &'a Path) -> Result<Self, BadInput> {
        let cannot = |error: &dyn std::fmt::Display| {
            BadInput::new(format!("cannot write {}: {error}", path.display()))
                .hint("the folder must be there, and files can be made in it")
        };
        if path.is_dir() {
            return Err(cannot(&"it is a folder"));
        }
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(Self { path, place: OutputPlace::Device });
        }
        // A symbolic link stays, and the file that it leads to is replaced.
        let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if file.file_name().is_none() {
            return Err(cannot(&"it names no file"));
        }
        let file = WholeFile::new(file);
        file.try_out().map_err(|error| cannot(&error))?;
        Ok(Self { path, place: OutputPlace::File(file) })
    }

    /// Writes the content beside its place, then renames it.
    pub(crate) fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        let written = match &self.place {
            OutputPlace::File(file) => file.write(content),
            OutputPlace::Device => fs::OpenOptions::new()
                .write(true)
                .open(self.path)
                .and_then(|mut device| device.write_all(content).and_then(|()| device.flush())),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}
