//! The transformer that Llama and Mistral share, in `f32` on the CPU.
//!
//! Invariant: a pass writes only past the end of the cache, and the caller commits. Matrices that read the
//! same input are one. This file knows no file format.

use candle_core::Tensor;

use super::{
    attention::Attention,
    config::Config,
    error::ModelError,
    kv_cache::KvCache,
    matrix::Matrix,
    ops::{self, Rotation},
    weights::Weights,
};
use crate::model::Rows;

/// One block.
#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    /// Queries, keys, values.
    qkv: Matrix,
    attention_out: Matrix,
    mlp_norm: Vec<f32>,
    /// Gate, up.
    gate_up: Matrix,
    down: Matrix,
}

/// All weights of a model and the rotation tables.
#[derive(Debug)]
pub(super) struct Llama {
    config: Config,
    /// A row for each token.
    embedding: Matrix,
    /// The embedding if `None`.
    output: Option<Matrix>,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    rotation: Rotation,
}

impl Layer {
    fn load(weights: &mut Weights, config: &Config, index: usize) -> Result<Self, ModelError> {
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let (hidden, inner) = (config.hidden, config.intermediate);
        let qkv = [
            (name("self_attn.q_proj"), queries),
            (name("self_attn.k_proj"), keys),
            (name("self_attn.v_proj"), keys),
        ];
        let gate_up = [(name("mlp.gate_proj"), inner), (name("mlp.up_proj"), inner)];
        Ok(Self {
            attention_norm: weights.vector(&name("input_layernorm"), hidden)?,
            qkv: weights.matrix(&qkv.each_ref().map(|(name, rows)| (name.as_str(), *rows)), hidden)?,
            attention_out: weights.matrix(&[(&name("self_attn.o_proj"), hidden)], queries)?,
            mlp_norm: weights.vector(&name("post_attention_layernorm"), hidden)?,
            gate_up: weights
                .matrix(&gate_up.each_ref().map(|(name, rows)| (name.as_str(), *rows)), hidden)?,
            down: weights.matrix(&[(&name("mlp.down_proj"), hidden)], inner)?,
        })
    }
}

impl Llama {
    /// Reads all weights; tables for `context` positions. Reads and converts every weight once.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape than `config` says, or cannot be read.
    pub(super) fn load(weights: &mut Weights, config: Config, context: usize) -> Result<Self, ModelError> {
        let vocabulary = config.vocabulary;
        let embedding = weights.matrix(&[("model.embed_tokens.weight", vocabulary)], config.hidden)?;
        let output = match config.tied {
            true => None,
            false => Some(weights.matrix(&[("lm_head.weight", vocabulary)], config.hidden)?),
        };
        Ok(Self {
            embedding,
            output,
            layers: (0..config.layers)
                .map(|index| Layer::load(weights, &config, index))
                .collect::<Result<_, _>>()?,
            norm: weights.vector("model.norm.weight", config.hidden)?,
            rotation: Rotation::new(context, config.head_dim, config.rope_theta),
            config,
        })
    }

    /// Length of a row of logits.
    pub(super) fn vocabulary_size(&self) -> usize {
        self.config.vocabulary
    }

    /// Runs `tokens` (at least one, all in the vocabulary) after those in the cache, writes their keys and
    /// values there, and returns rows of logits, one after the other. Does not commit.
    ///
    /// # Errors
    /// If the tensor library fails, also when the cache is too short.
    pub(super) fn forward(
        &self,
        tokens: &[u32],
        rows: Rows,
        cache: &KvCache,
    ) -> candle_core::Result<Vec<f32>> {
        let mut x = self.embedding.rows(tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            x = self.attention(layer, index, &x, cache)?;
            let hidden = ops::rms_norm(&x, &layer.mlp_norm, self.config.norm_epsilon)?;
            let hidden = ops::gated_silu(&layer.gate_up.apply(&hidden)?)?;
            x = (x + layer.down.apply(&hidden)?)?;
        }
        if rows == Rows::Last {
            x = x.narrow(0, tokens.len() - 1, 1)?;
        }
        let hidden = ops::rms_norm(&x, &self.norm, self.config.norm_epsilon)?;
        let (count, _hidden) = hidden.dims2()?;
        let output = self.output.as_ref().unwrap_or(&self.embedding);
        Ok(output.product(&hidden.flatten_all()?.to_vec1::<f32>()?, count))
    }

    /// `x` (`[n, hidden]`) plus what layer `index` attends to.
    fn attention(
        &self,
        layer: &Layer,
        index: usize,
        x: &Tensor,
        cache: &KvCache,
    ) -> candle_core::Result<Tensor> {
        let Config { heads, kv_heads, head_dim, window, norm_epsilon, .. } = self.config;
        let position = cache.len();
        let first_key = window.map_or(0, |window| (position + 1).saturating_sub(window));

        let qkv = layer.qkv.apply(&ops::rms_norm(x, &layer.attention_norm, norm_epsilon)?)?;
        let (queries_width, keys_width) = (heads * head_dim, kv_heads * head_dim);
        let queries = qkv.narrow(1, 0, queries_width)?;
        let keys = qkv.narrow(1, queries_width, keys_width)?;
        let values = qkv.narrow(1, queries_width + keys_width, keys_width)?;
        let queries = ops::split_and_rotate(&queries, head_dim, &self.rotation, position)?;
        let keys = ops::split_and_rotate(&keys, head_dim, &self.rotation, position)?;
        let values = ops::split(&values, head_dim)?;
        let (keys, values) = cache.extend(index, &keys, &values, first_key)?;
        let attended = Attention { position, first_key, window }.apply(&queries, &keys, &values)?;
        x + layer.attention_out.apply(&attended)?
    }
}
