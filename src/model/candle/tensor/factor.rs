//! Matrices on a device, and their products: in floats, or in ggml's blocks as they are stored.
//!
//! A product with blocks reads 4.5 to 8.5 bits for each weight where floats are 16 or 32, and reading weights
//! is the cost of a pass over few tokens. Like llama.cpp's it rounds its inputs to eight bits.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Module, Result, Tensor};

use super::placement::Place;
use crate::model::cpu::{pages::Pages, products::matrix::read_matrix};
use crate::model::{candle::card, error::ModelError, files::weights::Weights};

/// A matrix of `outputs` rows of `inputs` weights: parts of one kind each, one below the other.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    parts: Vec<FactorPart>,
}

#[derive(Debug, Clone)]
enum FactorPart {
    /// `[outputs, inputs]`, in the numbers of the place.
    Floats(Tensor),
    Blocks(QMatMul),
}

/// `x` (rows `[n, inputs]`) times a matrix (`[outputs, inputs]`), plus a vector if there is one.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) factor: Factor,
    pub(super) bias: Option<Tensor>,
}

impl Factor {
    /// Loads the matrices of `parts` (name and rows, each row `inputs` long), one below the other, to
    /// `place`. Neighbours of one format become one part, so that a pass has few products.
    ///
    /// # Errors
    /// Those of the weights, and if the device has no room.
    pub(super) fn load(
        weights: &mut dyn Weights,
        parts: &[(impl AsRef<str>, usize)],
        inputs: usize,
        place: &Place,
    ) -> std::result::Result<Self, ModelError> {
        let kind = |(name, rows): &(_, usize)| -> std::result::Result<_, ModelError> {
            Ok(place.keeps_blocks(weights.format(AsRef::as_ref(name), &[*rows, inputs])?, inputs))
        };
        let kinds: Vec<Option<GgmlDType>> = parts.iter().map(kind).collect::<std::result::Result<_, _>>()?;
        let mut loaded = Vec::new();
        let mut rest = parts;
        for alike in kinds.chunk_by(PartialEq::eq) {
            let (own, after) = rest.split_at(alike.len());
            rest = after;
            loaded.push(match alike.first().copied().flatten() {
                None if place.makes => {
                    FactorPart::Floats(place.random_matrix(own.iter().map(|(_, rows)| rows).sum(), inputs)?)
                }
                None => FactorPart::Floats(place.matrix(&read_matrix(weights, own, inputs)?)?),
                Some(kind) => FactorPart::Blocks(blocks(weights, own, inputs, kind, place)?),
            });
        }
        Ok(Self { parts: loaded })
    }

    /// `x` (rows `[n, inputs]`) times the matrix: rows `[n, outputs]` in the numbers of `x`.
    pub(super) fn product(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.contiguous()?;
        let parts: Vec<Tensor> = self.parts.iter().map(|part| part.product(&x)).collect::<Result<_>>()?;
        match parts.as_slice() {
            [one] => Ok(one.clone()),
            parts => Tensor::cat(parts, 1),
        }
    }

    /// The whole matrix, if it is one part in floats.
    pub(super) fn floats(&self) -> Option<&Tensor> {
        match self.parts.as_slice() {
            [FactorPart::Floats(weights)] => Some(weights),
            _ => None,
        }
    }

    /// The weights of some outputs (`[n]`): rows `[n, inputs]` in `precision`. Only of a matrix of one part.
    pub(super) fn rows(&self, outputs: &Tensor, precision: DType) -> Result<Tensor> {
        match self.parts.as_slice() {
            [FactorPart::Floats(weights)] => weights.index_select(outputs, 0),
            [FactorPart::Blocks(weights)] => weights.embedding(outputs)?.to_dtype(precision),
            parts => candle_core::bail!("rows of {} parts", parts.len()),
        }
    }
}

impl FactorPart {
    fn product(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Floats(weights) => {
                multiplicable(x)?.matmul(&multiplicable(weights)?.t()?)?.to_dtype(x.dtype())
            }
            // On the CPU Candle's quickest products with blocks are those of 32 bits.
            Self::Blocks(weights) => match x.device().is_cpu() {
                true => weights.forward(&x.to_dtype(DType::F32)?)?.to_dtype(x.dtype()),
                false => weights.forward(x),
            },
        }
    }
}

impl Product {
    /// Weights and bias, if the weights are one matrix in floats.
    pub(super) fn matrix(&self) -> Option<card::CardMatrix> {
        Some(card::CardMatrix { weights: self.factor.floats()?.clone(), bias: self.bias.clone() })
    }

    /// Rows `[n, inputs]` -> rows `[n, outputs]`.
    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let product = self.factor.product(x)?;
        match &self.bias {
            Some(bias) => product.broadcast_add(bias),
            None => Ok(product),
        }
    }
}

/// Matrices of one kind of blocks, one below the other.
fn blocks(
    weights: &mut dyn Weights,
    parts: &[(impl AsRef<str>, usize)],
    inputs: usize,
    kind: GgmlDType,
    place: &Place,
) -> std::result::Result<QMatMul, ModelError> {
    place.check_blocks()?;
    let rows: usize = parts.iter().map(|(_, rows)| rows).sum();
    // Candle reads the bytes as blocks, whose halves must be aligned.
    let mut stored = Pages::default();
    stored.reserve(rows.saturating_mul(inputs / kind.block_size()).saturating_mul(kind.type_size()));
    for (name, rows) in parts {
        weights.read(name.as_ref(), &[*rows, inputs], &mut |_format, bytes| {
            let start = stored.bytes().len();
            stored.grow(start + bytes.len());
            stored.bytes_mut()[start..].copy_from_slice(bytes);
        })?;
    }
    let storage = QStorage::from_data(stored.bytes().into(), &place.device, kind)?;
    Ok(QMatMul::QTensor(Arc::new(QTensor::new(storage, (rows, inputs))?)))
}

/// The same numbers, in a format of which the device has products: for bf16 there are none on the CPU.
pub(super) fn multiplicable(x: &Tensor) -> Result<Tensor> {
    let widened = x.dtype() == DType::BF16 && x.device().is_cpu();
    x.to_dtype(if widened { DType::F32 } else { x.dtype() })
}

#[cfg(test)]
mod tests;
