//! Sources of texts: files and standard input.

use std::path::PathBuf;

use crate::terminal::failure::BadInput;

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
