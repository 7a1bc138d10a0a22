//! A file that is there whole or not at all.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::failure::BadInput;

/// Where a result will go.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    path: &'a Path,
    /// Beside it, so that renaming does not copy.
    temporary: PathBuf,
}

impl<'a> Output<'a> {
    /// Checks that a file can be made there, before hours are spent on what goes into it.
    pub(crate) fn prepare(path: &'a Path) -> Result<Self, BadInput> {
        let cannot = |error: &dyn std::fmt::Display| {
            BadInput::new(format!("cannot write {}: {error}", path.display()))
                .hint("the folder must be there, and files can be made in it")
        };
        if path.is_dir() {
            return Err(cannot(&"it is a folder"));
        }
        let mut name = path.file_name().map(OsString::from).ok_or_else(|| cannot(&"it names no file"))?;
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        fs::write(&temporary, b"")
            .and_then(|()| fs::remove_file(&temporary))
            .map_err(|error| cannot(&error))?;
        Ok(Self { path, temporary })
    }

    /// Writes it beside its place, then puts it there.
    pub(crate) fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        let written = self.attempt(content);
        if written.is_err() {
            // What is left of it is of no use; the error that matters is the first.
            let _ = fs::remove_file(&self.temporary);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn attempt(&self, content: &[u8]) -> io::Result<()> {
        fs::write(&self.temporary, content)?;
        fs::rename(&self.temporary, self.path)
    }
}
