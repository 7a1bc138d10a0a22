//! A linear layer on the CPU: a weight matrix and a bias.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};

use super::matrix::Matrix;
use crate::model::{
    cpu::ops::{each_row, rows_of},
    error::ModelError,
    files::weights::Weights,
};

/// `x` times a matrix, plus a bias if there is one.
#[derive(Debug)]
pub(crate) struct Linear {
    matrix: Matrix,
    bias: Option<Vec<f32>>,
}

impl Linear {
    /// Reads the tensors `NAME.weight` and, if `biased`, `NAME.bias` of all `parts` (name and outputs), one
    /// below the other.
    ///
    /// # Errors
    /// Those of the weights.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        parts: &[(String, usize)],
        inputs: usize,
        biased: bool,
    ) -> std::result::Result<Self, ModelError> {
        let names = matrix_names(parts);
        let names: Vec<(&str, usize)> =
            names.iter().map(|(name, outputs)| (name.as_str(), *outputs)).collect();
        let matrix = read_matrix(weights, &names, inputs)?;
        Ok(Self { matrix, bias: biased.then(|| bias(weights, parts)).transpose()? })
    }

    /// The matrix, to choose how its products are made.
    pub(crate) fn matrix_mut(&mut self) -> &mut Matrix {
        &mut self.matrix
    }

    /// Maps rows `[n, inputs]` to rows `[n, outputs]`.
    pub(crate) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.apply_op1_no_bwd(self)
    }

    /// [`apply`](Self::apply) plus `other` (rows `[n, outputs]`), in one step.
    pub(crate) fn apply_plus(&self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        x.apply_op2_no_bwd(other, self)
    }

    /// Computes the rows of the output, one after the other, and their number.
    fn rows(&self, storage: &CpuStorage, layout: &Layout) -> Result<(Vec<f32>, usize)> {
        let (values, count, width, stride) = rows_of(storage, layout)?;
        if width != self.matrix.inputs() || stride != width && count > 1 {
            candle_core::bail!("contiguous rows of {} are expected", self.matrix.inputs());
        }
        let mut out = self.matrix.product(&values[..count * width], count);
        if let Some(bias) = &self.bias {
            for row in out.chunks_exact_mut(self.matrix.outputs()) {
                row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
            }
        }
        Ok((out, count))
    }
}

/// Names of the weight tensors of `parts` (name and outputs), and the outputs of each.
pub(crate) fn matrix_names(parts: &[(String, usize)]) -> Vec<(String, usize)> {
    parts.iter().map(|(name, outputs)| (format!("{name}.weight"), *outputs)).collect()
}

/// Biases of `parts` (name and outputs), one after the other.
///
/// # Errors
/// Those of the weights.
pub(crate) fn bias(
    weights: &mut dyn Weights,
    parts: &[(String, usize)],
) -> std::result::Result<Vec<f32>, ModelError> {
    let mut all = Vec::new();
    for (name, outputs) in parts {
        all.extend(weights.vector(&format!("{name}.bias"), *outputs)?);
    }
    Ok(all)
}

/// Reads the matrices of `parts` (name and rows, each row `inputs` long), one below the other.
///
/// # Errors
/// All errors of [`read`](Weights::read).
pub(crate) fn read_matrix(
    weights: &mut dyn Weights,
    parts: &[(&str, usize)],
    inputs: usize,
) -> std::result::Result<Matrix, ModelError> {
    let mut matrix = Matrix::new(inputs);
    for &(name, rows) in parts {
        // The files bound the sizes; the configuration does not, so room is reserved by what the files say.
        matrix.reserve(weights.format(name, &[rows, inputs])?, rows);
        weights.read(name, &[rows, inputs], &mut |format, stored| matrix.push(format, stored))?;
    }
    Ok(matrix)
}

impl CustomOp1 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (out, count) = self.rows(storage, layout)?;
        Ok((CpuStorage::F32(out), Shape::from((count, self.matrix.outputs()))))
    }
}

impl CustomOp2 for Linear {
    fn name(&self) -> &'static str {
        "linear-plus"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
        other: &CpuStorage,
        other_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (mut out, count) = self.rows(storage, layout)?;
        let outputs = self.matrix.outputs();
        let (other, others, width, stride) = rows_of(other, other_layout)?;
        if (others, width) != (count, outputs) || outputs == 0 {
            candle_core::bail!("{count} rows of {outputs} are expected");
        }
        each_row(&mut out, outputs, |row, out| {
            out.iter_mut().zip(&other[row * stride..]).for_each(|(value, other)| *value += other);
        });
        Ok((CpuStorage::F32(out), Shape::from((count, outputs))))
    }
}
