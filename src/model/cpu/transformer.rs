//! The transformer that Llama, Mistral and Qwen share, in `f32` on the CPU.
//!
//! Invariant: a pass writes only past the end of the cache, and the caller commits. Matrices that read the
//! same input are one. This file knows no file format.

use std::iter;

use candle_core::Tensor;

use super::ops::{self, HeadNorm, Rotation};
use super::products::matrix::{self, Linear, Matrix, read_matrix};
use super::{attention::Attention, kv::CpuCache};
use crate::model::files::{config::Config, weights::Weights};
use crate::model::{error::ModelError, formats::Instructions};
use crate::vocab::TokenSet;

/// A block of attention and multilayer perceptron.
#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    /// The product for queries, keys and values.
    qkv: Linear,
    /// Weights of the norms of the heads of queries and keys.
    head_norms: Option<[Vec<f32>; 2]>,
    attention_out: Linear,
    mlp_norm: Vec<f32>,
    /// The product for gate and up.
    gate_up: Linear,
    down: Linear,
}

/// The new tokens of one sequence in a pass.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// The tokens, at least one, all in the vocabulary.
    pub(crate) tokens: &'a [u32],
    /// The cache with the tokens before them.
    pub(crate) cache: &'a mut CpuCache,
    /// Number of the last tokens whose logits are wanted; no more than there are tokens.
    pub(crate) wanted: usize,
    /// Sets of the tokens whose logits are wanted, one for each of these rows; all tokens if `None`.
    pub(crate) sets: Option<&'a [TokenSet]>,
}

/// All weights of a model and the rotation tables.
#[derive(Debug)]
pub(crate) struct Transformer {
    config: Config,
    /// The embedding: a row for each token.
    embedding: Matrix,
    /// The output matrix; the embedding if `None`.
    output: Option<Matrix>,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    rotation: Rotation,
}

pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
pub(crate) const OUTPUT: &str = "lm_head.weight";
pub(crate) const NORM: &str = "model.norm.weight";

/// The tensors of a product: names with their outputs, number of inputs, and whether they are biased.
pub(crate) type ProductShape = (Vec<(String, usize)>, usize, bool);

/// The products of a layer: queries, keys and values; attention's output; gate and up; down.
pub(crate) fn products(config: &Config, layer: usize) -> [ProductShape; 4] {
    let name = |part: &str| format!("model.layers.{layer}.{part}");
    let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    let (hidden, inner, biases) = (config.hidden, config.intermediate, config.biases);
    let qkv = vec![
        (name("self_attn.q_proj"), queries),
        (name("self_attn.k_proj"), keys),
        (name("self_attn.v_proj"), keys),
    ];
    let gate_up = vec![(name("mlp.gate_proj"), inner), (name("mlp.up_proj"), inner)];
    [
        (qkv, hidden, biases.qkv),
        (vec![(name("self_attn.o_proj"), hidden)], queries, biases.attention_out),
        (gate_up, hidden, biases.mlp),
        (vec![(name("mlp.down_proj"), hidden)], inner, biases.mlp),
    ]
}

/// Names of a layer's norms: before attention, before the multilayer perceptron, and of heads.
pub(crate) fn norms(config: &Config, layer: usize) -> (String, String, Option<[String; 2]>) {
    let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
    let heads = ["self_attn.q_norm", "self_attn.k_norm"];
    (name("input_layernorm"), name("post_attention_layernorm"), config.head_norms.then(|| heads.map(name)))
}

/// The names and shapes of all tensors of a model.
pub(crate) fn tensors(config: &Config) -> impl Iterator<Item = (String, Vec<usize>)> {
    let of_layer = move |layer| {
        let (attention, mlp, heads) = norms(config, layer);
        let norms = [attention, mlp].into_iter().map(|name| (name, vec![config.hidden]));
        let heads = heads.into_iter().flatten().map(|name| (name, vec![config.head_dim]));
        let products = products(config, layer).into_iter().flat_map(|(parts, inputs, biased)| {
            parts.into_iter().flat_map(move |(name, outputs)| {
                let bias = biased.then(|| (format!("{name}.bias"), vec![outputs]));
                iter::once((format!("{name}.weight"), vec![outputs, inputs])).chain(bias)
            })
        });
        products.chain(norms).chain(heads)
    };
    let matrix = |name: &str| (name.to_owned(), vec![config.vocabulary, config.hidden]);
    let output = (!config.tied).then(|| matrix(OUTPUT));
    let ends = iter::once(matrix(EMBEDDING)).chain(output).chain([(NORM.to_owned(), vec![config.hidden])]);
    ends.chain((0..config.layers).flat_map(of_layer))
}

