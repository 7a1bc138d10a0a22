//! The trait of a source of tensors: what the file formats have in common.

use std::{
    fs::File,
    io::{ErrorKind, Read, Seek, SeekFrom},
    path::Path,
};

use half::{bf16, f16};

use crate::model::{
    error::{ModelError, ModelErrorKind, file_error},
    formats::format::Format,
};

/// Tensors by the names that Hugging Face gives them, such as `model.norm.weight`.
pub(crate) trait Weights {
    /// The number format of a tensor of this shape. Reads nothing.
    ///
    /// # Errors
    /// If there is no such tensor, or it has another shape or an unknown number format.
    fn format(&self, name: &str, shape: &[usize]) -> Result<Format, ModelError>;

    /// Calls `each` with the rows of a tensor of this shape, some at a time, in order.
    ///
    /// # Errors
    /// Those of [`format`](Self::format), or if the tensor cannot be read.
    fn read(
        &mut self,
        name: &str,
        shape: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError>;

    /// Reads a vector of `length` numbers.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError>;
}

/// Rows read at a time.
const BLOCK_ROWS: usize = 64;

/// Calls `each` with rows `0..rows` of `row_bytes` bytes each, which lie in `file` from `start` on: some at a
/// time, always a multiple of `together` rows.
///
/// Files are read, not memory-mapped: each weight is rearranged once anyway, and a file that changes while it
/// is read can then give a wrong number or an error, but no undefined behaviour.
///
/// # Errors
/// If the file cannot be read or ends too early; the error names `tensor`.
pub(crate) fn read_rows(
    (path, file): (&Path, &mut File),
    tensor: &str,
    start: u64,
    [rows, row_bytes, together]: [usize; 3],
    mut each: impl FnMut(&mut [u8]),
) -> Result<(), ModelError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => ModelErrorKind::DamagedWeights {
            file: path.to_owned(),
            reason: format!("the file ends inside tensor {tensor}"),
        }
        .into(),
        _ => crate::model::error::file_error(path, error),
    };
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let step = BLOCK_ROWS.next_multiple_of(together.max(1));
    let mut bytes = Vec::new();
    for first in (0..rows).step_by(step) {
        bytes.resize(step.min(rows - first) * row_bytes, 0);
        file.read_exact(&mut bytes).map_err(failed)?;
        each(&mut bytes);
    }
    Ok(())
}

/// Converts a vector that is stored as floats; `None` if it is quantised.
pub(crate) fn floats(format: Format, stored: &[u8]) -> Option<Vec<f32>> {
    match format {
        Format::F32 => Some(stored.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
        Format::F16 => {
            Some(stored.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect())
        }
        Format::Bf16 => {
            Some(stored.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect())
        }
        _ => None,
    }
}

/// Reads the text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|error| file_error(path, error))
}
