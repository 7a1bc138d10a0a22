//! The transformer that Llama and Mistral share, in `f32` on the CPU.
//!
//! Invariant: a pass writes only past the end of the cache, and the caller commits. Weights are kept
//! transposed (`[inputs, outputs]`), which makes passes over several tokens cheaper; matrices that read
//! the same input lie side by side. This file knows no file format.

use candle_core::{Device, Tensor};

use super::{
    config::Config,
    error::ModelError,
    kv_cache::KvCache,
    ops::{self, CausalSoftmax, Rotation},
    weights::Weights,
};
use crate::model::Rows;

/// One block. Matrices are `[inputs, outputs]`.
#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    /// Queries, keys, values.
    qkv: Tensor,
    attention_out: Tensor,
    mlp_norm: Vec<f32>,
    /// Gate, up.
    gate_up: Tensor,
    down: Tensor,
}

/// All weights of a model and the rotation tables.
#[derive(Debug)]
pub(super) struct Llama {
    config: Config,
    /// `[hidden, vocabulary]`.
    embedding: Tensor,
    /// `[hidden, vocabulary]`; the same tensor when tied.
    output: Tensor,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    rotation: Rotation,
}

/// Reads matrices side by side.
fn matrix(weights: &mut Weights, parts: &[(&str, usize)], inputs: usize) -> Result<Tensor, ModelError> {
    let outputs: usize = parts.iter().map(|&(_, outputs)| outputs).sum();
    Ok(Tensor::from_vec(weights.transposed(parts, inputs)?, (inputs, outputs), &Device::Cpu)?)
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
            qkv: matrix(weights, &qkv.each_ref().map(|(name, rows)| (name.as_str(), *rows)), hidden)?,
            attention_out: matrix(weights, &[(&name("self_attn.o_proj"), hidden)], queries)?,
            mlp_norm: weights.vector(&name("post_attention_layernorm"), hidden)?,
            gate_up: matrix(weights, &gate_up.each_ref().map(|(name, rows)| (name.as_str(), *rows)), hidden)?,
            down: matrix(weights, &[(&name("mlp.down_proj"), hidden)], inner)?,
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
        let embedding = matrix(weights, &[("model.embed_tokens.weight", vocabulary)], config.hidden)?;
        let output = if config.tied {
            embedding.clone()
        } else {
            matrix(weights, &[("lm_head.weight", vocabulary)], config.hidden)?
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
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut x = self.embedding.index_select(&ids, 1)?.t()?.contiguous()?;
        for (index, layer) in self.layers.iter().enumerate() {
            x = self.attention(layer, index, &x, cache)?;
            let hidden = ops::rms_norm(&x, &layer.mlp_norm, self.config.norm_epsilon)?;
            let hidden = ops::gated_silu(&hidden.matmul(&layer.gate_up)?)?;
            x = (x + hidden.matmul(&layer.down)?)?;
        }
        if rows == Rows::Last {
            x = x.narrow(0, tokens.len() - 1, 1)?;
        }
        let hidden = ops::rms_norm(&x, &self.norm, self.config.norm_epsilon)?;
        hidden.matmul(&self.output)?.flatten_all()?.to_vec1()
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
        let (new, _hidden) = x.dims2()?;
        let position = cache.len();
        let first_key = window.map_or(0, |window| (position + 1).saturating_sub(window));

        let qkv = ops::rms_norm(x, &layer.attention_norm, norm_epsilon)?.matmul(&layer.qkv)?;
        let (queries_width, keys_width) = (heads * head_dim, kv_heads * head_dim);
        let queries = qkv.narrow(1, 0, queries_width)?;
        let keys = qkv.narrow(1, queries_width, keys_width)?;
        let values = qkv.narrow(1, queries_width + keys_width, keys_width)?;
        // The heads that share a key head are neighbours, so they can be rows of one product.
        let queries = ops::split_and_rotate(&queries, head_dim, &self.rotation, position)?.reshape((
            kv_heads,
            heads / kv_heads * new,
            head_dim,
        ))?;
        let keys = ops::split_and_rotate(&keys, head_dim, &self.rotation, position)?;
        let values = ops::split(&values, head_dim)?;
        let (keys, values) = cache.extend(index, &keys, &values, first_key)?;

        let scores = queries.matmul(&keys.t()?)?;
        #[expect(clippy::cast_precision_loss, reason = "head sizes are far below 2^24")]
        let scale = 1.0 / (head_dim as f32).sqrt();
        scores.inplace_op1(&CausalSoftmax { position, queries: new, first_key, window, scale })?;
        let attended = scores.matmul(&values)?.reshape((heads, new, head_dim))?;
        let attended = attended.transpose(0, 1)?.contiguous()?.reshape((new, queries_width))?;
        x + attended.matmul(&layer.attention_out)?
    }
}
