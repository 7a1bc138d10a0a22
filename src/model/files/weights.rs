//! The trait of a source of tensors: what the file formats have in common; and the quantisation of float
//! matrices to ggml's blocks, while a model is loaded.
//!
//! Candle makes the blocks. Matrices that are quantised already stay as they are, and so do vectors.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::{fs::File, path::Path};

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use half::{bf16, f16};
use rayon::prelude::*;

use crate::model::error::{ModelError, ModelErrorKind, file_error};
use crate::model::formats::Format;

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

/// True if a tensor of shape `found` can be read as the vector, or the only row, that is `expected`: it has
/// as many numbers.
pub(crate) fn is_vector(found: &[usize], expected: &[usize]) -> bool {
    let numbers = |shape: &[usize]| shape.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
    matches!(expected, [_] | [1, _]) && numbers(found) == numbers(expected)
}

/// The place of an expert's matrix among those of all: the name of a matrix, cut before and after the number
/// of the expert (`model.layers.0.mlp.experts.`, `gate_proj.weight`), and the number.
pub(crate) fn of_expert(name: &str) -> Option<(&str, usize, &str)> {
    let start = name.find(".experts.")? + ".experts.".len();
    let (number, part) = name[start..].split_once('.')?;
    Some((&name[..start], number.parse().ok()?, part))
}

/// The first row of an expert's matrix of shape `expected` in a tensor of shape `found` with those of all,
/// where gates and what they multiply may lie together; `None` if it does not lie there.
pub(crate) fn expert_rows(
    (_, expert, part): (&str, usize, &str),
    expected: &[usize],
    found: &[usize],
    is_fused: bool,
) -> Option<usize> {
    let (&[rows, columns], &[experts, all, own]) = (expected, found) else { return None };
    let each = if is_fused { rows.checked_mul(2)? } else { rows };
    let before = if is_fused && part.starts_with("up_") { rows } else { 0 };
    let first = expert.checked_mul(each)?.checked_add(before)?;
    (all == each && own == columns && expert < experts).then_some(first)
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

/// Rows that a thread takes at a time.
const ROWS: usize = 16;

/// Weights whose float matrices are quantised.
pub(crate) struct Quantized<'a> {
    weights: &'a mut dyn Weights,
    format: Format,
}

impl<'a> Quantized<'a> {
    /// Quantises to `format`, or to [`Format::Q8_0`] where rows are no whole blocks of it. Rows that are no
    /// whole blocks of that either stay floats.
    pub(crate) fn new(weights: &'a mut dyn Weights, format: Format) -> Self {
        Self { weights, format }
    }

    /// The format of a tensor that is stored in `stored`.
    fn target(&self, stored: Format, shape: &[usize]) -> Format {
        let &[_, columns] = shape else { return stored };
        let fits = |format: &Format| columns.is_multiple_of(format.block());
        let formats = [self.format, Format::Q8_0];
        if !self.format.is_quantised() {
            return stored;
        }
        formats.into_iter().find(fits).filter(|_| !stored.is_quantised()).unwrap_or(stored)
    }
}

impl Weights for Quantized<'_> {
    fn format(&self, name: &str, shape: &[usize]) -> Result<Format, ModelError> {
        Ok(self.target(self.weights.format(name, shape)?, shape))
    }

    fn read(
        &mut self,
        name: &str,
        shape: &[usize],
        each: &mut dyn FnMut(Format, &[u8]),
    ) -> Result<(), ModelError> {
        let stored = self.weights.format(name, shape)?;
        let target = self.target(stored, shape);
        let (Some(kind), &[_, columns]) = (ggml(target).filter(|_| target != stored), shape) else {
            return self.weights.read(name, shape, each);
        };
        let mut failed = None;
        self.weights.read(name, shape, &mut |format, rows| {
            if failed.is_none() {
                match blocks(kind, format, rows, columns) {
                    Ok(blocks) => blocks.iter().for_each(|blocks| each(target, blocks)),
                    Err(error) => failed = Some(error),
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
        self.weights.vector(name, length)
    }
}

/// Quantises rows of floats, some rows to each vector of bytes.
fn blocks(kind: GgmlDType, format: Format, rows: &[u8], columns: usize) -> Result<Vec<Vec<u8>>, ModelError> {
    let some = rows.par_chunks(ROWS * columns * format.block_bytes());
    some.map(|stored| {
        let values = floats(format, stored).unwrap_or_default();
        let shape = (values.len() / columns, columns);
        let blocks = QTensor::quantize(&Tensor::from_vec(values, shape, &Device::Cpu)?, kind)?;
        Ok(blocks.data()?.into_owned())
    })
    .collect()
}

/// Candle's name of a quantisation; `None` for floats.
pub(crate) fn ggml(format: Format) -> Option<GgmlDType> {
    Some(match format {
        Format::F32 | Format::F16 | Format::Bf16 => return None,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q4K => GgmlDType::Q4K,
        Format::Q5K => GgmlDType::Q5K,
        Format::Q6K => GgmlDType::Q6K,
    })
}
