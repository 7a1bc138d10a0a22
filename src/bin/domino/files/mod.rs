//! Files as people save them: in UTF-8, with or without a byte order mark. Beside that the places that texts
//! come from and go to: files and standard input, and output files that are written whole or not at all.

pub(crate) mod lines;

use std::path::{Path, PathBuf};
use std::{fs, io::Write};

use anyhow::Context;
use domino::store::WholeFile;

use crate::terminal::failure::BadInput;

/// Reads the bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, BadInput> {
    std::fs::read(path).map_err(|error| BadInput::new(format!("cannot read {}: {error}", path.display())))
}

/// Reads the text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, BadInput> {
    text(read(path)?, &path.display().to_string())
}

/// Reads bytes called `name` as UTF-8, and drops a byte order mark.
pub(crate) fn text(bytes: Vec<u8>, name: &str) -> Result<String, BadInput> {
    let is_utf_16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let error = BadInput::new(format!("{name}: the text is not UTF-8: {error}"));
        if is_utf_16 {
            error.hint("it is UTF-16, as shells of Windows write it: save it as UTF-8")
        } else {
            error
        }
    })?;
    if text.starts_with('\u{FEFF}') {
        text.drain(..'\u{FEFF}'.len_utf8());
    }
    Ok(text)
}

/// A source of bytes.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    Stdin,
    File(PathBuf),
}

impl Input {
    /// Takes a path on the command line as an input; `-` is standard input.
    pub(crate) fn new(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path) }
    }

    /// The name of the input in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Opens the input for reading.
    pub(crate) fn open(&self) -> Result<Box<dyn std::io::BufRead>, BadInput> {
        match self {
            Self::Stdin => Ok(Box::new(std::io::stdin().lock())),
            Self::File(path) => match std::fs::File::open(path) {
                Ok(file) => Ok(Box::new(std::io::BufReader::new(file))),
                Err(error) => Err(BadInput::new(format!("cannot read {}: {error}", path.display()))),
            },
        }
    }

    /// Reads all bytes of the input.
    pub(crate) fn read(&self) -> Result<Vec<u8>, BadInput> {
        let mut bytes = Vec::new();
        self.open()?
            .read_to_end(&mut bytes)
            .map_err(|error| BadInput::new(format!("cannot read {}: {error}", self.name())))?;
        Ok(bytes)
    }
}

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
