//! Reads the numbers and strings of a file's head, and never past its end.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use super::error::{GgufError, GgufErrorKind};
use crate::ids::as_u64;

/// A fault of a head.
#[derive(Debug)]
pub(super) enum HeadFault {
    /// The file does not begin like a GGUF file.
    NotGguf,
    /// The file ends, or would have to be longer than it is.
    Short,
    /// A tensor of this name would lie past the end.
    Cut(String),
    /// Another fault, described in words.
    Other(String),
    /// Reading failed.
    Io(std::io::Error),
}

impl HeadFault {
    /// Converts the fault to an error about a file of `length` bytes.
    pub(super) fn in_file(self, file: &Path, length: u64) -> GgufError {
        let damaged = |reason: String| GgufError::new(GgufErrorKind::Damaged, file, reason);
        match self {
            Self::NotGguf => damaged("not a GGUF file".into()),
            Self::Short => damaged(format!("cut short or damaged: {length} bytes do not hold what it says")),
            Self::Cut(name) => damaged(format!("cut short or damaged: tensor {name} lies past its end")),
            Self::Other(reason) => damaged(reason),
            Self::Io(error) => GgufError::io(file, error),
        }
    }
}

/// A position in a file.
#[derive(Debug)]
pub(super) struct HeadReader {
    input: BufReader<File>,
    position: u64,
    length: u64,
}

impl HeadReader {
    /// Creates a reader at the start of a file of `length` bytes.
    pub(super) fn new(input: BufReader<File>, length: u64) -> Self {
        Self { input, position: 0, length }
    }

    /// Number of bytes read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Length of the file in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Reads the next `N` bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], HeadFault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), HeadFault> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => HeadFault::Short,
            _ => HeadFault::Io(error),
        })?;
        self.position = self.position.saturating_add(as_u64(bytes.len()));
        Ok(())
    }

    pub(super) fn u32(&mut self) -> Result<u32, HeadFault> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, HeadFault> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Reads a count of items that take at least `least` bytes each.
    pub(super) fn count(&mut self, least: u64) -> Result<usize, HeadFault> {
        let count = self.u64()?;
        let fits =
            count.checked_mul(least).is_some_and(|bytes| bytes <= self.length.saturating_sub(self.position));
        if fits { usize::try_from(count).map_err(|_| HeadFault::Short) } else { Err(HeadFault::Short) }
    }

    /// Reads a string with its length. Bytes that are not UTF-8 become U+FFFD.
    pub(super) fn string(&mut self) -> Result<String, HeadFault> {
        let mut bytes = vec![0; self.count(1)?];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}