/// Bytes that all weights take in memory. Reads none of them.
///
/// # Errors
/// If a tensor is missing, or has another shape than `config` says or an unknown number format.
pub(crate) fn size(weights: &dyn Weights, config: &Config) -> Result<u64, ModelError> {
    tensors(config).try_fold(0_u64, |bytes, (name, shape)| {
        let columns = shape.last().copied().unwrap_or(1);
        let rows = shape.iter().product::<usize>() / columns.max(1);
        let size = Matrix::size(weights.format(&name, &shape)?, rows, columns);
        Ok(bytes.saturating_add(size))
    })
}

impl Layer {
    fn load(weights: &mut dyn Weights, config: &Config, index: usize) -> Result<Self, ModelError> {
        let mut linear =
            |(parts, inputs, biased): ProductShape| Linear::load(weights, &parts, inputs, biased);
        let [qkv, attention_out, gate_up, down] = products(config, index);
        let (qkv, attention_out) = (linear(qkv)?, linear(attention_out)?);
        let (gate_up, down) = (linear(gate_up)?, linear(down)?);
        let (attention_norm, mlp_norm, heads) = norms(config, index);
        let head_norms = match heads {
            Some([queries, keys]) => {
                Some([weights.vector(&queries, config.head_dim)?, weights.vector(&keys, config.head_dim)?])
            }
            None => None,
        };
        Ok(Self {
            attention_norm: weights.vector(&attention_norm, config.hidden)?,
            qkv,
            head_norms,
            attention_out,
            mlp_norm: weights.vector(&mlp_norm, config.hidden)?,
            gate_up,
            down,
        })
    }
}

impl Transformer {
    /// Reads and converts every weight once; makes tables for `context` positions.
    ///
    /// # Errors
    /// If a tensor is missing, has another shape than `config` says, or cannot be read.
    pub(crate) fn load(
        weights: &mut dyn Weights,
        config: Config,
        context: usize,
    ) -> Result<Self, ModelError> {
        let vocabulary = config.vocabulary;
        let embedding = read_matrix(weights, &[(EMBEDDING, vocabulary)], config.hidden)?;
        let output = match config.tied {
            true => None,
            false => Some(read_matrix(weights, &[(OUTPUT, vocabulary)], config.hidden)?),
        };
        Ok(Self {
            embedding,
            output,
            layers: (0..config.layers)
                .map(|index| Layer::load(weights, &config, index))
                .collect::<Result<_, _>>()?,
            norm: weights.vector(NORM, config.hidden)?,
            rotation: Rotation::new(context, config.head_dim, &config.rope),
            config,
        })
    }

    /// Chooses the instructions; see [`Matrix::multiply_with`].
    pub(crate) fn multiply_with(&mut self, instructions: Option<Instructions>) {
        let layers = self.layers.iter_mut();
        let linears = layers.flat_map(|layer| {
            [&mut layer.qkv, &mut layer.attention_out, &mut layer.gate_up, &mut layer.down]
        });
        linears.for_each(|linear| linear.matrix_mut().multiply_with(instructions));
        self.embedding.multiply_with(instructions);
        if let Some(output) = &mut self.output {
            output.multiply_with(instructions);
        }
    }

