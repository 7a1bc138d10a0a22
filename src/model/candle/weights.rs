//! Where a model's tensors come from: what the file formats have in common.

use super::{error::ModelError, matrix::Matrix};

/// Tensors by the names that Hugging Face gives them, such as `model.norm.weight`.
pub(super) trait Weights {
    /// Bytes that a tensor of this shape takes in memory. Reads nothing.
    ///
    /// # Errors
    /// If there is no such tensor, or it has another shape or an unknown number format.
    fn size(&self, name: &str, shape: &[usize]) -> Result<u64, ModelError>;

    /// A vector of `length` numbers.
    ///
    /// # Errors
    /// As [`size`](Self::size), and if it cannot be read.
    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>, ModelError>;

    /// Matrices of `parts` (name and rows, each row `inputs` long), one below the other.
    ///
    /// # Errors
    /// As [`vector`](Self::vector).
    fn matrix(&mut self, parts: &[(&str, usize)], inputs: usize) -> Result<Matrix, ModelError>;
}
