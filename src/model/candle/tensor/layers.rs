//! The parts of a transformer layer as operations that every device has, fused where Candle fuses them.

use candle_core::{DType, Result, Tensor};

use super::factor::multiplicable;

/// Root-mean-square normalisation over the last dimension, in 32 bits; the result has the numbers of `x`.
pub(super) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f32) -> Result<Tensor> {
    let wide = x.to_dtype(DType::F32)?.contiguous()?;
    candle_nn::ops::rms_norm(&wide, weight, epsilon)?.to_dtype(x.dtype())
}

/// Rows `[n, heads * head_dim]` -> heads `[heads, n, head_dim]`, contiguous.
pub(super) fn split(x: &Tensor, head_dim: usize) -> Result<Tensor> {
    let (count, width) = x.dims2()?;
    x.reshape((count, width / head_dim, head_dim))?.transpose(0, 1)?.contiguous()
}

/// Rotates each pair of numbers (`i`, `i + head_dim / 2`) of heads `[heads, n, head_dim]` by the angles of
/// its row: cosines and sines `[n, head_dim / 2]`. In 32 bits.
pub(super) fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let wide = x.to_dtype(DType::F32)?.contiguous()?.unsqueeze(0)?;
    candle_nn::rotary_emb::rope(&wide, cos, sin)?.squeeze(0)?.to_dtype(x.dtype())
}

/// Attention of `queries` (`[heads, n, head_dim]`) to `keys` and `values` (`[kv_heads, keys, head_dim]`):
/// rows `[n, heads * head_dim]`. Neighbouring heads share a key head. `unseen` (`[n, keys]`) is added to the
/// scores: minus infinity where a query does not see a key.
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
    let scores = multiplicable(&queries)?.matmul(&multiplicable(keys)?.transpose(1, 2)?)?;
    let scores = (scores.to_dtype(queries.dtype())?.to_dtype(DType::F32)? * scale)?;
    let scores = match unseen {
        Some(unseen) => {
            let scores = scores.reshape((kv_heads, group, count, key_count))?;
            scores.broadcast_add(unseen)?.reshape((kv_heads, group * count, key_count))?
        }
        None => scores,
    };
    let weights = candle_nn::ops::softmax_last_dim(&scores.contiguous()?)?.to_dtype(values.dtype())?;
    let attended = multiplicable(&weights)?.matmul(&multiplicable(values)?)?.to_dtype(values.dtype())?;
    let attended = attended.reshape((heads, count, head_dim))?;
    attended.transpose(0, 1)?.reshape((count, heads * head_dim))
}