    /// Sizes and constants.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Runs the tokens of all parts, each after those in its cache, writes their keys and values there, and
    /// returns the rows of logits that are wanted, part after part. Does not commit.
    ///
    /// The rows are made at the beginning of `memory`, whatever is in it.
    ///
    /// A part's rows do not depend on the other parts: products, norms and sums are made row by row, and
    /// attention sees one cache.
    ///
    /// # Errors
    /// If the tensor library fails, also when a cache is too short.
    pub(crate) fn forward(&self, parts: &mut [Part<'_>], memory: Vec<f32>) -> candle_core::Result<Vec<f32>> {
        let tokens: Vec<u32> = parts.iter().flat_map(|part| part.tokens).copied().collect();
        let mut x = self.embedding.rows(&tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let Some(attended) = self.attention(layer, index, &x, parts)? else { return Ok(memory) };
            x = attended;
            let hidden = ops::rms_norm(&x, &layer.mlp_norm, self.config.norm_epsilon)?;
            let hidden = ops::gated_silu(&layer.gate_up.apply(&hidden)?)?;
            x = layer.down.apply_plus(&hidden, &x)?;
        }
        let hidden = ops::rms_norm(&x, &self.norm, self.config.norm_epsilon)?;
        let output = self.output.as_ref().unwrap_or(&self.embedding);
        let hidden = hidden.flatten_all()?.to_vec1::<f32>()?;
        let mut sets: Vec<Option<&TokenSet>> = Vec::new();
        for part in parts {
            match part.sets {
                Some(own) => sets.extend(own.iter().map(Some)),
                None => sets.resize(sets.len() + part.wanted, None),
            }
        }
        Ok(matrix::product(output, &hidden, &sets, memory))
    }

    /// Computes `x` (`[n, hidden]`) plus the attention of layer `index`. The last layer computes only the
    /// rows whose logits are wanted (`None` if none are): of the others, later passes need keys and values
    /// alone.
    fn attention(
        &self,
        layer: &Layer,
        index: usize,
        x: &Tensor,
        parts: &mut [Part<'_>],
    ) -> candle_core::Result<Option<Tensor>> {
        let is_last = index + 1 == self.layers.len();
        let kept = match is_last {
            true => wanted(x, parts)?,
            false => Some(x.clone()),
        };
        let qkv = layer.qkv.apply(&ops::rms_norm(x, &layer.attention_norm, self.config.norm_epsilon)?)?;
        let mut attended = Vec::with_capacity(parts.len());
        let mut start = 0;
        for part in parts {
            let rows = qkv.narrow(0, start, part.tokens.len())?;
            start += part.tokens.len();
            let count = if is_last { part.wanted } else { part.tokens.len() };
            attended.extend(self.attend(layer, index, &rows, part.cache, count)?);
        }
        kept.map(|kept| layer.attention_out.apply_plus(&joined(attended)?, &kept)).transpose()
    }

    /// Computes the attention of the last `count` rows of one part to its cache, after writing keys and
    /// values of all its rows there; `None` if `count` is zero.
    fn attend(
        &self,
        layer: &Layer,
        index: usize,
        qkv: &Tensor,
        cache: &mut CpuCache,
        count: usize,
    ) -> candle_core::Result<Option<Tensor>> {
        let Config { heads, kv_heads, head_dim, norm_epsilon: epsilon, .. } = self.config;
        let position = cache.len();
        let window = self.config.window_of(index);
        let norm =
            |which: usize| layer.head_norms.as_ref().map(|norms| HeadNorm { weight: &norms[which], epsilon });

        let (queries_width, keys_width) = (heads * head_dim, kv_heads * head_dim);
        let keys = qkv.narrow(1, queries_width, keys_width)?;
        let values = qkv.narrow(1, queries_width + keys_width, keys_width)?;
        let keys = ops::split_and_rotate(&keys, head_dim, norm(1), &self.rotation, position)?;
        let values = ops::split(&values, head_dim)?;
        let (keys, values) = cache.extend(index, &keys, &values)?;
        if count == 0 {
            return Ok(None);
        }
        let before = qkv.dim(0)? - count;
        let position = position + before;
        let queries = qkv.narrow(1, 0, queries_width)?.narrow(0, before, count)?;
        let queries = ops::split_and_rotate(&queries, head_dim, norm(0), &self.rotation, position)?;
        Attention { position, first_key: 0, window }.apply(&queries, keys, values).map(Some)
    }
}

/// Rows of `x` whose logits are wanted; `None` if there is none.
fn wanted(x: &Tensor, parts: &[Part<'_>]) -> candle_core::Result<Option<Tensor>> {
    let mut rows = Vec::with_capacity(parts.len());
    let mut end = 0;
    for part in parts {
        end += part.tokens.len();
        if part.wanted > 0 {
            rows.push(x.narrow(0, end - part.wanted, part.wanted)?);
        }
    }
    if rows.is_empty() { Ok(None) } else { joined(rows).map(Some) }
}

/// Concatenates rows, one below the other.
fn joined(mut rows: Vec<Tensor>) -> candle_core::Result<Tensor> {
    if rows.len() == 1 { Ok(rows.swap_remove(0)) } else { Tensor::cat(&rows, 0) }
}
