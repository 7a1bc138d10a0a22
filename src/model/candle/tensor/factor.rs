//! Matrices on a device, and their products: in floats, or in ggml's blocks as they are stored.
//!
//! A product with blocks reads 4.5 to 8.5 bits for each weight where floats are 16 or 32, and reading weights
//! is the cost of a pass over few tokens. Like llama.cpp's it rounds its inputs to eight bits.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Module, Result, Tensor};

use super::placement::{Place, WeightForm};
use crate::model::candle::card::{CardMatrix, CardPart, append_rows, row_bytes};
use crate::model::cpu::{pages::Pages, products::matrix::read_matrix};
use crate::model::{error::ModelError, files::weights::Weights, formats::Format};

/// A matrix of `outputs` rows of `inputs` weights: parts of one kind each, one below the other.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    parts: Vec<FactorPart>,
}

#[derive(Debug, Clone)]
enum FactorPart {
    /// `[outputs, inputs]`, in the numbers of the place.
    Floats(Tensor),
    /// Blocks for Candle's products.
    Blocks(QMatMul),
    /// Blocks for the card's kernels alone.
    Card(CardPart),
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
        let form = |(name, rows): &(_, usize)| -> std::result::Result<_, ModelError> {
            Ok(place.form(weights.format(AsRef::as_ref(name), &[*rows, inputs])?, inputs))
        };
        let forms: Vec<WeightForm> = parts.iter().map(form).collect::<std::result::Result<_, _>>()?;
        let mut loaded = Vec::new();
        let mut rest = parts;
        for alike in forms.chunk_by(PartialEq::eq) {
            let (own, after) = rest.split_at(alike.len());
            rest = after;
            let rows = own.iter().map(|(_, rows)| rows).sum();
            loaded.push(match alike[0] {
                WeightForm::Floats if place.makes => FactorPart::Floats(place.random_matrix(rows, inputs)?),
                WeightForm::Floats => FactorPart::Floats(place.matrix(&read_matrix(weights, own, inputs)?)?),
                WeightForm::Blocks(kind) => {
                    FactorPart::Blocks(blocks(weights, own, [rows, inputs], kind, place)?)
                }
                WeightForm::Card(format) => {
                    FactorPart::Card(card_blocks(weights, own, [rows, inputs], format, place)?)
                }
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

    /// The matrix as the card's kernels take it; `None` if a part is in Candle's blocks.
    pub(super) fn card(&self, bias: Option<&Tensor>) -> Option<CardMatrix> {
        let parts = self.parts.iter().map(|part| match part {
            FactorPart::Floats(weights) => {
                let outputs = weights.dims().first().copied()?;
                Some(CardPart { weights: weights.clone(), format: None, outputs })
            }
            FactorPart::Card(part) => Some(part.clone()),
            FactorPart::Blocks(_) => None,
        });
        Some(CardMatrix { parts: parts.collect::<Option<_>>()?, bias: bias.cloned() })
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
            Self::Card(part) => candle_core::bail!("{:?} is for kernels", part.format),
        }
    }
}

impl Product {
    /// Weights and bias as the card's kernels take them; see [`Factor::card`].
    pub(super) fn card(&self) -> Option<CardMatrix> {
        self.factor.card(self.bias.as_ref())
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
    [rows, inputs]: [usize; 2],
    kind: GgmlDType,
    place: &Place,
) -> std::result::Result<QMatMul, ModelError> {
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

/// Matrices in one format that the kernels take, one below the other.
fn card_blocks(
    weights: &mut dyn Weights,
    parts: &[(impl AsRef<str>, usize)],
    [outputs, inputs]: [usize; 2],
    format: Format,
    place: &Place,
) -> std::result::Result<CardPart, ModelError> {
    let mut bytes = Vec::with_capacity(outputs.saturating_mul(row_bytes(format, inputs)));
    for (name, rows) in parts {
        let mut append = |format, stored: &[u8]| append_rows(format, inputs, stored, &mut bytes);
        weights.read(name.as_ref(), &[*rows, inputs], &mut append)?;
    }
    let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    Ok(CardPart { weights: Tensor::new(words, &place.device)?, format: Some(format), outputs })
}

/// The same numbers, in a format of which the device has products: for bf16 there are none on the CPU.
pub(super) fn multiplicable(x: &Tensor) -> Result<Tensor> {
    let widened = x.dtype() == DType::BF16 && x.device().is_cpu();
    x.to_dtype(if widened { DType::F32 } else { x.dtype() })
}

#[cfg(test)]
mod tests;
