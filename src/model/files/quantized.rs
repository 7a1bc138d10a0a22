//! Quantisation of float matrices to ggml's blocks, while a model is loaded.
//!
//! Candle makes the blocks. Matrices that are quantised already stay as they are, and so do vectors.

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};
use rayon::prelude::*;

use super::weights::{self, Weights};
use crate::model::{error::ModelError, formats::format::Format};

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
        let values = weights::floats(format, stored).unwrap_or_default();
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
