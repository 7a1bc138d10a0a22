//! The parts of a transformer layer as tensor operations that every device has.

use candle_core::{D, DType, Result, Tensor};

/// `x` (rows `[n, inputs]`) times a matrix (`[outputs, inputs]`), plus a vector if there is one.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) weights: Tensor,
    pub(super) bias: Option<Tensor>,
}

impl Product {
    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let product = factor(x)?.matmul(&factor(&self.weights)?.t()?)?.to_dtype(x.dtype())?;
        match &self.bias {
            Some(bias) => product.broadcast_add(bias),
            None => Ok(product),
        }
    }
}

/// The same numbers, in a format of which the device has products: for bf16 there are none on the CPU.
fn factor(x: &Tensor) -> Result<Tensor> {
    let widened = x.dtype() == DType::BF16 && x.device().is_cpu();
    x.to_dtype(if widened { DType::F32 } else { x.dtype() })
}

/// Root-mean-square normalisation over the last dimension, in 32 bits; the result has the numbers of `x`.
pub(super) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f32) -> Result<Tensor> {
    let wide = x.to_dtype(DType::F32)?;
    let mean = wide.sqr()?.mean_keepdim(D::Minus1)?;
    let scale = (mean + f64::from(epsilon))?.sqrt()?;
    wide.broadcast_div(&scale)?.broadcast_mul(weight)?.to_dtype(x.dtype())
}

/// Rows `[n, heads * head_dim]` -> heads `[heads, n, head_dim]`, contiguous.
pub(super) fn split(x: &Tensor, head_dim: usize) -> Result<Tensor> {
    let (count, width) = x.dims2()?;
    x.reshape((count, width / head_dim, head_dim))?.transpose(0, 1)?.contiguous()
}

/// Rotates each pair of numbers (`i`, `i + head_dim / 2`) of heads `[heads, n, head_dim]` by the angles of its
/// row: cosines and sines `[n, head_dim / 2]`. In 32 bits.
pub(super) fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let half = x.dim(D::Minus1)? / 2;
    let wide = x.to_dtype(DType::F32)?;
    let (left, right) = (wide.narrow(D::Minus1, 0, half)?, wide.narrow(D::Minus1, half, half)?);
    let first = (left.broadcast_mul(cos)? - right.broadcast_mul(sin)?)?;
    let second = (right.broadcast_mul(cos)? + left.broadcast_mul(sin)?)?;
    Tensor::cat(&[first, second], D::Minus1)?.to_dtype(x.dtype())
}

/// Attention of `queries` (`[heads, n, head_dim]`) to `keys` and `values` (`[kv_heads, keys, head_dim]`): rows
/// `[n, heads * head_dim]`. Neighbouring heads share a key head. `unseen` (`[n, keys]`) is added to the scores:
/// minus infinity where a query does not see a key.
pub(super) fn attend(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    unseen: Option<&Tensor>,
) -> Result<Tensor> {
    let (heads, count, head_dim) = queries.dims3()?;
    let (kv_heads, key_count, _) = keys.dims3()?;
    let group = heads / kv_heads;
    let queries = queries.reshape((kv_heads, group * count, head_dim))?;
    #[expect(clippy::cast_precision_loss, reason = "head sizes are far below 2^52")]
    let scale = 1.0 / (head_dim as f64).sqrt();
    let scores = factor(&queries)?.matmul(&factor(keys)?.transpose(1, 2)?)?;
    let scores = (scores.to_dtype(queries.dtype())?.to_dtype(DType::F32)? * scale)?;
    let scores = match unseen {
        Some(unseen) => {
            let scores = scores.reshape((kv_heads, group, count, key_count))?;
            scores.broadcast_add(unseen)?.reshape((kv_heads, group * count, key_count))?
        }
        None => scores,
    };
    let weights = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
    let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?.to_dtype(values.dtype())?;
    let attended = factor(&weights)?.matmul(&factor(values)?)?.to_dtype(values.dtype())?;
    let attended = attended.reshape((heads, count, head_dim))?;
    attended.transpose(0, 1)?.reshape((count, heads * head_dim))
}
