//! Matrices on a device, and their products: in floats, or in ggml's blocks as they are stored.
//!
//! A product with blocks reads 4.5 to 8.5 bits for each weight where floats are 16 or 32, and reading weights
//! is the cost of a pass over few tokens. Like llama.cpp's it rounds its inputs to eight bits.

use std::sync::Arc;

use candle_core::{
    DType, Module, Result, Tensor,
    quantized::{GgmlDType, QMatMul, QStorage, QTensor},
};

use super::placement::Place;
use crate::model::{
    candle::card,
    cpu::{pages::Pages, products::linear::read_matrix},
    error::ModelError,
    files::weights::Weights,
};

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
        parts: &[(&str, usize)],
        inputs: usize,
        place: &Place,
    ) -> std::result::Result<Self, ModelError> {
        let kind = |&(name, rows): &(&str, usize)| -> std::result::Result<_, ModelError> {
            Ok(place.keeps_blocks(weights.format(name, &[rows, inputs])?, inputs))
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
    parts: &[(&str, usize)],
    inputs: usize,
    kind: GgmlDType,
    place: &Place,
) -> std::result::Result<QMatMul, ModelError> {
    let rows: usize = parts.iter().map(|(_, rows)| rows).sum();
    // Candle reads the bytes as blocks, whose halves must be aligned.
    let mut stored = Pages::default();
    stored.reserve(rows.saturating_mul(inputs / kind.block_size()).saturating_mul(kind.type_size()));
    for &(name, rows) in parts {
        weights.read(name, &[rows, inputs], &mut |_format, bytes| {
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
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::model::{
        candle::tensor::Placement,
        cpu::products::packing::tests::{QUANTISED, stored},
        formats::format::Format,
    };

    /// Rows of each of these formats, by index as name.
    struct Stored(Vec<(Format, Vec<u8>)>);

    impl Weights for Stored {
        fn format(&self, name: &str, _shape: &[usize]) -> std::result::Result<Format, ModelError> {
            Ok(self.0[name.parse::<usize>().unwrap()].0)
        }

        fn read(
            &mut self,
            name: &str,
            _shape: &[usize],
            each: &mut dyn FnMut(Format, &[u8]),
        ) -> std::result::Result<(), ModelError> {
            let (format, bytes) = &self.0[name.parse::<usize>().unwrap()];
            // Row by row.
            bytes.chunks(bytes.len() / ROWS).for_each(|row| each(*format, row));
            Ok(())
        }

        fn vector(&mut self, _name: &str, _length: usize) -> std::result::Result<Vec<f32>, ModelError> {
            Ok(Vec::new())
        }
    }

    const ROWS: usize = 16;

    /// Makes whole numbers that rounding to eight bits leaves as they are: Candle rounds groups of 32 or 256
    /// to 127 parts of the largest magnitude, which is 127.
    fn unrounded(count: usize, inputs: usize, format: Format) -> Tensor {
        let number = |index: usize| match index % format.block() {
            0 => 127.0,
            _ => (index * 7919 % 251) as f32 - 125.0,
        };
        Tensor::from_iter((0..count * inputs).map(number), &Device::Cpu)
            .unwrap()
            .reshape((count, inputs))
            .unwrap()
    }

    #[test]
    fn products_with_blocks_are_those_of_unpacked_numbers() {
        for (format, _) in QUANTISED {
            // Groups of 32 only, and rows for which Candle has packed kernels or has none.
            let inputs = if format.block() == 32 { 320 } else { 512 };
            let blocks = |seed| (format, stored(format, ROWS * inputs / format.block(), seed));
            let floats = (Format::F32, stored(Format::F32, ROWS * inputs, 9));
            let mut weights = Stored(vec![blocks(1), blocks(2), floats, blocks(3)]);
            let parts = [("0", ROWS), ("1", ROWS), ("2", ROWS), ("3", ROWS)];
            let [kept, unpacked] = [false, true].map(|unpacks| {
                let place = Placement::CPU.open(unpacks).unwrap();
                Factor::load(&mut weights, &parts, inputs, &place).unwrap()
            });
            assert_eq!((kept.parts.len(), unpacked.parts.len()), (3, 1), "{format}");
            for count in [1, 2, 5] {
                let x = unrounded(count, inputs, format);
                let got = kept.product(&x).unwrap().to_vec2::<f32>().unwrap();
                let expected = unpacked.product(&x).unwrap().to_vec2::<f32>().unwrap();
                let largest = expected.iter().flatten().fold(0.0_f32, |most, value| most.max(value.abs()));
                for (got, expected) in got.iter().flatten().zip(expected.iter().flatten()) {
                    assert!((got - expected).abs() <= 1e-5 * largest, "{format} {count}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn rows_of_blocks_are_those_of_the_unpacked_numbers() {
        let ids = Tensor::new(&[3_u32, 0, 15, 3], &Device::Cpu).unwrap();
        for (format, _) in QUANTISED {
            let mut weights = Stored(vec![(format, stored(format, ROWS * 256 / format.block(), 4))]);
            let [kept, unpacked] = [false, true].map(|unpacks| {
                let place = Placement::CPU.open(unpacks).unwrap();
                let factor = Factor::load(&mut weights, &[("0", ROWS)], 256, &place).unwrap();
                factor.rows(&ids, place.precision).unwrap().to_vec2::<f32>().unwrap()
            });
            assert_eq!(kept, unpacked, "{format}");
        }
    }

    /// Candle takes blocks of 32 by twos.
    #[test]
    fn rows_of_odd_numbers_of_blocks_are_unpacked() {
        let mut weights = Stored(vec![(Format::Q4_1, stored(Format::Q4_1, ROWS * 3, 5))]);
        let place = Placement::CPU.open(false).unwrap();
        let factor = Factor::load(&mut weights, &[("0", ROWS)], 96, &place).unwrap();
        assert!(matches!(factor.parts.as_slice(), [FactorPart::Floats(_)]));
        assert_eq!(factor.product(&unrounded(2, 96, Format::Q4_1)).unwrap().dims(), [2, ROWS]);
    }
}
