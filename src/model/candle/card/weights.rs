//! A model's tensors on a device, as the kernels take them.

use candle_core::Tensor;

/// `[outputs, inputs]` in the numbers of the model, and what is added to its products.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct CardMatrix {
    pub(in crate::model::candle) weights: Tensor,
    /// Bias, in the same numbers. `None`: there is none.
    pub(in crate::model::candle) bias: Option<Tensor>,
}

/// One block and its cache. Norms have 32 bits.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct LayerWeights {
    pub(in crate::model::candle) attention_norm: Tensor,
    /// Queries, keys, values.
    pub(in crate::model::candle) qkv: CardMatrix,
    /// Norms of the heads of queries and keys.
    pub(in crate::model::candle) head_norms: Option<[Tensor; 2]>,
    pub(in crate::model::candle) attention_out: CardMatrix,
    pub(in crate::model::candle) mlp_norm: Tensor,
    /// Gate, up.
    pub(in crate::model::candle) gate_up: CardMatrix,
    pub(in crate::model::candle) down: CardMatrix,
    /// `[kv_heads, context, head_dim]`.
    pub(in crate::model::candle) keys: Tensor,
    pub(in crate::model::candle) values: Tensor,
}

/// All tensors of a model.
#[derive(Debug, Clone)]
pub(in crate::model::candle) struct ModelWeights {
    /// A row for each token.
    pub(in crate::model::candle) embedding: Tensor,
    pub(in crate::model::candle) output: Tensor,
    pub(in crate::model::candle) norm: Tensor,
    /// Cosines and sines, `[context, head_dim / 2]` in 32 bits.
    pub(in crate::model::candle) rotation: [Tensor; 2],
    pub(in crate::model::candle) layers: Vec<LayerWeights>,
}
